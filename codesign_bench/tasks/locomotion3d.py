"""3D locomotion: run as fast as possible along x, free in space."""

from __future__ import annotations

import numpy as np

from codesign_bench.tasks.base import Array, StateSources, Task


class Locomotion3d(Task):
    """Run along x with a free root that starts with four limbs (paper, appendix E).

    State of the root    height, quaternion (4), linear and angular velocity (6), 0, 0
    State of a joint     eleven zeros, angle, rate
    Control              one number per joint, clipped to [-1, 1] by the motor
    Reward               dx/dt - 1e-4 mean(control^2) over motors; dt = 0.04 s
    Ends                 height <= 0 or >= 2.0 m, root's z-axis 60 degrees or more from upright, 1000 steps
    Start                height 0.4 m, noise 0.1 on positions and velocities

    Version 1: signed speed, published limits on height and tilt.
    """

    state_size = 13

    def state_sources(self, sources: StateSources) -> Array:
        zero = sources.zero
        root = [2, 3, 4, 5, 6, *(sources.qvel(i) for i in range(6)), zero, zero]
        return sources.table(root, [*[zero] * 11, sources.joint_qpos, sources.joint_qvel])

    def height(self, qpos: Array) -> Array:
        return qpos[..., 2]

    def angle(self, qpos: Array) -> Array:
        w, x, y, z = qpos[..., 3], qpos[..., 4], qpos[..., 5], qpos[..., 6]
        across = x * x + y * y
        angle: Array = np.arccos(np.maximum(1 - 2 * across / (w * w + across + z * z), -1.0))
        return angle
