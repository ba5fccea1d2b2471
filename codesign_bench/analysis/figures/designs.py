"""Figures of designs: with and without JSMLPs (c), the design process (e), a random agent per environment (f)."""

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from codesign_bench.analysis import champions, measures, style
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.drawing import View, draw, window
from codesign_bench.analysis.looks import ENVS
from codesign_bench.analysis.robot import Robot
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError
from codesign_bench.simulation.showing import grown_design
from codesign_bench.tasks import Task, task_from_config

WITH, WITHOUT = "transform2act", "transform2act_no_jsmlp"
LINE = 18
"""Letters that fit under a design."""


def beside(axes: Axes, title: str) -> None:
    """The environment's name, upright, left of a row."""
    place: dict[str, Any] = {"xycoords": "axes fraction", "xytext": (-6, 0), "textcoords": "offset points", "annotation_clip": False}
    axes.annotate(style.plain(title), (0, 0.5), **place, rotation=90, ha="right", va="center", fontsize=8)


def under(axes: Axes, *lines: str, colour: str = "#555555") -> None:
    axes.text(
        0.5,
        -0.02,
        "\n".join(map(style.plain, lines)),
        transform=axes.transAxes,
        ha="center",
        va="top",
        fontsize=6.5,
        color=colour,
        linespacing=0.95,
    )


def jsmlp(collection: Collection, frame: pd.DataFrame) -> Figure:
    """(c) The best seed's design with and without JSMLPs, and how symmetric the designs of all seeds are (`champions.symmetries`)."""
    envs = [env for env in collection.envs if collection.of(env, WITH) or collection.of(env, WITHOUT)]
    foot = [
        "Designs of the best seed. Points: symmetry of every seed's design; bars: their mean.",
        "Sibling: likeness of limbs on the same joint.",
        "Left-right: overlap with the mirror image across the axis of travel, as it starts.",
        "Mirror: across the best axis, near 1 for any chain. 1 is perfectly symmetric.",
        *measures.shortfall(collection, (WITH, WITHOUT), bands=False),
    ]
    kinds, widths = ("sibling", "left-right", "mirror"), [1.2, 1.2, 1, 1, 1]
    figure, places = style.panels(5 * len(envs), 5, 1.05, foot, left=0.42, top=0.25, bottom=0.3, across=0.32, down=0.23, ratios=widths)
    for row, env in enumerate(envs):
        mine = places[5 * row : 5 * row + 5]
        for column, (axes, robot) in enumerate(_champions(figure, mine[:2], collection, env, (WITH, WITHOUT))):
            under(axes, f"{robot.num_bodies} bodies" if robot is not None else "")
            axes.set_title(("with JSMLPs", "without JSMLPs")[column] if row == 0 else "")
            if column == 0:
                beside(axes, collection.title(env))
        for place, kind in zip(mine[2:], kinds, strict=True):
            axes = figure.add_subplot(place)
            _scores(axes, frame[frame["env"] == env], kind, collection)
            axes.tick_params(labelbottom=row == len(envs) - 1)
            axes.set_title(f"{kind} symmetry" if row == 0 else "")
    return figure


def _champions(
    figure: Figure, places: Sequence[SubplotSpec], collection: Collection, env: str, methods: Sequence[str]
) -> Iterator[tuple[Axes, Robot | None]]:
    """Draws the best seed's final design of every method into its place, all at one scale."""
    found = [champions.champion(collection, env, method) for method in methods]
    robots = [one[1] for one in found if one is not None and one[1] is not None]
    for place, one in zip(places, found, strict=True):
        axes, (run, robot) = figure.add_subplot(place), one or (None, None)
        if run is None or robot is None:
            axes.axis("off")
            style.blank(axes, "no runs" if run is None else "no design\non disk")
        else:
            view = View.of_config(run.config["env"])
            draw(axes, robot, view, window(robots, view))
        yield axes, robot


