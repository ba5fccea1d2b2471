"""Robots for the 3D view, their designs along the run, their motion, and the species of evolution methods."""

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from codesign_bench.analysis import champions, measures
from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.report.data import Missing, inside, numbers
from codesign_bench.analysis.robot import Robot
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError
from codesign_bench.experiment.motion import Motion

MOTION_BYTES = 3_000_000
"""Of the best seeds' motions, and again of all others'."""
LINEAGE_ROWS = 60_000
MOST_SEEDS = 12
MILLI = 1000
"""Poses are sent as whole thousandths of metres, radians and quaternions, each frame as its difference to the one before."""
GENEALOGY = ("genealogy.csv", "tables/genealogy.csv", "tables/species.csv")
"""Where methods leave their species, one row for each species and generation."""


class Stock:
    """Counts down what the report can still hold."""

    def __init__(self, size: int) -> None:
        self.left = size

    def take(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True


def designs(collection: Collection, missing: Missing) -> dict[str, Any]:
    """env -> its ground and view, and method -> runs, the best first; the first of them also as it was along the run."""
    best, others = Stock(MOTION_BYTES), Stock(MOTION_BYTES)
    found: dict[str, Any] = {}
    for env in collection.envs:
        by_method = {}
        scene: dict[str, Any] = {}
        for method in collection.methods:
            runs = collection.best_first(env, method)
            rooms = [best] + [others] * len(runs)
            entries = [_entry(collection, run, run is runs[0], room, missing) for run, room in zip(runs[:MOST_SEEDS], rooms, strict=False)]
            if runs:
                scene = scene or _scene(runs[0].config["env"])
                by_method[method] = [entry for entry in entries if entry is not None]
        found[env] = {"scene": scene, "methods": {method: entries for method, entries in by_method.items() if entries}}
    return found


def _entry(collection: Collection, run: Run, first: bool, room: Stock, missing: Missing) -> dict[str, Any] | None:
    folder = run.path / "designs"
    try:
        final = robot_value(StoredDesign.load(folder / "final.json"), run.config["env"])
    except CodesignError as error:
        missing.say(f"No body to show: {inside(run, error)}")
        return None
    stages = [{"title": "final design", "robot": final}]
    if first:
        earlier = []
        for path in sorted(folder.glob("at_*.json")):
            try:
                earlier.append(
                    {"title": f"at {int(path.stem[3:]):,} steps", "robot": robot_value(StoredDesign.load(path), run.config["env"])}
                )
            except (CodesignError, ValueError):
                missing.say(f"{run.name}: the design {path.name} cannot be read.")
        # The last snapshot, and the last step of the design process, may be the final design itself.
        stages = [s for part in (earlier, _process(run)) for s in part if s is not part[-1] or s["robot"] != final] + stages
    return {
        "seed": run.seed,
        "final": numbers([collection.final(run)])[0],
        "stages": stages,
        "motion": _motion(run, room, missing),
        "at_bounds": numbers([measures.last(collection, run, "at_bounds")], 3)[0],
    }


def _process(run: Run) -> list[dict[str, Any]]:
    """How a Transform2Act agent designs itself, if the run kept it: the skeleton after each transform."""
    robots = [robot_value(stored, run.config["env"]) for stored in champions.design_process(run)]
    titles = ["initial skeleton", *(f"after skeleton transform {i}" for i in range(1, len(robots)))]
    return [{"title": f"how it designs itself: {title}", "robot": robot} for title, robot in zip(titles, robots, strict=False)]


def robot_value(stored: StoredDesign, env: Mapping[str, Any]) -> dict[str, Any]:
    """For the viewer: the robot, the joints with their places in a pose, and its mass; see viewer.js for how it is read."""
    robot, scene = Robot.of(stored), _scene(env)
    free = scene["root"] == "free"
    first = 7 if free else 3
    parts: list[dict[str, Any]] = []
    for body, name in enumerate(robot.names):
        origin, parent = robot.position[body], int(robot.parents[body])
        place = origin - robot.position[parent] if body else np.array([0.0, 0.0, scene["height"]])
        hinge = {
            "kind": "hinge",
            "axis": numbers(robot.axis[body] / max(float(np.linalg.norm(robot.axis[body])), 1e-12), 7),
            "address": first + body - 1,
            "reference": 0.0,
            "range": numbers(robot.range[body], 4),
            "gear": numbers([robot.gear[body]])[0],
        }
        mine = np.flatnonzero(robot.body == body)
        ends = [[*(robot.start[i] - origin), *(robot.end[i] - origin), robot.radius[i]] for i in mine]
        joints = [hinge] if body else _root_joints(free, scene["plane"], scene["height"])
        parts.append({"name": name, "parent": parent, "position": numbers(place), "joints": joints, "capsules": [numbers(c) for c in ends]})
    return {"mass": float(f"{robot.volume * scene['density']:.4g}"), "parts": parts}


def _root_joints(free: bool, plane: str, height: float) -> list[dict[str, Any]]:
    """As design/mjcf.py has them: a free joint, or two slides along the plane and a hinge across it."""
    if free:
        return [{"kind": "free", "axis": [0, 0, 1], "address": 0, "reference": 0.0, "range": None, "gear": 0}]
    second, across = ([0, 0, 1], [0, 1, 0]) if plane == "xz" else ([0, 1, 0], [0, 0, 1])
    kinds = (("slide", [1, 0, 0], 0.0), ("slide", second, height if plane == "xz" else 0.0), ("hinge", across, 0.0))
    return [
        {"kind": kind, "axis": axis, "address": i, "reference": reference, "range": None, "gear": 0}
        for i, (kind, axis, reference) in enumerate(kinds)
    ]


def _scene(env: Mapping[str, Any]) -> dict[str, Any]:
    """What the viewer draws besides the robot; nothing where a stranger's environment is configured otherwise."""
    try:
        scene, ground = env["scene"], env["scene"]["ground"]
        names = ("kind", "top", "first_gap", "gap_width", "period", "behind")
        return {
            "root": str(scene["root"]),
            "height": float(scene["root_height"]),
            "density": float(scene["geom_density"]),
            "plane": str(env["design"]["plane"]),
            "ground": {name: ground.get(name, 0) if name != "kind" else str(ground["kind"]) for name in names},
        }
    except (KeyError, TypeError, AttributeError, ValueError):
        return {"root": "free", "height": 0.0, "density": 1000.0, "plane": "xy", "ground": {"kind": "none", "top": 0}}


def _motion(run: Run, room: Stock, missing: Missing) -> dict[str, Any] | None:
    try:
        motion = Motion.load(run.path)
        if motion is None:
            return None
        final = StoredDesign.load(run.path / champions.FINAL)
    except CodesignError as error:
        missing.say(f"A motion is not shown: {inside(run, error)}")
        return None
    if not motion.is_of(final.design):
        missing.say(f"{run.name}: its motion is not shown, because the design has changed since it was recorded.")
        return None
    value = motion_value(motion)
    if not room.take(len(json.dumps(value))):
        missing.say(f"{run.name}: its motion is not shown; the report stays below 20 MB.")
        return None
    return value


def motion_value(motion: Motion) -> dict[str, Any]:
    whole = np.round(MILLI * motion.poses).astype(np.int64)
    steps = np.diff(whole, axis=0, prepend=0)
    return {
        "seconds_per_frame": motion.seconds_per_frame,
        "return": numbers([motion.total_return])[0],
        "ended": motion.ended,
        "frames": len(whole),
        "coordinates": whole.shape[1],
        "differences": steps.ravel().tolist(),
    }


# ---- species -----------------------------------------------------------------------------------------------------------


def lineages(collection: Collection, missing: Missing) -> list[dict[str, Any]]:
    """The species of the best run of each evolution method in each environment."""
    room = Stock(LINEAGE_ROWS)
    found = []
    for env in collection.envs:
        for method in collection.methods:
            for run in collection.best_first(env, method)[:1]:
                table = next((run.path / name for name in GENEALOGY if (run.path / name).is_file()), None)
                if table is None:
                    continue
                rows = read_species(table)
                if not rows["species"]:
                    missing.say(f"{run.name}: {table.name} holds no species that can be shown.")
                elif not room.take(len(rows["species"])):
                    missing.say(f"{run.name}: its species are not shown; the report stays below 20 MB.")
                else:
                    found.append({"env": env, "method": method, "seed": run.seed, **rows})
    return found


def read_species(path: Path) -> dict[str, Any]:
    """Columns of a genealogy; rows that are not whole are left out, and so is a fitness that is not a number (a species that died)."""
    columns: dict[str, list[Any]] = {name: [] for name in ("species", "parent", "generation", "fitness", "bodies", "mutation", "champion")}
    try:
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            for row in csv.DictReader(file):
                value = _species(row)
                if value is not None:
                    for name, column in columns.items():
                        column.append(value[name])
    except (OSError, csv.Error):
        pass
    return columns


def _species(row: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        parent = str(row.get("parent") or "").strip()
        fitness = float(row["fitness"])
        return {
            "species": int(row.get("species") or row["id"]),
            "parent": int(float(parent)) if parent not in ("", "None", "nan") else -1,
            "generation": int(row["generation"]),
            "fitness": numbers([fitness])[0] if math.isfinite(fitness) else None,
            "bodies": int(float(row.get("bodies") or 0)),
            "mutation": str(row.get("mutation") or ""),
            "champion": int(float(row.get("champion") or 0)),
        }
    except (KeyError, TypeError, ValueError):
        return None
