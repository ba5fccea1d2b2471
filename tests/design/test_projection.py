"""The sine map between normalised and physical attributes, worked out by hand."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.transform import attribute_transform
from codesign_bench.tasks import make_task
from tests.reference.designs import random_design
from tests.reference.kinematics import physical
from tests.reference.specification import SPECIFICATIONS, TASKS

HALF = math.sqrt(0.5)

# task, attribute, p, physical value
FROZEN = [
    ("locomotion2d", 0, -1.0, -0.5),
    ("locomotion2d", 0, 0.5, 0.5 * HALF),
    ("locomotion2d", 1, 1.0, 0.5),
    ("locomotion2d", 1, -1 / 3, -0.25),
    ("locomotion2d", 2, 0.0, 210.0),
    ("locomotion2d", 2, 1.0, 400.0),
    ("locomotion2d", 3, 1 / 3, 0.0675),
    ("locomotion2d", 4, 0.0, 0.25),
    ("gap", 4, -1.0, 0.0),
    ("swimmer", 0, 1 / 3, 0.75),
    ("swimmer", 2, -1 / 3, 90.0),
    ("swimmer", 3, 1.0, 0.20),
    ("locomotion3d", 3, 0.0, 0.065),
    ("locomotion3d", 4, 1 / 3, 0.15),
]

# p outside [-1, 1] and the p inside that means the same
OUTSIDE = [(1.5, 0.5), (2.0, 0.0), (3.0, -1.0), (-1.25, -0.75), (-2.5, 0.5), (4.5, 0.5), (1.0, 1.0), (-0.3, -0.3)]


@pytest.mark.parametrize(("name", "attribute", "p", "value"), FROZEN)
def test_frozen_cases_there_and_back(name: str, attribute: int, p: float, value: float) -> None:
    space = make_task(name).space
    row = np.full(5, 0.1)
    row[attribute] = p
    assert space.physical(row)[attribute] == pytest.approx(value, rel=1e-12, abs=1e-15)
    back = np.asarray(space.physical(np.full(5, 0.1)))
    back[attribute] = value
    assert space.normalised(back)[attribute] == pytest.approx(p, abs=1e-7)
    assert space.normalised(back)[(attribute + 1) % 5] == pytest.approx(0.1, abs=1e-12)


@pytest.mark.parametrize(("outside", "inside"), OUTSIDE)
def test_outside_values_fold_back(outside: float, inside: float) -> None:
    task = make_task("locomotion2d")
    zeros = task.initial_design.with_attributes(np.zeros((2, 5)))
    after = attribute_transform(zeros, np.full((2, 5), outside), task.space)
    expected = np.full((2, 5), inside)
    expected[0, 2] = 0
    np.testing.assert_allclose(after.attributes, expected, atol=1e-7)
    row = np.full(5, outside)
    np.testing.assert_allclose(task.space.physical(row), physical([inside] * 5, SPECIFICATIONS["locomotion2d"]), atol=1e-6)


def test_values_inside_are_kept_exactly() -> None:
    task = make_task("swimmer")
    p = np.random.default_rng(0).uniform(-1, 1, (2, 5))
    p[0, 2] = 0
    design = task.initial_design.with_attributes(p)
    np.testing.assert_array_equal(attribute_transform(design, np.zeros((2, 5)), task.space).attributes, p)


@pytest.mark.parametrize("name", TASKS)
def test_attribute_transform_of_random_designs(name: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(14)
    for _ in range(50):
        design = random_design(task, specification, rng)
        actions = rng.normal(0, 2, design.attributes.shape)
        after = attribute_transform(design, actions, task.space)
        assert np.abs(after.attributes).max() <= 1
        for node in range(1, design.num_nodes):
            wanted = physical((design.attributes[node] + actions[node]).tolist(), specification)
            assert physical(after.attributes[node].tolist(), specification) == pytest.approx(wanted, abs=1e-6)
        for constant in ("parents", "axis", "range", "friction", "joint_offset"):
            np.testing.assert_array_equal(getattr(after, constant), getattr(design, constant))
        task.space.check(after)


@pytest.mark.parametrize("name", TASKS)
def test_the_root_keeps_what_it_does_not_have(name: str) -> None:
    task = make_task(name)
    after = attribute_transform(task.initial_design, np.full((task.initial_design.num_nodes, 5), 0.3), task.space)
    assert after.attributes[0, 2] == 0
    if name == "locomotion3d":
        assert after.attributes[0].tolist() == [0] * 5
    else:
        changed = after.attributes[0] != task.initial_design.attributes[0]
        assert changed.tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("name", TASKS)
def test_a_zero_offset_is_nudged(name: str) -> None:
    space = make_task(name).space
    values = space.physical(np.array([[0.0, 0, 0, 0, 0], [0.5, 0, 0, 0, 0], [0, 0.5, 0, 0, 0]]))
    assert values[0, :2].tolist() == [1e-6, 0]
    assert values[1, 1] == 0
    assert values[2, 0] == 0


@pytest.mark.parametrize("extension", [-1.0, 0.0])
@pytest.mark.parametrize("name", TASKS)
def test_a_zero_offset_compiles(name: str, extension: float) -> None:
    task = make_task(name)
    attributes = np.zeros((task.initial_design.num_nodes, 5))
    attributes[1:, 4] = extension
    if task.initial_design.root_bone:
        attributes[0, 4] = extension
    design = task.initial_design.with_attributes(attributes)
    task.space.check(design)
    model = mujoco.MjModel.from_xml_string(to_mjcf(design, task.space, task.scene))
    assert model.nbody == design.num_nodes + 1
