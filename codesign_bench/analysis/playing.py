"""One episode of an agent, to look at: how it designs itself, then how it moves."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from codesign_bench.analysis.style import captioned
from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.experiment.design_process import design_process
from codesign_bench.experiment.method import Agent
from codesign_bench.simulation.episode import Stage
from codesign_bench.simulation.rendering import Picture
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.simulation.showing import FRAMES_PER_SECOND
from codesign_bench.tasks import Task

SECONDS_PER_DESIGN = 0.8


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


def frames(task: Task, shown: Performance, seconds: float, size: tuple[int, int]) -> Iterator[Array]:
    """Of a video: the designs on the way, then at most `seconds` of motion."""
    for title, design in shown.process:
        yield from [_still(task, design, size, f"{title}: {design.num_nodes} bodies")] * round(SECONDS_PER_DESIGN * FRAMES_PER_SECOND)
    picture = Picture(shown.design, task, *size)
    count = 0
    for step, pose in enumerate(shown.poses):
        now = step * task.dt
        if now > seconds:
            break
        if now * FRAMES_PER_SECOND >= count - 1e-6:
            count += 1
            yield captioned(picture.frame(pose), f"{now:.1f} s, x = {pose[0]:.1f} m")
    picture.close()


def strip(task: Task, shown: Performance, size: tuple[int, int]) -> Array:
    """The design process side by side."""
    return np.concatenate([_still(task, design, size, title) for title, design in shown.process], axis=1)


def _still(task: Task, design: Design, size: tuple[int, int], caption: str) -> Array:
    picture = Picture(design, task, *size)
    pixels = captioned(picture.frame(), caption)
    picture.close()
    return pixels
