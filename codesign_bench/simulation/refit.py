"""Giving a compiled model new attributes without compiling it again.

Compiling MJCF costs one to three milliseconds, as much as a dozen environment steps, and designs of young policies live
for a few dozen steps. Designs with the same skeleton differ in a handful of model fields: where bodies sit, and the size,
place, mass and inertia of one capsule each. Those are written here, and MuJoCo derives the rest (`mj_setConst`).

tests/simulation/test_refit.py compares every field with a fresh compilation. A model is always refitted, even right after
it was compiled, so what is simulated never depends on which models were at hand.
"""

import mujoco
import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import BONE, GEAR, RADIUS, START_EXTENSION, Design
from codesign_bench.tasks.base import Task

_TO_SPACE = {"xz": np.array([[1.0, 0, 0], [0, 0, 1]]), "xy": np.array([[1.0, 0, 0], [0, 1, 0]])}
"""From a vector of a task's plane to x, y, z."""


class Refit:
    """Views into a compiled model where the attributes of its skeleton live. Bodies, their bones and their motors are numbered
    depth first, so each view is one stretch of a field."""

    def __init__(self, model: mujoco.MjModel, design: Design, task: Task) -> None:
        self.model, self.task = model, task
        first = 0 if design.root_bone else 1
        count, end = design.num_nodes - first, 1 + design.num_nodes
        self._bones = slice(first, None)
        last = model.ngeom - len(task.scene.objects)  # objects come after the robot
        bodies, geoms = slice(1 + first, end), slice(last - count, last)
        box = model.body_bvhadr[1 + first]
        self._to_space = _TO_SPACE[task.space.plane]
        self._limb_pos, self._gear = model.body_pos[2:end], model.actuator_gear[:, 0]
        self._size, self._reach = model.geom_size[geoms, :2], model.geom_rbound[geoms]
        self._boxes = model.geom_aabb[geoms, 3:], model.bvh_aabb[box : box + count, 3:]
        self._centres = model.geom_pos[geoms], model.body_ipos[bodies]
        self._turns = model.geom_quat[geoms], model.body_iquat[bodies]
        self._mass, self._inertia = model.body_mass[bodies], model.body_inertia[bodies]
        self._all_masses, self._dof_inertia = model.body_mass[1:], model.dof_M0
        model.body_sameframe[bodies] = 0
        model.geom_sameframe[geoms] = int(mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA)

    @staticmethod
    def possible(design: Design) -> bool:
        """A root with both a bone and rigid parts has a composite inertia, which is left to the compiler."""
        return not (design.root_bone and design.root_geoms)

    def apply(self, data: mujoco.MjData, design: Design) -> None:
        """Writes the attributes of a design with this skeleton. `data` is scratch space and is reset."""
        model, order = self.model, self.task.space.topology(design).order
        physical = self.task.space.physical(design.attributes)
        ends = physical[:, BONE] @ self._to_space
        if not design.root_bone:
            ends[0] = 0.0
        limbs = order[1:]
        np.add(ends[design.parents[limbs]], design.joint_offset[limbs], out=self._limb_pos)
        self._gear[:] = physical[limbs, GEAR]

        bones = order[self._bones]
        values, end = physical[bones], ends[bones]
        radius, extension = values[:, RADIUS], values[:, START_EXTENSION]
        length = np.sqrt((end * end).sum(axis=1))
        direction = end / length[:, None]
        half = 0.5 * (length + extension)
        reach = half + radius
        self._size[:, 0], self._size[:, 1], self._reach[:] = radius, half, reach
        for box in self._boxes:
            box[:, :2], box[:, 2] = radius[:, None], reach
        centre = 0.5 * (end - direction * extension[:, None])
        for view in self._centres:
            view[:] = centre
        quaternion = _turn_z_to(-direction)
        for view in self._turns:
            view[:] = quaternion
        self._mass[:], self._inertia[:] = _capsule_inertia(radius, 2 * half, self.task.scene.geom_density)
        mujoco.mj_resetData(model, data)
        mujoco.mj_setConst(model, data)
        # mj_setConst leaves the statistics alone; the solver scales its tolerance by the mean inertia, the others are visual
        model.stat.meaninertia = self._dof_inertia.mean()
        model.stat.meanmass = self._all_masses.mean()


def _turn_z_to(direction: Array) -> Array:
    """Quaternions [bones, 4] that turn the z-axis to unit vectors [bones, 3] the short way."""
    x, y, z = direction.T
    sine = np.hypot(x, y)
    half = 0.5 * np.arctan2(sine, z)
    sine_half, parallel = np.sin(half), sine < 1e-10  # parallel to z: about x
    scale = sine_half / np.where(parallel, np.inf, sine)
    turn = np.zeros((len(direction), 4))
    turn[:, 0], turn[:, 1], turn[:, 2] = np.cos(half), np.where(parallel, sine_half, -y * scale), x * scale
    return turn


def _capsule_inertia(radius: Array, height: Array, density: float) -> tuple[Array, Array]:
    """Mass [bones] and principal moments [bones, 3] of solid capsules; `height` is that of the cylinder."""
    cylinder = density * np.pi * radius**2 * height
    ball = density * np.pi * 4 / 3 * radius**3
    across = cylinder * (3 * radius**2 + height**2) / 12 + ball * (0.4 * radius**2 + height * (3 * radius + 2 * height) / 8)
    along = cylinder * radius**2 / 2 + ball * 0.4 * radius**2
    return cylinder + ball, np.stack([across, across, along], axis=1)
