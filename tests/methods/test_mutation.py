"""Mutations: what they keep exactly, and their statistics with bands of at least four standard deviations."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from codesign_bench.design.graph import Design
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.errors import ConfigError
from codesign_bench.tasks import Task, make_task
from methods.evolution import mutation
from methods.evolution.mutation import MutationConfig, mutate
from methods.evolution.random_design import random_design
from tests.reference.specification import TASKS

CONFIG = MutationConfig(add=0.2, delete=0.2, perturb=0.6, add_graph=0.0, node_rate=0.1, new_attributes="uniform", noise="gaussian")
GRAPHS = replace(CONFIG, add_graph=0.5)
REDRAW = replace(CONFIG, add=0.25, delete=0.25, redraw=0.25, perturb=0.25)
TASK = {name: make_task(name) for name in TASKS}
TASK["wide"] = make_task("locomotion3d", design={"max_children": 3, "max_depth": 4})


def design_with(task: Task, parents: list[int], seed: int = 0) -> Design:
    """A design with this skeleton and random attributes, grown node by node."""
    space, design = task.space, task.initial_design
    for parent in parents[design.num_nodes :]:
        design = mutation.attach(design, space, np.array([parent]), np.random.default_rng(seed))
    assert design.parents.tolist() == parents
    attributes = np.random.default_rng(seed).uniform(-0.9, 0.9, design.attributes.shape)
    return design.with_attributes(np.where(space.tunable(design), attributes, 0.0))


def band(successes: int, trials: int, probability: float) -> bool:
    deviation = math.sqrt(max(trials * probability * (1 - probability), 0.0))
    return abs(successes - trials * probability) < 4 * deviation + 1e-6


def subtree(design: Design, node: int) -> Any:
    """A subtree as nested tuples of attributes and children: its shape and all its numbers."""
    children = [subtree(design, int(child)) for child in np.flatnonzero(design.parents == node)]
    return tuple(design.attributes[node]), tuple(design.axis[node]), tuple(design.range[node]), tuple(children)


# ---- exact --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [*TASKS, "wide"])
@given(seed=st.integers(0, 10_000), config=st.sampled_from([CONFIG, GRAPHS, REDRAW]))
@settings(max_examples=25, deadline=None)
def test_every_descendant_is_legal_and_parents_stay_as_they_were(env: str, seed: int, config: MutationConfig) -> None:
    task, rng = TASK[env], np.random.default_rng(seed)
    design = random_design(task, int(rng.integers(0, task.space.max_nodes)), rng)
    for _ in range(6):
        before = design.to_json()
        child, operator = mutate(design, task.space, config, rng)
        assert design.to_json() == before
        task.space.check(child)
        assert child.num_nodes <= task.space.max_nodes
        assert np.count_nonzero(child.parents == 0) == task.space.root_children
        check_one_operator(design, child, operator)
        design = child
    mujoco.MjModel.from_xml_string(to_mjcf(design, task.space, task.scene))


def check_one_operator(parent: Design, child: Design, operator: str) -> None:
    """What an operator may not touch is equal, bit for bit."""
    rows = ("attributes", "axis", "range", "friction", "joint_offset")
    if operator == "perturb":
        assert child.parents.tolist() == parent.parents.tolist()
        assert all(np.array_equal(getattr(child, name), getattr(parent, name)) for name in rows[1:])
        assert not np.array_equal(child.attributes, parent.attributes)
    elif operator == "redraw":
        changed = child.attributes != parent.attributes
        assert child == parent.derived(attributes=child.attributes)
        assert np.count_nonzero(changed.any(axis=0)) == 1
    elif operator == "delete graph":
        assert any(child == mutation.without(parent, node) for node in range(1, parent.num_nodes))
        kept = {subtree(child, node)[:3] for node in range(child.num_nodes)}
        assert kept <= {subtree(parent, node)[:3] for node in range(parent.num_nodes)}
        assert 0 < child.num_nodes < parent.num_nodes
    else:
        old = slice(0, parent.num_nodes)
        assert child.num_nodes > parent.num_nodes
        assert child.parents[old].tolist() == parent.parents.tolist()
        assert all(np.array_equal(getattr(child, name)[old], getattr(parent, name)) for name in rows)


def test_a_whole_subtree_goes() -> None:
    task = TASK["swimmer"]
    design = design_with(task, [-1, 0, 1, 1, 2, 2, 3])
    smaller = mutation.without(design, 2)
    assert smaller.parents.tolist() == [-1, 0, 1, 2]
    assert np.array_equal(smaller.attributes, design.attributes[[0, 1, 3, 6]])


@pytest.mark.parametrize("env", TASKS)
def test_delete_after_add_restores_the_design(env: str) -> None:
    task, rng = TASK[env], np.random.default_rng(0)
    for _ in range(20):
        design = random_design(task, int(rng.integers(0, 6)), rng)
        legal = np.flatnonzero(task.space.topology(design).can_add)
        if len(legal):
            grown = mutation.attach(design, task.space, rng.choice(legal, 1), rng)
            assert mutation.without(grown, grown.num_nodes - 1).to_json() == design.to_json()


def test_a_grafted_copy_equals_its_source() -> None:
    task, rng = TASK["wide"], np.random.default_rng(1)
    found = 0
    for _ in range(200):
        design = random_design(task, int(rng.integers(0, 12)), rng)
        child = mutation.add_graph(design, task.space, rng)
        if child is None:
            continue
        found += 1
        task.space.check(child)
        new = design.num_nodes
        copy = subtree(child, new)
        assert any(copy == subtree(design, node) for node in range(1, new))
        assert child.num_nodes - new == count(copy)
    assert found > 150


def count(nested: Any) -> int:
    return 1 + sum(count(child) for child in nested[3])


def test_the_root_is_never_grafted() -> None:
    """In a space so deep that the root's copy would fit under a limb."""
    task = make_task("swimmer", design={"max_depth": 4})
    design = task.initial_design
    for seed in range(50):
        child = mutation.add_graph(design, task.space, np.random.default_rng(seed))
        assert child is not None
        assert child.num_nodes == design.num_nodes + 1


