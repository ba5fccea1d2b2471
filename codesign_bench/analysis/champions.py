"""The designs that runs left on disk: final.json and final_process.json of designs/."""

import pandas as pd

from codesign_bench.analysis import symmetry
from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.looks import ordered
from codesign_bench.analysis.robot import Robot
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import DesignError

FINAL, PROCESS = "designs/final.json", "designs/final_process.json"


def champion(collection: Collection, env: str, method: str) -> tuple[Run, Robot | None] | None:
    """The best run, and its last champion if there is one on disk that can be read; None if there are no runs."""
    runs = collection.best_first(env, method)
    if not runs:
        return None
    stored = final_design(runs[0])
    return runs[0], Robot.of(stored) if stored is not None else None


def final_design(run: Run) -> StoredDesign | None:
    try:
        return StoredDesign.load(run.path / FINAL)
    except DesignError:
        return None


def design_process(run: Run) -> list[StoredDesign]:
    """The design after each skeleton transform; empty where the run has no record of it that can be read."""
    try:
        return StoredDesign.load_all(run.path / PROCESS)
    except DesignError:
        return []


def symmetries(collection: Collection, methods: tuple[str, ...]) -> pd.DataFrame:
    """One row per run with a design on disk: env, method, seed, bodies, sibling, left-right, mirror."""
    rows = []
    for run in (run for env in collection.envs for method in ordered(methods) for run in collection.of(env, method)):
        if (stored := final_design(run)) is None:
            continue
        robot, plane = Robot.of(stored), stored.space.plane
        scores = {
            "sibling": symmetry.sibling_symmetry(stored.design),
            "left-right": symmetry.left_right_symmetry(robot, plane),
            "mirror": symmetry.mirror_symmetry(robot, plane),
        }
        rows.append({"env": run.env, "method": run.method, "seed": run.seed, "bodies": robot.num_bodies, **scores})
    return pd.DataFrame(rows, columns=["env", "method", "seed", "bodies", "sibling", "left-right", "mirror"])
