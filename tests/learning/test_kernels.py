"""The two hand-written kernels against their obvious twins, forward and gradient."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GraphConv

from codesign_bench.learning.forest import Forest, build_forest
from codesign_bench.learning.kernels import graph_conv, tanh_mlp
from tests.learning.material import designs_of, full_design, steps_with, task_of
from tests.reference.slow_transform2act import SlowMLP

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}


def forest_named(name: str) -> Forest:
    if name == "single nodes":
        zero = np.zeros(4, dtype=np.int64)
        return build_forest(zero, np.full(4, -1), zero, np.arange(4), np.array([0, 1, 2, 3]))[0]
    task = task_of("locomotion3d" if name == "29 nodes" else "locomotion2d")
    designs = [full_design(task)] if name == "29 nodes" else designs_of(task, 8)
    return steps_with(task, designs, [2] * len(designs)).forest(np.arange(len(designs)))[0]


def edge_index_of(forest: Forest) -> Tensor:
    """[2, edges]: from the neighbour to the node."""
    degree = forest.offsets.diff()
    return torch.stack([forest.neighbours, torch.repeat_interleave(torch.arange(forest.num_nodes), degree)])


def compare(fast: Tensor, slow: Tensor, fast_inputs: list[Tensor], slow_inputs: list[Tensor], tolerance: float) -> None:
    torch.testing.assert_close(fast, slow, rtol=tolerance, atol=tolerance)
    direction = torch.randn_like(slow)
    for a, b in zip(
        torch.autograd.grad((fast * direction).sum(), fast_inputs), torch.autograd.grad((slow * direction).sum(), slow_inputs), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(b.abs().max())))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", ["random trees", "29 nodes", "single nodes"])
def test_graph_conv_is_that_of_pytorch_geometric(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    forest = forest_named(name)
    conv = GraphConv(6, 5, aggr="add").to(dtype)
    weights = [conv.lin_rel.weight, conv.lin_rel.bias, conv.lin_root.weight]
    for rows in (None, *sorted(set(forest.up_to_depth))):
        x = torch.randn(forest.num_nodes, 6, dtype=dtype, requires_grad=True)
        slow = torch.relu(conv(x, edge_index_of(forest)))[:rows]
        fast = graph_conv(x, *weights, forest, rows)
        compare(fast, slow, [x, *weights], [x, *weights], TOLERANCE[dtype])


def test_graph_conv_of_a_prefix_needs_only_the_rows_it_sees() -> None:
    """Roots from roots and their children: x is cut after depth 1, and its gradient has as many rows."""
    torch.manual_seed(1)
    forest = forest_named("random trees")
    conv = GraphConv(4, 3, aggr="add").double()
    weights = [conv.lin_rel.weight, conv.lin_rel.bias, conv.lin_root.weight]
    roots, seen = forest.up_to_depth[:2]
    full = torch.randn(forest.num_nodes, 4, dtype=torch.float64, requires_grad=True)
    cut = full.detach()[:seen].clone().requires_grad_()
    slow, fast = torch.relu(conv(full, edge_index_of(forest)))[:roots], graph_conv(cut, *weights, forest, roots)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-12)
    direction = torch.randn_like(slow)
    of_full, of_cut = torch.autograd.grad((slow * direction).sum(), full)[0], torch.autograd.grad((fast * direction).sum(), cut)[0]
    torch.testing.assert_close(of_cut, of_full[:seen], rtol=0, atol=1e-12)
    assert not of_full[seen:].any()


def test_graph_conv_gradcheck() -> None:
    torch.manual_seed(2)
    forest = forest_named("random trees")
    arguments = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((forest.num_nodes, 3), (2, 3), (2,), (2, 3))]
    assert torch.autograd.gradcheck(lambda *a: graph_conv(*a, forest, forest.up_to_depth[1]), arguments)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("sizes", [(6, 2), (6, 4, 3), (6, 4, 5, 1), (6, 4, 5, 3, 2)])
@pytest.mark.parametrize("joints", [1, 14])
@pytest.mark.parametrize("input_gradient", [True, False])
def test_tanh_mlp_is_masks_and_tanh(sizes: tuple[int, ...], joints: int, dtype: torch.dtype, input_gradient: bool) -> None:
    """No, one, two and three hidden layers; some joints have no node."""
    torch.manual_seed(3)
    joint_index = torch.sort(torch.randint(0, joints, (20,)) // 2 * 2)[0]
    starts = [0, *(joint_index.diff().nonzero()[:, 0] + 1).tolist(), len(joint_index)]
    segments = tuple((int(joint_index[a]), a, b) for a, b in itertools.pairwise(starts))
    weights = [torch.randn(joints, a, b, dtype=dtype, requires_grad=True) for a, b in itertools.pairwise(sizes)]
    biases = [torch.randn(joints, b, dtype=dtype, requires_grad=True) for b in sizes[1:]]
    x = torch.randn(20, 6, dtype=dtype, requires_grad=input_gradient)
    slow = SlowMLP(weights, biases)
    with torch.no_grad():
        for a, b in zip(slow.parameters(), [*weights, *biases], strict=True):
            a.copy_(b)
    extra = [x] if input_gradient else []
    fast_inputs, slow_inputs = [*extra, *weights, *biases], [*extra, *slow.parameters()]
    compare(tanh_mlp(x, segments, weights, biases), slow(x, joint_index), fast_inputs, slow_inputs, 10 * TOLERANCE[dtype])


def test_tanh_mlp_saturates_without_harm() -> None:
    x = torch.full((2, 1), 1000.0, dtype=torch.float32, requires_grad=True)
    weights = [torch.tensor([[[1.0]]], requires_grad=True), torch.tensor([[[3.0]]], requires_grad=True)]
    biases = [torch.zeros(1, 1, requires_grad=True), torch.zeros(1, 1, requires_grad=True)]
    out = tanh_mlp(x * torch.tensor([[1.0], [-1.0]]), ((0, 0, 2),), weights, biases)
    assert out.flatten().tolist() == [3.0, -3.0]
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.zeros(2, 1))


def test_tanh_mlp_gradcheck() -> None:
    torch.manual_seed(4)
    shapes = ((7, 3), (2, 3, 4), (2, 4), (2, 4, 3), (2, 3), (2, 3, 1), (2, 1))
    arguments = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(lambda x, *p: tanh_mlp(x, ((0, 0, 3), (1, 3, 7)), list(p[0::2]), list(p[1::2])), arguments)
