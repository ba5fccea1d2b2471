"""Stairs: run up a flight of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from codesign_bench.design.scene import Part, Scene
from codesign_bench.tasks.base import Array, Numbers, Task, forward_speed
from codesign_bench.tasks.config import EnvConfig
from codesign_bench.tasks.state import State, Step, clipped


@dataclass(frozen=True)
class StairsConfig(EnvConfig):
    """first: where the first step begins, metres ahead of the start; rise and tread of each step, metres."""

    steps: int
    first: float
    rise: float
    tread: float


class Stairs(Task):
    """Run up stairs in the xz-plane.

    - State of the root: height above the ground below it, pitch, distance to the next step, pitch rate, vz, vx
    - State of a joint: 0, angle, 0, rate, 0, 0
    - Reward: dx/dt + alive
    - Ends: height above the ground <= 0.7 or >= 2.0 m, |pitch| >= 20 degrees, 1000 steps
    - Metrics: climbed, the highest step reached, metres

    Version 1.
    """

    config: StairsConfig
    config_class = StairsConfig
    state_size = 6
    metrics = {"climbed": "max"}

    def furnished(self, scene: Scene) -> Scene:
        stairs, steps = self.config, []
        flight = stairs.tread * stairs.steps
        for i in range(stairs.steps):
            left, height = stairs.first + i * stairs.tread, (i + 1) * stairs.rise
            half = (stairs.first + flight - left) / 2 + 10.0  # the last one goes on for 20 m
            steps.append(Part(f"step_{i}", "box", (half, 0.5, height / 2), (left + half, 0.0, height / 2)))
        return replace(scene, parts=tuple(steps))

    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        x, z, pitch = state.root.T
        vx, vz, pitch_rate = clipped(state.root_velocity).T
        to_next = np.mod(self.config.first - x, self.config.tread)
        return [z - self.ground(x), pitch, to_next, pitch_rate, vz, vx], [0, state.angle, 0, clipped(state.rate), 0, 0]

    def reward(self, step: Step) -> Mapping[str, Numbers]:
        return {"forward": forward_speed(step, self.config.reward), "alive": self.config.reward.alive}

    def ended(self, state: State) -> Array:
        x, z, pitch = state.root.T
        return self.limits.passed(z - self.ground(x), np.abs(pitch))

    def measure(self, step: Step) -> Mapping[str, Numbers]:
        return {"climbed": self.ground(step.after.root[:, 0])}

    def ground(self, x: Array) -> Array:
        """Height of the ground at x, metres."""
        climbed = np.clip(np.floor((x - self.config.first) / self.config.tread) + 1, 0, self.config.steps)
        height: Array = climbed * self.config.rise
        return height