def _scores(axes: Axes, frame: pd.DataFrame, kind: str, collection: Collection) -> None:
    axes.set_xlim(-0.6, 1.6)
    axes.set_ylim(0, 1.05)
    axes.set_xticks([0, 1], ["with", "without"])
    axes.set_yticks([0, 0.5, 1])
    axes.grid(axis="x", visible=False)
    for x, method in enumerate((WITH, WITHOUT)):
        look = collection.looks.get(method)
        values = frame.loc[frame["method"] == method, kind].dropna().to_numpy(np.float64)
        if not len(values) or look is None:
            why = {"sibling": "no siblings", "left-right": "upright\nplane", "mirror": "no design"}
            nothing = why[kind] if (frame["method"] == method).any() else "no runs"
            axes.text(x, 0.25, nothing, ha="center", va="center", fontsize=6, color="#777777")
            continue
        spread = np.linspace(-0.12, 0.12, len(values)) if len(values) > 1 else np.zeros(1)
        axes.plot(x + spread, values, ls="none", marker=look.marker, color=look.colour, markeredgewidth=0, alpha=0.75)
        axes.plot([x - 0.25, x + 0.25], [values.mean()] * 2, color=look.colour, lw=1.6)
        axes.text(x + 0.3, values.mean(), f"{values.mean():.2f}", fontsize=6.5, va="center", color=look.colour)


def process(collection: Collection, method: str) -> Figure:
    """(e) The skeleton after each skeleton transform, drawn with the attributes of the finished design."""
    best = {env: one[0] for env in collection.envs if (one := champions.champion(collection, env, method)) is not None}
    stages = {env: [Robot.of(stored) for stored in champions.design_process(run)] for env, run in best.items()}
    columns = max([1, *map(len, stages.values())])
    foot = [
        f"Final deterministic episode of {collection.label(method)}, best seed.",
        "Skeletons are drawn with the attributes of the finished design.",
        *measures.shortfall(collection, (method,), bands=False),
    ]
    figure, places = style.panels(
        columns * len(best), columns, 0.95, foot, left=0.28, right=0.07, top=0.28, bottom=0.22, across=0.07, down=0.19
    )
    titled = next((env for env in stages if stages[env]), None)
    for row, (env, run) in enumerate(best.items()):
        view = View.of_config(run.config["env"])
        for column, place in enumerate(places[row * columns : row * columns + max(1, len(stages[env]))]):
            axes = figure.add_subplot(place)
            axes.axis("off")
            if stages[env]:
                draw(axes, stages[env][column], view, window(stages[env], view))
                under(axes, f"{stages[env][column].num_bodies} bodies")
            else:
                style.blank(axes, "no design process\non disk")
            if env == titled:
                axes.set_title("initial" if column == 0 else f"transform {column}", fontsize=8)
            if column == 0:
                beside(axes, collection.title(env))
    return figure


def random_agents(collection: Collection, seed: int = 3) -> Figure:
    """(f) What a policy that chooses at random makes of the initial design, one agent per environment whose task is installed."""
    tasks = {env: task for env in collection.envs if (task := _task(collection, env)) is not None}
    width = style.WIDTH / 4 * max(1, min(4, len(tasks)))
    figure, places = style.panels(len(tasks), 4, 1.5, width=width, left=0.05, right=0.05, top=0.25, bottom=0, across=0.1, down=0.25)
    for (env, task), place in zip(tasks.items(), places, strict=True):
        axes = figure.add_subplot(place)
        robot = Robot.of(StoredDesign(grown_design(task, np.random.default_rng([seed, _stream(env)])), task.space))
        view = View.of(task.scene, task.space.plane)
        ahead = 0.0
        if view.ground.kind == "gaps":  # before the first one, which is seen
            robot = robot.moved(np.array([view.ground.first_gap - np.maximum(robot.start, robot.end)[:, 0].max() - 0.2, 0, 0]))
            ahead = 1.2 * view.ground.gap_width
        draw(axes, robot, view, window([robot], view), ahead=ahead)
        axes.set_title(style.plain(collection.title(env)))
    return figure


def _task(collection: Collection, env: str) -> Task | None:
    try:
        return task_from_config(next(run.config["env"] for run in collection.runs if run.env == env))
    except CodesignError:
        return None


def _stream(env: str) -> int:
    """The same agent for an environment, whatever others the study has."""
    return ENVS.index(env) if env in ENVS else zlib.crc32(env.encode())


def row_of_champions(figure: Figure, place: SubplotSpec, collection: Collection, env: str, methods: Sequence[str]) -> None:
    """The best seed's final design of every method, at one scale, two to a line."""
    inner = place.subgridspec(-(-len(methods) // 2), 2, wspace=0.04, hspace=0.4)
    places = [inner[divmod(i, 2)] for i in range(len(methods))]
    for method, (axes, _) in zip(methods, _champions(figure, places, collection, env, methods), strict=True):
        name, bracket, rest = collection.label(method).partition(" (")
        lines = [name, bracket.strip() + rest] if len(name + bracket + rest) > LINE else [name + bracket + rest]
        under(axes, *(style.short(line, LINE) for line in lines), colour=collection.looks[method].colour)
