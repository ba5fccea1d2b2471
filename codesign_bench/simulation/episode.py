"""One episode of the transform-and-act MDP: skeleton transforms, attribute transforms, then execution in the simulator.

`env.py` (one episode at a time, for people and tests) and `sampler.py` (many at once, for learning) both run on this.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import mujoco
import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.design.space import Topology
from codesign_bench.design.transform import attribute_transform, skeleton_transform
from codesign_bench.errors import ConfigError
from codesign_bench.simulation.bodies import UNSTABLE
from codesign_bench.simulation.body import Body, BodyPool, StepResult
from codesign_bench.tasks.base import Task

CONTROL, ATTRIBUTES, SKELETON = 0, slice(1, 6), 6
ACTION_SIZE = 7
"""Columns of a node's action: control, five attribute changes, skeleton choice. Each stage reads its own."""


class Stage(IntEnum):
    SKELETON = 0
    ATTRIBUTE = 1
    EXECUTION = 2


@dataclass(frozen=True)
class TransformSteps:
    """How many transform actions precede the execution stage."""

    skeleton: int = 5
    attribute: int = 1

    def __post_init__(self) -> None:
        for name, value in (("skeleton", self.skeleton), ("attribute", self.attribute)):
            if type(value) is not int or value < 0:
                raise ConfigError(f"The number of {name} steps is {value!r}; allowed are whole numbers from 0 up.")


NO_TRANSFORM = TransformSteps(0, 0)


class Outcome(NamedTuple):
    reward: float
    terminated: bool
    truncated: bool


@dataclass(frozen=True)
class EpisodeRecord:
    """What remains of a finished episode. Return and displacement are those of the execution stage.

    - problem: why it could not go on (an unstable simulation, a task that failed); empty if all was well
    - measured: in evaluations, the parts of the return (reward_NAME) and the task's own metrics
    """

    slot: int
    total_return: float
    steps: int
    execution_steps: int
    net_displacement: float
    path: float
    bodies: int
    problem: str
    measured: dict[str, float]

    @property
    def unstable(self) -> bool:
        return bool(self.problem)


NOT_BUILT = StepResult(0.0, 0.0, False, UNSTABLE, {}, {})
"""The first step of a design that MuJoCo refuses."""


