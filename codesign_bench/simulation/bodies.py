"""One environment step of many bodies: MuJoCo steps them one by one; reward, end and observation are the task's, for all at once.

The order of a step: apply the controls, advance the simulator by `frame_skip` timesteps, then let the task judge what happened. A
single body (`Body.step`, the Gymnasium environment) is a batch of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.errors import ConfigError
from codesign_bench.tasks.state import Places, State, Step

if TYPE_CHECKING:
    from codesign_bench.simulation.body import Body
    from codesign_bench.tasks.base import Task


LARGEST_SQUARE = 1e20
"""Square of the largest coordinate that MuJoCo itself takes for finite."""
UNSTABLE = "the simulation became unstable"


@dataclass(frozen=True)
class Outcomes:
    """What a step gave each body.

    - reward, dx [bodies]: zero where there is a problem
    - ended [bodies]: the task ends the episode here
    - problems: of each body, why its episode cannot go on; empty if all is well
    - step: what happened
    - parts: of the reward, numbers or [bodies]; metrics: the task's, the same, if they were asked for
    """

    reward: Array
    dx: Array
    ended: Array
    problems: Sequence[str]
    step: Step
    parts: Mapping[str, Any]
    metrics: Mapping[str, Any]

    def each(self) -> list[tuple[float, float, bool, str]]:
        """(reward, dx, ended, problem) of every body."""
        return list(zip(self.reward.tolist(), self.dx.tolist(), self.ended.tolist(), self.problems, strict=True))

    def of(self, body: int) -> tuple[dict[str, float], dict[str, float]]:
        """Parts of the reward and metrics of one body; zeros where there is a problem."""
        well = not self.problems[body]
        parts, metrics = ({n: _of(v, body) if well else 0.0 for n, v in values.items()} for values in (self.parts, self.metrics))
        return parts, metrics


class Bodies:
    """Several bodies that act at the same time, their coordinates in one vector: for each body its qpos, then its qvel."""

    def __init__(self, task: Task, bodies: Sequence[Body], rows: Sequence[slice]) -> None:
        """`rows`: where the nodes of each body lie in the batch that is acted on."""
        self.task, self._bodies, self._rows = task, bodies, rows
        sizes = [len(body.qpos) + len(body.qvel) for body in bodies]
        starts = np.cumsum([0, *sizes])[:-1].astype(np.int64)
        self._starts, self._no_problems = starts, [""] * len(bodies)
        self._values = np.zeros(sum(sizes))
        self._copies = []
        joints: list[tuple[Array, Array, Array, Array]] = []
        for i, (body, mine, start) in enumerate(zip(bodies, rows, starts.tolist(), strict=True)):
            middle, end = start + len(body.qpos), start + sizes[i]
            self._copies.append((self._values[start:middle], body.qpos, self._values[middle:end], body.qvel))
            joints.append(
                (start + body.hinge_qpos, middle + body.hinge_qvel, np.full(len(body.hinge_qpos), i), np.arange(mine.start + 1, mine.stop))
            )
        self._root_rows = np.array([mine.start for mine in rows], dtype=np.int64)
        none = np.zeros(0, dtype=np.int64)
        angle, rate, body_of, joint_rows = [np.concatenate([none, *column]) for column in zip(*joints, strict=True)] or [none] * 4
        self._joint_rows: Array = joint_rows
        middles = starts + np.array([len(body.qpos) for body in bodies], dtype=np.int64)
        objects = bodies[0].objects if bodies else ()
        self.places = Places(
            root=starts[:, None] + np.arange(task.scene.root_qpos),
            root_velocity=middles[:, None] + np.arange(task.scene.root_qvel),
            angle=angle,
            rate=rate,
            body=body_of,
            objects=tuple(_object_places(bodies, starts, k, 0) for k in range(len(objects))),
            object_velocities=tuple(_object_places(bodies, middles, k, 1) for k in range(len(objects))),
        )
        for i in range(len(bodies)):
            self.reread(i)

    def reread(self, i: int) -> None:
        """Takes over the state of one body, which something else has changed."""
        positions, qpos, velocities, qvel = self._copies[i]
        positions[:], velocities[:] = qpos, qvel

    def _stretch(self, i: int) -> slice:
        return slice(self._starts[i], self._starts[i] + len(self._bodies[i].qpos) + len(self._bodies[i].qvel))

    @property
    def state(self) -> State:
        return State(self.places, self._values, self._bodies)

    def observe(self, out: Array) -> None:
        """Writes what every node observes into its row of `out` [nodes of the batch, state_size]."""
        root, joint = self.task.observe(self.state)
        if len(root) != out.shape[1] or len(joint) != out.shape[1]:
            sizes = f"{len(root)} numbers of a root and {len(joint)} of a joint"
            raise ConfigError(f"The task {self.task.name} observes {sizes}; its state_size is {out.shape[1]}.")
        for rows, numbers in ((self._root_rows, root), (self._joint_rows, joint)):
            columns = np.zeros((len(numbers), len(rows)))
            for i, number in enumerate(numbers):
                if isinstance(number, np.ndarray) or number != 0:  # most of what one kind of node lacks is written as 0
                    columns[i] = number
            out[rows] = columns.T

    def step(self, control: Array, measure: bool = False) -> Outcomes:
        """One environment step of every body under controls [nodes of the batch], with the task's metrics if `measure` says so."""
        task, values, before = self.task, self._values, self._values.copy()
        skip, advance, problems = task.scene.frame_skip, mujoco.mj_step, self._no_problems.copy()
        for i, body in enumerate(self._bodies):
            body.ctrl[:] = control[self._rows[i]][body.motor_nodes]
            try:
                advance(body.model, body.data, skip)
            except mujoco.FatalError:
                problems[i] = UNSTABLE
                continue
            if body.diverged():
                problems[i] = UNSTABLE
            self.reread(i)
        with np.errstate(over="ignore", invalid="ignore"):
            # MuJoCo tests a state before it steps, so the state after the last substep is tested here; NaN fails as well
            finite = np.add.reduceat(values * values, self._starts) < LARGEST_SQUARE if self._bodies else np.zeros(0, dtype=bool)
        if not finite.all():
            problems = [problem if fine else UNSTABLE for problem, fine in zip(problems, finite, strict=True)]
        for i in _with_problem(problems):  # a task sees only finite states: this body's as it was before
            where = self._stretch(i)
            values[where] = before[where]
        if task.uses_data:
            for body, problem in zip(self._bodies, problems, strict=True):
                if not problem:
                    body.update_data()
        step = Step(State(self.places, before, self._bodies, task.dt), self.state, control, self._rows, task.dt)
        return self._judged(step, problems, measure)

    def _judged(self, step: Step, problems: list[str], measure: bool) -> Outcomes:
        """What the task says of a step. A body whose reward is no number, or whose judgement raises an error, has a problem."""
        task, count = self.task, len(self._bodies)
        try:
            parts = task.reward(step)
            reward = np.zeros(count)
            for name, part in parts.items():
                shape = part.shape if isinstance(part, np.ndarray) else np.shape(part)
                if shape not in ((), (count,)):
                    raise ValueError(f"the reward's part '{name}' has shape {shape} instead of {(count,)}")
                reward += part
            ended = np.zeros(count, dtype=bool) | task.ended(step.after)
            measured = task.measure(step) if measure and task.metrics else {}
            metrics = {name: np.broadcast_to(measured[name], (count,)) for name in task.metrics} if measured else {}
        except Exception as error:
            if count > 1:
                return self._judged_one_by_one(step, problems, measure)
            text = f"{type(error).__name__}: {error}" if not isinstance(error, ValueError) else str(error)
            parts, metrics, reward, ended = {}, {}, np.zeros(count), np.zeros(count, dtype=bool)
            problems = [problem or f"the task {task.name} failed ({text})" for problem in problems]
        for i in [i for i, value in enumerate(reward.tolist()) if not math.isfinite(value)]:
            culprit = next(name for name, part in parts.items() if not math.isfinite(_of(part, i)))
            problems[i] = problems[i] or f"the part '{culprit}' of the reward of the task {task.name} is not a finite number"
        dx = step.dx
        for i in _with_problem(problems):
            reward[i] = dx[i] = 0.0
            ended[i] = False
        return Outcomes(reward, dx, ended, problems, step, parts, metrics)

    def _judged_one_by_one(self, step: Step, problems: list[str], measure: bool) -> Outcomes:
        """The same, so that a body for which the task fails takes no other's episode with it."""
        each = []
        for i, (body, rows) in enumerate(zip(self._bodies, self._rows, strict=True)):
            alone = Bodies(self.task, [body], [rows])
            before, after = (State(alone.places, s.values[self._stretch(i)], [body], s.seconds_ago) for s in (step.before, step.after))
            each.append(alone._judged(Step(before, after, step.control, [rows], step.dt), [problems[i]], measure))
        parts, metrics = zip(*(outcome.of(0) for outcome in each), strict=True)
        return Outcomes(
            np.concatenate([outcome.reward for outcome in each]),
            np.concatenate([outcome.dx for outcome in each]),
            np.concatenate([outcome.ended for outcome in each]),
            [outcome.problems[0] for outcome in each],
            step,
            *(_columns(values) for values in (parts, metrics)),
        )


def _of(value: Any, body: int) -> float:
    """Of one body, from a number for each of them or one for all."""
    return float(value[body] if np.ndim(value) else value)


def _columns(rows: Sequence[Mapping[str, float]]) -> dict[str, Array]:
    """[bodies] by name; zero where a body has none."""
    return {name: np.array([row.get(name, 0.0) for row in rows]) for name in dict.fromkeys(name for row in rows for name in row)}


def _with_problem(problems: Sequence[str]) -> list[int]:
    return [i for i, problem in enumerate(problems) if problem] if any(problems) else []


def _object_places(bodies: Sequence[Body], starts: Array, number: int, velocity: int) -> Array:
    """[bodies, coordinates]"""
    return np.stack([start + body.objects[number][velocity] for body, start in zip(bodies, starts, strict=True)])
