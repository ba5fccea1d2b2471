"""The world a design is put into, as data: physics constants, the root's freedom, the ground. `mjcf.py` turns it into MJCF."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from codesign_bench.errors import ConfigError


@dataclass(frozen=True)
class Ground:
    """What the robot stands on.

    kind       none; plane at `top`; gaps: boxes with their top at `top` and a gap of `gap_width` every `period` metres,
               the first one beginning at `first_gap`; solid ground behind it
    ahead      metres of terrain in front of the start (gaps only), behind: solid metres behind it
    thickness  of the boxes, metres
    """

    kind: Literal["none", "plane", "gaps"]
    condim: int = 3
    conaffinity: int = 1
    friction: tuple[float, float, float] = (1.0, 0.005, 0.0001)
    top: float = 0.0
    first_gap: float = 0.0
    gap_width: float = 0.0
    period: float = 0.0
    ahead: float = 0.0
    behind: float = 0.0
    thickness: float = 0.0

    def __post_init__(self) -> None:
        if self.kind == "gaps" and not 0 < self.gap_width < self.period:
            raise ConfigError(f"The ground's gap_width is {self.gap_width}; allowed is between 0 and the period, {self.period}.")
        if self.kind == "gaps" and not (self.first_gap > 0 and self.ahead > self.first_gap and self.behind > 0 and self.thickness > 0):
            raise ConfigError("The ground's first_gap, behind and thickness must be above 0, and ahead above first_gap.")

    def solid(self) -> list[tuple[float, float]]:
        """The intervals of x, in metres, that carry a box."""
        gaps = [self.first_gap + k * self.period for k in range(math.ceil((self.ahead - self.first_gap) / self.period))]
        starts = [-self.behind] + [gap + self.gap_width for gap in gaps]
        return list(zip(starts, [*gaps, gaps[-1] + self.period], strict=True))


@dataclass(frozen=True)
class Scene:
    """Everything in the simulation that is not the design. Units: metres, seconds, kg, as in MuJoCo.

    root        planar: two slides along the plane and one hinge across it; free: six degrees of freedom
    geom_*      defaults of the bones' capsules
    root_*      armature and damping of the root's joints, which have no limits
    contacts    False switches contact detection off altogether
    """

    root: Literal["planar", "free"]
    root_height: float
    timestep: float
    frame_skip: int
    joint_armature: float
    joint_damping: float
    root_armature: float
    root_damping: float
    geom_condim: int
    geom_conaffinity: int
    geom_density: float
    geom_margin: float
    ground: Ground
    geom_solimp: tuple[float, float, float] = (0.9, 0.95, 0.001)
    geom_solref: tuple[float, float] = (0.02, 1.0)
    medium_density: float = 0.0
    medium_viscosity: float = 0.0
    contacts: bool = True

    def __post_init__(self) -> None:
        if self.timestep <= 0 or self.frame_skip < 1:
            raise ConfigError(f"The scene's timestep is {self.timestep} and its frame_skip {self.frame_skip}; allowed are values above 0.")

        for name in (
            "joint_armature",
            "joint_damping",
            "root_armature",
            "root_damping",
            "geom_margin",
            "medium_density",
            "medium_viscosity",
        ):
            if getattr(self, name) < 0:
                raise ConfigError(f"The scene's {name} is {getattr(self, name)}; allowed are numbers from 0 up.")
        for name, condim in (("geom_condim", self.geom_condim), ("ground.condim", self.ground.condim)):
            if condim not in (1, 3, 4, 6):
                raise ConfigError(f"The scene's {name} is {condim}; allowed are 1, 3, 4 and 6.")
        if self.geom_density <= 0:
            raise ConfigError(f"The scene's geom_density is {self.geom_density}; allowed are numbers above 0.")

    @property
    def dt(self) -> float:
        """Seconds per environment step."""
        return self.timestep * self.frame_skip
