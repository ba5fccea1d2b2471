"""How a champion moves: the poses of one deterministic episode, kept in the run folder so that it can be shown without simulating."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.design.space import DesignSpace
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import DesignError
from codesign_bench.experiment.method import Agent
from codesign_bench.experiment.run_folder import write_atomically
from codesign_bench.plain_files import read_json
from codesign_bench.simulation.episode import Stage
from codesign_bench.simulation.sampler import Sampler

FILE = "motion.json"
FRAMES_PER_SECOND = 25
FARTHEST, SHORTEST = 1e6, 1e-3
"""Metres or radians that a pose may hold, and seconds between two of them."""
DECIMALS = 4
"""Of metres, radians and quaternions: a tenth of a millimetre, and a few dozen kilobytes for ten seconds."""


@dataclass(frozen=True)
class Motion:
    """poses [frames, coordinates] are MuJoCo's qpos, `seconds_per_frame` apart; `ended` says that the episode ends early, with the last
    of them; `total_return` is that of the whole episode, also where only its beginning is kept."""

    design: Design
    space: DesignSpace
    poses: Array
    seconds_per_frame: float
    total_return: float
    ended: bool

    def is_of(self, design: Design) -> bool:
        """Whether this design moves here. Agents compute their attributes in batches of other sizes, which changes the last digits."""
        same = np.array_equal(self.design.parents, design.parents)
        return same and np.allclose(self.design.attributes, design.attributes, rtol=0, atol=1e-4)

    def save(self, folder: Path) -> None:
        content = {
            **StoredDesign(self.design, self.space).to_dict(),
            "seconds_per_frame": self.seconds_per_frame,
            "total_return": self.total_return,
            "ended": self.ended,
            "poses": np.round(self.poses, DECIMALS).tolist(),
        }
        write_atomically(folder / FILE, json.dumps(content, separators=(",", ":")))

    @staticmethod
    def load(folder: Path) -> Motion | None:
        """What was recorded, or None if nothing was; a file that does not hold a motion raises DesignError."""
        path = folder / FILE
        if not path.is_file():
            return None
        try:
            value = read_json(path)
            poses, stored = np.asarray(value["poses"], dtype=np.float64), StoredDesign.from_dict(value)
            motion = Motion(
                stored.design, stored.space, poses, float(value["seconds_per_frame"]), float(value["total_return"]), bool(value["ended"])
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise DesignError(f"{path} does not hold a motion; record it again with codesign-bench reevaluate.") from None
        if poses.ndim != 2 or not poses.size or not (np.abs(poses) <= FARTHEST).all() or not SHORTEST <= motion.seconds_per_frame < 10:
            raise DesignError(f"{path} does not hold a motion: its poses are not a table of numbers that a robot could come to.")
        if poses.shape[1] < 3 + stored.design.num_nodes - 1:
            raise DesignError(f"{path} does not hold a motion: its design has more joints than its poses.")
        return motion


def record(agent: Agent, seed: np.random.SeedSequence, seconds: float, after_step: Callable[[], None] = lambda: None) -> Motion | None:
    """Plays one episode and keeps its first seconds; None if the design cannot be simulated at all."""
    stride = max(1, round(1 / (FRAMES_PER_SECOND * agent.task.dt)))
    poses: list[Array] = []
    design, step, before_last = agent.task.initial_design, 0, 0.0
    for episode, _ in Sampler(agent.task, 1, seed, agent.steps).watch(agent.policy):
        after_step()
        if episode.stage is not Stage.EXECUTION or episode.body is None:
            continue
        design, pose, before_last = episode.design, np.array(episode.body.data.qpos), episode.total_return
        if step % stride == 0 and step * agent.task.dt <= seconds and np.isfinite(pose).all():
            poses.append(pose)
        step += 1
    if not poses:
        return None
    assert episode.last_step is not None
    total_return = before_last + episode.last_step.reward  # the episode itself has begun anew
    ended = step < agent.task.config.max_steps and (step - 1) * agent.task.dt <= seconds
    return Motion(design, agent.task.space, np.stack(poses), stride * agent.task.dt, total_return, ended)
