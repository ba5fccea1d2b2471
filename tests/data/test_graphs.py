from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader

from codesign_bench.data.graphs import DOWN, UP, to_data
from tests.learning.material import designs_of, task_of
from tests.reference.specification import TASKS


@pytest.mark.parametrize("name", TASKS)
def test_a_design_as_data(name: str) -> None:
    """Every edge by hand, and everything else against the design."""
    task = task_of(name)
    for design in designs_of(task, 5):
        data = to_data(design, task.space)
        assert data.validate()
        edges = list(zip(*data.edge_index.tolist(), data.edge_type.tolist(), strict=True))
        links = [(int(parent), child) for child, parent in enumerate(design.parents) if parent >= 0]
        assert edges == [(p, c, DOWN) for p, c in links] + [(c, p, UP) for p, c in links]
        assert data.is_undirected()
        for child, parent in enumerate(design.parents):
            assert data.depth[child] == (0 if parent < 0 else data.depth[parent] + 1)
        np.testing.assert_array_equal(data.axis, design.axis.astype(np.float32))
        np.testing.assert_array_equal(data.attributes, design.attributes.astype(np.float32))
        one_hot = torch.nn.functional.one_hot(data.depth, task.space.num_depths)
        assert torch.equal(data.x, torch.cat([one_hot, data.attributes], dim=1))


def test_designs_are_collated_by_pytorch_geometric() -> None:
    task = task_of("gap")
    designs = designs_of(task, 4)
    (batch,) = DataLoader([to_data(design, task.space) for design in designs], batch_size=4)
    assert batch.num_nodes == sum(design.num_nodes for design in designs)
    assert torch.bincount(batch.batch).tolist() == [design.num_nodes for design in designs]
    same = batch.batch[batch.edge_index]
    assert torch.equal(same[0], same[1])


def test_data_leaves_the_design_alone() -> None:
    task = task_of("swimmer")
    data = to_data(task.initial_design, task.space)
    data.x += 1
    data.edge_index += 1
    data.depth += 1
    data.attributes += 1
    again = to_data(task.initial_design, task.space)
    assert (again.depth == data.depth - 1).all()
    np.testing.assert_array_equal(again.attributes, task.initial_design.attributes.astype(np.float32))
