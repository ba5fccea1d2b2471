"""Figures that explain: the joint index (g) and the three stages of an episode (h). Both are computed, not drawn by hand."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from codesign_bench.analysis import style
from codesign_bench.analysis.drawing import View, draw, window
from codesign_bench.analysis.robot import Robot
from codesign_bench.design.colours import BONES
from codesign_bench.design.graph import Design
from codesign_bench.design.joint_index import index_integers, index_strings
from codesign_bench.design.stored import StoredDesign
from codesign_bench.design.transform import ADD_JOINT, DEL_JOINT, NO_CHANGE, attribute_transform, skeleton_transform
from codesign_bench.tasks import make_task

PARENTS = (-1, 0, 1, 1, 1, 2, 2)
"""The example of the paper's appendix: '211' is the second child of the first child of the root's first child."""
SHOWN = "211"
INK = "#333333"


def joint_index() -> Figure:
    """(g) A joint is named by the path that leads to it; its name selects its weights."""
    names, numbers = index_strings(PARENTS), index_integers(PARENTS, base=4)
    figure = Figure(figsize=(style.WIDTH * 0.8, 2.7))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 8.4)
    axes.set_ylim(0, 4.05)
    axes.set_aspect("equal")
    axes.axis("off")
    place = _tree_layout(PARENTS)
    path = {node for node in range(len(PARENTS)) if names[node] == "0" or SHOWN.endswith(names[node])}
    for node, parent in enumerate(PARENTS[1:], start=1):
        on_path = node in path
        (x0, y0), (x1, y1) = place[parent], place[node]
        axes.plot([x0, x1], [y0, y1], color=BONES[1] if on_path else "#BBBBBB", lw=2.6 if on_path else 1.6, zorder=1)
        order = PARENTS[: node + 1].count(parent)
        aside, align = (0.1, "left") if x1 > x0 else (-0.1, "right")
        colour = BONES[1] if on_path else "#888888"
        axes.text((x0 + x1) / 2 + aside, (y0 + y1) / 2 + 0.06, f"{order}", fontsize=8, color=colour, ha=align)
    for node, (x, y) in enumerate(place):
        axes.add_patch(Circle((x, y), 0.27, facecolor="#FFF4DC" if node in path else "white", edgecolor=INK, lw=0.9, zorder=2))
        axes.text(x, y, names[node], ha="center", va="center", fontsize=8, zorder=3)
    axes.text(2.1, 3.95, "skeleton; edges: which child of its parent", ha="center", va="top", fontsize=8, color=INK)
    by_number = sorted(range(len(names)), key=lambda node: numbers[node])
    left, top, row = 5.6, 3.35, 0.42
    axes.text(left + 1.1, 3.95, "joint-indexed weights (base 4)", ha="center", va="top", fontsize=8, color=INK)
    for line, node in enumerate(by_number):
        y = top - row * (line + 1) + 0.1
        chosen = names[node] == SHOWN
        axes.add_patch(Rectangle((left, y), 2.2, row, facecolor="#FFF4DC" if chosen else "white", edgecolor=INK, lw=0.7))
        axes.text(left + 0.5, y + row / 2, f"'{names[node]}'", ha="center", va="center", fontsize=8)
        axes.text(left + 1.05, y + row / 2, f"{numbers[node]}", ha="center", va="center", fontsize=8, color="#666666")
        axes.text(left + 1.7, y + row / 2, rf"$\theta_{{{numbers[node]}}}$", ha="center", va="center", fontsize=9)
        if chosen:
            x, y0 = place[node]
            _arrow(axes, (x + 0.3, y0 - 0.02), (left - 0.05, y + row / 2), bend=0.25)
    return figure


def _tree_layout(parents: tuple[int, ...]) -> list[tuple[float, float]]:
    """Leaves side by side, parents above the middle of their children."""
    children = [[i for i, p in enumerate(parents) if p == node] for node in range(len(parents))]
    x: dict[int, float] = {}

    def put(node: int) -> float:
        if not children[node]:
            x[node] = 0.75 + 1.05 * sum(not children[n] for n in x)
        else:
            spots = [put(child) for child in children[node]]
            x[node] = sum(spots) / len(spots)
        return x[node]

    put(0)
    depth = [0] * len(parents)
    for node, parent in enumerate(parents[1:], start=1):
        depth[node] = depth[parent] + 1
    return [(x[node], 3.35 - 0.95 * depth[node]) for node in range(len(parents))]


def overview() -> Figure:
    """(h) An episode: skeleton transforms, attribute transforms, execution, each under a sub-policy of its own."""
    skeletons, finished = _example()
    task = make_task("locomotion3d")
    view = View.of(task.scene, task.space.plane)
    drawn = [Robot.of(StoredDesign(design, task.space)) for design in (*skeletons, finished)]
    size = window(drawn, view)
    figure = Figure(figsize=(style.WIDTH, 2.2))
    back = figure.add_axes((0, 0, 1, 1))
    back.set_xlim(0, 100)
    back.set_ylim(0, 36)
    back.axis("off")
    design, state = r"\,|\,D, \Phi)$", r"\,|\,s^{\mathrm{e}}, D, \Phi)$"
    stages = (
        (0.6, 52.6, BONES[1], "Skeleton transform stage", rf"{_policy('s')}{design}", "AddJoint, DelJoint or NoChange per joint"),
        (54.2, 73.6, BONES[3], "Attribute transform stage", rf"{_policy('z')}{design}", "bone, size, gear"),
        (75.2, 99.4, BONES[2], "Execution stage", rf"{_policy('e')}{state}", "motor control, reward"),
    )
    for left, right, colour, title, policy, actions in stages:
        back.add_patch(_box(left, 11.8, right - left, 23.4, colour, 0.08))
        back.text((left + right) / 2, 33.4, title, ha="center", va="center", fontsize=8.5, color=INK)
        middle = (left + right) / 2
        back.add_patch(_box(middle - 9.2, 1.0, 18.4, 7.6, colour, 0.22))
        back.text(middle, 6.0, policy, ha="center", va="center", fontsize=8.5)
        back.text(middle, 2.7, "GNN + JSMLP", ha="center", va="center", fontsize=6.5, color="#555555")
        _arrow(back, (middle, 8.7), (middle, 11.7))
        back.text(middle + 0.9, 10.1, actions, ha="left", va="center", fontsize=6, color="#555555")
    columns = (1.5, 15.0, 28.5, 41.5, 57.6, 80.0)
    titles = ("$D_0$", "$D_1$", "$D_2$", r"$D_{N_{\mathrm{s}}}$", r"$D_{N_{\mathrm{s}}+N_{\mathrm{z}}}$", "")
    shown = (*drawn, drawn[-1])
    for left, robot, title in zip(columns, shown, titles, strict=True):
        wide = 10.5 if left < 50 else 13.5
        axes = figure.add_axes((left / 100, 15.5 / 36, wide / 100, 15.5 / 36))
        draw(axes, robot, view, size)
        back.text(left + wide / 2, 13.9, title, ha="center", va="center", fontsize=8)
    for left in columns[1:4]:
        _arrow(back, (left - 2.6, 23), (left - 0.4, 23))
    _arrow(back, (52.8, 23), (56.8, 23))
    _arrow(back, (72.0, 23), (75.4, 23))
    for k in range(3):
        back.plot([77.4 + k * 0.9] * 2, [19.5 + k, 26.5 - k], color="#BBBBBB", lw=0.9)
    _arrow(back, (94.3, 23), (98.4, 23), colour=BONES[2])
    back.text(87.0, 13.9, "acts in the simulator", ha="center", va="center", fontsize=7, color="#555555")
    return figure


def _policy(stage: str) -> str:
    return rf"$\pi^{{\mathrm{{{stage}}}}}_\theta(a^{{\mathrm{{{stage}}}}}"


def _example() -> tuple[list[Design], Design]:
    """Designs of an illustrative episode in locomotion3d: four skeletons, then new attributes."""
    task = make_task("locomotion3d")
    designs = [task.initial_design]
    for actions in (
        [NO_CHANGE] + [ADD_JOINT] * 4,
        [NO_CHANGE] * 5 + [ADD_JOINT, ADD_JOINT, DEL_JOINT, NO_CHANGE],
        [NO_CHANGE] * 3 + [ADD_JOINT] + [NO_CHANGE] * 6,
    ):
        designs.append(skeleton_transform(designs[-1], actions, task.space))
    change = np.random.default_rng(4).normal(0, 0.32, designs[-1].attributes.shape)
    return designs, attribute_transform(designs[-1], change, task.space)


def _box(left: float, bottom: float, width: float, height: float, colour: str, alpha: float) -> FancyBboxPatch:
    shape = "round,pad=0,rounding_size=0.9"
    return FancyBboxPatch((left, bottom), width, height, boxstyle=shape, facecolor=(colour, alpha), edgecolor=colour, lw=0.8, zorder=0)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], bend: float = 0.0, colour: str = INK) -> None:
    style_ = f"arc3,rad={bend}"
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=7, lw=0.9, color=colour, connectionstyle=style_, zorder=4))
