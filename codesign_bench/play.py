"""python -m codesign_bench.play run=RUN out=FILE.mp4|.png: the final agent of a run designs itself, then moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from codesign_bench.analysis.rendering import Picture, open_for_writing, save_png, save_video
from codesign_bench.command_line import load_config, run
from codesign_bench.design.graph import Design
from codesign_bench.design.transform import ADD_JOINT, kept_nodes
from codesign_bench.experiment.load import load_champion
from codesign_bench.experiment.method import Agent
from codesign_bench.experiment.seeds import Streams
from codesign_bench.render import FRAMES_PER_SECOND, check_output
from codesign_bench.simulation.episode import SKELETON, Stage
from codesign_bench.simulation.sampler import Sampler
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
    """Plays one episode. Nodes keep their identity through the skeleton stage, so that an unfinished skeleton can be drawn
    with the attributes that its joints end up with (as in the paper's figures of the design process)."""
    sampler = Sampler(agent.task, 1, seed, agent.steps)
    stages: list[tuple[Design, list[int]]] = []
    identity, newest = list(range(agent.task.initial_design.num_nodes)), agent.task.initial_design.num_nodes
    poses: list[Array] = []
    final: Design | None = None
    for episode, actions in sampler.watch(agent.policy):
        if episode.stage is Stage.SKELETON:
            stages.append((episode.design, list(identity)))
            kept = kept_nodes(episode.design, actions[:, SKELETON], agent.task.space)
            identity = [name for name, stays in zip(identity, kept, strict=True) if stays]
            grown = _grown(episode.design, actions[:, SKELETON], agent)
            identity += range(newest, newest + grown)
            newest += grown
        elif episode.stage is Stage.EXECUTION:
            if final is None:
                final = episode.design
                stages.append((final, list(identity)))
            assert episode.body is not None
            poses.append(np.array(episode.body.data.qpos))
    assert final is not None
    attributes = dict(zip(identity, final.attributes, strict=True))
    drawn = [
        design.with_attributes([attributes.get(n, own) for n, own in zip(names, design.attributes, strict=True)])
        for design, names in stages
    ]
    titles = ["initial skeleton", *(f"after skeleton transform {i}" for i in range(1, len(stages)))]
    return Performance(tuple(zip(titles, drawn, strict=True)), final, tuple(poses), episode.total_return)


def _grown(design: Design, choices: Array, agent: Agent) -> int:
    return int(np.count_nonzero((choices == ADD_JOINT) & agent.task.space.topology(design).can_add))


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
