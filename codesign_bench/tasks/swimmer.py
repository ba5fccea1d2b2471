"""Swimmer: swim as fast as possible along x in a viscous medium."""

from collections.abc import Mapping, Sequence

from codesign_bench.tasks.base import Numbers, Task, control_cost, forward_speed
from codesign_bench.tasks.state import State, Step, clipped


class Swimmer(Task):
    """Swim along x in the xy-plane; nothing to stand on and nothing to touch (paper, appendix E).

    - State of the root: heading, heading rate, vy, vx
    - State of a joint: angle, rate, 0, 0
    - Control: one number per joint, clipped to [-1, 1] by the motor
    - Reward: dx/dt - 1e-4 mean(control^2) over motors; dt = 0.04 s
    - Ends: 1000 steps
    - Start: noise 0.1 on positions and velocities

    Version 1: signed speed, no contacts.
    """

    state_size = 4

    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        _, _, heading = state.root.T
        vx, vy, heading_rate = clipped(state.root_velocity).T
        return [heading, heading_rate, vy, vx], [state.angle, clipped(state.rate), 0, 0]

    def reward(self, step: Step) -> Mapping[str, Numbers]:
        config = self.config.reward
        return {"forward": forward_speed(step, config), "alive": config.alive, "control": -control_cost(step, config)}

    def ended(self, state: State) -> bool:
        return False
