"""Drawings of designs: where robots stand, and how symmetric they are."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from matplotlib.figure import Figure

from codesign_bench.analysis.drawing import View, draw
from codesign_bench.analysis.robot import Robot
from codesign_bench.analysis.symmetry import left_right_symmetry, mirror_symmetry, sibling_symmetry
from codesign_bench.design.graph import BONE, NODE_ARRAYS, Design
from codesign_bench.design.stored import StoredDesign
from codesign_bench.design.transform import ADD_JOINT, skeleton_transform
from codesign_bench.paths import env_config
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.simulation.showing import random_design
from codesign_bench.tasks import Task, make_task
from tests.reference.specification import TASKS


def robot(design: Design, task: Task) -> Robot:
    return Robot.of(StoredDesign(design, task.space))


@pytest.mark.parametrize("env", TASKS)
def test_robots_stand_on_the_ground_and_can_be_drawn(env: str) -> None:
    task = make_task(env)
    view = View.of_config(env_config(env))
    standing = view.standing(robot(task.initial_design, task))
    low = np.minimum(standing.start[:, 2], standing.end[:, 2]) - standing.radius
    if env != "swimmer":
        assert low.min() == pytest.approx(task.scene.ground.top)
    axes = Figure().add_subplot()
    draw(axes, standing, view)
    assert len(axes.collections) >= 2


def test_an_environment_that_is_not_known_is_looked_at_obliquely() -> None:
    assert View.of_config({"name": "somebody's"}).kind == "oblique"


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


def slow_sibling_symmetry(design: Design) -> float:
    """Every way to match the children of two joints is tried."""
    share = np.sin(np.pi / 2 * design.attributes)
    features = np.column_stack([np.hypot(*share[:, :2].T) / np.sqrt(2), (share[:, 2:] + 1) / 2])
    children: list[list[int]] = [[n for n in range(design.num_nodes) if design.parents[n] == node] for node in range(design.num_nodes)]

    def size(node: int) -> int:
        return 1 + sum(map(size, children[node]))

    def match(u: int, v: int) -> tuple[float, int]:
        best = (0.0, 0)
        few, many = sorted((children[u], children[v]), key=len)
        for chosen in permutations(many, len(few)):
            found = [match(a, b) for a, b in zip(few, chosen, strict=True)]
            best = max(best, (sum(score for score, _ in found), sum(pairs for _, pairs in found)))
        return best[0] + 1 - float(np.abs(features[u] - features[v]).mean()), best[1] + 1

    scores = []
    for siblings in children:
        for u, v in combinations(siblings, 2):
            score, pairs = match(u, v)
            scores.append(score / (size(u) + size(v) - pairs))
    return float(np.mean(scores))


@pytest.mark.parametrize("seed", range(8))
def test_the_best_match_is_the_best_of_all(seed: int) -> None:
    task = make_task("locomotion3d")
    rng = np.random.default_rng(seed)
    design = random_design(task, rng, TransformSteps(4, 3))
    assert sibling_symmetry(design) == pytest.approx(slow_sibling_symmetry(design), abs=1e-12)


def test_designs_of_hundreds_of_bodies_are_not_measured() -> None:
    """Nine limbs with nine limbs each have more matches than anybody can wait for; as many bodies as are measured do not take long."""
    for limbs, known in ((13, True), (14, False)):
        parents = np.array([-1, *[0] * limbs, *[1 + i % limbs for i in range(limbs * 14)]])
        nodes = len(parents)
        arrays = {name: np.zeros((nodes, width)) for name, width in NODE_ARRAYS.items()}
        design = Design(parents, **{**arrays, "axis": np.ones((nodes, 3))})
        assert np.isfinite(sibling_symmetry(design)) == known


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
