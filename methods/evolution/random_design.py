"""Designs drawn at random: the first ones of NGE and ESS, all of RGS. Any legal one: whether it can stand is for selection to find out."""

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.tasks.base import Task
from methods.evolution.mutation import attach, from_linear

Rng = np.random.Generator


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
