"""The world a design is put into, as data: physics constants, the root's freedom, the ground and what stands or lies on it.
`mjcf.py` turns it into MJCF."""

import math
import string
from dataclasses import dataclass
from typing import Annotated, Literal

from codesign_bench.errors import ConfigError
from codesign_bench.structured import Allowed, Checked, Count, NotNegative, Positive

MOST_GAPS = 1000
_NAME_LETTERS = set(string.ascii_letters + string.digits + "_")

Condim = Annotated[int, Allowed("are 1, 3, 4 and 6", lambda value: value in (1, 3, 4, 6))]
"""Dimensions of a contact, as MuJoCo has them."""


@dataclass(frozen=True)
class Ground(Checked):
    """What the robot stands on.

    - kind: none; plane at `top`; gaps: blocks with their top at `top` and a gap of `gap_width` every `period` metres, in front of the
      start and behind it, the first one in front beginning at `first_gap`. Other grounds are made of parts (see Scene).
    - edge: of the blocks; sharp: vertical; sloped: each leans by `edge_run` metres from its middle to its top and as much to its bottom,
      so that a gap is `gap_width` wide only at half depth
    - ahead, behind: metres of terrain in front of the start and behind it (gaps only), whole blocks
    - thickness: of the blocks, metres
    """

    kind: Literal["none", "plane", "gaps"]
    condim: Condim = 3
    conaffinity: int = 1
    friction: tuple[float, float, float] = (1.0, 0.005, 0.0001)
    top: float = 0.0
    first_gap: float = 0.0
    gap_width: float = 0.0
    period: float = 0.0
    edge: Literal["sharp", "sloped"] = "sharp"
    edge_run: NotNegative = 0.0
    ahead: float = 0.0
    behind: float = 0.0
    thickness: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "gaps":
            self._check_gaps()
        elif self.edge == "sloped":
            raise ConfigError(f"The ground's edge is sloped; allowed for the kind {self.kind} is sharp, as it has no edges.")

    def _check_gaps(self) -> None:
        if not 0 < self.gap_width < self.period:
            raise ConfigError(f"The ground's gap_width is {self.gap_width}; allowed is between 0 and the period, {self.period}.")
        block = self.period - self.gap_width
        if not 0 < self.first_gap < block:
            raise ConfigError(f"The ground's first_gap is {self.first_gap}; allowed is between 0 and the length of a block, {block:g}.")
        if not (self.ahead > self.first_gap and self.behind > 0 and self.thickness > 0):
            raise ConfigError("The ground's behind and thickness must be above 0, and ahead above first_gap.")
        most = min(self.gap_width, block) / 2
        if self.edge == "sloped" and not 0 < self.edge_run < most:
            raise ConfigError(f"The ground's edge_run is {self.edge_run}; allowed where edge is sloped is between 0 and {most:g}.")
        if (self.ahead + self.behind) / self.period > MOST_GAPS:
            raise ConfigError(f"The ground's period is {self.period} and goes {self.ahead} ahead; allowed are at most {MOST_GAPS} gaps.")

    def solid(self) -> list[tuple[float, float]]:
        """The intervals of x, in metres, that carry a block, at half depth; `inset` has the other heights."""
        behind = math.ceil((self.behind + self.first_gap + self.gap_width) / self.period) - 1
        ahead = math.ceil((self.ahead - self.first_gap) / self.period)
        ends = [self.first_gap + k * self.period for k in range(-behind, ahead + 1)]
        return [(end - self.period + self.gap_width, end) for end in ends]

    def inset(self, height: float) -> float:
        """Metres by which a block is narrower at that height, at either side."""
        middle = self.top - self.thickness / 2
        return self.edge_run * (height - middle) / (self.top - middle) if self.edge == "sloped" else 0.0


@dataclass(frozen=True)
class PartJoint:
    """How a part can move. Units and meaning of the numbers are MuJoCo's; `range` null: no limits."""

    type: Literal["slide", "hinge", "ball", "free"]
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    range: tuple[float, float] | None = None
    damping: float = 0.0
    armature: float = 0.0