def test_an_operator_without_anything_legal_becomes_perturb() -> None:
    task = TASK["swimmer"]
    largest = random_design(task, 100, np.random.default_rng(0))
    assert largest.num_nodes == task.space.max_nodes
    for config in (replace(CONFIG, add=1.0, delete=0.0, perturb=0.0), replace(GRAPHS, add=1.0, delete=0.0, perturb=0.0, add_graph=1.0)):
        assert mutate(largest, task.space, config, np.random.default_rng(0)).operator == "perturb"
    config = replace(CONFIG, add=0.0, delete=1.0, perturb=0.0)
    assert mutate(task.initial_design, task.space, config, np.random.default_rng(0)).operator == "perturb"


def test_new_nodes_can_copy_their_parents() -> None:
    task, config = TASK["gap"], replace(CONFIG, new_attributes="parent")
    design = design_with(task, [-1, 0, 1])
    child = mutation.add_nodes(design, task.space, config, np.random.default_rng(0))
    assert child is not None
    for node in range(design.num_nodes, child.num_nodes):
        assert np.array_equal(child.attributes[node], child.attributes[child.parents[node]])


# ---- statistics ---------------------------------------------------------------------------------------------------------


def test_operator_frequencies() -> None:
    task, rng, trials = TASK["swimmer"], np.random.default_rng(2), 10_000
    design = design_with(task, [-1, 0, 1, 2])
    found = Counter(mutate(design, task.space, GRAPHS, rng).operator for _ in range(trials))
    for operator, probability in {"add node": 0.1, "add graph": 0.1, "delete graph": 0.2, "perturb": 0.6}.items():
        assert band(found[operator], trials, probability), (operator, found)  # type: ignore[index]


def test_operators_of_equal_frequency() -> None:
    task, rng, trials = TASK["swimmer"], np.random.default_rng(10), 4000
    design = design_with(task, [-1, 0, 1, 2])
    found = Counter(mutate(design, task.space, REDRAW, rng).operator for _ in range(trials))
    assert set(found) == {"add node", "delete graph", "redraw", "perturb"}
    assert all(band(count, trials, 0.25) for count in found.values()), found


