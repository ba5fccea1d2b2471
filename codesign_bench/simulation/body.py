"""One compiled design: model, data, where its coordinates stand, start, stop and go on. Stepping is in bodies.py."""

import copy
from collections import OrderedDict
from functools import cached_property
from typing import NamedTuple

import mujoco
import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design, FixedGeom
from codesign_bench.design.mjcf import skeleton_mjcf, to_mjcf
from codesign_bench.design.scene import Scene
from codesign_bench.design.space import DesignSpace
from codesign_bench.quiet import be_quiet
from codesign_bench.simulation.bodies import Bodies
from codesign_bench.simulation.refit import Refit
from codesign_bench.tasks.base import Task

_STATE = mujoco.mjtState.mjSTATE_INTEGRATION
_DIVERGED = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADCTRL) + 1)
"""Warnings of a simulation that has left the finite: positions, velocities, accelerations, controls."""
_NO_WARNINGS = bytes(4 * (_DIVERGED.stop - _DIVERGED.start))

_Skeleton = tuple[bytes | bool | float | tuple[FixedGeom, ...] | None, ...]
"""What two designs must share to use the same compiled model."""


class StepResult(NamedTuple):
    """Outcome of one environment step of one body: the reward and its parts, why the episode ends here if it does, and the task's
    metrics."""

    reward: float
    dx: float
    ended: bool
    problem: str
    parts: dict[str, float]
    metrics: dict[str, float]


class Body:
    """A design in its task's scene, ready to simulate. See tasks/state.py, SimulatedBody, for what tasks may look at."""

    def __init__(self, design: Design, task: Task) -> None:
        be_quiet()
        self.design, self.task = design, task
        self._refit: Refit | None = None
        if Refit.possible(design):
            self.model = _model_of_skeleton(design, task)
            self.data = mujoco.MjData(self.model)
            self._refit = Refit(self.model, design, task)
            self._refit.apply(self.data, design)
        else:
            self.model = mujoco.MjModel.from_xml_string(to_mjcf(design, task.space, task.scene))
            self.data = mujoco.MjData(self.model)
        hinges = np.arange(design.num_nodes - 1)  # after the root's coordinates, depth first
        self._hinges_qpos, self._hinges_qvel = task.scene.root_qpos + hinges, task.scene.root_qvel + hinges
        self.num_qpos, self.num_qvel = task.scene.root_qpos + len(hinges), task.scene.root_qvel + len(hinges)
        self.objects = tuple(_coordinates(self.model, part.name) for part in task.scene.objects)
        """(qpos, qvel): the coordinates of each object that can move."""
        self._take_node_order()
        self.qpos, self.qvel, self.ctrl = self.data.qpos, self.data.qvel, self.data.ctrl
        self._warnings = self.data.warning.number[_DIVERGED]
        self.drawn: Array = np.zeros(0)

    def become(self, design: Design) -> None:
        """Turns into another design that differs from this one in attributes and joint offsets alone."""
        assert self._refit is not None
        self.design = design
        self._refit.apply(self.data, design)
        self._take_node_order()

    def _take_node_order(self) -> None:
        """The model numbers its joints and motors depth first; a design's nodes may come in any order of growth."""
        topology = self.task.space.topology(self.design)
        self.motor_nodes = topology.order[1:]
        self.hinge_qpos, self.hinge_qvel = (hinges[topology.place[1:] - 1] for hinges in (self._hinges_qpos, self._hinges_qvel))
        self.__dict__.pop("_alone", None)

    def reset(self, rng: np.random.Generator) -> None:
        """The start of the execution stage, as the task has it."""
        mujoco.mj_resetData(self.model, self.data)
        self.drawn = np.zeros(0)
        self.task.start(self, rng)
        self.drawn = np.ravel(np.asarray(self.drawn, dtype=np.float64))
        mujoco.mj_normalizeQuat(self.model, self.data.qpos)
        if self.task.uses_data:
            self.update_data()

    def touches_ground(self) -> bool:
        mujoco.mj_fwdPosition(self.model, self.data)
        bodies = self.model.geom_bodyid[self.data.contact.geom]
        mine = (bodies > 0) & (bodies <= self.design.num_nodes)
        return bool(((bodies == 0).any(axis=1) & mine.any(axis=1)).any())

    def update_data(self) -> None:
        """Brings everything that MuJoCo derives from the state (positions, contacts, forces, sensors) up to date, and leaves the
        simulation as it was: the solver's next warm start is kept."""
        warm_start = self.data.qacc_warmstart.copy()
        mujoco.mj_forward(self.model, self.data)
        self.data.qacc_warmstart[:] = warm_start

    def diverged(self) -> bool:
        """Whether MuJoCo met a state that is not finite."""
        return bool(self._warnings.tobytes() != _NO_WARNINGS)

    # ---- a batch of one ----------------------------------------------------------------------------------------------

    @cached_property
    def _alone(self) -> Bodies:
        return Bodies(self.task, [self], [slice(0, self.design.num_nodes)])

    def step(self, control: Array) -> StepResult:
        """Advances by one environment step under a control per node ([nodes]; the root's entry is ignored)."""
        self._alone.reread(0)
        outcome = self._alone.step(control, measure=True)
        return StepResult(*outcome.each()[0], *outcome.of(0))

    def state(self) -> Array:
        """What every node observes, [nodes, state_size]."""
        self._alone.reread(0)
        out = np.zeros((self.design.num_nodes, self.task.state_size))
        self._alone.observe(out)
        return out

    def ended(self) -> bool:
        """Whether the task ends an episode in this state."""
        alone = Bodies(self.task, [self], [slice(0, self.design.num_nodes)])  # not the cached one, which would refer to its owner
        return bool(np.any(self.task.ended(alone.state)))

    # ---- stop and go on ----------------------------------------------------------------------------------------------

    def snapshot(self) -> Array:
        """MuJoCo's full integration state, warm start included, and what the task drew; `restore` continues bit-equally."""
        state = np.empty(mujoco.mj_stateSize(self.model, _STATE))
        mujoco.mj_getState(self.model, self.data, state, _STATE)
        return np.concatenate([state, self.drawn])

    def restore(self, state: Array) -> None:
        size = mujoco.mj_stateSize(self.model, _STATE)
        mujoco.mj_resetData(self.model, self.data)
        mujoco.mj_setState(self.model, self.data, state[:size], _STATE)
        self.drawn = np.array(state[size:])
        if self.task.uses_data:
            self.update_data()


