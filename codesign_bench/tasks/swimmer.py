"""Swimmer: swim as fast as possible along x in a viscous medium."""

from __future__ import annotations

from codesign_bench.tasks.base import Array, StateSources, Task


class Swimmer(Task):
    """Swim along x in the xy-plane; nothing to stand on and nothing to touch (paper, appendix E).

    State of the root    heading, heading rate, vy, vx
    State of a joint     angle, rate, 0, 0
    Control              one number per joint, clipped to [-1, 1] by the motor
    Reward               dx/dt - 1e-4 mean(control^2) over motors; dt = 0.04 s
    Ends                 1000 steps
    Start                noise 0.1 on positions and velocities

    Version 1: signed speed, no contacts.
    """

    state_size = 4

    def state_sources(self, sources: StateSources) -> Array:
        zero = sources.zero
        root = [2, sources.qvel(2), sources.qvel(1), sources.qvel(0)]
        return sources.table(root, [sources.joint_qpos, sources.joint_qvel, zero, zero])

    def height(self, qpos: Array) -> float:
        return 0.0

    def angle(self, qpos: Array) -> float:
        return 0.0
