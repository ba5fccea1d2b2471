"""Designs drawn at random: the first ones of NGE, ESS and DERL, all of RGS. Any legal one: whether it can stand is for selection to find
out."""

from typing import Any

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.experiment.seeds import Streams
from codesign_bench.tasks.base import Task
from methods.evolution.mutation import attach, from_linear

Rng = np.random.Generator

CANDIDATES = 10
"""Drawn for each of the designs whose skeletons shall differ, at most."""


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


def distinct_designs(task: Task, number: int, streams: Streams) -> list[Design]:
    """Random designs of all sizes, of each skeleton the first that is drawn; where the candidates have too few skeletons, the
    first of the others besides."""
    first: dict[Any, Design] = {}
    others = []
    for i in range(CANDIDATES * number):
        rng = streams.generator("first designs", i)
        design = random_design(task, int(rng.integers(task.space.max_nodes - task.initial_design.num_nodes + 1)), rng)
        if first.setdefault(skeleton(design), design) is not design:
            others.append(design)
        if len(first) == number:
            break
    return [*first.values(), *others][:number]


def skeleton(design: Design) -> Any:
    """What skeletons have in common that differ in the order of their nodes only: nested tuples, those of the children sorted."""
    below: list[list[Any]] = [[] for _ in range(design.num_nodes)]
    for node in range(design.num_nodes - 1, 0, -1):  # children come after their parents
        below[design.parents[node]].append(tuple(sorted(below[node])))
    return tuple(sorted(below[0]))
