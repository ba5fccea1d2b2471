"""Gap crosser: run along x over ground with periodic gaps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codesign_bench.structured import Positive
from codesign_bench.tasks.base import Array, Numbers, Task, control_cost, forward_speed
from codesign_bench.tasks.config import EnvConfig
from codesign_bench.tasks.state import State, Step, clipped


@dataclass(frozen=True)
class GapConfig(EnvConfig):
    """phase_period: metres; null: the ground's period."""

    phase_period: Positive | None = None


class Gap(Task):
    """Run forward in the xz-plane over gaps 0.96 m wide, one every 3.2 m (paper, appendix E), with sloped edges as in the ground of
    the published curves: 1.22 m wide at the top.

    - State of the root: phase, pitch, height, pitch rate, vz, vx
    - State of a joint: phase, angle, 0, rate, 0, 0
    - Control: one number per joint, clipped to [-1, 1] by the motor
    - Reward: dx/dt + 0.1 (alive); dt = 0.008 s
    - Ends: height <= 1.0 or >= 2.0 m, |pitch| >= 20 degrees, 1000 steps
    - Start: height 1.25 m, raised while a bone touches the ground; noise 0.005

    phase = x / 3.2 - trunc(x / 3.2): where in the period the root is. The ground's top is at 0.5 m.

    Version 2: sloped edges, period 3.206 m and gaps behind the start, as published; contacts begin at 1 mm instead of 2 mm.
    Version 1: terrain of boxes, signed speed, published limits on height and pitch.
    """

    config_class = GapConfig
    config: GapConfig

    state_size = 6

    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        x, z, pitch = state.root.T
        vx, vz, pitch_rate = clipped(state.root_velocity).T
        phase = np.fmod(x / (self.config.phase_period or self.scene.ground.period), 1.0)
        return [phase, pitch, z, pitch_rate, vz, vx], [phase[state.body], state.angle, 0, clipped(state.rate), 0, 0]

    def reward(self, step: Step) -> Mapping[str, Numbers]:
        config = self.config.reward
        return {"forward": forward_speed(step, config), "alive": config.alive, "control": -control_cost(step, config)}

    def ended(self, state: State) -> Array:
        _, z, pitch = state.root.T
        return self.limits.passed(z, np.abs(pitch))