def _coordinates(model: mujoco.MjModel, name: str) -> tuple[Array, Array]:
    """Places in qpos and qvel of the joints of a body."""
    body = model.body(name)
    dofs = np.arange(body.dofadr[0], body.dofadr[0] + body.dofnum[0])
    joints = range(body.jntadr[0], body.jntadr[0] + body.jntnum[0])
    sizes = {mujoco.mjtJoint.mjJNT_FREE: 7, mujoco.mjtJoint.mjJNT_BALL: 4}
    first = int(model.jnt_qposadr[joints[0]])
    count = sum(sizes.get(int(model.jnt_type[joint]), 1) for joint in joints)
    return np.arange(first, first + count), dofs


class BodyPool:
    """Builds bodies; a discarded one is turned into the next design with the same skeleton instead of compiling it."""

    def __init__(self, task: Task, spares: int = 32) -> None:
        self.task = task
        self._limit = spares
        self._spares: OrderedDict[int, tuple[_Skeleton, Body]] = OrderedDict()  # oldest first
        self._by_skeleton: dict[_Skeleton, list[int]] = {}

    def build(self, design: Design) -> Body:
        ids = self._by_skeleton.get(_skeleton(design, self.task))
        if not ids:
            return Body(design, self.task)
        body = self._take(ids[-1])
        body.become(design)
        return body

    def discard(self, body: Body) -> None:
        """Gives a body back; it must not be used again."""
        if not Refit.possible(body.design):
            return
        skeleton = _skeleton(body.design, self.task)
        self._spares[id(body)] = (skeleton, body)
        self._by_skeleton.setdefault(skeleton, []).append(id(body))
        if len(self._spares) > self._limit:
            self._take(next(iter(self._spares)))

    def _take(self, key: int) -> Body:
        skeleton, body = self._spares.pop(key)
        ids = self._by_skeleton[skeleton]
        ids.remove(key)
        if not ids:
            del self._by_skeleton[skeleton]
        return body


_compiled: OrderedDict[tuple[_Skeleton, DesignSpace, Scene], mujoco.MjModel] = OrderedDict()
_MOST_COMPILED = 64


def _model_of_skeleton(design: Design, task: Task) -> mujoco.MjModel:
    """A model to refit: a copy of one that was compiled for the same skeleton, or else a new one. Copying costs a third. The
    original may be in use; a refitted copy of it holds none of its attributes."""
    key = (_skeleton(design, task), task.space, task.scene)
    model = _compiled.get(key)
    if model is None:
        model = mujoco.MjModel.from_xml_string(skeleton_mjcf(design, task.space, task.scene))
        _compiled[key] = model
        if len(_compiled) > _MOST_COMPILED:
            _compiled.popitem(last=False)
        return model
    _compiled.move_to_end(key)
    return copy.copy(model)


def _skeleton(design: Design, task: Task) -> _Skeleton:
    """The depths of nodes that come depth first describe their tree."""
    topology = task.space.topology(design)
    columns = (column[topology.order].tobytes() for column in (topology.depth, design.axis, design.range, design.friction))
    return *columns, design.root_bone, design.root_geoms, design.start_height