@dataclass(frozen=True)
class Part:
    """Something besides the robot: fixed (a wall, a step, a ramp, a height field) or, with joints, an object that can move.

    - shape, size: as MuJoCo's geoms have them; of a height field, size is (half length along x, half width along y, elevation of 1,
      thickness below 0) and `heights` its rows along x, the first at the largest y, with 0 as their lowest number and 1 as their highest
    - position, euler: metres and degrees; at the start, for an object that moves
    """

    name: str
    shape: Literal["box", "sphere", "capsule", "cylinder", "plane", "heights"]
    size: tuple[float, ...]
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    euler: tuple[float, float, float] = (0.0, 0.0, 0.0)
    density: float = 1000.0
    friction: tuple[float, float, float] = (1.0, 0.005, 0.0001)
    condim: int = 3
    contype: int = 1
    conaffinity: int = 1
    joints: tuple[PartJoint, ...] = ()
    heights: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.name or not set(self.name) <= _NAME_LETTERS or self.name[0].isdigit():
            raise ConfigError(f"A part of the scene is named {self.name!r}; allowed are letters, digits and _, a letter first.")
        wanted = {"box": 3, "sphere": 1, "capsule": 2, "cylinder": 2, "plane": 3, "heights": 4}[self.shape]
        if len(self.size) != wanted or (self.shape != "plane" and min(self.size) <= 0):
            raise ConfigError(f"The part {self.name} has size {list(self.size)}; allowed for a {self.shape} are {wanted} numbers above 0.")
        if self.joints and self.shape in ("plane", "heights"):
            raise ConfigError(f"The part {self.name} is a {self.shape} with joints; allowed are joints on other shapes.")
        rows = self.heights
        if self.shape == "heights" and (len(rows) < 2 or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows)):
            raise ConfigError(f"The part {self.name} needs heights: at least two rows of equally many numbers, at least two.")
        if self.shape == "heights" and (min(map(min, rows)), max(map(max, rows))) != (0.0, 1.0):
            raise ConfigError(f"The heights of the part {self.name} do not span 0 to 1; allowed is that, as the size says how high 1 is.")
        if self.density <= 0:
            raise ConfigError(f"The part {self.name} has density {self.density}; allowed are numbers above 0.")


@dataclass(frozen=True)
class Scene(Checked):
    """Everything in the simulation that is not the design. Units: metres, seconds, kg, as in MuJoCo.

    - root: planar: two slides along the plane and one hinge across it; free: six degrees of freedom
    - geom_*: defaults of the bones' capsules
    - root_*: armature and damping of the root's joints, which have no limits
    - contacts: False switches contact detection off altogether
    - parts: what there is besides the ground
    - elements: MJCF put below <mujoco> as it is, such as sensors; bodies and hinges have the names of their joint index, the root is "0"
    """

    root: Literal["planar", "free"]
    root_height: float
    timestep: Positive
    frame_skip: Count
    joint_armature: NotNegative
    joint_damping: NotNegative
    root_armature: NotNegative
    root_damping: NotNegative
    geom_condim: Condim
    geom_conaffinity: int
    geom_density: Positive
    geom_margin: NotNegative
    ground: Ground
    geom_solimp: tuple[float, float, float] = (0.9, 0.95, 0.001)
    geom_solref: tuple[float, float] = (0.02, 1.0)
    medium_density: NotNegative = 0.0
    medium_viscosity: NotNegative = 0.0
    contacts: bool = True
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    parts: tuple[Part, ...] = ()
    elements: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [part.name for part in self.parts]
        if any(name.startswith("ground") for name in names):
            raise ConfigError(f"The scene has the parts {', '.join(names)}; allowed are names that do not begin with ground.")
        if len(set(names)) != len(names):
            raise ConfigError(f"The scene has two parts of one name ({', '.join(names)}); allowed is a name of its own for each.")

    @property
    def root_qpos(self) -> int:
        """Coordinates of the root."""
        return 7 if self.root == "free" else 3

    @property
    def root_qvel(self) -> int:
        return 6 if self.root == "free" else 3

    @property
    def objects(self) -> tuple[Part, ...]:
        """The parts that can move."""
        return tuple(part for part in self.parts if part.joints)

    @property
    def dt(self) -> float:
        """Seconds per environment step."""
        return self.timestep * self.frame_skip
