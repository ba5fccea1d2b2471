"""Joint indices, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codesign_bench.design.joint_index import index_integers, index_strings
from codesign_bench.design.transform import DEL_JOINT, skeleton_transform
from codesign_bench.tasks import make_task
from tests.reference.designs import random_design
from tests.reference.skeleton import index_strings as slow_strings
from tests.reference.skeleton import reachable
from tests.reference.specification import SPECIFICATIONS, TASKS

# parents, strings, integers in base 4, integers in base 5
FROZEN = [
    ([-1], ["0"], [0], [0]),
    ([-1, 0], ["0", "1"], [0, 1], [0, 1]),
    ([-1, 0, 1], ["0", "1", "11"], [0, 1, 5], [0, 1, 6]),
    # the paper's example: first child, its first child, that one's second child
    ([-1, 0, 1, 2, 2], ["0", "1", "11", "111", "211"], [0, 1, 5, 21, 37], [0, 1, 6, 31, 56]),
    ([-1, 0, 1, 1, 1], ["0", "1", "11", "21", "31"], [0, 1, 5, 9, 13], [0, 1, 6, 11, 16]),
    # node order is not depth first
    ([-1, 0, 1, 1, 3, 2, 3], ["0", "1", "11", "21", "121", "111", "221"], [0, 1, 5, 9, 25, 21, 41], [0, 1, 6, 11, 36, 31, 61]),
    ([-1, 0, 0, 0, 0], ["0", "1", "2", "3", "4"], None, [0, 1, 2, 3, 4]),
    ([-1, 0, 0, 0, 0, 4, 4, 6], ["0", "1", "2", "3", "4", "14", "24", "124"], None, [0, 1, 2, 3, 4, 9, 14, 39]),
]


@pytest.mark.parametrize(("parents", "strings", "base4", "base5"), FROZEN)
def test_frozen_cases(parents: list[int], strings: list[str], base4: list[int] | None, base5: list[int]) -> None:
    assert index_strings(parents) == strings
    assert index_integers(parents, 5) == base5
    if base4 is not None:
        assert index_integers(parents, 4) == base4


@pytest.mark.parametrize("name", TASKS)
def test_reachable_indices(name: str) -> None:
    space, specification = make_task(name).space, SPECIFICATIONS[name]
    assert space.index_base == specification.index_base
    assert len(space.index_names) == {"locomotion3d": 29}.get(name, 14)
    assert set(space.index_names) == reachable(specification)


def test_reachable_indices_of_locomotion2d_by_hand() -> None:
    below = {"11", "21", "31", "111", "211", "311", "121", "221", "321", "131", "231", "331"}
    assert set(make_task("locomotion2d").space.index_names) == {"0", "1"} | below


@pytest.mark.parametrize("name", TASKS)
def test_indices_of_random_designs(name: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(7)
    for _ in range(100):
        design = random_design(task, specification, rng)
        strings = slow_strings(design)
        topology = task.space.topology(design)
        assert list(topology.names) == strings
        assert [task.space.index_names[i] for i in topology.joint_index] == strings
        assert index_integers(design.parents.tolist(), specification.index_base) == [int(s, specification.index_base) for s in strings]
        assert len(set(strings)) == len(strings)


def test_deleting_a_first_child_renumbers_its_siblings() -> None:
    task = make_task("locomotion2d")
    rng = np.random.default_rng(8)
    design = random_design(task, SPECIFICATIONS["locomotion2d"], rng, bodies=2)
    # root, 1, then three children of 1, and one child below the third of them
    nodes = [0, 1, 1, 1, 1, 1]
    design = replace(
        design,
        parents=np.array([-1, 0, 1, 1, 1, 4]),
        attributes=design.attributes[nodes],
        axis=design.axis[nodes],
        range=design.range[nodes],
        friction=design.friction[nodes],
        joint_offset=design.joint_offset[nodes],
    )
    assert task.space.topology(design).names == ("0", "1", "11", "21", "31", "131")
    after = skeleton_transform(design, [0, 0, DEL_JOINT, 0, 0, 0], task.space)
    assert after.parents.tolist() == [-1, 0, 1, 1, 3]
    assert task.space.topology(after).names == ("0", "1", "11", "21", "121")


@pytest.mark.parametrize("name", TASKS)
def test_edges_run_both_ways_without_loops(name: str) -> None:
    task, rng = make_task(name), np.random.default_rng(9)
    for _ in range(20):
        design = random_design(task, SPECIFICATIONS[name], rng)
        pairs = [(int(a), int(b)) for a, b in task.space.topology(design).edges.T]
        expected = [(int(p), i) for i, p in enumerate(design.parents) if i]
        assert sorted(pairs) == sorted(expected + [(b, a) for a, b in expected])
