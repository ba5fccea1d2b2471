"""The designs that runs left on disk: final.json, final.xml and final_process.json of designs/."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pandas as pd

from codesign_bench.analysis import symmetry
from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.drawing import Robot, load, robot_of
from codesign_bench.analysis.style import ordered, ordered_envs
from codesign_bench.design.graph import Design
from codesign_bench.errors import DesignError


@dataclass(frozen=True)
class Champion:
    """The final design of the best of a method's runs."""

    run: Run
    value: float
    robot: Robot | None


def champion(collection: Collection, env: str, method: str) -> Champion | None:
    """Of the best run; None if there are no runs."""
    runs = collection.best_first(env, method)
    return Champion(runs[0], collection.final(runs[0]), load(runs[0].path / "designs" / "final.xml")) if runs else None


def final_design(run: Run) -> Design | None:
    try:
        return Design.from_json((run.path / "designs" / "final.json").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, DesignError):
        return None


def design_process(run: Run) -> list[Robot]:
    """The robot after each skeleton transform; empty where the run has no record of it that can be read."""
    try:
        stages = json.loads((run.path / "designs" / "final_process.json").read_text(encoding="utf-8"))
        robots = [robot_of(stage["mjcf"]) for stage in stages]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    found = [robot for robot in robots if robot is not None]
    return found if len(found) == len(robots) else []


def symmetries(collection: Collection, methods: tuple[str, ...]) -> pd.DataFrame:
    """One row per run with a design on disk: env, method, seed, bodies, sibling, left-right, mirror."""
    rows = []
    for env in ordered_envs(collection.envs):
        for method in ordered(set(methods) & set(collection.methods)):
            for run in collection.of(env, method):
                design, robot = final_design(run), load(run.path / "designs" / "final.xml")
                if design is None or robot is None:
                    continue
                space = run.config["env"].get("design")
                plane = str(space.get("plane", "xy")) if isinstance(space, dict) else "xy"
                scores = {
                    "sibling": symmetry.sibling_symmetry(design),
                    "left-right": symmetry.left_right_symmetry(robot, plane),
                    "mirror": symmetry.mirror_symmetry(robot, plane),
                }
                rows.append({"env": env, "method": method, "seed": run.seed, "bodies": design.num_nodes, **scores})
    return pd.DataFrame(rows, columns=["env", "method", "seed", "bodies", "sibling", "left-right", "mirror"])
