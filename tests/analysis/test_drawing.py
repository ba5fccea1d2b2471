"""Drawings of designs: the parts that MuJoCo's kinematics gives, where they stand, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from codesign_bench.analysis.drawing import View, draw, load, robot_of
from codesign_bench.analysis.symmetry import left_right_symmetry, mirror_symmetry, sibling_symmetry
from codesign_bench.design.graph import BONE, RADIUS, START_EXTENSION, Design
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.transform import ADD_JOINT, skeleton_transform
from codesign_bench.paths import env_config
from codesign_bench.simulation.showing import random_design
from codesign_bench.tasks import TASKS, Task, make_task


def robot(design: Design, task: Task):  # type: ignore[no-untyped-def]
    found = robot_of(to_mjcf(design, task.space, task.scene))
    assert found is not None
    return found


@pytest.mark.parametrize("env", TASKS)
def test_parts_are_where_the_design_says(env: str) -> None:
    """Against a walk through the tree."""
    task = make_task(env)
    design = random_design(task, np.random.default_rng(5))
    found = robot(design, task)
    values = task.space.physical(design.attributes)
    axes = [0, 2] if task.space.plane == "xz" else [0, 1]
    base = np.array([0.0, task.scene.root_height if task.space.plane == "xz" else 0.0])
    ends, expected = {}, []
    for node in range(design.num_nodes):
        start = base if node == 0 else ends[int(design.parents[node])]
        bone = values[node, BONE] if node or design.root_bone else np.zeros(2)
        ends[node] = start + bone
        if node or design.root_bone:
            back = bone / np.linalg.norm(bone) * values[node, START_EXTENSION]
            expected.append((*(start - back), *ends[node], values[node, RADIUS]))
    parts = [
        (*np.sort(np.stack([s[axes], e[axes]]), axis=0).ravel(), r) for s, e, r in zip(found.start, found.end, found.radius, strict=True)
    ]
    wanted = [(*np.sort(np.array([e[:2], e[2:4]]), axis=0).ravel(), e[4]) for e in expected]
    if not design.root_bone:
        parts = parts[1:]  # the sphere
    np.testing.assert_allclose(sorted(parts), sorted(wanted), atol=1e-9)
    assert found.bodies == design.num_nodes
    assert len(found.hinges) == design.num_nodes - 1
    assert found.depth.max() == task.space.topology(design).depth.max()


@pytest.mark.parametrize("env", TASKS)
def test_robots_stand_on_the_ground_and_can_be_drawn(env: str) -> None:
    task = make_task(env)
    view = View.of(env_config(env, tuple(TASKS)))
    standing = view.standing(robot(task.initial_design, task))
    low = np.minimum(standing.start[:, 2], standing.end[:, 2]) - standing.radius
    if env != "swimmer":
        assert low.min() == pytest.approx(task.scene.ground.top)
    axes = Figure().add_subplot()
    draw(axes, standing, view)
    assert len(axes.collections) >= 2


def test_what_is_not_a_robot_is_none(tmp_path: Path) -> None:
    assert load(tmp_path / "missing.xml") is None
    (tmp_path / "half.xml").write_text("<mujoco><worldbody><body")
    assert load(tmp_path / "half.xml") is None
    (tmp_path / "binary.xml").write_bytes(b"\xff\x00\xfe")
    assert load(tmp_path / "binary.xml") is None
    assert robot_of("<mujoco/>") is None
    assert View.of({"name": "somebody's"}).kind == "oblique"


# ---- symmetry --------------------------------------------------------------------------------------------------------


def test_initial_ant_is_symmetric_and_loses_it_limb_by_limb() -> None:
    task = make_task("locomotion3d")
    design = task.initial_design
    assert sibling_symmetry(design) == pytest.approx(1)
    assert mirror_symmetry(robot(design, task), "xy") == pytest.approx(1)
    grown = skeleton_transform(design, [0, ADD_JOINT, 0, 0, 0], task.space)
    # of six pairs of limbs, three match one of two joints: (3 + 3 / 2) / 6
    assert sibling_symmetry(grown) == pytest.approx(0.75)
    attributes = np.array(design.attributes)
    attributes[1, 3] = -attributes[1, 3]
    share = np.abs(np.sin(np.pi / 2 * design.attributes[1, 3]))
    # one feature of four differs by its share of the range in three of six pairs
    assert sibling_symmetry(design.with_attributes(attributes)) == pytest.approx(1 - 0.5 * share / 4)


def test_designs_without_siblings_have_no_sibling_symmetry() -> None:
    assert np.isnan(sibling_symmetry(make_task("swimmer").initial_design))


def test_siblings_are_matched_whatever_their_order() -> None:
    task = make_task("locomotion3d")
    wide = skeleton_transform(task.initial_design, [0, ADD_JOINT, ADD_JOINT, ADD_JOINT, ADD_JOINT], task.space)
    twice = skeleton_transform(wide, [0, *[ADD_JOINT] * 4, 0, 0, 0, 0], task.space)
    attributes = np.array(twice.attributes)
    first, second = 5, 9  # the two children of the first limb; of every other limb the same in the other order
    attributes[first, 2], attributes[second, 2] = 0.9, -0.9
    for limb in range(1, 4):
        attributes[first + limb, 2], attributes[second + limb, 2] = -0.9, 0.9
    swapped = twice.with_attributes(attributes)
    pairs_of_children = 1 - np.sin(np.pi / 2 * 0.9) / 4
    assert sibling_symmetry(swapped) == pytest.approx((6 + 4 * pairs_of_children) / 10)


def test_mirror_symmetry_of_a_straight_swimmer_in_any_direction() -> None:
    task = make_task("swimmer")
    for angle in (0.0, 0.31, 1.234):
        attributes = np.array(task.initial_design.attributes)
        attributes[:, BONE] = np.arcsin(np.array([np.cos(angle), np.sin(angle)]) * 0.5) * 2 / np.pi
        assert mirror_symmetry(robot(task.initial_design.with_attributes(attributes), task), "xy") == pytest.approx(1)
        along = left_right_symmetry(robot(task.initial_design.with_attributes(attributes), task), "xy")
        assert along == pytest.approx(1) if angle == 0 else along < 0.7, "a chain aslant is not alike left and right of its way"
    assert np.isnan(left_right_symmetry(robot(make_task("gap").initial_design, make_task("gap")), "xz"))
    bent = np.array(task.initial_design.attributes)
    bent[1, BONE] = (0.9, 0.0)
    bent[0, BONE] = (0.0, -0.3)
    assert mirror_symmetry(robot(task.initial_design.with_attributes(bent), task), "xy") < 0.7