@pytest.mark.parametrize("env", ["swimmer", "locomotion3d"])
def test_what_is_redrawn(env: str) -> None:
    """One attribute, uniformly, of one node, uniformly, or of all that have it; anew, whatever it was."""
    task, rng, trials = TASK[env], np.random.default_rng(11), 6000
    design = random_design(task, 3, rng)
    tunable = task.space.tunable(design)
    kinds: Counter[tuple[int, int]] = Counter()
    values = []
    for _ in range(trials):
        child = mutation.redraw(design, task.space, rng)
        changed = child.attributes != design.attributes
        (attribute,) = np.flatnonzero(changed.any(axis=0))
        nodes = np.flatnonzero(changed[:, attribute])
        everyone = np.flatnonzero(tunable[:, attribute])
        assert len(nodes) == 1 or np.array_equal(nodes, everyone)
        kinds[int(attribute), int(nodes[0]) if len(nodes) == 1 else -1] += 1
        values += mutation.to_linear(child.attributes[nodes, attribute]).tolist()
        assert len(np.unique(child.attributes[nodes, attribute])) == len(nodes), "each its own value"
    attributes = np.flatnonzero(tunable.any(axis=0))
    for attribute in attributes:
        having = np.flatnonzero(tunable[:, attribute])
        assert band(kinds[int(attribute), -1], trials, 0.5 / len(attributes))
        for node in having:
            assert band(kinds[int(attribute), int(node)], trials, 0.5 / len(attributes) / len(having))
    assert sum(kinds.values()) == trials
    assert stats.kstest(values, "uniform", (-1, 2)).pvalue > 6e-5


@pytest.mark.parametrize("nodes", [1, 2, 5, 9])
def test_a_sweep_picks_at_least_one(nodes: int) -> None:
    rng, trials, q = np.random.default_rng(nodes), 20_000, 0.1
    chosen = np.array([mutation.sweep(nodes, q, rng) for _ in range(trials)])
    assert chosen.any(axis=1).all()
    each = q / (1 - (1 - q) ** nodes)
    for node in range(nodes):
        assert band(int(chosen[:, node].sum()), trials, each)
    second = (q * nodes * (1 - q) + (q * nodes) ** 2) / (1 - (1 - q) ** nodes)
    deviation = math.sqrt(max(second - (nodes * each) ** 2, 0) / trials)
    assert abs(chosen.sum(axis=1).mean() - nodes * each) <= 4 * deviation + 1e-9


@pytest.mark.parametrize("env", ["swimmer", "locomotion3d"])
def test_which_nodes_are_perturbed(env: str) -> None:
    """All attributes of the nodes that are picked, the root among them where it has any."""
    task, rng, trials = TASK[env], np.random.default_rng(3), 4000
    design = random_design(task, 3, rng)
    tunable = task.space.tunable(design)
    eligible = np.flatnonzero(tunable.any(axis=1))
    assert (0 in eligible) == (env != "locomotion3d")
    counts = np.zeros(design.num_nodes)
    for _ in range(trials):
        changed = mutation.perturb(design, task.space, CONFIG, rng).attributes != design.attributes
        nodes = np.flatnonzero(changed.any(axis=1))
        assert np.array_equal(changed[nodes], tunable[nodes])
        counts[nodes] += 1
    for node in eligible:
        assert band(int(counts[node]), trials, 0.1 / (1 - 0.9 ** len(eligible)))
    assert set(np.flatnonzero(counts)) == set(eligible)


def test_which_nodes_are_added_to() -> None:
    task, rng, trials = TASK["swimmer"], np.random.default_rng(4), 4000
    design = design_with(task, [-1, 0, 1, 1, 2])  # legal: 1, 2, 3
    legal = np.flatnonzero(task.space.topology(design).can_add)
    assert legal.tolist() == [1, 2, 3]
    counts = Counter(
        int(parent)
        for _ in range(trials)
        for parent in mutation.add_nodes(design, task.space, CONFIG, rng).parents[design.num_nodes :]  # type: ignore[union-attr]
    )
    for parent in legal:
        assert band(counts[parent], trials, 0.1 / (1 - 0.9**3))
    assert set(counts) == set(legal)


def changes_of(config: MutationConfig, trials: int) -> np.ndarray[Any, Any]:
    """Changes of s in chosen joints of a design whose attributes are all 0."""
    task, rng = TASK["swimmer"], np.random.default_rng(5)
    design = task.initial_design.with_attributes(np.zeros(task.initial_design.attributes.shape))
    config = replace(config, node_rate=1.0)
    rows = [mutation.perturb(design, task.space, config, rng).attributes[1] for _ in range(trials)]
    return np.sin(np.pi / 2 * np.array(rows))


