"""python -m codesign_bench.render env=gap design=initial|random|expert|PATH.json seed=3 out=FILE.png|.mp4"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codesign_bench.analysis.rendering import LARGEST, Picture, open_for_writing, save_png, save_video
from codesign_bench.command_line import load_config, run
from codesign_bench.design.graph import Design
from codesign_bench.design.transform import NUM_SKELETON_ACTIONS, attribute_transform, skeleton_transform
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.simulation.body import Body
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.structured import build
from codesign_bench.tasks import Task, task_from_config

Array = NDArray[Any]
FRAMES_PER_SECOND = 25


def random_design(task: Task, rng: np.random.Generator, steps: TransformSteps | None = None) -> Design:
    """What a policy that chooses at random makes of the initial design."""
    steps, design = steps or TransformSteps(), task.initial_design
    for _ in range(steps.skeleton):
        design = skeleton_transform(design, rng.integers(0, NUM_SKELETON_ACTIONS, design.num_nodes), task.space)
    for _ in range(steps.attribute):
        design = attribute_transform(design, rng.normal(0, 0.5, design.attributes.shape), task.space)
    return design


def choose_design(task: Task, choice: str, rng: np.random.Generator) -> tuple[Design, Task]:
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
    try:
        design = Design.from_json(path.read_text(encoding="utf-8"))
        task.space.check(design)
    except (DesignError, UnicodeDecodeError) as error:
        raise DesignError(f"{path}: {error}") from None
    return design, task


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
        if result.fallen or result.unstable:
            body.reset(rng)


@dataclass(frozen=True)
class RenderConfig:
    """The content of conf/render.yaml, without the environment."""

    design: str
    seed: int
    out: str
    seconds: float
    width: int
    height: int

    def __post_init__(self) -> None:
        check_output(self.out, self.seed, self.seconds, self.width, self.height)


def check_output(out: str, seed: int, seconds: float, width: int, height: int) -> None:
    """Raises ConfigError unless a picture or video of this kind can be made."""
    if Path(out).suffix not in (".png", ".mp4"):
        raise ConfigError(f"out is '{out}'; allowed are names that end in .png or .mp4.")
    if seed < 0:
        raise ConfigError(f"seed is {seed}; allowed are whole numbers from 0 up.")
    if seconds <= 0:
        raise ConfigError(f"seconds is {seconds}; allowed are numbers above 0.")
    for name, value, most in (("width", width, LARGEST[0]), ("height", height, LARGEST[1])):
        if not 16 <= value <= most:
            raise ConfigError(f"{name} is {value}; allowed are whole numbers from 16 to {most}.")


def main(arguments: list[str]) -> int:
    config = load_config("render", arguments)
    settings = build(RenderConfig, {key: value for key, value in config.items() if key != "env"}, "the configuration")
    rng = np.random.default_rng(settings.seed)
    design, task = choose_design(task_from_config(config.get("env") or {}), settings.design, rng)
    out = open_for_writing(settings.out)
    picture = Picture(design, task, width=settings.width, height=settings.height)
    if out.suffix == ".png":
        save_png(out, picture.frame(starting_pose(design, task, rng)))
    else:
        save_video(out, (picture.frame(q) for q in motion(design, task, rng, settings.seconds)), FRAMES_PER_SECOND)
    picture.close()
    print(f"{out}: {task.name}, {design.num_nodes} bodies")
    return 0


if __name__ == "__main__":
    run(main)
