"""3D locomotion: run as fast as possible along x, free in space."""

from collections.abc import Mapping, Sequence

import numpy as np

from codesign_bench.tasks.base import Array, Numbers, Task, control_cost, forward_speed
from codesign_bench.tasks.state import State, Step, clipped


class Locomotion3d(Task):
    """Run along x with a free root that starts with four limbs (paper, appendix E).

    - State of the root: height, quaternion (4), linear and angular velocity (6), 0, 0
    - State of a joint: eleven zeros, angle, rate
    - Control: one number per joint, clipped to [-1, 1] by the motor
    - Reward: dx/dt - 1e-4 mean(control^2) over motors; dt = 0.04 s
    - Ends: height <= 0 or >= 2.0 m, root's z-axis 60 degrees or more from upright, 1000 steps
    - Start: height 0.4 m (an expert's own, Ant: 0.75 m), noise 0.1 on positions and velocities

    Version 2: contacts begin at 1 cm, as published, instead of 2 cm; an expert starts at its own height.
    Version 1: signed speed, published limits on height and tilt.
    """

    state_size = 13

    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        _, _, *height_and_quaternion = state.root.T
        velocity = clipped(state.root_velocity).T
        return [*height_and_quaternion, *velocity, 0, 0], [*[0] * 11, state.angle, clipped(state.rate)]

    def reward(self, step: Step) -> Mapping[str, Numbers]:
        config = self.config.reward
        return {"forward": forward_speed(step, config), "alive": config.alive, "control": -control_cost(step, config)}

    def ended(self, state: State) -> Array:
        _, _, height, w, x, y, z = state.root.T
        return self.limits.passed(height, tilt(w, x, y, z))


def tilt(w: Array, x: Array, y: Array, z: Array) -> Array:
    """Angle between the root's z-axis and the vertical, radians, from its quaternion."""
    across = x * x + y * y
    angle: Array = np.arccos(np.maximum(1 - 2 * across / (w * w + across + z * z), -1.0))
    return angle
