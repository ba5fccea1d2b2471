"""A slow, obvious sampler: one slot, one step, one number at a time, straight from the table of the specification.

It shares with the package the transforms and the MJCF text (tested elsewhere), and nothing of the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.transform import attribute_transform, skeleton_transform
from codesign_bench.tasks.base import Task

NOISE = {"locomotion2d": 0.005, "gap": 0.005, "locomotion3d": 0.1, "swimmer": 0.1}
DT = {"locomotion2d": 0.008, "gap": 0.008, "locomotion3d": 0.04, "swimmer": 0.04}


@dataclass
class SlowStep:
    design: Design
    stage: int
    features: np.ndarray
    state: np.ndarray
    action: np.ndarray
    reward: float
    dx: float
    terminated: bool
    truncated: bool


class SlowSlot:
    """One slot: episode after episode from the same starting design."""

    def __init__(self, task: Task, design: Design, rng: np.random.Generator, skeleton_steps: int, attribute_steps: int) -> None:
        self.task, self.start, self.rng = task, design, rng
        self.skeleton_steps, self.transform_steps = skeleton_steps, skeleton_steps + attribute_steps
        self.begin()

    def begin(self) -> None:
        self.design, self.time = self.start, 0
        self.enter_execution()

    @property
    def stage(self) -> int:
        if self.time < self.skeleton_steps:
            return 0
        return 1 if self.time < self.transform_steps else 2

    # ---- the tree ----------------------------------------------------------------------------------------------------

    def depth(self, node: int) -> int:
        return 0 if node == 0 else 1 + self.depth(int(self.design.parents[node]))

    def name(self, node: int) -> str:
        """The joint's index string."""
        if node == 0:
            return "0"
        parent = int(self.design.parents[node])
        siblings = [i for i in range(self.design.num_nodes) if self.design.parents[i] == parent]
        return str(siblings.index(node) + 1) + ("" if parent == 0 else self.name(parent))

    def joint_index(self) -> np.ndarray:
        return np.array([self.task.space.index_names.index(self.name(node)) for node in range(self.design.num_nodes)])

    # ---- the simulator -----------------------------------------------------------------------------------------------

    def enter_execution(self) -> None:
        if self.stage != 2:
            return
        name, noise = self.task.name, NOISE[self.task.name]
        self.model = model = mujoco.MjModel.from_xml_string(to_mjcf(self.design, self.task.space, self.task.scene))
        self.data = data = mujoco.MjData(model)
        data.qpos[:] = model.qpos0 + self.rng.uniform(-noise, noise, model.nq)
        data.qvel[:] = self.rng.uniform(-noise, noise, model.nv)
        if name == "locomotion3d":
            data.qpos[2] = 0.4
            mujoco.mj_normalizeQuat(model, data.qpos)
        if name == "gap":
            while self.touches_ground() and data.qpos[1] < 2.0:
                data.qpos[1] += 0.05

    def touches_ground(self) -> bool:
        probe = mujoco.MjData(self.model)
        probe.qpos[:] = self.data.qpos
        mujoco.mj_forward(self.model, probe)
        return any(self.model.geom_bodyid[g] == 0 for i in range(probe.ncon) for g in probe.contact[i].geom)

    def state(self) -> np.ndarray:
        return np.array([self.node_state(node) for node in range(self.design.num_nodes)], dtype=np.float32)

    def node_state(self, node: int) -> list[float]:
        name = self.task.name
        if self.stage != 2:
            return [0.0] * {"locomotion2d": 5, "gap": 6, "locomotion3d": 13, "swimmer": 4}[name]
        q, v = self.data.qpos.tolist(), [max(-10.0, min(10.0, x)) for x in self.data.qvel.tolist()]
        if node > 0:
            joint = self.data.joint(self.name(node))
            angle, rate = float(joint.qpos[0]), max(-10.0, min(10.0, float(joint.qvel[0])))
        phase = [q[0] / 3.2 - math.trunc(q[0] / 3.2)] if name == "gap" else []
        if name in ("locomotion2d", "gap"):
            return [*phase, q[2], q[1], v[2], v[1], v[0]] if node == 0 else [*phase, angle, 0, rate, 0, 0]
        if name == "swimmer":
            return [q[2], v[2], v[1], v[0]] if node == 0 else [angle, rate, 0, 0]
        return [*q[2:7], *v[0:6], 0, 0] if node == 0 else [*[0.0] * 11, angle, rate]

    def features(self) -> np.ndarray:
        depths = [[float(self.depth(node) == d) for d in range(4)] for node in range(self.design.num_nodes)]
        return np.hstack([np.array(depths), self.state(), self.design.attributes]).astype(np.float32)

    def ended(self) -> bool:
        name, q = self.task.name, self.data.qpos
        if name == "swimmer":
            return False
        if name == "locomotion3d":
            matrix = np.zeros(9)
            mujoco.mju_quat2Mat(matrix, q[3:7])
            return q[2] <= 0 or q[2] >= 2 or math.degrees(math.acos(matrix[8])) >= 60
        return q[1] <= {"locomotion2d": 0.7, "gap": 1.0}[name] or q[1] >= 2 or abs(math.degrees(q[2])) >= 20

    def execute(self, control: np.ndarray) -> tuple[float, float, bool, bool]:
        name = self.task.name
        for node in range(1, self.design.num_nodes):
            joint = self.model.joint(self.name(node)).id
            (motor,) = (i for i in range(self.model.nu) if self.model.actuator_trnid[i, 0] == joint)
            self.data.ctrl[motor] = control[node]
        before = float(self.data.qpos[0])
        for _ in range(4):
            mujoco.mj_step(self.model, self.data)
        dx = float(self.data.qpos[0]) - before
        reward = dx / DT[name] + {"locomotion2d": 1.0, "gap": 0.1, "locomotion3d": 0.0, "swimmer": 0.0}[name]
        if name in ("locomotion3d", "swimmer"):
            reward -= 1e-4 * float(np.mean(np.square(control[1:].astype(np.float64))))
        timeout = self.time + 1 - self.transform_steps >= self.task.config.max_steps
        if self.ended():
            return reward, dx, True, False
        truncate = self.task.config.time_limit == "truncate"
        return reward, dx, timeout and not truncate, timeout and truncate

    # ---- the loop ----------------------------------------------------------------------------------------------------

    def step(self, policy: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> SlowStep:
        design, stage, features, state = self.design, self.stage, self.features(), self.state()
        action = policy(features, self.joint_index())
        reward, dx, terminated, truncated = 0.0, 0.0, False, False
        if stage == 0:
            self.design = skeleton_transform(design, action[:, 6], self.task.space)
        elif stage == 1:
            self.design = attribute_transform(design, action[:, 1:6], self.task.space)
        else:
            reward, dx, terminated, truncated = self.execute(action[:, 0])
        self.time += 1
        if stage != 2:
            self.enter_execution()
        if terminated or truncated:
            self.begin()
        return SlowStep(design, stage, features, state, action, reward, dx, terminated, truncated)
