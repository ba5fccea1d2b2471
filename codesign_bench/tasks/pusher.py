"""Pusher: push a cube along x."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codesign_bench.structured import NotNegative
from codesign_bench.tasks.base import Array, Numbers, control_cost
from codesign_bench.tasks.config import EnvConfig
from codesign_bench.tasks.locomotion3d import Locomotion3d
from codesign_bench.tasks.state import State, Step


@dataclass(frozen=True)
class PusherConfig(EnvConfig):
    """sideways_cost: times the cube's speed along y; near: reward of a root that is where the cube's frame is."""

    sideways_cost: NotNegative
    near: NotNegative


class Pusher(Locomotion3d):
    """Push a cube of 2 m and 8 kg along x, with a free root that starts with four limbs (Dai et al. 2026).

    - State of the root: height, quaternion (4), linear and angular velocity (6), the cube relative to it (3), three zeros
    - State of a joint: fifteen zeros, angle, rate
    - Control: one number per joint, clipped to [-1, 1] by the motor
    - Reward: the cube's dx/dt - 0.1 |dy|/dt + 1 / (1 + distance between cube and root) - 1e-4 mean(control^2); dt = 0.04 s
    - Ends: height <= 0 or >= 2.0 m, root's z-axis 60 degrees or more from upright, 1000 steps
    - Start: as locomotion3d; the cube's near side is 0.2 m ahead of the root

    Where the cube is means, as published, how far it has slid: its body's frame starts at the origin, on the ground.

    Version 1.
    """

    config_class = PusherConfig
    config: PusherConfig

    state_size = 17

    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        root, joint = super().observe(state)
        return [*root[:11], *cube_from_root(state).T, 0, 0, 0], [0, 0, 0, 0, *joint]

    def reward(self, step: Step) -> Mapping[str, Numbers]:
        config = self.config
        dx, dy = (step.after.object(0) - step.before.object(0)).T
        distance = np.linalg.norm(cube_from_root(step.after), axis=1)
        return {
            "pushed": dx / step.dt,
            "sideways": -config.sideways_cost * np.abs(dy) / step.dt,
            "near": config.near / (1 + distance),
            "control": -control_cost(step, config.reward),
        }


def cube_from_root(state: State) -> Array:
    """[bodies, 3]: from the root to the cube's frame, metres."""
    slid = state.object(0)
    return np.column_stack([slid, np.zeros(len(slid))]) - state.root[:, :3]
