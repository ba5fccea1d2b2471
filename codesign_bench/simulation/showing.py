"""Something to show of a design without an agent: random designs, the pose in which an episode begins, a random motion."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.design.stored import StoredDesign
from codesign_bench.design.transform import NUM_SKELETON_ACTIONS, attribute_transform, skeleton_transform
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.simulation.body import Body
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.tasks import Task

FRAMES_PER_SECOND = 25


def random_design(task: Task, rng: np.random.Generator, steps: TransformSteps | None = None) -> Design:
    """What a policy that chooses at random makes of the initial design."""
    steps, design = steps or TransformSteps(), task.initial_design
    for _ in range(steps.skeleton):
        design = skeleton_transform(design, rng.integers(0, NUM_SKELETON_ACTIONS, design.num_nodes), task.space)
    for _ in range(steps.attribute):
        design = attribute_transform(design, rng.normal(0, 0.5, design.attributes.shape), task.space)
    return design


def grown_design(task: Task, rng: np.random.Generator, more: int = 3) -> Design:
    """A random design in which something has grown, so that there is something to see; where little can, the largest of many."""
    found = task.initial_design
    for _ in range(200):
        design = random_design(task, rng)
        found = design if design.num_nodes > found.num_nodes else found
        if design.num_nodes >= task.initial_design.num_nodes + more:
            return design
    return found


def starting_pose(design: Design, task: Task, rng: np.random.Generator) -> Array:
    """The pose in which an episode with this design begins."""
    body = Body(design, task)
    body.reset(rng)
    return np.array(body.data.qpos)


def motion(design: Design, task: Task, rng: np.random.Generator, seconds: float) -> Iterator[Array]:
    """Poses under smooth random controls, FRAMES_PER_SECOND of them for each second; starts again when an episode ends."""
    body = Body(design, task)
    body.reset(rng)
    phase, rate = rng.uniform(0, 2 * np.pi, design.num_nodes), rng.uniform(3, 8, design.num_nodes)
    frames = 0
    for step in range(max(1, round(seconds / task.dt))):
        now = step * task.dt
        if now * FRAMES_PER_SECOND >= frames - 1e-6:
            frames += 1
            yield body.data.qpos.copy()
        result = body.step(0.6 * np.sin(rate * now + phase))
        if result.ended or result.problem:
            body.reset(rng)


def choose_design(task: Task, choice: str, rng: np.random.Generator) -> tuple[Design, Task]:
    """The design that `initial`, `random`, `expert` or the path of a JSON file names, and the task in whose space it is."""
    if choice == "initial":
        return task.initial_design, task
    if choice == "random":
        return random_design(task, rng), task
    if choice == "expert":
        task = task.with_expert()
        return task.initial_design, task
    path = Path(choice)
    if not path.is_file():
        raise ConfigError(f"design is '{choice}'; allowed are initial, random, expert or the path of a design's JSON file.")
    stored = StoredDesign.load(path)
    for name in ("plane", "root_children"):
        mine, theirs = getattr(task.space, name), getattr(stored.space, name)
        if mine != theirs:
            raise DesignError(f"{path}: the {name} of its design space is {theirs}; allowed in {task.name} is {mine}.")
    return stored.design, task.starting_from(stored.design, stored.space)
