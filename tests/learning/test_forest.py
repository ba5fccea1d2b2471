from __future__ import annotations

import numpy as np
import pytest
import torch

from codesign_bench.design.graph import Design
from codesign_bench.learning.forest import Forest, build_forest
from tests.learning.material import designs_of, full_design, steps_with, task_of
from tests.reference.specification import TASKS


def check(forest: Forest, order: np.ndarray, designs: list[Design], task: object) -> None:
    """Everything a forest says, against the designs one after the other (`order` refers to their concatenated nodes)."""
    topologies = [task.space.topology(design) for design in designs]  # type: ignore[attr-defined]
    node = [(g, i) for g, design in enumerate(designs) for i in range(design.num_nodes)]
    row_of = {node[n]: row for row, n in enumerate(order)}
    assert forest.num_nodes == len(node) == len(row_of)
    assert forest.num_graphs == len(designs)
    offsets, neighbours = forest.offsets.tolist(), forest.neighbours.tolist()
    joints = np.empty(len(node), dtype=int)
    for row, n in enumerate(order):
        g, i = node[n]
        parents = designs[g].parents
        expected = ([row_of[g, int(parents[i])]] if parents[i] >= 0 else []) + [row_of[g, int(c)] for c in np.flatnonzero(parents == i)]
        assert neighbours[offsets[row] : offsets[row + 1]] == expected
        assert int(forest.graph[row]) == g
        joints[row] = topologies[g].joint_index[i]
    for g in range(len(designs)):
        assert row_of[g, 0] == g, "roots come first, in the order of their graphs"
    covered = [row for _, start, end in forest.segments for row in range(start, end)]
    assert covered == list(range(len(node)))
    for joint, start, end in forest.segments:
        assert (joints[start:end] == joint).all()
    assert len({joint for joint, _, _ in forest.segments}) == len(forest.segments)
    depths = np.concatenate([t.depth for t in topologies])[order]
    assert (np.diff(depths) >= 0).all()
    assert forest.up_to_depth == tuple(int((depths <= d).sum()) for d in range(task.space.num_depths))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("count", [2, 9])
def test_forests_of_random_trees(name: str, count: int) -> None:
    task = task_of(name)
    designs = designs_of(task, count)
    steps = steps_with(task, designs, [0] * count)
    forest, rows = steps.forest(np.arange(count))
    check(forest, rows, designs, task)
    chosen = np.arange(count)[::-2].copy()
    forest, rows = steps.forest(chosen)
    begin = np.cumsum([0] + [designs[g].num_nodes for g in chosen])
    local = np.concatenate([np.arange(designs[g].num_nodes) + begin[i] for i, g in enumerate(chosen)])
    position = dict(zip(np.concatenate([np.arange(steps.first[g], steps.first[g] + steps.count[g]) for g in chosen]), local, strict=True))
    check(forest, np.array([position[row] for row in rows]), [designs[g] for g in chosen], task)


@pytest.mark.parametrize(("name", "nodes"), [("locomotion2d", 14), ("swimmer", 14), ("gap", 14), ("locomotion3d", 29)])
def test_forests_of_the_largest_designs(name: str, nodes: int) -> None:
    task = task_of(name)
    design = full_design(task)
    assert design.num_nodes == nodes
    forest, rows = steps_with(task, [design, design], [0, 2]).forest(np.arange(2))
    check(forest, rows, [design, design], task)
    assert forest.segments == tuple((j, 2 * j, 2 * j + 2) for j in range(nodes))


def test_single_nodes() -> None:
    zero = np.zeros(3, dtype=np.int64)
    forest, order = build_forest(zero, np.full(3, -1), zero, np.arange(3), np.array([0, 1, 2]))
    assert order.tolist() == [0, 1, 2]
    assert forest.segments == ((0, 0, 3),)
    assert forest.up_to_depth == (3, 3, 3)
    assert len(forest.neighbours) == 0
    x = torch.randn(3, 4, dtype=torch.float64)
    assert torch.equal(forest.neighbour_sum(x), torch.zeros(3, 4, dtype=torch.float64))
    assert torch.equal(forest.neighbour_sum(x, 2), torch.zeros(2, 4, dtype=torch.float64))


def test_nodes_may_come_in_any_order() -> None:
    """A chain root - 1 - 11 whose nodes are given leaf first."""
    task = task_of("locomotion2d")
    names = list(task.space.index_names)
    joints = np.array([names.index("11"), names.index("1"), 0])
    forest, order = build_forest(joints, np.array([1, 2, -1]), np.zeros(3, dtype=int), np.zeros(3, dtype=int), task.space.joint_depths)
    assert order.tolist() == [2, 1, 0]
    assert forest.neighbours.tolist() == [1, 0, 2, 1]
    assert forest.offsets.tolist() == [0, 1, 3, 4]


def test_neighbour_sums() -> None:
    task = task_of("locomotion3d")
    designs = designs_of(task, 5)
    forest, _ = steps_with(task, designs, [0] * 5).forest(np.arange(5))
    adjacency = torch.zeros(forest.num_nodes, forest.num_nodes, dtype=torch.float64)
    for row in range(forest.num_nodes):
        adjacency[row, forest.neighbours[forest.offsets[row] : forest.offsets[row + 1]]] = 1
    assert torch.equal(adjacency, adjacency.t())
    x = torch.randn(forest.num_nodes, 7, dtype=torch.float64)
    for rows in (None, *forest.up_to_depth):
        torch.testing.assert_close(forest.neighbour_sum(x, rows), (adjacency @ x)[:rows], rtol=0, atol=1e-13)
