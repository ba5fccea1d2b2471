"""Bodies that act at the same time: MuJoCo steps them one by one; rewards, ends and observations are computed for all at once.

`Body.step` and `Body.state` are the slow twin: tests/simulation/test_crowd.py compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from codesign_bench.simulation.body import LIMIT, Body
from codesign_bench.tasks.base import VELOCITY_LIMIT, Task

Array = NDArray[Any]


class Crowd:
    """The state of several bodies in one vector: for each body its qpos, its qvel, a zero and the task's extra number."""

    def __init__(self, task: Task, bodies: Sequence[Body], rows: Sequence[slice]) -> None:
        """`rows`: where the nodes of each body lie in the batch that is acted on."""
        self.task, self._bodies, self._rows = task, bodies, rows
        ends = np.cumsum([body.source_size for body in bodies], dtype=np.int64)
        starts = np.concatenate([[0], ends])[: len(bodies)]
        self._source = np.zeros(ends[-1] if bodies else 0)
        self._extra, self._coordinates = ends - 1, np.stack([starts, ends - 2], axis=1).ravel()
        self._x, self._root = starts, starts[:, None] + np.arange(task.root_coordinates)
        self._copies, speeds, sources, nodes = [], [], [], []
        for body, mine, start in zip(bodies, rows, starts.tolist(), strict=True):
            middle, end = start + len(body.qpos), start + len(body.qpos) + len(body.qvel)
            self._copies.append((self._source[start:middle], body.qpos, self._source[middle:end], body.qvel))
            speeds.append(np.arange(middle, end))
            sources.append(body.sources + start)
            nodes.append(np.arange(mine.start, mine.stop))
        none = [np.zeros(0, dtype=np.int64)]
        self._speeds, self.nodes = np.concatenate(speeds or none), np.concatenate(nodes or none)
        self._sources = np.concatenate(sources or [np.zeros((0, task.state_size), dtype=np.int64)])
        for i in range(len(bodies)):
            self.look_again(i)

    def look_again(self, i: int) -> None:
        """Reads the state of one body, which something else has changed."""
        positions, qpos, velocities, qvel = self._copies[i]
        positions[:], velocities[:] = qpos, qvel

    def step(self, control: Array) -> list[tuple[float, float, bool, bool]]:
        """One environment step of every body under controls [nodes of the batch]: reward, dx, fallen and unstable of each."""
        if not self._bodies:
            return []
        task, source = self.task, self._source
        before = source[self._x]
        weight, skip = task.config.reward.control_cost, task.scene.frame_skip
        costs, broken = [0.0] * len(self._bodies), []
        step = mujoco.mj_step
        for i, body in enumerate(self._bodies):
            mine = control[self._rows[i]]
            body.ctrl[:] = mine[body.motor_nodes]
            try:
                step(body.model, body.data, skip)
            except mujoco.FatalError:
                broken.append(i)
                continue
            if body.diverged():
                broken.append(i)
            self.look_again(i)
            if weight:
                costs[i] = task.control_cost(mine[1:])
        dx = source[self._x] - before
        reward = task.forward_reward(dx) + task.config.reward.alive - np.array(costs)
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.add.reduceat(source * source, self._coordinates)[::2]  # every other stretch is a zero and an extra
        unstable = ~((size < LIMIT) & np.isfinite(reward))  # NaN is unstable too
        unstable[broken] = True
        reward[unstable] = dx[unstable] = 0.0
        fallen = task.fallen(source[self._root]) & ~unstable
        return list(zip(reward.tolist(), dx.tolist(), fallen.tolist(), unstable.tolist(), strict=True))

    def state(self) -> Array:
        """What the nodes of all bodies observe, [nodes of the crowd, state_size]."""
        source = self._source.copy()
        source[self._speeds] = source[self._speeds].clip(-VELOCITY_LIMIT, VELOCITY_LIMIT)
        source[self._extra] = self.task.extra(source[self._root])
        state: Array = source[self._sources]
        return state
