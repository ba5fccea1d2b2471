"""python -m codesign_bench.play run=RUN out=FILE.mp4|.png: the final agent of a run designs itself, then moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from codesign_bench.command_line import load_config, run
from codesign_bench.design.graph import Design
from codesign_bench.experiment.load import load_champion
from codesign_bench.experiment.method import Agent
from codesign_bench.experiment.process import design_process
from codesign_bench.experiment.seeds import Streams
from codesign_bench.render import check_output
from codesign_bench.simulation.episode import Stage
from codesign_bench.simulation.rendering import Picture, open_for_writing, save_png, save_video
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.simulation.showing import FRAMES_PER_SECOND
from codesign_bench.structured import build

Array = NDArray[Any]
SECONDS_PER_DESIGN = 0.8


@dataclass(frozen=True)
class PlayConfig:
    """The content of conf/play.yaml."""

    run: str
    out: str
    seed: int
    seconds: float
    width: int
    height: int

    def __post_init__(self) -> None:
        check_output(self.out, self.seed, self.seconds, self.width, self.height)


@dataclass(frozen=True)
class Performance:
    """One deterministic episode: the designs on the way, drawn with the attributes of the finished one, and the poses."""

    process: tuple[tuple[str, Design], ...]
    design: Design
    poses: tuple[Array, ...]
    total_return: float


def perform(agent: Agent, seed: np.random.SeedSequence) -> Performance:
    """Plays one episode."""
    poses: list[Array] = []
    for episode, _ in Sampler(agent.task, 1, seed, agent.steps).watch(agent.policy):
        if episode.stage is Stage.EXECUTION:
            assert episode.body is not None
            poses.append(np.array(episode.body.data.qpos))
            design, before_last = episode.design, episode.total_return
    assert episode.last_step is not None  # the episode itself has begun anew
    process = design_process(agent, seed) or (design,)
    titles = ["initial skeleton", *(f"after skeleton transform {i}" for i in range(1, len(process)))]
    return Performance(tuple(zip(titles, process, strict=True)), design, tuple(poses), before_last + episode.last_step.reward)


def frames(agent: Agent, shown: Performance, config: PlayConfig) -> Iterator[Array]:
    for title, design in shown.process:
        picture = Picture(design, agent.task, config.width, config.height)
        still = _captioned(picture.frame(), f"{title}: {design.num_nodes} bodies")
        picture.close()
        for _ in range(round(SECONDS_PER_DESIGN * FRAMES_PER_SECOND)):
            yield still
    picture = Picture(shown.design, agent.task, config.width, config.height)
    count = 0
    for step, pose in enumerate(shown.poses):
        now = step * agent.task.dt
        if now > config.seconds:
            break
        if now * FRAMES_PER_SECOND >= count - 1e-6:
            count += 1
            yield _captioned(picture.frame(pose), f"{now:.1f} s, x = {pose[0]:.1f} m")
    picture.close()


def strip(agent: Agent, shown: Performance, config: PlayConfig) -> Array:
    """The design process side by side."""
    tiles = []
    for title, design in shown.process:
        picture = Picture(design, agent.task, config.width, config.height)
        tiles.append(_captioned(picture.frame(), title))
        picture.close()
    return np.concatenate(tiles, axis=1)


def _captioned(pixels: Array, text: str) -> Array:
    image = Image.fromarray(pixels)
    size = max(14, image.height // 24)
    ImageDraw.Draw(image).text((size, size // 2), text, fill="#222222", font=ImageFont.load_default(size))
    return np.asarray(image)


def main(arguments: list[str]) -> int:
    config = build(PlayConfig, load_config("play", arguments), "the configuration")
    agent, plan = load_champion(Path(config.run))
    out = open_for_writing(config.out)
    shown = perform(agent, Streams(plan.settings.seed).sequence("play", config.seed))
    if out.suffix == ".png":
        save_png(out, strip(agent, shown, config))
    else:
        save_video(out, frames(agent, shown, config), FRAMES_PER_SECOND)
    print(f"{out}: {shown.design.num_nodes} bodies, return {shown.total_return:.1f} in {len(shown.poses)} steps")
    return 0


if __name__ == "__main__":
    run(main)
