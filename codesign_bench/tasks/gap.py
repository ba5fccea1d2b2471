"""Gap crosser: run along x over ground with periodic gaps."""

from __future__ import annotations

import numpy as np

from codesign_bench.tasks.base import Array, StateSources, Task


class Gap(Task):
    """Run forward in the xz-plane over gaps 0.96 m wide, one every 3.2 m (paper, appendix E).

    State of the root    phase, pitch, height, pitch rate, vz, vx
    State of a joint     phase, angle, 0, rate, 0, 0
    Control              one number per joint, clipped to [-1, 1] by the motor
    Reward               dx/dt + 0.1 (alive); dt = 0.008 s
    Ends                 height <= 1.0 or >= 2.0 m, |pitch| >= 20 degrees, 1000 steps
    Start                height 1.25 m, raised while a bone touches the ground; noise 0.005

    phase = x / 3.2 - trunc(x / 3.2): where in the period the root is. The ground's top is at 0.5 m.

    Version 1: terrain of boxes, signed speed, published limits on height and pitch.
    """

    state_size = 6

    def state_sources(self, sources: StateSources) -> Array:
        q, v, zero, phase = sources.joint_qpos, sources.joint_qvel, sources.zero, sources.extra
        root = [phase, 2, 1, sources.qvel(2), sources.qvel(1), sources.qvel(0)]
        return sources.table(root, [phase, q, zero, v, zero, zero])

    def extra(self, qpos: Array) -> Array:
        with np.errstate(invalid="ignore"):
            phase = np.fmod(qpos[..., 0] / self.scene.ground.period, 1.0)
        return np.where(phase == phase, phase, 0.0)  # of no number: nothing

    def height(self, qpos: Array) -> Array:
        return qpos[..., 1]

    def angle(self, qpos: Array) -> Array:
        return np.abs(qpos[..., 2])
