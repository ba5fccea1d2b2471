"""Robots for the 3D view, their designs along the run, their motion, and the species of evolution methods."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from codesign_bench.analysis import champions, genealogy, measures
from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.report.data import Stock, numbers, rounded
from codesign_bench.analysis.robot import Robot
from codesign_bench.design.scene import Scene
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.experiment.design_process import stage_titles
from codesign_bench.experiment.motion import Motion
from codesign_bench.structured import build

MOTION_BYTES = 3_000_000
"""Of the best seeds' motions, and again of all others'."""
LINEAGE_ROWS = 60_000
MOST_SEEDS = 12
MILLI = 1000
"""Poses are sent as whole thousandths of metres, radians and quaternions, each frame as its difference to the one before."""
NO_SCENE = {"root": "free", "plane": "xy", "height": 0.0, "density": 1000.0, "ground": {"kind": "none"}}


def designs(collection: Collection, missing: list[str]) -> dict[str, Any]:
    """env -> its ground and view, and method -> runs, the best first; the first of them also as it was along the run."""
    best, others = Stock(MOTION_BYTES), Stock(MOTION_BYTES)
    found: dict[str, Any] = {}
    for env in collection.envs:
        by_method = {}
        for method in collection.methods:
            runs = collection.best_first(env, method)[:MOST_SEEDS]
            entries = [_entry(collection, run, run is runs[0], best if run is runs[0] else others, missing) for run in runs]
            by_method[method] = [entry for entry in entries if entry is not None]
        scene = _scene(next(run.config["env"] for run in collection.runs if run.env == env))
        found[env] = {"scene": scene, "methods": {method: entries for method, entries in by_method.items() if entries}}
    return found


def _entry(collection: Collection, run: Run, first: bool, room: Stock, missing: list[str]) -> dict[str, Any] | None:
    try:
        stored = StoredDesign.load(run.path / champions.FINAL)
    except CodesignError as error:
        missing.append(f"No body to show: {_inside(run, error)}")
        return None
    final = robot_value(stored, run.config["env"])
    before = [_snapshots(run, missing), _process(run)] if first else []
    # The last snapshot, and the last step of the design process, may be the final design itself.
    earlier = [stage for part in before for stage in part if stage is not part[-1] or stage["robot"] != final]
    return {
        "seed": run.seed,
        "final": rounded(collection.final(run)),
        "stages": [*earlier, {"title": "final design", "robot": final}],
        "motion": _motion(run, stored, room, missing),
        "at_bounds": rounded(measures.last(collection, run, "at_bounds"), 3),
    }


def _inside(run: Run, error: Exception) -> str:
    """The error without the machine's own path."""
    return str(error).replace(f"{run.path}/", f"{run.name}/")


def _snapshots(run: Run, missing: list[str]) -> list[dict[str, Any]]:
    found = []
    for path in sorted((run.path / "designs").glob("at_*.json")):
        try:
            robot = robot_value(StoredDesign.load(path), run.config["env"])
            found.append({"title": f"at {int(path.stem[3:]):,} steps", "robot": robot})
        except (CodesignError, ValueError):
            missing.append(f"{run.name}: the design {path.name} cannot be read.")
    return found


def _process(run: Run) -> list[dict[str, Any]]:
    """How a Transform2Act agent designs itself, if the run kept it: the skeleton after each transform."""
    robots = [robot_value(stored, run.config["env"]) for stored in champions.design_process(run)]
    named = zip(stage_titles(robots), robots, strict=True)
    return [{"title": f"how it designs itself: {title}", "robot": robot} for title, robot in named]


def robot_value(stored: StoredDesign, env: Mapping[str, Any]) -> dict[str, Any]:
    """For the viewer: the robot, the joints with their places in a pose, and its mass; see viewer.js for how it is read."""
    robot, scene = Robot.of(stored), _scene(env)
    if stored.design.start_height is not None:
        scene = {**scene, "height": stored.design.start_height}
    root = _root_joints(scene, stored.space.plane)
    coordinates = 7 if scene["root"] == "free" else len(root)
    axes = robot.axis / np.maximum(np.linalg.norm(robot.axis, axis=1, keepdims=True), 1e-12)
    parts = []
    for body, name in enumerate(robot.names):
        origin, parent, mine = robot.position[body], int(robot.parents[body]), robot.body == body
        capsules = np.column_stack([robot.start[mine] - origin, robot.end[mine] - origin, robot.radius[mine]])
        place = origin - robot.position[parent] if body else [0.0, 0.0, scene["height"]]
        hinge = _joint("hinge", axes[body], coordinates + body - 1, range_=numbers(robot.range[body], 4), gear=robot.gear[body])
        part = {"name": name, "parent": parent, "position": numbers(place), "joints": [hinge] if body else root}
        parts.append({**part, "capsules": [numbers(capsule) for capsule in capsules]})
    return {"mass": rounded(robot.volume * scene["density"], 4), "parts": parts}


