"""What every task is: a design space, a scene, and four functions that say what it asks of a robot.

`start` puts a robot into the scene, `observe` says what its nodes see, `reward` what a step was worth, `ended` whether it was the last
one. They work on arrays over bodies (see tasks/state.py) and are the only statement of the task: the Gymnasium environment, a single
body and the sampler's many bodies all call them (simulation/bodies.py has the order of a step).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from codesign_bench.arrays import Array as Array  # for who writes a task
from codesign_bench.design.graph import Design
from codesign_bench.design.scene import Scene
from codesign_bench.design.space import DesignSpace
from codesign_bench.errors import ConfigError
from codesign_bench.structured import build
from codesign_bench.tasks.config import EndConfig, EnvConfig, RewardConfig, initial_design_of, space_of
from codesign_bench.tasks.expert import expert_design
from codesign_bench.tasks.features import FeatureLayout
from codesign_bench.tasks.state import SimulatedBody, State, Step

Numbers = Array | float
"""One for each body or joint, or one for all of them."""

RAISE_BY = 0.05
"""Metres by which a body is lifted as long as it touches the ground at the start."""
MOST_LIFTS = 400
"""A body that still touches the ground after these is left there: nothing is that tall, and a configuration may say anything."""


class Task(ABC):
    """Subclasses state observation, reward and ends; `start` is the same in most.

    - config_class: what the YAML of its environments must hold; a task with numbers of its own extends EnvConfig
    - state_size: how many numbers a node observes of the simulator
    - uses_data: whether the functions look at the `data` of bodies beyond qpos, qvel and time (contacts, forces, sensors, positions in
      space); it is brought up to date after every step then, which costs about a fifth of the step
    - metrics: names of what `measure` gives, and what becomes of it over an episode; columns of progress.csv
    """

    config_class: ClassVar[type[EnvConfig]] = EnvConfig
    state_size: ClassVar[int]
    uses_data: ClassVar[bool] = False
    metrics: ClassVar[Mapping[str, Literal["sum", "mean", "last", "max"]]] = {}

    def __init__(self, config: EnvConfig) -> None:
        self.config = config
        self.name, self.title, self.version = config.name, config.title, config.version
        self.scene = self.furnished(config.scene)
        self.dt = self.scene.dt
        self.space = space_of(config.design)
        self.initial_design = initial_design_of(config.design, self.space)
        self.space.check(self.initial_design)
        self.limits = Limits(config.end)

    @classmethod
    def from_mapping(cls, value: Mapping[str, Any]) -> Task:
        return cls(build(cls.config_class, value, "env"))

    @property
    def features(self) -> FeatureLayout:
        return FeatureLayout(self.space.num_depths, self.state_size)

    @property
    def feature_size(self) -> int:
        return self.features.size

    def with_expert(self) -> Task:
        """This task with the expert as its initial design, and bounds widened where the expert lies outside them."""
        expert = self.config.design.expert
        if expert is None:
            raise ConfigError(
                f"The environment {self.name} has no expert design; allowed for what starts from one are environments that have, such as"
                " cheetah and crawler, or env.design.expert with the path of an MJCF file."
            )
        design, space = expert_design(expert, self.space, self.scene)
        return self.starting_from(design, space)

    def starting_from(self, design: Design, space: DesignSpace | None = None) -> Task:
        """This task with another initial design (and design space)."""
        task = type(self)(self.config)
        task.space = space or self.space
        task.space.check(design)
        task.initial_design = design
        return task

    # ---- what a task says --------------------------------------------------------------------------------------------

    def furnished(self, scene: Scene) -> Scene:
        """The YAML's scene with what the task itself puts there, computed from its own numbers: stairs, walls, objects, sensors."""
        return scene

    def start(self, body: SimulatedBody, rng: np.random.Generator) -> None:
        """Sets qpos and qvel, and maybe `drawn`, of a body in its reference pose (simulated time 0). Here: noise on all coordinates of
        the robot, then the root's height (its design's own, if it has one), then, if the YAML says so, lifted while a part touches the
        ground."""
        start, positions, velocities = self.config.start, body.num_qpos, body.num_qvel
        body.qpos[:positions] = body.model.qpos0[:positions] + rng.uniform(-start.noise, start.noise, positions)
        body.qvel[:velocities] = rng.uniform(-start.noise, start.noise, velocities)
        height = 2 if self.scene.root == "free" else 1
        if start.height is not None:
            body.qpos[height] = start.height if body.design.start_height is None else body.design.start_height
        for _ in range(MOST_LIFTS if self.config.raise_from_ground else 0):
            if not body.touches_ground() or body.qpos[height] >= self.limits.max_height:
                break
            body.qpos[height] += RAISE_BY

    @abstractmethod
    def observe(self, state: State) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
        """What the root observes ([bodies] each) and what every other node observes ([joints] each): `state_size` numbers both."""

    @abstractmethod
    def reward(self, step: Step) -> Mapping[str, Numbers]:
        """The parts of the reward by name, [bodies] each, the same names in every step; the reward is their sum."""

    @abstractmethod
    def ended(self, state: State) -> Array | bool:
        """[bodies]: whether the episode ends here, before its time limit."""

    def measure(self, step: Step) -> Mapping[str, Numbers]:
        """What `metrics` names, [bodies] each. Asked for in evaluations and by the Gymnasium environment only."""
        return {}


class Limits:
    """Heights and angles of the root beyond which an episode ends; infinite where the YAML says null."""

    def __init__(self, end: EndConfig) -> None:
        self.min_height = -math.inf if end.min_height is None else end.min_height
        self.max_height = math.inf if end.max_height is None else end.max_height
        self.max_angle = math.inf if end.max_angle is None else math.radians(end.max_angle)

    def passed(self, height: Array, angle: Array) -> Array:
        """Metres, and radians from upright; reaching a limit passes it."""
        passed: Array = (height <= self.min_height) | (height >= self.max_height) | (angle >= self.max_angle)
        return passed


def forward_speed(step: Step, config: RewardConfig) -> Array:
    """[bodies]: speed of the root along x over the step, m/s, without its sign if the YAML says absolute."""
    speed = step.dx / step.dt
    return np.abs(speed) if config.speed == "absolute" else speed


def control_cost(step: Step, config: RewardConfig) -> Numbers:
    """[bodies]: weighted mean over motors of the squared, unclipped control."""
    weight = config.control_cost
    return np.array([weight * float(control.dot(control)) / len(control) for control in step.controls]) if weight else 0.0
