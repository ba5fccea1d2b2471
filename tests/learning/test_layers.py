"""Layers of PyTorch Geometric: ours is one of them, and every other that fits learns and acts in its place."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.nn
from torch import nn

from codesign_bench.errors import ConfigError
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.graph_conv import GraphConv
from codesign_bench.learning.layers import fitting_layers, make_layer
from codesign_bench.learning.networks import GNN, ValueConfig
from codesign_bench.simulation.episode import NO_TRANSFORM
from codesign_bench.simulation.workers import Group, WorkerPool
from tests.learning.material import collect, policy_of, strong, task_of, value_of
from tests.learning.test_kernels import forest_named
from tests.learning.test_ppo import CONFIG, learn, weights
from tests.simulation.policies import WithoutLearningPackages

ROOT = Path(__file__).resolve().parents[2]
FITTING = [
    "ARMAConv", "ClusterGCNConv", "EGConv", "FeaStConv", "FiLMConv", "GATConv", "GATv2Conv", "GCNConv", "GeneralConv", "GraphConv",
    "LEConv", "MFConv", "ResGatedGraphConv", "SAGEConv", "SGConv", "SuperGATConv", "TAGConv", "TransformerConv",
]  # fmt: skip
WITH_OPTIONS: list[tuple[str, dict[str, Any] | None]] = [(name, None) for name in FITTING]
WITH_OPTIONS += [
    ("GATv2Conv", {"heads": 4}),
    ("GATConv", {"heads": 2, "concat": False}),
    ("ChebConv", {"K": 3}),
    ("GraphConv", {"aggr": "mean"}),
]


# ---- ours -------------------------------------------------------------------------------------------------------------


def test_graph_conv_starts_as_two_linear_layers_and_draws_no_more() -> None:
    torch.manual_seed(3)
    neighbour, own = nn.Linear(5, 4), nn.Linear(5, 4, bias=False)
    after = torch.rand(2)
    torch.manual_seed(3)
    conv = GraphConv(5, 4)
    assert torch.equal(torch.rand(2), after)
    for mine, theirs in ((conv.lin_rel.weight, neighbour.weight), (conv.lin_rel.bias, neighbour.bias), (conv.lin_root.weight, own.weight)):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", ["random trees", "29 nodes", "single nodes"])
def test_graph_conv_is_that_of_pytorch_geometric_on_forests_and_edges(name: str) -> None:
    """State dicts load both ways."""
    forest = forest_named(name)
    mine, theirs = GraphConv(6, 5), torch_geometric.nn.GraphConv(6, 5)
    theirs.load_state_dict(mine.state_dict())
    mine.load_state_dict(theirs.state_dict())
    mine, theirs = mine.double(), theirs.double()
    x = torch.randn(forest.num_nodes, 6, dtype=torch.float64)
    expected = theirs(x, forest.edge_index).relu()
    torch.testing.assert_close(mine(x, forest), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(mine(x, forest.edge_index), expected, rtol=0, atol=1e-12)
    assert isinstance(mine.original(), torch_geometric.nn.GraphConv)
    random_state = torch.get_rng_state()
    mine.original()
    assert torch.equal(torch.get_rng_state(), random_state)


# ---- any other --------------------------------------------------------------------------------------------------------


def test_the_layers_that_fit() -> None:
    assert fitting_layers() == FITTING


@pytest.mark.parametrize(("layer", "options"), WITH_OPTIONS)
def test_a_layer_learns_and_acts(layer: str, options: dict[str, Any] | None) -> None:
    """One pass of PPO. What acted, sent to a worker and back, is what learns: log-probabilities of a rollout agree."""
    task = task_of("locomotion2d")
    given = {"layer": layer, "layer_options": options}
    policy, value = strong(policy_of(task, **given)), strong(value_of(task, **given))
    rollout = collect(task, pickle.loads(pickle.dumps(policy.acting())))
    steps, _ = steps_of_rollout(rollout, task.space)
    prepared, actions = policy.prepare(steps), torch.from_numpy(rollout.actions)
    for stage in range(3):
        chosen = np.flatnonzero(steps.stage == stage)
        forest, rows = steps.forest(chosen)
        with torch.no_grad():
            log_prob = policy.log_prob(prepared, steps, actions, chosen, forest, torch.from_numpy(rows))
        np.testing.assert_allclose(log_prob, rollout.log_prob.ravel()[chosen], rtol=1e-3, atol=1e-3)
    layers = [*policy.execution.network.gnn.layers, *value.network.gnn.layers]
    before = [weights(module) for module in layers]
    learn(policy, value, rollout, task, replace(CONFIG, passes=1))
    for module, old in zip(layers, before, strict=True):
        assert any(not torch.equal(a, b) for a, b in zip(weights(module), old, strict=True))
    assert all(torch.isfinite(weight).all() for weight in weights(policy) + weights(value))


@pytest.mark.parametrize(("layer", "options"), WITH_OPTIONS)
def test_a_layer_sees_one_graph_at_a_time(layer: str, options: dict[str, Any] | None) -> None:
    """Roots only are the roots of all; a forest is its edges; single nodes do no harm; a size is what comes out."""
    torch.manual_seed(0)
    gnn = strong(GNN(6, (16, 8), layer, options)).double()
    for name in ("random trees", "single nodes"):
        forest = forest_named(name)
        x = torch.randn(forest.num_nodes, 6, dtype=torch.float64)
        everything = gnn(x, forest)
        assert everything.shape == (forest.num_nodes, 8)
        assert torch.isfinite(everything).all()
        torch.testing.assert_close(gnn(x, forest.edge_index), everything, rtol=0, atol=1e-10)
        torch.testing.assert_close(gnn(x, forest, depth=0), everything[: forest.num_graphs], rtol=0, atol=1e-10)
        mine = forest.graph == 0
        position = torch.cumsum(mine, 0) - 1
        alone = gnn(x[mine], position[forest.edge_index[:, mine[forest.edge_index[0]]]])
        torch.testing.assert_close(alone, everything[mine], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("layer", "options", "why"),
    [
        ("Graphconv", {}, "has no such layer"),
        ("Linear", {}, "has no such layer"),
        ("CuGraphSAGEConv", {}, "has no such layer"),
        ("GINConv", {}, r"__init__ needs \(nn\)"),
        ("ChebConv", {}, r"__init__ needs \(K, in_channels, out_channels\)"),
        ("PointTransformerConv", {}, r"forward needs \(edge_index, pos, x\)"),
        ("HypergraphConv", {}, r"forward needs \(hyperedge_index, x\)"),
        ("MixHopConv", {}, "24 numbers per node instead of 8"),
        ("MeshCNNConv", {}, "failed on a small graph"),
        ("GENConv", {}, "depends on the others in its batch"),
        ("GATConv", {"dropout": 0.01}, "with dropout"),
        ("GATConv", {"heads": 3}, "cannot be shared by 3 heads"),
        ("GCNConv", {"cached": True}, "failed on a small graph"),
        ("SAGEConv", {"colour": "red"}, "unexpected keyword argument 'colour'"),
    ],
)
def test_layers_that_do_not_fit(layer: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=rf"^method.value.layer is {layer}.*{why}.*; allowed are ARMAConv, .*TransformerConv\.$"):
        ValueConfig(gnn=(8, 8), mlp=(4,), layer=layer, layer_options=options)


def test_checking_a_layer_leaves_the_random_stream_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    ValueConfig(gnn=(8, 8), mlp=(4,), layer="GATv2Conv")
    assert torch.equal(torch.rand(3), expected)


# ---- where it must not be -----------------------------------------------------------------------------------------------


def test_a_worker_that_acts_loads_no_package_of_learning() -> None:
    task = task_of("locomotion2d")
    with WorkerPool([Group(task, 2, np.random.SeedSequence(0), NO_TRANSFORM)], workers=1) as pool:
        rollout = pool.collect(WithoutLearningPackages(policy_of(task).acting()), 3)
    assert rollout.actions.any()
    assert rollout.log_prob.tolist() == [[0, 0]] * 3


def test_layers_leave_nothing_in_the_temporary_folder(tmp_path: Path) -> None:
    """In a process of its own: PyTorch Geometric writes there once for every class and process."""
    script = "import pickle, torch; from codesign_bench.learning.layers import make_layer\n"
    script += "for name in ('GraphConv', 'GATv2Conv'): layer = pickle.loads(pickle.dumps(make_layer(name, 2, 2, {})))\n"
    script += "torch.optim.Adam(layer.parameters())"
    environment = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env={**environment, "TMPDIR": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_pickled_layer_is_the_same_layer() -> None:
    layer = make_layer("GATv2Conv", 3, 4, {"heads": 2})
    again = pickle.loads(pickle.dumps(layer))
    assert type(again) is type(layer)
    x, edges = torch.randn(3, 3), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    assert torch.equal(again(x, edges), layer(x, edges))
