"""One compiled design: model, data, precomputed index arrays, reset and step. No Python runs per node and step."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from codesign_bench.design.graph import Design, FixedGeom
from codesign_bench.design.mjcf import skeleton_mjcf, to_mjcf
from codesign_bench.design.scene import Scene
from codesign_bench.design.space import DesignSpace
from codesign_bench.quiet import be_quiet
from codesign_bench.simulation.refit import Refit
from codesign_bench.tasks.base import VELOCITY_LIMIT, StateSources, Task

Array = NDArray[Any]

RAISE_BY = 0.05
"""Metres by which a body is lifted as long as it touches the ground at the start."""

_STATE = mujoco.mjtState.mjSTATE_INTEGRATION
_DIVERGED = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADCTRL) + 1)
"""Warnings of a simulation that has left the finite: positions, velocities, accelerations, controls."""
LIMIT = 1e20
"""Square of the largest coordinate that MuJoCo itself takes for finite."""
_NO_WARNINGS = bytes(4 * (_DIVERGED.stop - _DIVERGED.start))


_Skeleton = tuple[bytes | bool | tuple[FixedGeom, ...], ...]
"""What two designs must share to use the same compiled model."""


class Step(NamedTuple):
    """Outcome of one environment step: the reward, its parts, and why the episode would end here."""

    reward: float
    forward: float
    alive: float
    control_cost: float
    dx: float
    fallen: bool
    unstable: bool


class Body:
    """A design in its task's scene, ready to simulate."""

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
        num_qpos, num_qvel, nodes = self.model.nq, self.model.nv, np.arange(design.num_nodes)
        # hinges come last among the joints, depth first
        hinge_qpos, hinge_qvel = nodes + num_qpos - len(nodes), nodes + num_qvel - len(nodes)
        sources = StateSources(num_qpos, num_qvel, joint_qpos=hinge_qpos, joint_qvel=num_qpos + hinge_qvel)
        self._sources_by_place = task.state_sources(sources)
        self._take_node_order()
        self.qpos, self.qvel, self.ctrl = self.data.qpos, self.data.qvel, self.data.ctrl
        self._warnings = self.data.warning.number[_DIVERGED]
        self.source_size = sources.extra + 1
        self._source = np.zeros(self.source_size)
        self._source_qpos = self._source[:num_qpos]
        self._source_qvel = self._source[num_qpos : num_qpos + num_qvel]
        self._alive = task.config.reward.alive
        self._frame_skip = task.scene.frame_skip

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
        self.sources = self._sources_by_place[topology.place]

    def reset(self, rng: np.random.Generator) -> None:
        """The start of the execution stage: reference pose plus uniform noise, lifted off the ground if the task says so."""
        start, model, data = self.task.config.start, self.model, self.data
        mujoco.mj_resetData(model, data)
        data.qpos[:] = model.qpos0 + rng.uniform(-start.noise, start.noise, model.nq)
        data.qvel[:] = rng.uniform(-start.noise, start.noise, model.nv)
        if self.task.scene.root == "free":
            if start.height is not None:
                data.qpos[2] = start.height
            mujoco.mj_normalizeQuat(model, data.qpos)
        elif start.height is not None:
            data.qpos[1] = start.height
        if self.task.config.raise_from_ground:
            height = 2 if self.task.scene.root == "free" else 1
            while self.touches_ground() and data.qpos[height] < self.task.max_height:
                data.qpos[height] += RAISE_BY

    def touches_ground(self) -> bool:
        mujoco.mj_fwdPosition(self.model, self.data)
        on_world = self.model.geom_bodyid[self.data.contact.geom] == 0
        return bool(on_world.any())

    def step(self, control: Array) -> Step:
        """Advances by one environment step under a control per node ([nodes]; the root's entry is ignored)."""
        qpos, qvel, task = self.qpos, self.qvel, self.task
        self.ctrl[:] = control[self.motor_nodes]
        before = float(qpos[0])
        try:
            mujoco.mj_step(self.model, self.data, self._frame_skip)
        except mujoco.FatalError:
            return UNSTABLE
        # MuJoCo tests a state before it steps, so the state after the last substep is tested here (NaN fails as well)
        if self.diverged() or not float(qpos.dot(qpos)) + float(qvel.dot(qvel)) < LIMIT:
            return UNSTABLE
        dx = float(qpos[0]) - before
        forward, cost = task.forward_reward(dx), task.control_cost(control[1:])
        reward = forward + self._alive - cost
        if not math.isfinite(reward):
            return UNSTABLE
        return Step(reward, forward, self._alive, cost, dx, bool(task.fallen(qpos)), False)

    def diverged(self) -> bool:
        """Whether MuJoCo met a state that is not finite."""
        return bool(self._warnings.tobytes() != _NO_WARNINGS)

    def state(self) -> Array:
        """Simulator state of every node, [nodes, state_size]; velocities are clipped."""
        np.copyto(self._source_qpos, self.qpos)
        np.minimum(self.qvel, VELOCITY_LIMIT, out=self._source_qvel)
        np.maximum(self._source_qvel, -VELOCITY_LIMIT, out=self._source_qvel)
        self._source[-1] = self.task.extra(self.qpos)
        return self._source[self.sources]

    def snapshot(self) -> Array:
        """MuJoCo's full integration state, warm start included; `restore` continues bit-equally."""
        state = np.empty(mujoco.mj_stateSize(self.model, _STATE))
        mujoco.mj_getState(self.model, self.data, state, _STATE)
        return state

    def restore(self, state: Array) -> None:
        mujoco.mj_resetData(self.model, self.data)
        mujoco.mj_setState(self.model, self.data, state, _STATE)


UNSTABLE = Step(0.0, 0.0, 0.0, 0.0, 0.0, False, True)


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
    return *columns, design.root_bone, design.root_geoms
