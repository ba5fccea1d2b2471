"""2D locomotion: run as fast as possible along x in the xz-plane."""

from __future__ import annotations

import numpy as np

from codesign_bench.tasks.base import Array, StateSources, Task


class Locomotion2d(Task):
    """Run forward in the xz-plane on flat ground (paper, appendix E).

    State of the root    pitch, height, pitch rate, vz, vx
    State of a joint     angle, 0, rate, 0, 0
    Control              one number per joint, clipped to [-1, 1] by the motor
    Reward               dx/dt + 1 (alive); dt = 0.008 s
    Ends                 height <= 0.7 or >= 2.0 m, |pitch| >= 20 degrees, 1000 steps
    Start                height 1.25 m, noise 0.005 on positions and velocities

    Version 1: signed speed, published limits on height and pitch.
    """

    state_size = 5

    def state_sources(self, sources: StateSources) -> Array:
        q, v, zero = sources.joint_qpos, sources.joint_qvel, sources.zero
        root = [2, 1, sources.qvel(2), sources.qvel(1), sources.qvel(0)]
        return sources.table(root, [q, zero, v, zero, zero])

    def height(self, qpos: Array) -> Array:
        return qpos[..., 1]

    def angle(self, qpos: Array) -> Array:
        return np.abs(qpos[..., 2])
