"""One episode of an agent, to look at: how it designs itself, then how it moves."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from codesign_bench.analysis.style import captioned
from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.errors import DesignError
from codesign_bench.experiment.design_process import design_process, stage_titles
from codesign_bench.experiment.method import Agent
from codesign_bench.experiment.motion import Motion, record
from codesign_bench.simulation.rendering import Picture
from codesign_bench.tasks import Task

SECONDS_PER_DESIGN = 0.8


@dataclass(frozen=True)
class Performance:
    """One deterministic episode: the designs on the way, drawn with the attributes of the finished one, and the motion."""

    process: tuple[tuple[str, Design], ...]
    motion: Motion


def perform(agent: Agent, seed: np.random.SeedSequence, seconds: float) -> Performance:
    """Plays one episode, of which the first seconds are shown."""
    motion = record(agent, seed, seconds)
    if motion is None:
        raise DesignError("The design that this agent comes to cannot be simulated, so there is nothing to show.")
    process = design_process(agent, seed) or (motion.design,)
    return Performance(tuple(zip(stage_titles(process), process, strict=True)), motion)


def frames(task: Task, shown: Performance, size: tuple[int, int]) -> Iterator[Array]:
    """Of a video: the designs on the way, then the motion."""
    motion = shown.motion
    for title, design in shown.process:
        still = _still(task, design, size, f"{title}: {design.num_nodes} bodies")
        yield from [still] * round(SECONDS_PER_DESIGN / motion.seconds_per_frame)
    picture = Picture(motion.design, task, *size)
    for i, pose in enumerate(motion.poses):
        yield captioned(picture.frame(pose), f"{i * motion.seconds_per_frame:.1f} s, x = {pose[0]:.1f} m")
    picture.close()


def strip(task: Task, shown: Performance, size: tuple[int, int]) -> Array:
    """The design process side by side."""
    return np.concatenate([_still(task, design, size, title) for title, design in shown.process], axis=1)


def _still(task: Task, design: Design, size: tuple[int, int], caption: str) -> Array:
    picture = Picture(design, task, *size)
    pixels = captioned(picture.frame(), caption)
    picture.close()
    return pixels