def test_noise_is_gaussian_in_the_linear_space() -> None:
    changes = changes_of(CONFIG, 2000)
    inside = changes[np.abs(changes) < 1]  # clipping is six standard deviations away
    assert len(inside) == changes.size
    assert abs(inside.mean()) < 4 / 6 / math.sqrt(inside.size)
    assert abs(inside.std() * 6 - 1) < 4 / math.sqrt(2 * inside.size)
    assert stats.kstest(inside.ravel(), "norm", (0, 1 / 6)).pvalue > 6e-5
    assert not np.any(changes == 0)


def test_noise_can_be_quantised() -> None:
    trials = 4000
    changes = changes_of(replace(CONFIG, noise="quantised"), trials)
    steps = np.round(changes * 3)
    assert np.allclose(changes, steps / 3, atol=1e-12)
    for step, probability in {0: 0.38292, 1: 0.24173, 2: 0.0605975, 3: 0.0062097}.items():
        for sign in (-1, 1):
            assert band(int(np.count_nonzero(steps == sign * step)), changes.size, probability)
    still = int(np.count_nonzero((steps == 0).all(axis=1)))
    assert band(still, trials, 0.38292**5)


def test_perturbed_attributes_stay_inside() -> None:
    task, rng = TASK["gap"], np.random.default_rng(6)
    design = design_with(task, [-1, 0, 1])
    for _ in range(300):
        design = mutation.perturb(design, task.space, CONFIG, rng)
        task.space.check(design)
    assert np.abs(design.attributes).max() <= 1


def test_new_attributes_are_uniform_in_the_linear_space() -> None:
    task, rng = TASK["gap"], np.random.default_rng(7)
    design = design_with(task, [-1, 0])
    new = [mutation.attach(design, task.space, np.array([1]), rng).attributes[-1] for _ in range(1500)]
    s = np.sin(np.pi / 2 * np.array(new))
    for column in range(5):
        assert stats.kstest(s[:, column], "uniform", (-1, 2)).pvalue > 6e-5
    assert np.abs(np.corrcoef(s.T) - np.eye(5)).max() < 4.5 / math.sqrt(len(s))


def test_which_subtree_is_deleted() -> None:
    """A uniform node with deletable children, then a uniform one of them. The limbs of the root stay."""
    task, rng, trials = TASK["swimmer"], np.random.default_rng(8), 6000
    design = design_with(task, [-1, 0, 1, 1, 2, 2, 3])
    expected = {2: 1 / 3 / 2, 3: 1 / 3 / 2, 4: 1 / 3 / 2, 5: 1 / 3 / 2, 6: 1 / 3}
    results = {mutation.without(design, node).to_json(): node for node in expected}
    assert len(results) == len(expected)
    found = Counter(results[mutation.delete_graph(design, task.space, rng).to_json()] for _ in range(trials))  # type: ignore[union-attr]
    assert sum(found.values()) == trials
    for node, probability in expected.items():
        assert band(found[node], trials, probability)


def test_grafts_are_uniform_over_sources_and_sites() -> None:
    task, rng, trials = TASK["swimmer"], np.random.default_rng(9), 4000
    design = design_with(task, [-1, 0, 1, 1])  # depths 0, 1, 2, 2; sites of height 0: 1, 2, 3; node 1 has height 1: site 1
    pairs = {mutation.graft(design, s, t).to_json(): (s, t) for s, t in itertools.product((2, 3), (1, 2, 3))}
    pairs[mutation.graft(design, 1, 1).to_json()] = (1, 1)
    found = Counter(pairs[mutation.add_graph(design, task.space, rng).to_json()] for _ in range(trials))  # type: ignore[union-attr]
    assert band(found[1, 1], trials, 1 / 3)
    for s, t in itertools.product((2, 3), (1, 2, 3)):
        assert band(found[s, t], trials, 1 / 9)


@pytest.mark.parametrize(
    "change",
    [{"add": 0.3}, {"perturb": -0.1}, {"node_rate": 0.0}, {"add_graph": 1.5}, {"delete": 1.1}, {"redraw": 0.1}],
    ids=lambda c: next(iter(c)),
)
def test_bad_probabilities_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="allowed"):
        replace(CONFIG, **change)  # type: ignore[arg-type]