class Episode:
    """The state of one running episode."""

    def __init__(self, task: Task, steps: TransformSteps, bodies: BodyPool, slot: int = 0) -> None:
        self.task, self.steps, self.slot = task, steps, slot
        self._end = steps.skeleton + steps.attribute + task.config.max_steps
        self._bodies = bodies
        self.body: Body | None = None
        self.design: Design = task.initial_design
        self.topology: Topology = task.space.topology(self.design)
        self.last_step: StepResult | None = None
        self._clear()

    def _clear(self) -> None:
        self.time = 0
        self.stage = self._stage_now()
        self.problem = ""
        self.total_return = self.net = self.path = 0.0
        self._sums: dict[str, float] = {}
        self._metrics: dict[str, float] = {}

    def _stage_now(self) -> Stage:
        if self.time < self.steps.skeleton:
            return Stage.SKELETON
        return Stage.ATTRIBUTE if self.time < self.steps.skeleton + self.steps.attribute else Stage.EXECUTION

    @property
    def execution_time(self) -> int:
        return max(0, self.time - self.steps.skeleton - self.steps.attribute)

    def begin(self, design: Design, rng: np.random.Generator) -> None:
        """Starts anew from a design; `rng` draws the noise of the simulator's start."""
        self._clear()
        self._rng = rng
        self._set_design(design)
        self._enter_execution_if_due()

    def state(self) -> Array | None:
        """Simulator state [nodes, state_size], or None in the transform stages and where it is not finite."""
        return None if self.acting_body is None or self.problem else self.acting_body.state()

    @property
    def acting_body(self) -> Body | None:
        """The body that is simulated now; none in the transform stages."""
        return self.body if self.stage is Stage.EXECUTION else None

    def act(self, actions: Array) -> Outcome:
        """One step of the MDP with an action [nodes, 7] per node; columns of other stages are ignored."""
        stage = self.stage
        if stage is Stage.EXECUTION:
            return self._execute(actions[:, CONTROL])
        if stage is Stage.SKELETON:
            self._set_design(skeleton_transform(self.design, actions[:, SKELETON], self.task.space))
        else:
            self._set_design(attribute_transform(self.design, actions[:, ATTRIBUTES], self.task.space))
        self.time += 1
        self.stage = self._stage_now()
        self._enter_execution_if_due()
        return Outcome(0.0, False, False)

    def record(self) -> EpisodeRecord:
        means = {name for name, kind in self.task.metrics.items() if kind == "mean"}
        metrics = {name: value / self.execution_time if name in means else value for name, value in self._metrics.items()}
        return EpisodeRecord(
            slot=self.slot,
            total_return=self.total_return,
            steps=self.time,
            execution_steps=self.execution_time,
            net_displacement=self.net,
            path=self.path,
            bodies=self.design.num_nodes,
            problem=self.problem,
            measured={**{f"reward_{name}": value for name, value in self._sums.items()}, **metrics},
        )

    def _set_design(self, design: Design) -> None:
        if design is not self.design:
            self.design, self.topology = design, self.task.space.topology(design)

    def _enter_execution_if_due(self) -> None:
        if self.stage is not Stage.EXECUTION:
            return
        if self.body is None or self.body.design is not self.design:
            if self.body is not None:
                self._bodies.discard(self.body)
            self.body = None
            try:
                self.body = self._bodies.build(self.design)
            except (ValueError, mujoco.FatalError):  # MuJoCo refuses the model: the first step ends the episode as unstable
                return
        self.body.reset(self._rng)

    def _execute(self, control: Array) -> Outcome:
        self.last_step = step = self.body.step(control) if self.body is not None else NOT_BUILT
        return self.executed(step.reward, step.dx, step.ended, step.problem)

    def executed(self, reward: float, dx: float, ended: bool, problem: str) -> Outcome:
        """Takes note of a step of the simulator."""
        self.time += 1
        self.total_return += reward
        self.net += dx
        self.path += abs(dx)
        self.problem = problem
        over = ended or bool(problem)
        timeout = self.time >= self._end and not over
        if timeout and self.task.config.time_limit == "truncate":
            return Outcome(reward, False, True)
        return Outcome(reward, over or timeout, False)

    def measure(self, parts: Mapping[str, float], metrics: Mapping[str, float]) -> None:
        """Adds what a step was measured at: the parts of its reward, and the task's metrics."""
        for name, value in parts.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        for name, value in metrics.items():
            before, kind = self._metrics.get(name), self.task.metrics[name]
            if before is None or kind == "last":
                self._metrics[name] = value
            else:
                self._metrics[name] = max(before, value) if kind == "max" else before + value

    # ---- stop and go on ----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to go on bit-equally, as plain values and arrays."""
        return {
            "design": self.design.to_dict(),
            "time": self.time,
            "total_return": self.total_return,
            "net": self.net,
            "path": self.path,
            "simulation": None if self.acting_body is None else self.acting_body.snapshot().tolist(),
        }

    def load_state_dict(self, state: dict[str, Any], start: Design, rng: np.random.Generator) -> None:
        """`start` is the design that the slot's episodes begin with."""
        self._clear()
        self._rng = rng
        design = Design.from_dict(state["design"])
        self._set_design(start if design == start else design)
        self.time, self.total_return = state["time"], state["total_return"]
        self.net, self.path = state["net"], state["path"]
        self.stage = self._stage_now()
        if self.body is not None:
            self._bodies.discard(self.body)
            self.body = None
        if state["simulation"] is not None:
            self.body = self._bodies.build(self.design)
            self.body.restore(np.asarray(state["simulation"]))
