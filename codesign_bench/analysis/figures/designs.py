"""Figures of designs: with and without JSMLPs (c), the design process (e), a random agent per environment (f)."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, SubplotSpec

from codesign_bench.analysis import champions, measures, style
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.drawing import View, draw, window
from codesign_bench.analysis.robot import Robot
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError
from codesign_bench.simulation.showing import grown_design
from codesign_bench.tasks import TASKS, Task, task_from_config

WITH, WITHOUT = "transform2act", "transform2act_no_jsmlp"


def blank(axes: Axes, text: str) -> None:
    axes.axis("off")
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#777777", fontsize=7)


def beside(axes: Axes, title: str) -> None:
    """The environment's name, upright, left of a row."""
    place: dict[str, Any] = {"xycoords": "axes fraction", "xytext": (-6, 0), "textcoords": "offset points", "annotation_clip": False}
    axes.annotate(style.plain(title), (0, 0.5), **place, rotation=90, ha="right", va="center", fontsize=8)


def under(axes: Axes, text: str, colour: str = "#555555") -> None:
    axes.text(0.5, -0.02, style.plain(text), transform=axes.transAxes, ha="center", va="top", fontsize=6.5, color=colour)


def jsmlp(collection: Collection, frame: pd.DataFrame) -> Figure:
    """(c) The best seed's design with and without JSMLPs, and how symmetric the designs of all seeds are (`champions.symmetries`)."""
    envs = [env for env in collection.envs if collection.of(env, WITH) or collection.of(env, WITHOUT)]
    foot = style.wrapped(
        [
            "Designs of the best seed. Points: symmetry of every seed's design; bars: their mean.",
            "Sibling: likeness of limbs on the same joint.",
            "Left-right: overlap with the mirror image across the axis of travel, as it starts.",
            "Mirror: across the best axis, near 1 for any chain. 1 is perfectly symmetric.",
            *measures.shortfall(collection, (WITH, WITHOUT), bands=False),
        ]
    )
    bottom, top, cell = 0.3 + 0.11 * len(foot), 0.25, 1.25
    height = cell * len(envs) + top + bottom
    figure = Figure(figsize=(style.WIDTH, height))
    edges = {"left": 0.06, "right": 0.985, "top": 1 - top / height, "bottom": bottom / height}
    grid = figure.add_gridspec(len(envs), 5, **edges, wspace=0.3, hspace=0.22, width_ratios=[1.2, 1.2, 1, 1, 1])
    for row, env in enumerate(envs):
        _pair(figure, grid, row, collection, env)
        for column, kind in enumerate(("sibling", "left-right", "mirror"), start=2):
            axes = figure.add_subplot(grid[row, column])
            _scores(axes, frame[frame["env"] == env], kind, collection)
            axes.tick_params(labelbottom=row == len(envs) - 1)
            if row == 0:
                axes.set_title(f"{kind} symmetry")
    style.note(figure, foot)
    return figure


def _pair(figure: Figure, grid: GridSpec, row: int, collection: Collection, env: str) -> None:
    found = [champions.champion(collection, env, method) for method in (WITH, WITHOUT)]
    robots = [c.robot for c in found if c is not None and c.robot is not None]
    for column, (one, title) in enumerate(zip(found, ("with JSMLPs", "without JSMLPs"), strict=True)):
        axes = figure.add_subplot(grid[row, column])
        if one is None or one.robot is None:
            blank(axes, "no runs" if one is None else "no design on disk")
        else:
            view = View.of_config(one.run.config["env"])
            draw(axes, one.robot, view, window(robots, view))
            under(axes, f"{one.robot.num_bodies} bodies")
        if row == 0:
            axes.set_title(title)
        if column == 0:
            beside(axes, collection.title(env))


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
    rows: list[tuple[str, list[Robot], View]] = []
    for env in collection.envs:
        best = champions.champion(collection, env, method)
        if best is not None:
            rows.append((env, [Robot.of(stored) for stored in champions.design_process(best.run)], View.of_config(best.run.config["env"])))
    columns = max([len(stages) for _, stages, _ in rows] + [1])
    foot = style.wrapped(
        [
            f"Final deterministic episode of {collection.label(method)}, best seed.",
            "Skeletons are drawn with the attributes of the finished design.",
            *measures.shortfall(collection, (method,), bands=False),
        ]
    )
    bottom, top, cell = 0.22 + 0.11 * len(foot), 0.28, 1.1
    height = cell * len(rows) + top + bottom
    figure = Figure(figsize=(style.WIDTH, height))
    edges = {"left": 0.04, "right": 0.99, "top": 1 - top / height, "bottom": bottom / height}
    grid = figure.add_gridspec(len(rows), columns, **edges, wspace=0.06, hspace=0.2)
    for row, (env, stages, view) in enumerate(rows):
        if not stages:
            blank(figure.add_subplot(grid[row, :]), "no design process on disk")
        for column, robot in enumerate(stages):
            axes = figure.add_subplot(grid[row, column])
            draw(axes, robot, view, window(stages, view))
            under(axes, f"{robot.num_bodies} bodies")
            if row == next(i for i, (_, s, _) in enumerate(rows) if s):
                axes.set_title("initial" if column == 0 else f"transform {column}", fontsize=8)
        first = figure.add_subplot(grid[row, 0]) if not stages else figure.axes[-len(stages)]
        first.axis("off")
        beside(first, collection.title(env))
    style.note(figure, foot)
    return figure


def random_agents(collection: Collection, seed: int = 3) -> Figure:
    """(f) What a policy that chooses at random makes of the initial design, one agent per environment whose task is installed."""
    tasks = {env: task for env in collection.envs if (task := _task(collection, env)) is not None}
    columns, lines = max(1, min(4, len(tasks))), max(1, -(-len(tasks) // 4))
    wide, tall = style.WIDTH / 4, 1.75
    figure = Figure(figsize=(wide * columns, tall * lines))
    for i, (env, task) in enumerate(tasks.items()):
        line, column = divmod(i, columns)
        axes = figure.add_axes(((column + 0.03) / columns, (lines - 1 - line) / lines, 0.94 / columns, 0.86 / lines))
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
    return list(TASKS).index(env) if env in TASKS else zlib.crc32(env.encode())


def row_of_champions(figure: Figure, place: SubplotSpec, collection: Collection, env: str, methods: Sequence[str]) -> None:
    """The best seed's final design of every method, at one scale, two to a line."""
    found = [champions.champion(collection, env, method) for method in methods]
    robots = [c.robot for c in found if c is not None and c.robot is not None]
    lines = -(-len(methods) // 2)
    inner = place.subgridspec(lines, 2, wspace=0.04, hspace=0.3)
    for i, (method, one) in enumerate(zip(methods, found, strict=True)):
        axes = figure.add_subplot(inner[i // 2, i % 2])
        if one is None or one.robot is None:
            blank(axes, "no runs" if one is None else "no design\non disk")
        else:
            view = View.of_config(one.run.config["env"])
            draw(axes, one.robot, view, window(robots, view))
        under(axes, style.short(collection.label(method), 18), collection.looks[method].colour)
