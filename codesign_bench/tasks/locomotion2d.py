"""2D locomotion: run as fast as possible along x in the xz-plane."""

from collections.abc import Mapping, Sequence

import numpy as np

from codesign_bench.tasks.base import Array, Numbers, Task, control_cost, forward_speed
from codesign_bench.tasks.state import State, Step, clipped


class Locomotion2d(Task):
    """Run forward in the xz-plane on flat ground (paper, appendix E).

    - State of the root: pitch, height, pitch rate, vz, vx
    - State of a joint: angle, 0, rate, 0, 0
    - Control: one number per joint, clipped to [-1, 1] by the motor
    - Reward: dx/dt + 1 (alive); dt = 0.008 s
    - Ends: height <= 0.7 or >= 2.0 m, |pitch| >= 20 degrees, 1000 steps
    - Start: height 1.25 m, noise 0.005 on positions and velocities

    Version 2: contacts begin at 1 mm, as published, instead of 2 mm.
    Version 1: signed speed, published limits on height and pitch.
    """

    state_size = 5

    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        _, z, pitch = state.root.T
        vx, vz, pitch_rate = clipped(state.root_velocity).T
        return [pitch, z, pitch_rate, vz, vx], [state.angle, 0, clipped(state.rate), 0, 0]

    def reward(self, step: Step) -> Mapping[str, Numbers]:
        config = self.config.reward
        return {"forward": forward_speed(step, config), "alive": config.alive, "control": -control_cost(step, config)}

    def ended(self, state: State) -> Array | bool:
        _, z, pitch = state.root.T
        return self.limits.passed(z, np.abs(pitch))
