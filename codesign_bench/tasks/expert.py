"""Expert designs: an MJCF robot (gymnasium's Hopper, Ant, Swimmer, or any tree of hinges) converted into a design.

The file is read through MuJoCo's own compiler, so defaults, `fromto`, frames and units mean here what they mean there.
What cannot be an attribute becomes a constant of the design: joint offsets, hinge axes and ranges, friction, rigid parts of the
root (Ant's four stubs, Swimmer's head, which lies ahead of the root's joints), and the height at which the root starts, where
the task has heights.
"""

import contextlib
import reprlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import NUM_ATTRIBUTES, Design, FixedGeom
from codesign_bench.design.scene import Scene
from codesign_bench.design.space import DesignSpace
from codesign_bench.errors import DesignError

TOLERANCE = 1e-6  # metres


@dataclass(frozen=True)
class _Bone:
    """A capsule or sphere in world coordinates of the expert's reference pose."""

    start: Array
    end: Array
    radius: float
    friction: tuple[float, float, float]


def expert_path(name: str) -> Path:
    """The expert's file: a path, or the name of a model that the installed gymnasium package ships."""
    with contextlib.suppress(OSError, ValueError):  # a name that no file system takes is no path
        if Path(name).is_file():
            return Path(name)
    package = find_spec("gymnasium")
    assets = Path(package.origin).parent / "envs" / "mujoco" / "assets" if package and package.origin else None
    if assets and name in {path.name for path in assets.glob("*.xml")}:
        return assets / name
    known = ", ".join(sorted(p.name for p in assets.glob("*.xml"))) if assets else "none: gymnasium is not installed"
    raise DesignError(f"There is no expert {reprlib.repr(name)}; allowed are the path of an MJCF file or one of gymnasium's: {known}.")


def expert_design(name: str, space: DesignSpace, scene: Scene) -> tuple[Design, DesignSpace]:
    """The converted design, and the space with bounds widened where a value of the expert lies outside them.

    Density, armature and damping belong to the task's scene; an expert that has others is refused, since it would not be
    the same robot there.
    """
    import mujoco

    from codesign_bench.quiet import be_quiet

    be_quiet()
    path = expert_path(name)
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise DesignError(f"The expert {path.name} is not a valid MJCF model: {' '.join(str(error).split())}.") from None
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return _Reader(model, data, path.name, space, scene).read()


