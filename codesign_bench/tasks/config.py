"""The content of conf/env/NAME.yaml as dataclasses, and the design space and initial design that it describes."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from codesign_bench.design.graph import DEFAULT_FRICTION, NUM_ATTRIBUTES, Design, FixedGeom
from codesign_bench.design.scene import Scene
from codesign_bench.design.space import DesignSpace
from codesign_bench.errors import ConfigError
from codesign_bench.structured import Count, FolderName, NotNegative, Positive, PositiveShare

Range = tuple[float, float]
Triple = tuple[float, float, float]


@dataclass(frozen=True)
class RootConfig:
    friction: Triple = DEFAULT_FRICTION
    bone: tuple[float, float] | None = None
    radius: float | None = None
    start_extension: float | None = None
    sphere: float | None = None


@dataclass(frozen=True)
class LimbConfig:
    bone: tuple[float, float]
    radius: float
    start_extension: float
    gear: float
    axis: Triple
    range: Range
    friction: Triple = DEFAULT_FRICTION


@dataclass(frozen=True)
class InitialConfig:
    root: RootConfig
    limbs: tuple[LimbConfig, ...]


@dataclass(frozen=True)
class DesignConfig:
    """expert: a file of the installed gymnasium package, or a path; null: there is none."""

    plane: Literal["xz", "xy"]
    bone_offset: Range
    gear: Range
    radius: Range
    start_extension: Range
    max_children: int
    max_depth: int
    mask_illegal_actions: bool
    expert: str | None
    initial: InitialConfig


@dataclass(frozen=True)
class RewardConfig:
    speed: Literal["forward", "absolute"]
    alive: float
    control_cost: float


@dataclass(frozen=True)
class EndConfig:
    """Metres and degrees; null: no such limit."""

    min_height: float | None
    max_height: float | None
    max_angle: Positive | None

    def __post_init__(self) -> None:
        if self.min_height is not None and self.max_height is not None and self.min_height >= self.max_height:
            raise ConfigError(f"env.end.min_height is {self.min_height}; allowed are numbers below max_height, {self.max_height}.")


@dataclass(frozen=True)
class StartConfig:
    """noise: uniform, on every coordinate and velocity; height: of the root, set after the noise; null: the scene's, with noise. A design
    that has a start height of its own, as experts have, starts there instead of at either."""

    noise: NotNegative
    height: float | None


@dataclass(frozen=True)
class EnvConfig:
    """The content of conf/env/NAME.yaml. A task with numbers of its own extends it (`Task.config_class`).

    - name: of the environment, and of the folder of its runs; title: as figures write it
    - task: which class it is, by the name of its entry point
    """

    name: FolderName
    title: str
    task: str
    version: int
    max_steps: Count
    discount: PositiveShare
    time_limit: Literal["terminal", "truncate"]
    raise_from_ground: bool
    design: DesignConfig
    scene: Scene
    reward: RewardConfig
    end: EndConfig
    start: StartConfig


def space_of(config: DesignConfig) -> DesignSpace:
    pairs = (config.bone_offset, config.bone_offset, config.gear, config.radius, config.start_extension)
    return DesignSpace(
        plane=config.plane,
        lower=tuple(p[0] for p in pairs),
        upper=tuple(p[1] for p in pairs),
        root_children=len(config.initial.limbs),
        max_children=config.max_children,
        max_depth=config.max_depth,
    )


def initial_design_of(config: DesignConfig, space: DesignSpace) -> Design:
    root, limbs = config.initial.root, config.initial.limbs
    if root.bone is None:
        if root.sphere is None:
            raise ConfigError("env.design.initial.root has neither a bone nor a sphere; allowed is one of them.")
        values = [[0.0] * NUM_ATTRIBUTES]
        geoms: tuple[FixedGeom, ...] = (FixedGeom((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), root.sphere, root.friction),)
    else:
        if root.radius is None or root.start_extension is None:
            raise ConfigError("env.design.initial.root has a bone but lacks its radius or start_extension.")
        values, geoms = [[*root.bone, 0.0, root.radius, root.start_extension]], ()
    values += [[*limb.bone, limb.gear, limb.radius, limb.start_extension] for limb in limbs]
    physical = np.asarray(values, dtype=np.float64)
    nodes = len(values)
    design = Design(
        parents=np.array([-1] + [0] * len(limbs)),
        attributes=np.zeros((nodes, NUM_ATTRIBUTES)),
        axis=np.array([[0.0, 0.0, 0.0]] + [np.asarray(limb.axis) / np.linalg.norm(limb.axis) for limb in limbs]),
        range=np.array([(0.0, 0.0)] + [limb.range for limb in limbs]),
        friction=np.array([root.friction] + [limb.friction for limb in limbs]),
        joint_offset=np.zeros((nodes, 3)),
        root_bone=root.bone is not None,
        root_geoms=geoms,
    )
    tunable = space.tunable(design)
    inside = (physical >= np.asarray(space.lower)) & (physical <= np.asarray(space.upper))
    if not np.all(inside | ~tunable):
        i, j = np.argwhere(~inside & tunable)[0]
        raise ConfigError(f"The initial design's node {i} has {physical[i, j]}; allowed is {space.lower[j]} to {space.upper[j]}.")
    return replace(design, attributes=np.where(tunable, space.normalised(physical), 0.0))
