"""The numbers of the four environments, written down once more by hand so that tests do not read them from the configuration."""

from __future__ import annotations

from dataclasses import dataclass

TASKS = ("locomotion2d", "locomotion3d", "swimmer", "gap")
DEPTHS = 4
VELOCITY_LIMIT = 10.0


@dataclass(frozen=True)
class Specification:
    """Bounds are those of offset, offset, gear, radius, start extension. Heights in metres, angles in degrees, None: no limit."""

    plane: str
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    root_children: int
    max_children: int
    max_bodies: int
    index_base: int
    timestep: float
    root_height: float
    root_dofs: int
    root_positions: int
    state_size: int
    alive: float
    control_cost: float
    min_height: float | None
    max_height: float | None
    max_angle: float | None
    noise: float
    frame_skip: int = 4
    max_depth: int = 3

    @property
    def dt(self) -> float:
        return self.timestep * self.frame_skip


_PLANAR_RUNNER = {
    "plane": "xz",
    "lower": (-0.5, -0.5, 20, 0.03, 0),
    "upper": (0.5, 0.5, 400, 0.08, 0.5),
    "root_children": 1,
    "max_children": 3,
    "max_bodies": 14,
    "index_base": 4,
    "timestep": 0.002,
    "root_height": 1.25,
    "root_dofs": 3,
    "root_positions": 3,
    "control_cost": 0.0,
    "max_height": 2.0,
    "max_angle": 20,
    "noise": 0.005,
}

SPECIFICATIONS = {
    "locomotion2d": Specification(**_PLANAR_RUNNER, state_size=5, alive=1.0, min_height=0.7),
    "gap": Specification(**_PLANAR_RUNNER, state_size=6, alive=0.1, min_height=1.0),
    "locomotion3d": Specification(
        plane="xy",
        lower=(-0.5, -0.5, 20, 0.03, 0),
        upper=(0.5, 0.5, 400, 0.10, 0.2),
        root_children=4,
        max_children=2,
        max_bodies=29,
        index_base=5,
        timestep=0.01,
        root_height=0.4,
        root_dofs=6,
        root_positions=7,
        state_size=13,
        alive=0.0,
        control_cost=1e-4,
        min_height=0.0,
        max_height=2.0,
        max_angle=60,
        noise=0.1,
    ),
    "swimmer": Specification(
        plane="xy",
        lower=(-1.5, -1.5, 20, 0.06, 0),
        upper=(1.5, 1.5, 300, 0.20, 0.2),
        root_children=1,
        max_children=3,
        max_bodies=14,
        index_base=4,
        timestep=0.01,
        root_height=0.0,
        root_dofs=3,
        root_positions=3,
        state_size=4,
        alive=0.0,
        control_cost=1e-4,
        min_height=None,
        max_height=None,
        max_angle=None,
        noise=0.1,
    ),
}

GROUND_TOP, GROUND_BOTTOM, GAP_WIDTH, GAP_PERIOD, FIRST_GAP = 0.5, -1.5, 0.96, 3.206, 0.93
EDGE_RUN, PHASE_PERIOD = 0.129, 3.2


def ground_profile(x: float) -> float | None:
    """Height of the gap task's ground: blocks between gaps that are GAP_WIDTH wide at half depth, with edges that lean by EDGE_RUN
    to either side of that; None where there is none."""
    into = (x - FIRST_GAP - GAP_WIDTH / 2) % GAP_PERIOD
    from_middle = min(into, GAP_PERIOD - into)
    middle = (GROUND_TOP + GROUND_BOTTOM) / 2
    height = middle + (from_middle - GAP_WIDTH / 2) / EDGE_RUN * (GROUND_TOP - middle)
    return None if height < GROUND_BOTTOM else min(height, GROUND_TOP)


def is_solid(x: float) -> bool:
    """Whether the gap task with sharp edges has ground at x."""
    return (x - FIRST_GAP) % GAP_PERIOD > GAP_WIDTH
