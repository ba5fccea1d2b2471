"""Designs drawn at random: the first ones of NGE and ESS, all of RGS."""

import mujoco
import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.simulation.body import Body
from codesign_bench.tasks.base import Task
from methods.evolution.mutation import attach, from_linear

Rng = np.random.Generator

TRIES = 50
"""How often a design that cannot be simulated is drawn anew."""


def random_design(task: Task, additions: int, rng: Rng) -> Design:
    """The initial skeleton with up to `additions` more nodes, one after the other under a uniform legal parent; all
    attributes uniform."""
    design = task.initial_design
    for _ in range(additions):
        legal = np.flatnonzero(task.space.topology(design).can_add)
        if not len(legal):
            break
        design = attach(design, task.space, legal[[rng.integers(len(legal))]], None)
    uniform = from_linear(rng.uniform(-1, 1, design.attributes.shape))
    return design.derived(attributes=np.where(task.space.tunable(design), uniform, 0.0))


def viable(design: Design, task: Task) -> bool:
    """Whether MuJoCo compiles the design and its start is a finite pose from which an episode does not end at once. Nothing
    is stepped."""
    try:
        body = Body(design, task)
        body.reset(np.random.default_rng(0))
        mujoco.mj_forward(body.model, body.data)
    except (ValueError, mujoco.FatalError):
        return False
    finite = bool(np.isfinite(body.data.qpos).all() and np.isfinite(body.data.qacc).all())
    return finite and not body.ended()


def viable_design(task: Task, least: int, most: int, rng: Rng) -> Design:
    """A random design that can be simulated, with uniformly `least` to `most` nodes more than the initial one; after many
    tries the initial one. The size is not drawn anew."""
    additions = int(rng.integers(least, most + 1))
    draws = (random_design(task, additions, rng) for _ in range(TRIES))
    return next((design for design in draws if viable(design, task)), task.initial_design)
