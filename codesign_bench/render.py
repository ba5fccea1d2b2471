"""python -m codesign_bench.render env=gap design=initial|random|expert|PATH.json seed=3 out=FILE.png|.mp4"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codesign_bench.command_line import load_config, run
from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.simulation.rendering import LARGEST, Picture, open_for_writing, save_png, save_video
from codesign_bench.simulation.showing import FRAMES_PER_SECOND, motion, random_design, starting_pose
from codesign_bench.structured import build
from codesign_bench.tasks import Task, task_from_config


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
