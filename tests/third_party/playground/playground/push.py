"""Push: move a box along x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codesign_bench.tasks.base import Numbers
from codesign_bench.tasks.locomotion3d import Locomotion3d
from codesign_bench.tasks.state import State, Step, clipped


class Push(Locomotion3d):
    """Push a box along x, with a free root that starts with four limbs.

    - State of the root: the box's x and y relative to it, the box's velocity (2), then as locomotion3d
    - State of a joint: four zeros, then as locomotion3d
    - Reward: speed of the box along x, m/s
    - Ends, start: as locomotion3d; the box stands ahead

    The box is the scene's first part that can move; its coordinates are how far it has slid along x and y. Version 1.
    """

    state_size = 17

    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        root, joint = super().observe(state)
        ahead, _, _ = self.scene.objects[0].position
        (x, y), (vx, vy) = state.object(0).T, clipped(state.object_velocity(0)).T
        return [ahead + x - state.root[:, 0], y - state.root[:, 1], vx, vy, *root], [0, 0, 0, 0, *joint]

    def reward(self, step: Step) -> Mapping[str, Numbers]:
        return {"pushed": (step.after.object(0)[:, 0] - step.before.object(0)[:, 0]) / step.dt}
