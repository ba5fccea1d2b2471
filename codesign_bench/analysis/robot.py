"""A robot as it is drawn: bodies, hinges and capsules in physical units, read from a design's MJCF by MuJoCo's own compiler.

The normalised attributes of a design's JSON mean something only together with its design space, which a method may have
widened; the MJCF beside it is what was simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from codesign_bench.design.graph import Design
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.errors import DesignError
from codesign_bench.quiet import be_quiet
from codesign_bench.tasks import Task, task_from_config

Array = NDArray[Any]
_KINDS = {
    int(mujoco.mjtJoint.mjJNT_FREE): "free",
    int(mujoco.mjtJoint.mjJNT_SLIDE): "slide",
    int(mujoco.mjtJoint.mjJNT_HINGE): "hinge",
}


@dataclass(frozen=True)
class Joint:
    """kind: free, slide or hinge; `address` is its place in a pose, `reference` its coordinate in the drawn pose; the range is
    in degrees, and gear is 0 where there is no motor."""

    kind: str
    axis: tuple[float, ...]
    address: int
    reference: float
    range: tuple[float, float] | None
    gear: float


@dataclass(frozen=True)
class Capsule:
    """Ends relative to the body, in metres; equal ones for a sphere."""

    start: tuple[float, ...]
    end: tuple[float, ...]
    radius: float


@dataclass(frozen=True)
class Part:
    """One body: its index string, its parent's place in the list (-1 for the root) and its origin relative to that one."""

    name: str
    parent: int
    position: tuple[float, ...]
    joints: tuple[Joint, ...]
    capsules: tuple[Capsule, ...]


@dataclass(frozen=True)
class Robot:
    parts: tuple[Part, ...]
    coordinates: int
    mass: float

    @staticmethod
    def from_mjcf(text: str) -> Robot:
        be_quiet()
        try:
            model = mujoco.MjModel.from_xml_string(text)
        except (ValueError, mujoco.FatalError) as error:
            raise DesignError(f"MuJoCo cannot read the robot: {' '.join(str(error).split())}") from None
        if model.nbody < 2:
            raise DesignError("The model has no bodies.")
        gear = dict(zip(model.actuator_trnid[:, 0].tolist(), model.actuator_gear[:, 0].tolist(), strict=True))
        parts = tuple(_part(model, body, gear) for body in range(1, model.nbody))
        return Robot(parts, int(model.nq), float(model.body_mass.sum()))

    def is_like(self, other: Robot) -> bool:
        """Whether both are the same robot, up to the last digits that machines compute differently."""
        if [(p.name, p.parent, len(p.capsules)) for p in self.parts] != [(p.name, p.parent, len(p.capsules)) for p in other.parts]:
            return False
        return np.allclose(self._numbers(), other._numbers(), rtol=1e-6, atol=1e-6)

    def _numbers(self) -> Array:
        values = [
            [*part.position]
            + [number for joint in part.joints for number in (*joint.axis, joint.gear)]
            + [number for capsule in part.capsules for number in (*capsule.start, *capsule.end, capsule.radius)]
            for part in self.parts
        ]
        return np.array([number for row in values for number in row])


def _part(model: Any, body: int, gear: dict[int, float]) -> Part:
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    geoms = range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body])
    return Part(
        name=model.body(body).name,
        parent=int(model.body_parentid[body]) - 1,
        position=tuple(model.body_pos[body].tolist()),
        joints=tuple(_joint(model, j, gear) for j in range(first, first + count)),
        capsules=tuple(_capsule(model, g) for g in geoms),
    )


def _joint(model: Any, joint: int, gear: dict[int, float]) -> Joint:
    address = int(model.jnt_qposadr[joint])
    limits = np.degrees(model.jnt_range[joint]).tolist() if model.jnt_limited[joint] else None
    return Joint(
        kind=_KINDS.get(int(model.jnt_type[joint]), "other"),
        axis=tuple(model.jnt_axis[joint].tolist()),
        address=address,
        reference=float(model.qpos0[address]),
        range=None if limits is None else (limits[0], limits[1]),
        gear=gear.get(joint, 0.0),
    )


def _capsule(model: Any, geom: int) -> Capsule:
    half = model.geom_size[geom, 1] if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
    along, centre = half * rotation.reshape(3, 3)[:, 2], model.geom_pos[geom]
    # MuJoCo's `fromto` lays the axis from the end to the start.
    return Capsule(tuple((centre + along).tolist()), tuple((centre - along).tolist()), float(model.geom_size[geom, 0]))


def read_robot(path: Path) -> Robot:
    """The robot of an MJCF file in a run's designs/."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise DesignError(f"{path} is missing or cannot be read.") from None
    try:
        return Robot.from_mjcf(text)
    except DesignError as error:
        raise DesignError(f"{path}: {error}") from None


def read_design(folder: Path, name: str, env: dict[str, Any]) -> tuple[Design, Task]:
    """A design of a run folder and the task in which it is the robot of its MJCF: the run's own, or the one with the bounds that
    an expert widened."""
    path = folder / "designs" / f"{name}.json"
    try:
        design = Design.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise DesignError(f"{path} is missing or cannot be read.") from None
    except DesignError as error:
        raise DesignError(f"{path}: {error}") from None
    robot, task = read_robot(path.with_suffix(".xml")), task_from_config(env)
    for candidate in (lambda: task, task.with_expert):
        found = candidate()
        try:
            if Robot.from_mjcf(to_mjcf(design, found.space, found.scene)).is_like(robot):
                return design, found
        except (DesignError, IndexError):
            continue
    raise DesignError(f"{path} is not the robot of {path.with_suffix('.xml').name} in any design space that is known.")
