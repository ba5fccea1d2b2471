"""Random designs: sizes, skeletons and attributes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from codesign_bench.design.graph import Design
from codesign_bench.design.space import DesignSpace, Topology
from codesign_bench.tasks import make_task
from methods.evolution.random_design import random_design
from tests.methods.population import begin, make, small
from tests.reference.specification import TASKS


@pytest.mark.parametrize("env", TASKS)
def test_designs_are_legal(env: str) -> None:
    task, rng = make_task(env), np.random.default_rng(0)
    for additions in (0, 1, 5, task.space.max_nodes):
        design = random_design(task, additions, rng)
        task.space.check(design)
        assert design.num_nodes == min(task.initial_design.num_nodes + additions, task.space.max_nodes)


def test_a_new_node_has_a_uniform_legal_parent() -> None:
    """The law of each step: given the skeleton so far, every legal parent is as likely."""
    task, rng = make_task("swimmer"), np.random.default_rng(1)
    taken: dict[tuple[int, ...], Counter[int]] = {}
    for _ in range(3000):
        parents = random_design(task, 4, rng).parents.tolist()
        for nodes in range(2, len(parents)):
            taken.setdefault(tuple(parents[:nodes]), Counter())[parents[nodes]] += 1
    assert len(taken) >= 9
    for skeleton, counts in taken.items():
        legal = np.flatnonzero(task.space.topology_of(skeleton).can_add)
        assert set(counts) <= set(legal.tolist())
        total = sum(counts.values())
        if len(legal) > 1 and total > 20 * len(legal):
            assert stats.chisquare([counts[int(p)] for p in legal]).pvalue > 6e-5 / len(taken)


class Unlimited(DesignSpace):
    """Any node below the root may have another child, at any depth."""

    def topology(self, design: Design) -> Topology:
        found = super().topology(design)
        return replace(found, can_add=found.depth >= 1)


def test_without_limits_half_of_the_nodes_are_leaves() -> None:
    """A random recursive tree of n nodes has n / 2 leaves on average, with variance n / 12; here it is the root's one limb."""
    task, rng, nodes, trials = make_task("swimmer"), np.random.default_rng(2), 10, 1500
    free: Any = SimpleNamespace(initial_design=task.initial_design, space=Unlimited(**task.space.__getstate__()))
    leaves = [1 + nodes - len(set(random_design(free, nodes - 1, rng).parents.tolist()) - {-1}) for _ in range(trials)]
    assert abs(np.mean(leaves) - nodes / 2) < 4 * math.sqrt(nodes / 12 / trials)


def test_attributes_are_uniform_and_independent() -> None:
    task, rng = make_task("gap"), np.random.default_rng(3)
    designs = [random_design(task, 2, rng) for _ in range(1500)]
    s = np.sin(np.pi / 2 * np.array([design.attributes for design in designs]))
    tunable = task.space.tunable(designs[0])
    assert np.all(s[:, ~tunable] == 0)
    columns = s[:, tunable]
    for column in columns.T:
        assert stats.kstest(column, "uniform", (-1, 2)).pvalue > 6e-5 / columns.shape[1]
    assert np.abs(np.corrcoef(columns.T) - np.eye(columns.shape[1])).max() < 5 / math.sqrt(len(s))
    chain = np.array([design.parents[-1] == 2 for design in designs])
    assert abs(columns[chain].mean() - columns[~chain].mean()) < 4 * 0.577 / math.sqrt(columns.shape[1] * min(chain.sum(), (~chain).sum()))


def founders(method: Any, number: int) -> list[Design]:
    """The designs of a first generation of that many."""
    method.population.size, method.population.newborn = number, lambda design, _: SimpleNamespace(design=design, slots=[])
    return [species.design for species in begin(method)]


def test_sizes_of_random_graph_search_are_uniform() -> None:
    method = make(small("rgs"))
    task = method.context.task
    first, most = task.initial_design.num_nodes, task.space.max_nodes
    sizes = Counter(design.num_nodes for design in founders(method, 650))
    assert set(sizes) <= set(range(first, most + 1))
    assert stats.chisquare([sizes[n] for n in range(first, most + 1)]).pvalue > 6e-5


@pytest.mark.parametrize("method", ["nge", "ess"])
def test_first_designs_have_one_to_four_nodes_more(method: str) -> None:
    found = make(small(method))
    first = found.context.task.initial_design.num_nodes
    sizes = Counter(design.num_nodes - first for design in founders(found, 400))
    assert set(sizes) == {1, 2, 3, 4}
    assert stats.chisquare([sizes[n] for n in (1, 2, 3, 4)]).pvalue > 6e-5


def test_drawing_does_not_depend_on_returns() -> None:
    """Two runs of random graph search that learn differently draw the same designs."""
    one = make(small("rgs", "method.redraw_every=1"))
    other = make(small("rgs", "method.redraw_every=1", "method.ppo.policy_lr=0.01", "env.reward.alive=3"))
    for method in (one, other):
        method.iterate()
        method.iterate()
    assert [s.design for s in one.population.species] == [s.design for s in other.population.species]
    assert [s.fitness for s in one.population.species] != [s.fitness for s in other.population.species]
    assert all(a.number + 1 == b.number for a, b in pairwise(one.population.species))
