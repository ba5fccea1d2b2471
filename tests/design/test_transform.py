"""Skeleton transforms against nodes that act one after the other."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.transform import ADD_JOINT, DEL_JOINT, NO_CHANGE, attribute_transform, skeleton_transform
from codesign_bench.tasks import make_task
from tests.reference.designs import random_design
from tests.reference.skeleton import assert_same, can_add, can_delete, index_string, linked, random_actions, reachable, transformed
from tests.reference.specification import SPECIFICATIONS, TASKS

SEQUENCES = 2500
"""Per task: 10,000 in all."""
COMPILED = 100
STEP = st.lists(st.integers(0, 2), min_size=29, max_size=29)
"""One action for each node of the largest design."""


def distinct(design, rng: np.random.Generator):
    """The design with constants and attributes that tell every node apart."""
    nodes = len(design.parents)
    attributes = rng.uniform(-1, 1, (nodes, 5))
    attributes[0, slice(None) if not design.root_bone else 2] = 0
    axis = rng.normal(size=(nodes, 3))
    limits = np.stack([rng.uniform(-90, -10, nodes), rng.uniform(10, 90, nodes)], axis=1)
    return replace(design, attributes=attributes, axis=axis, range=limits, friction=rng.uniform(0.1, 2, (nodes, 3)))


def check_limits(design, order, specification) -> None:
    """A tree inside the limits, judged on the linked joints."""
    parents = design.parents.tolist()
    assert parents[0] == -1
    assert all(0 <= parent < i for i, parent in enumerate(parents) if i)
    assert len(order) <= specification.max_bodies
    for joint in order:
        assert joint.depth <= specification.max_depth
        assert len(joint.children) <= (specification.max_children if joint.parent is not None else specification.root_children)
    assert len(order[0].children) == specification.root_children
    indices = [index_string(joint) for joint in order]
    assert len(set(indices)) == len(indices)
    assert set(indices) <= reachable(specification)


@pytest.mark.parametrize("name", TASKS)
def test_random_sequences_equal_the_sequential_rule(name: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(11)
    largest = 0
    for sequence in range(SEQUENCES):
        design = distinct(task.initial_design, rng) if sequence % 10 == 0 else task.initial_design
        order = linked(design)
        grows_only = sequence % 50 == 1
        for _ in range(6 if grows_only else int(rng.integers(1, 7))):
            actions = [ADD_JOINT] * len(order) if grows_only else random_actions(rng, len(order))
            order = transformed(order, actions, specification)
            design = skeleton_transform(design, actions, task.space)
            assert_same(design, order)
        check_limits(design, order, specification)
        assert len(set(task.space.topology(design).joint_index.tolist())) == len(order)
        task.space.check(design)
        largest = max(largest, len(order))
        if sequence < COMPILED:
            model = mujoco.MjModel.from_xml_string(to_mjcf(design, task.space, task.scene))
            assert model.nbody == len(order) + 1
    assert largest == specification.max_bodies


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(TASKS), start=st.integers(0, 999), steps=st.lists(STEP, max_size=5))
def test_any_sequence_from_any_design_equals_the_sequential_rule(name: str, start: int, steps: list[list[int]]) -> None:
    task, specification = make_task(name), SPECIFICATIONS[name]
    design = random_design(task, specification, np.random.default_rng(start), offsets=True)
    order = linked(design)
    for step in steps:
        actions = step[: len(order)]
        order = transformed(order, actions, specification)
        design = skeleton_transform(design, actions, task.space)
        assert_same(design, order)
        check_limits(design, order, specification)


@pytest.mark.parametrize("name", TASKS)
def test_legality_of_every_node(name: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(12)
    for _ in range(200):
        design = random_design(task, specification, rng)
        topology, order = task.space.topology(design), linked(design)
        assert topology.can_add.tolist() == [can_add(joint, specification) for joint in order]
        assert topology.can_delete.tolist() == [can_delete(joint) for joint in order]
        assert topology.depth.tolist() == [joint.depth for joint in order]
        assert topology.children.tolist() == [len(joint.children) for joint in order]


@pytest.mark.parametrize("name", TASKS)
def test_deleted_and_added_again_gives_the_same_indices(name: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(13)
    tried = 0
    for _ in range(300):
        design = random_design(task, specification, rng)
        order = linked(design)
        leaves = [i for i, joint in enumerate(order) if can_delete(joint)]
        if not leaves:
            continue
        leaf = int(rng.choice(leaves))
        before = {index_string(joint) for joint in order}
        siblings = order[leaf].parent.children
        # the deletion renumbers later siblings, and their subtrees with them; the new joint comes last and has no subtree
        if any(joint.children for joint in siblings[siblings.index(order[leaf]) + 1 :]):
            continue
        tried += 1
        parent = int(design.parents[leaf])
        actions = np.full(len(order), NO_CHANGE)
        actions[leaf] = DEL_JOINT
        smaller = skeleton_transform(design, actions, task.space)
        assert smaller.num_nodes == design.num_nodes - 1
        actions = np.full(smaller.num_nodes, NO_CHANGE)
        actions[parent] = ADD_JOINT
        again = skeleton_transform(smaller, actions, task.space)
        assert set(task.space.topology(again).names) == before
        assert set(task.space.topology(again).joint_index.tolist()) == set(task.space.topology(design).joint_index.tolist())
    assert tried > 100


def test_root_and_depth_one_limbs_stay() -> None:
    for name in TASKS:
        task = make_task(name)
        design = task.initial_design
        nodes = design.num_nodes
        assert skeleton_transform(design, [DEL_JOINT] * nodes, task.space) == design
        added = skeleton_transform(design, [ADD_JOINT] * nodes, task.space)
        assert added.parents.tolist() == [*design.parents.tolist(), *range(1, nodes)]
        assert added.attributes[nodes:].tolist() == design.attributes[1:].tolist()
        assert skeleton_transform(added, [NO_CHANGE] * (2 * nodes - 1), task.space) == added


def test_a_node_whose_child_goes_in_the_same_step_stays() -> None:
    """The parent acts first and still has the child at its turn."""
    task = make_task("locomotion2d")
    design = skeleton_transform(task.initial_design, [0, ADD_JOINT], task.space)
    design = skeleton_transform(design, [0, 0, ADD_JOINT], task.space)
    after = skeleton_transform(design, [0, 0, DEL_JOINT, DEL_JOINT], task.space)
    assert after.parents.tolist() == [-1, 0, 1]


def test_transforms_leave_their_argument_alone() -> None:
    task = make_task("gap")
    design = task.initial_design
    before = design.to_json()
    skeleton_transform(design, [ADD_JOINT, ADD_JOINT], task.space)
    attribute_transform(design, np.ones((2, 5)), task.space)
    assert design.to_json() == before
    with pytest.raises(ValueError, match="read-only"):
        design.attributes[0, 0] = 1.0
