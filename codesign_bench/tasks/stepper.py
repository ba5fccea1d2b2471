"""Stepper: climb stairs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from codesign_bench.design.scene import Part, Scene
from codesign_bench.structured import Checked, Count, NotNegative, Positive
from codesign_bench.tasks.base import Array, Numbers
from codesign_bench.tasks.config import EnvConfig
from codesign_bench.tasks.locomotion3d import Locomotion3d
from codesign_bench.tasks.state import State, Step

LANDING = 20.0
"""Metres by which the last step is longer than a tread."""


@dataclass(frozen=True)
class StairsConfig(Checked):
    """Metres. Step n has its top at n * rise from x = first + n * tread on; `edge_run`: how far along x a rise takes to get there, 0 is
    vertical; half_width: to either side of y = 0."""

    first: Positive
    tread: Positive
    rise: Positive
    steps: Count
    edge_run: NotNegative
    half_width: Positive


@dataclass(frozen=True)
class StepperConfig(EnvConfig):
    stairs: StairsConfig


class Stepper(Locomotion3d):
    """Climb stairs along x, with a free root that starts with four limbs (Dai et al. 2026).

    - State of the root: height above the ground below it, then as locomotion3d
    - State of a joint, control: as locomotion3d
    - Reward: dx/dt - 1e-4 mean(control^2) over motors; dt = 0.008 s
    - Ends: height above the ground of the start <= 0, root's z-axis 90 degrees or more from upright, 1000 steps
    - Start: as locomotion3d
    - Metrics: climbed, the highest ground reached, metres

    Stairs of 0.4 m, 2 m deep (hard: 0.8 m); the first rise ends 2.5 m ahead of the start. Version 1.
    """

    config_class = StepperConfig
    config: StepperConfig

    metrics = {"climbed": "max"}

    def furnished(self, scene: Scene) -> Scene:
        stairs, friction = self.config.stairs, scene.ground.friction
        parts = []
        for n in range(1, stairs.steps + 1):
            left, top = stairs.first + n * stairs.tread, n * stairs.rise
            length = stairs.tread + (LANDING if n == stairs.steps else 0.0)
            size, centre = (length / 2, stairs.half_width, top / 2), (left + length / 2, 0.0, top / 2)
            parts.append(Part(f"step_{n}", "box", size, centre, friction=friction))
            if stairs.edge_run:
                parts.append(self._leaning(n, left, top, friction))
        return replace(scene, parts=(*scene.parts, *parts))

    def _leaning(self, n: int, x: float, z: float, friction: tuple[float, float, float]) -> Part:
        """A box whose upper face is the n-th rise: it ends in the edge of its step, and is as thick as fills the wedge below."""
        stairs = self.config.stairs
        angle, length = math.atan2(stairs.rise, stairs.edge_run), math.hypot(stairs.rise, stairs.edge_run)
        half = stairs.edge_run * math.sin(angle) / 2
        middle = (x - stairs.edge_run / 2 + half * math.sin(angle), 0.0, z - stairs.rise / 2 - half * math.cos(angle))
        size = (length / 2, 0.999 * stairs.half_width, half)
        return Part(f"rise_{n}", "box", size, middle, (0.0, -math.degrees(angle), 0.0), friction=friction)

    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        (height, *root), joint = super().observe(state)
        return [height - self.ground(state), *root], joint

    def measure(self, step: Step) -> Mapping[str, Numbers]:
        return {"climbed": self.ground(step.after)}

    def ground(self, state: State) -> Array:
        """[bodies]: height of the ground below the root, metres."""
        stairs = self.config.stairs
        x, y = state.root[:, 0], state.root[:, 1]
        along = (x - stairs.first) / stairs.tread
        whole = np.floor(along)
        into_next = 1 - (whole + 1 - along) * stairs.tread / stairs.edge_run if stairs.edge_run else np.zeros_like(along)
        reached = np.clip(whole + np.clip(into_next, 0, 1), 0, stairs.steps)
        there = (np.abs(y) <= stairs.half_width) & (along <= stairs.steps + 1 + LANDING / stairs.tread)
        height: Array = np.where(there, reached * stairs.rise, 0.0)
        return height