def _root_joints(scene: Mapping[str, Any], plane: str) -> list[dict[str, Any]]:
    """As design/mjcf.py has them: a free joint, or two slides along the plane and a hinge across it."""
    if scene["root"] == "free":
        return [_joint("free", (0, 0, 1), 0)]
    if plane == "xz":
        return [_joint("slide", (1, 0, 0), 0), _joint("slide", (0, 0, 1), 1, scene["height"]), _joint("hinge", (0, 1, 0), 2)]
    return [_joint("slide", (1, 0, 0), 0), _joint("slide", (0, 1, 0), 1), _joint("hinge", (0, 0, 1), 2)]


def _joint(
    kind: str, axis: Sequence[float], address: int, reference: float = 0.0, range_: list[float | None] | None = None, gear: float = 0.0
) -> dict[str, Any]:
    place = {"kind": kind, "axis": numbers(axis, 7), "address": address, "reference": reference}
    return {**place, "range": range_, "gear": rounded(gear)}


def _scene(env: Mapping[str, Any]) -> dict[str, Any]:
    """What the viewer draws besides the robot; nothing where a stranger's environment is configured otherwise."""
    try:
        scene, plane = build(Scene, env["scene"], "scene"), str(env["design"]["plane"])
    except (ConfigError, KeyError, TypeError):
        return NO_SCENE
    view = {"root": scene.root, "plane": plane, "height": scene.root_height, "density": scene.geom_density}
    return {**view, "ground": asdict(scene.ground)}


def _motion(run: Run, final: StoredDesign, room: Stock, missing: list[str]) -> dict[str, Any] | None:
    try:
        motion = Motion.load(run.path)
    except CodesignError as error:
        missing.append(f"A motion is not shown: {_inside(run, error)}")
        return None
    if motion is None:
        return None
    value = motion_value(motion)
    if not motion.is_of(final.design):
        why = ", because the design has changed since it was recorded"
    elif not room.take(len(json.dumps(value))):
        why = "; the report stays below 20 MB"
    else:
        return value
    missing.append(f"{run.name}: its motion is not shown{why}.")
    return None


def motion_value(motion: Motion) -> dict[str, Any]:
    whole = np.round(MILLI * motion.poses).astype(np.int64)
    return {
        "seconds_per_frame": motion.seconds_per_frame,
        "return": rounded(motion.total_return),
        "ended": motion.ended,
        "frames": len(whole),
        "coordinates": whole.shape[1],
        "differences": np.diff(whole, axis=0, prepend=0).ravel().tolist(),
    }


# ---- species -----------------------------------------------------------------------------------------------------------


def lineages(collection: Collection, missing: list[str]) -> list[dict[str, Any]]:
    """The species of the best run of each evolution method in each environment; fitness is null for a species that died."""
    room, found = Stock(LINEAGE_ROWS), []
    for run in (run for env in collection.envs for method in collection.methods for run in collection.best_first(env, method)[:1]):
        if not (run.path / genealogy.HISTORY).is_file():
            continue
        try:
            history = genealogy.read_table(run.path, genealogy.HISTORY)
        except ConfigError as error:
            missing.append(f"Species are not shown: {_inside(run, error)}")
            continue
        if not room.take(len(history)):
            missing.append(f"{run.name}: its species are not shown; the report stays below 20 MB.")
            continue
        columns = history[["species", "generation", "bodies", "champion"]].to_dict("list")
        columns |= {"parent": history["parent"].fillna(-1).tolist(), "mutation": history["mutation"].fillna("").tolist()}
        found.append({"env": run.env, "method": run.method, "seed": run.seed, **columns, "fitness": numbers(history["fitness"])})
    return found
