"""One episode of an agent, to look at: how it designs itself, then how it moves."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from codesign_bench.analysis.champions import FINAL, PROCESS
from codesign_bench.analysis.gallery import shown_task
from codesign_bench.analysis.style import captioned
from codesign_bench.arrays import Array
from codesign_bench.bars import counted
from codesign_bench.design.graph import Design
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.experiment.design_process import design_process, stage_titles
from codesign_bench.experiment.load import load_config_of
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


def recorded(folder: Path, seconds: float) -> tuple[Task, Performance]:
    """What a run folder without checkpoints shows: the final agent's designs, and the motion that `reevaluate` recorded."""
    stored, motion = StoredDesign.load(folder / FINAL), Motion.load(folder)
    if motion is None or not motion.is_of(stored.design):
        raise ConfigError(
            f"The run {folder} is an export, without checkpoints, and holds no motion of its final design; run codesign-bench reevaluate "
            "on the run that it was made from, and export that again."
        )
    task = shown_task(load_config_of(folder).get("env") or {}).starting_from(stored.design, stored.space)
    process = [each.design for each in (StoredDesign.load_all(folder / PROCESS) if (folder / PROCESS).is_file() else [])] or [stored.design]
    shown = motion.poses[: max(1, round(seconds / motion.seconds_per_frame))]
    motion = replace(motion, poses=shown, ended=motion.ended and len(shown) == len(motion.poses))
    return task, Performance(tuple(zip(stage_titles(process), process, strict=True)), motion)


def perform(agent: Agent, seed: np.random.SeedSequence, seconds: float) -> Performance:
    """Plays one episode, of which the first seconds are shown."""
    with counted("an episode: step", agent.longest) as after_step:
        motion = record(agent, seed, seconds, after_step)
    if motion is None:
        raise DesignError("The design that this agent comes to cannot be simulated, so there is nothing to show.")
    process = design_process(agent, seed) or (motion.design,)
    return Performance(tuple(zip(stage_titles(process), process, strict=True)), motion)


def frames(task: Task, shown: Performance, size: tuple[int, int]) -> Iterator[Array]:
    """Of a video: the designs on the way, then the motion."""
    motion = shown.motion
    for title, design in shown.process:
        still = _still(task, design, size, f"{title}: {design.num_nodes} bodies")
        yield from [still] * still_frames(motion)
    picture = Picture(motion.design, task, *size)
    for i, pose in enumerate(motion.poses):
        yield captioned(picture.frame(pose), f"{i * motion.seconds_per_frame:.1f} s, x = {round(float(pose[0]), 1) + 0.0:.1f} m")
    picture.close()


def still_frames(motion: Motion) -> int:
    """Of each design on the way."""
    return round(SECONDS_PER_DESIGN / motion.seconds_per_frame)


def strip(task: Task, shown: Performance, size: tuple[int, int]) -> Array:
    """The design process side by side."""
    return np.concatenate([_still(task, design, size, title) for title, design in shown.process], axis=1)


def _still(task: Task, design: Design, size: tuple[int, int], caption: str) -> Array:
    picture = Picture(design, task, *size)
    pixels = captioned(picture.frame(), caption)
    picture.close()
    return pixels