class _Reader:
    """One conversion. Positions are world coordinates of the reference pose (qpos0), in which hinge angles are zero."""

    def __init__(self, model: Any, data: Any, name: str, space: DesignSpace, scene: Scene) -> None:
        self.model, self.data, self.name, self.space, self.scene = model, data, name, space, scene
        if model.nbody < 2 or np.count_nonzero(model.body_parentid[1:] == 0) != 1:
            raise self.error("has not exactly one root body; allowed is one tree")
        freedom = model.jnt_type[: model.body_jntnum[1]].tolist()
        if freedom != ([0] if scene.root == "free" else [2, 2, 3]):
            wanted = "a free joint" if scene.root == "free" else "two slides and a hinge"
            raise self.error(f"has a root that does not move as this task's does; allowed is a root with {wanted}")
        self.gear = self._gears()

    def error(self, text: str) -> DesignError:
        return DesignError(f"The expert {self.name} {text}.")

    def read(self) -> tuple[Design, DesignSpace]:
        model = self.model
        nodes = [1] + [b for b in range(2, model.nbody) if model.body_jntnum[b]]
        node_of = {body: i for i, body in enumerate(nodes)}
        parents = [-1] + [node_of[self._jointed_ancestor(body)] for body in nodes[1:]]
        joints = [self._hinge(body) for body in nodes[1:]]
        anchors = [self.data.xpos[1].copy()] + [self.data.xanchor[j].copy() for j in joints]

        bones: list[_Bone | None] = []
        for i in range(len(nodes)):
            children = [anchors[k] for k in range(1, len(nodes)) if parents[k] == i]
            bones.append(self._bone(nodes[i], anchors[i], children))
        root_geoms = tuple(
            FixedGeom(_triple(g.start - anchors[0]), _triple(g.end - anchors[0]), g.radius, g.friction)
            for g in ([] if bones[0] is not None else self._geoms(1))
        )
        ends = [anchors[0] if bone is None else bone.end for bone in bones]
        values = np.zeros((len(nodes), NUM_ATTRIBUTES))
        for i, bone in enumerate(bones):
            if bone is not None:
                gear = self.gear[joints[i - 1]] if i else 0.0
                values[i] = [*self._in_plane(bone.end - anchors[i], i), gear, bone.radius, float(np.linalg.norm(bone.start - anchors[i]))]
        offsets = [np.zeros(3)] + [anchors[i] - ends[parents[i]] for i in range(1, len(nodes))]
        limit = [[0.0, 0.0]] + [np.rad2deg(model.jnt_range[j]).tolist() for j in joints]
        self._check_mass([geom for body in nodes for geom in self._geoms(body)])
        default = root_geoms[0].friction if root_geoms else (1.0, 0.005, 0.0001)
        design = Design(
            parents=np.asarray(parents),
            attributes=np.zeros_like(values),
            axis=np.asarray([np.zeros(3)] + [self.data.xaxis[j] for j in joints]),
            range=np.asarray(limit).round(9),
            friction=np.asarray([default if bone is None else bone.friction for bone in bones]),
            joint_offset=np.where(np.abs(offsets) < 1e-12, 0.0, offsets),
            root_bone=bones[0] is not None,
            root_geoms=root_geoms,
            start_height=None if self.scene.root == "planar" and self.space.plane == "xy" else round(float(anchors[0][2]), 12),
        )
        tunable = self.space.tunable(design)
        space = self.space.including(values, tunable)
        design = design.with_attributes(np.where(tunable, space.normalised(values), 0.0))
        space.check(design)
        return design, space

    def _check_mass(self, parts: list[_Bone]) -> None:
        lengths = [float(np.linalg.norm(g.end - g.start)) for g in parts]
        volume = sum(np.pi * g.radius**2 * (length + 4 / 3 * g.radius) for g, length in zip(parts, lengths, strict=True))
        mine, theirs = volume * self.scene.geom_density, float(self.model.body_mass.sum())
        if abs(mine - theirs) > 1e-3 * theirs:
            raise self.error(
                f"weighs {theirs:.4g} kg and would weigh {mine:.4g} kg in this task; allowed is a density of {self.scene.geom_density:g}"
            )

    # ---- parts of the tree -------------------------------------------------------------------------------------------

    def _jointed_ancestor(self, body: int) -> int:
        parent = int(self.model.body_parentid[body])
        while parent > 1 and self.model.body_jntnum[parent] == 0:
            parent = int(self.model.body_parentid[parent])
        return parent

    def _hinge(self, body: int) -> int:
        model = self.model
        joint = int(model.body_jntadr[body])
        if model.body_jntnum[body] != 1 or model.jnt_type[joint] != 3:
            raise self.error(f"has joints other than one hinge on the body '{model.body(body).name}'; allowed is a tree of hinges")
        if not model.jnt_limited[joint]:
            raise self.error(f"has a hinge without limits, '{model.joint(joint).name}'; allowed are hinges with a range")
        dof = int(model.jnt_dofadr[joint])
        wanted = {
            "armature": (model.dof_armature[dof], self.scene.joint_armature),
            "damping": (model.dof_damping[dof], self.scene.joint_damping),
            "stiffness": (model.jnt_stiffness[joint], 0.0),
            "friction loss": (model.dof_frictionloss[dof], 0.0),
            "a reference angle": (model.qpos0[model.jnt_qposadr[joint]], 0.0),
        }
        for what, (found, mine) in wanted.items():
            theirs = float(np.ravel(found)[0])
            if abs(theirs - mine) > 1e-9:
                raise self.error(f"has {what} {theirs:g} on '{model.joint(joint).name}'; allowed is this task's, {mine:g}")
        if joint not in self.gear:
            raise self.error(f"has a hinge without a motor, '{model.joint(joint).name}'; allowed is one motor per hinge")
        return joint

    def _gears(self) -> dict[int, float]:
        model, gears = self.model, dict[int, float]()
        for a in range(model.nu):
            joint, name = int(model.actuator_trnid[a, 0]), model.actuator(a).name or f"number {a}"
            plain = model.actuator_trntype[a] == 0 and model.actuator_gaintype[a] == 0 and model.actuator_biastype[a] == 0
            unit = model.actuator_gainprm[a, 0] == 1 and model.actuator_ctrllimited[a] and model.actuator_ctrlrange[a].tolist() == [-1, 1]
            if not plain or not unit or joint in gears:
                raise self.error(
                    f"has an actuator ({name}) that is not the one motor of a hinge with controls from -1 to 1; allowed are those"
                )
            gears[joint] = float(model.actuator_gear[a, 0])
        return gears

    def _geoms(self, body: int) -> list[_Bone]:
        """The capsules and spheres that move with a body: its own and those of bodies welded to it."""
        model, data = self.model, self.data
        welded = {body}
        for b in range(body + 1, model.nbody):
            if model.body_jntnum[b] == 0 and int(model.body_parentid[b]) in welded:
                welded.add(b)
        result = []
        for g in range(model.ngeom):
            if int(model.geom_bodyid[g]) not in welded:
                continue
            kind, (radius, half, _) = int(model.geom_type[g]), model.geom_size[g].tolist()
            if kind not in (2, 3):
                raise self.error(f"has a geom that is neither a capsule nor a sphere on '{model.body(body).name}'; allowed are those two")
            centre = data.geom_xpos[g]
            along = data.geom_xmat[g].reshape(3, 3)[:, 2] * (half if kind == 3 else 0.0)
            friction = _triple(model.geom_friction[g])
            result.append(_Bone(centre - along, centre + along, radius, friction))
        return result

    def _bone(self, body: int, joint: Array, children: list[Array]) -> _Bone | None:
        """The capsule that runs through the joint, its end turned towards the children; None for a root without one."""
        geoms = self._geoms(body)
        if body == 1:
            through = [turned for g in geoms if (turned := _turned(g, joint, children)) is not None]
            return through[0] if len(geoms) == 1 and through else None
        if len(geoms) != 1:
            raise self.error(f"has {len(geoms)} geoms on the body '{self.model.body(body).name}'; allowed is one capsule per hinge")
        bone = _turned(geoms[0], joint, children)
        if bone is None:
            raise self.error(
                f"has a capsule on '{self.model.body(body).name}' that does not run through its joint; allowed is one that does"
            )
        return bone

    def _in_plane(self, vector: Array, node: int) -> list[float]:
        across = 1 if self.space.plane == "xz" else 2
        if abs(vector[across]) > TOLERANCE:
            raise self.error(f"has a bone (node {node}) outside the task's {self.space.plane}-plane; allowed are bones inside it")
        return [v for axis, v in enumerate(vector.tolist()) if axis != across]


def _turned(geom: _Bone, joint: Array, children: list[Array]) -> _Bone | None:
    """The capsule with its end where the children are (for a leaf: far from the joint), if the joint lies on its axis."""
    length = np.linalg.norm(geom.end - geom.start)
    if length == 0:
        return None
    direction = (geom.end - geom.start) / length
    along = float((joint - geom.start) @ direction)
    away = np.linalg.norm(geom.start + along * direction - joint)
    if away > TOLERANCE or not -TOLERANCE <= along <= length + TOLERANCE:
        return None
    target = np.mean(children, axis=0) if children else geom.start + geom.end - joint
    flip = np.linalg.norm(geom.start - target) < np.linalg.norm(geom.end - target)
    return _Bone(geom.end, geom.start, geom.radius, geom.friction) if flip else geom


def _triple(vector: Array) -> tuple[float, float, float]:
    x, y, z = (vector.round(12) + 0.0).tolist()
    return x, y, z
