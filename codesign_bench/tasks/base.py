"""What every task has in common: a design space, a scene, reward parts, ends, and where a node's state comes from.

A task is composed of data (`EnvConfig`, all numbers from conf/env/NAME.yaml) and of the two facts that differ in code:
which coordinates a node observes, and how far the root leans.

The order of one environment step, wherever it is taken (`simulation/body.py`): apply controls, advance the simulator by
`frame_skip` timesteps, read the change of x, form the reward, test the ends.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from codesign_bench.design.expert import expert_design
from codesign_bench.design.graph import DEFAULT_FRICTION, NUM_ATTRIBUTES, Design, FixedGeom
from codesign_bench.design.scene import Scene
from codesign_bench.design.space import DesignSpace
from codesign_bench.errors import ConfigError
from codesign_bench.structured import build
from codesign_bench.tasks.features import FeatureLayout

Array = NDArray[Any]
Number = TypeVar("Number", float, NDArray[Any])
Range = tuple[float, float]
Triple = tuple[float, float, float]

VELOCITY_LIMIT = 10.0
"""Generalised velocities are clipped to this in the node features."""


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
    plane: Literal["xz", "xy"]
    bone_offset: Range
    gear: Range
    radius: Range
    start_extension: Range
    max_children: int
    max_depth: int
    mask_illegal_actions: bool
    expert: str
    initial: InitialConfig


@dataclass(frozen=True)
class RewardConfig:
    speed: Literal["forward", "absolute"]
    alive: float
    control_cost: float


@dataclass(frozen=True)
class EndConfig:
    min_height: float | None
    max_height: float | None
    max_angle: float | None


@dataclass(frozen=True)
class StartConfig:
    noise: float
    height: float | None


@dataclass(frozen=True)
class EnvConfig:
    """The content of conf/env/NAME.yaml."""

    name: str
    version: int
    max_steps: int
    discount: float
    time_limit: Literal["terminal", "truncate"]
    raise_from_ground: bool
    design: DesignConfig
    scene: Scene
    reward: RewardConfig
    end: EndConfig
    start: StartConfig


class Task(ABC):
    """A design space, a scene and a reward. Subclasses say what a node observes and how the root leans."""

    state_size: ClassVar[int]
    """Simulator state per node."""

    def __init__(self, config: EnvConfig) -> None:
        if config.max_steps < 1:
            raise ConfigError(f"env.max_steps is {config.max_steps}; allowed are whole numbers from 1 up.")
        if config.start.noise < 0:
            raise ConfigError(f"env.start.noise is {config.start.noise}; allowed are numbers from 0 up.")
        end = config.end
        if end.min_height is not None and end.max_height is not None and end.min_height >= end.max_height:
            raise ConfigError(f"env.end.min_height is {end.min_height}; allowed are numbers below max_height, {end.max_height}.")
        if end.max_angle is not None and end.max_angle <= 0:
            raise ConfigError(f"env.end.max_angle is {end.max_angle}; allowed are degrees above 0, or null for no limit.")
        if not 0 < config.discount <= 1:
            raise ConfigError(f"env.discount is {config.discount}; allowed are numbers above 0, up to 1.")
        self.config = config
        self.name, self.version = config.name, config.version
        self.scene, self.dt = config.scene, config.scene.dt
        self.space = _space(config.design)
        self.initial_design = _initial_design(config.design, self.space)
        self.space.check(self.initial_design)
        infinity = math.inf
        self._min_height = -infinity if config.end.min_height is None else config.end.min_height
        self._max_height = infinity if config.end.max_height is None else config.end.max_height
        self._max_angle = infinity if config.end.max_angle is None else math.radians(config.end.max_angle)

    @classmethod
    def from_mapping(cls, value: Mapping[str, Any]) -> Task:
        return cls(build(EnvConfig, value, "env"))

    @property
    def features(self) -> FeatureLayout:
        return FeatureLayout(self.space.num_depths, self.state_size)

    @property
    def feature_size(self) -> int:
        return self.features.size

    @property
    def max_height(self) -> float:
        return self._max_height

    def with_expert(self) -> Task:
        """This task with the expert as its initial design, and bounds widened where the expert lies outside them."""
        design, space = expert_design(self.config.design.expert, self.space, self.scene)
        return self.starting_from(design, space)

    def starting_from(self, design: Design, space: DesignSpace | None = None) -> Task:
        """This task with another initial design (and design space)."""
        task = type(self)(self.config)
        task.space = space or self.space
        task.space.check(design)
        task.initial_design = design
        return task

    # ---- what a node observes ----------------------------------------------------------------------------------------

    @abstractmethod
    def state_sources(self, sources: StateSources) -> Array:
        """[nodes, state_size]: for each number a node observes, its position in the source vector."""

    # Poses are arrays [..., coordinates], one or many at once, of which only the root's, the first, may be looked at; a number
    # that is the same in all poses may be returned as one.

    @property
    def root_coordinates(self) -> int:
        return 7 if self.scene.root == "free" else 3

    def extra(self, qpos: Array) -> Array | float:
        """One number computed from the pose that nodes may observe besides coordinates."""
        return 0.0

    # ---- reward and end ----------------------------------------------------------------------------------------------

    def forward_reward(self, dx: Number) -> Number:
        """Speed of the root along x over one step, m/s."""
        speed = dx / self.dt
        return abs(speed) if self.config.reward.speed == "absolute" else speed

    def control_cost(self, control: Array) -> float:
        """Weighted mean over motors of the squared, unclipped control."""
        weight = self.config.reward.control_cost
        return weight * float(control.dot(control)) / len(control) if weight else 0.0

    @abstractmethod
    def height(self, qpos: Array) -> Array | float:
        """Of the root, metres."""

    @abstractmethod
    def angle(self, qpos: Array) -> Array | float:
        """How far the root leans, radians, not negative."""

    def fallen(self, qpos: Array) -> Array | bool:
        """Whether the episode ends early in this pose."""
        height = self.height(qpos)
        return (height <= self._min_height) | (height >= self._max_height) | (self.angle(qpos) >= self._max_angle)


@dataclass(frozen=True)
class StateSources:
    """Positions in a body's source vector: all of qpos, all of qvel (clipped), a zero, and the task's extra number.

    joint_qpos, joint_qvel  [nodes] positions of each node's hinge angle and rate; the root's entries are meaningless
    """

    num_qpos: int
    num_qvel: int
    joint_qpos: Array
    joint_qvel: Array

    @property
    def zero(self) -> int:
        return self.num_qpos + self.num_qvel

    @property
    def extra(self) -> int:
        return self.zero + 1

    def qvel(self, i: int) -> int:
        return self.num_qpos + i

    def table(self, root: list[int], other: list[Any]) -> Array:
        """Rows for the root and for every other node; an array among `other` gives each node its own entry."""
        table = np.empty((len(self.joint_qpos), len(other)), dtype=np.int64)
        for i, column in enumerate(other):
            table[:, i] = column
        table[0] = root
        return table


def _space(config: DesignConfig) -> DesignSpace:
    pairs = (config.bone_offset, config.bone_offset, config.gear, config.radius, config.start_extension)
    return DesignSpace(
        plane=config.plane,
        lower=tuple(p[0] for p in pairs),
        upper=tuple(p[1] for p in pairs),
        root_children=len(config.initial.limbs),
        max_children=config.max_children,
        max_depth=config.max_depth,
    )


def _initial_design(config: DesignConfig, space: DesignSpace) -> Design:
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
