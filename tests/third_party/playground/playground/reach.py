"""Reach: swim to a target and stop there. The target is another one in each episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codesign_bench.tasks.base import Array, Numbers
from codesign_bench.tasks.config import EnvConfig
from codesign_bench.tasks.state import SimulatedBody, State, Step
from codesign_bench.tasks.swimmer import Swimmer


@dataclass(frozen=True)
class TargetConfig:
    """distance: metres, least and most, in any direction; radius: within which it counts as reached."""

    distance: tuple[float, float]
    radius: float


@dataclass(frozen=True)
class ReachConfig(EnvConfig):
    target: TargetConfig
    speed_cost: float


class Reach(Swimmer):
    """Swim to a target in the xy-plane and stop there.

    - State of the root: target relative to it (2), heading, heading rate, vy, vx
    - State of a joint: 0, 0, angle, rate, 0, 0
    - Reward: metres that the root came closer, and inside the target's radius 1 - speed_cost * speed
    - Ends: 1000 steps
    - Start: as swimmer; the target is drawn uniformly in direction and distance
    - Metrics: distance to the target at the end, metres

    Version 1.
    """

    config: ReachConfig
    config_class = ReachConfig
    state_size = 6
    metrics = {"distance": "last"}

    def start(self, body: SimulatedBody, rng: np.random.Generator) -> None:
        super().start(body, rng)
        angle, distance = rng.uniform(-np.pi, np.pi), rng.uniform(*self.config.target.distance)
        body.drawn = np.array([distance * np.cos(angle), distance * np.sin(angle)])

    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        root, joint = super().observe(state)
        x, y = (state.drawn - state.root[:, :2]).T
        return [x, y, *root], [0, 0, *joint]

    def reward(self, step: Step) -> Mapping[str, Numbers]:
        before, after = distance(step.before), distance(step.after)
        speed = np.linalg.norm(step.after.root_velocity[:, :2], axis=1)
        there = after <= self.config.target.radius
        return {"closer": before - after, "stopped": np.where(there, 1 - self.config.speed_cost * speed, 0.0)}

    def measure(self, step: Step) -> Mapping[str, Numbers]:
        return {"distance": distance(step.after)}


def distance(state: State) -> Array:
    """[bodies]: from the root to the target, metres."""
    gap: Array = np.linalg.norm(state.drawn - state.root[:, :2], axis=1)
    return gap
