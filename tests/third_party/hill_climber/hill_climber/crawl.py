"""Crawl: locomotion in the plane below a low limit on height, lying down allowed."""

from __future__ import annotations

from typing import Any

from codesign_bench.tasks.locomotion2d import Locomotion2d


class Crawl(Locomotion2d):
    """Crawl forward in the xz-plane on flat ground.

    State, control       as locomotion2d
    Reward               dx/dt, without locomotion2d's bonus for being upright
    Ends                 height >= 1.3 m, 1000 steps

    Version 1.
    """

    def angle(self, qpos: Any) -> float:
        """Leaning is no fault here."""
        return 0.0
