"""Giving a compiled model new attributes without compiling it again.

Compiling MJCF costs one to three milliseconds, as much as a dozen environment steps, and designs of young policies live
for a few dozen steps. Designs with the same skeleton differ in a handful of model fields: where bodies sit, and the size,
place, mass and inertia of one capsule each. Those are written here, and MuJoCo derives the rest (`mj_setConst`).

tests/simulation/test_refit.py compares every field with a fresh compilation. A model is always refitted, even right after
it was compiled, so what is simulated never depends on which models were at hand.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from codesign_bench.design.graph import BONE, GEAR, RADIUS, START_EXTENSION, Design
from codesign_bench.tasks.base import Task

Array = NDArray[Any]


def body_of_node(design: Design, task: Task) -> Array:
    """[nodes]: MuJoCo's number of each node's body; bodies are numbered depth first, after the world."""
    bodies = np.empty(design.num_nodes, dtype=np.int64)
    bodies[list(task.space.topology(design).order)] = np.arange(1, design.num_nodes + 1)
    return bodies


class Refit:
    """Where the attributes of a skeleton's nodes live in its compiled model."""

    def __init__(self, model: mujoco.MjModel, design: Design, task: Task) -> None:
        self.model, self.task = model, task
        bodies = body_of_node(design, task)
        self._bones = np.arange(0 if design.root_bone else 1, design.num_nodes)
        self._bone_bodies = bodies[self._bones]
        self._limb_bodies = bodies[1:]
        self._geoms = model.body_geomadr[self._bone_bodies] + model.body_geomnum[self._bone_bodies] - 1
        self._boxes = model.body_bvhadr[self._bone_bodies]
        axes = (0, 2) if task.space.plane == "xz" else (0, 1)
        self._to_space = np.zeros((2, 3))
        self._to_space[[0, 1], axes] = 1.0
        model.body_sameframe[self._bone_bodies] = 0
        model.geom_sameframe[self._geoms] = int(mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA)

    @staticmethod
    def possible(design: Design) -> bool:
        """A root with both a bone and rigid parts has a composite inertia, which is left to the compiler."""
        return not (design.root_bone and design.root_geoms)

    def apply(self, data: mujoco.MjData, design: Design) -> None:
        """Writes the attributes of a design with this skeleton. `data` is scratch space and is reset."""
        model, density = self.model, self.task.scene.geom_density
        physical = self.task.space.physical(design.attributes)
        ends = physical[:, BONE] @ self._to_space
        if not design.root_bone:
            ends[0] = 0.0
        model.body_pos[self._limb_bodies] = ends[design.parents[1:]] + design.joint_offset[1:]
        model.actuator_gear[:, 0] = physical[1:, GEAR]

        values, end = physical[self._bones], ends[self._bones]
        length = np.sqrt((end * end).sum(axis=1, keepdims=True))
        radius = values[:, RADIUS]
        start = end * (-values[:, START_EXTENSION, None] / length)
        half = 0.5 * (length[:, 0] + values[:, START_EXTENSION])
        reach = half + radius
        box = np.stack([radius, radius, reach], axis=1)
        quaternion = _turn_z_to(-end / length)
        mass, inertia = _capsule_inertia(radius, 2 * half, density)
        bodies, geoms = self._bone_bodies, self._geoms
        model.geom_size[geoms, 0], model.geom_size[geoms, 1] = radius, half
        model.geom_rbound[geoms] = reach
        model.geom_aabb[geoms, 3:] = box
        model.bvh_aabb[self._boxes, 3:] = box
        model.geom_pos[geoms] = model.body_ipos[bodies] = 0.5 * (start + end)
        model.geom_quat[geoms] = model.body_iquat[bodies] = quaternion
        model.body_mass[bodies], model.body_inertia[bodies] = mass, inertia
        mujoco.mj_resetData(model, data)
        mujoco.mj_setConst(model, data)
        # mj_setConst leaves the statistics alone; the solver scales its tolerance by the mean inertia, the others are visual
        model.stat.meaninertia = model.dof_M0.mean()
        model.stat.meanmass = model.body_mass[1:].mean()


def _turn_z_to(direction: Array) -> Array:
    """Quaternions [bones, 4] that turn the z-axis to unit vectors [bones, 3] the short way."""
    across = np.zeros_like(direction)
    across[:, 0], across[:, 1] = -direction[:, 1], direction[:, 0]
    sine = np.hypot(direction[:, 0], direction[:, 1])
    parallel = sine < 1e-10
    across[parallel] = (1.0, 0.0, 0.0)
    half = 0.5 * np.arctan2(sine, direction[:, 2])
    scale = np.sin(half) / np.where(parallel, 1.0, sine)
    return np.concatenate([np.cos(half)[:, None], across * scale[:, None]], axis=1)


def _capsule_inertia(radius: Array, height: Array, density: float) -> tuple[Array, Array]:
    """Mass [bones] and principal moments [bones, 3] of solid capsules; `height` is that of the cylinder."""
    cylinder = density * np.pi * radius**2 * height
    ball = density * np.pi * 4 / 3 * radius**3
    across = cylinder * (3 * radius**2 + height**2) / 12 + ball * (0.4 * radius**2 + height * (3 * radius + 2 * height) / 8)
    along = cylinder * radius**2 / 2 + ball * 0.4 * radius**2
    return cylinder + ball, np.stack([across, across, along], axis=1)
