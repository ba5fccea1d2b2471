"""Crawl: locomotion in the plane below a low limit on height, lying down allowed."""

from __future__ import annotations

import numpy as np

from codesign_bench.tasks.base import Array
from codesign_bench.tasks.locomotion2d import Locomotion2d
from codesign_bench.tasks.state import State


class Crawl(Locomotion2d):
    """Crawl forward in the xz-plane on flat ground.

    - State, control: as locomotion2d
    - Reward: dx/dt, without locomotion2d's bonus for being upright
    - Ends: height >= 1.3 m, 1000 steps

    Version 1.
    """

    def ended(self, state: State) -> Array:
        """Leaning is no fault here."""
        _, z, _ = state.root.T
        return self.limits.passed(z, np.zeros(len(z)))
