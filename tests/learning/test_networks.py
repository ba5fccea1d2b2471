"""Initial weights and sizes."""

from __future__ import annotations

import math

import pytest
import torch

from codesign_bench.learning.networks import GNN, JointMLP
from codesign_bench.simulation.episode import Stage
from tests.learning.material import VARIANTS, policy_of, task_of, value_of
from tests.reference.specification import TASKS

JOINTS = {"locomotion2d": 14, "swimmer": 14, "gap": 14, "locomotion3d": 29}
PAIRS = {Stage.SKELETON: [(64, 128), (128, 128), (128, 3)], Stage.ATTRIBUTE: [(64, 128), (128, 128), (128, 5)]}
PAIRS[Stage.EXECUTION] = [(64, 128), (128, 128), (128, 1)]


def nearly_fills(tensor: torch.Tensor, bound: float) -> bool:
    """Uniform in +-bound: never outside, nearly reaching it, and with the deviation of a uniform."""
    largest = float(tensor.abs().max())
    return 0.9 * bound < largest <= bound * (1 + 1e-6) and abs(float(tensor.std()) * math.sqrt(3) / bound - 1) < 0.1


@pytest.mark.parametrize("name", TASKS)
def test_joint_specific_layers_start_small(name: str) -> None:
    policy = policy_of(task_of(name))
    for stage, pairs in PAIRS.items():
        head = policy.of_stage(stage).network.head
        assert [tuple(w.shape) for w in head.weights] == [(JOINTS[name], a, b) for a, b in pairs]
        assert [tuple(b.shape) for b in head.biases] == [(JOINTS[name], b) for _, b in pairs]
        for (a, b), weight, bias in zip(pairs[:-1], head.weights, head.biases, strict=False):
            assert nearly_fills(weight, 1 / math.sqrt(a * b))
            assert float(bias.abs().max()) <= 1 / math.sqrt(a * b)
            assert bias.any()
        assert nearly_fills(head.weights[-1], 0.1 / math.sqrt(pairs[-1][0] * pairs[-1][1]))
        assert not head.biases[-1].any()


def test_usual_initialisation_on_request() -> None:
    head = policy_of(task_of("locomotion2d"), init="linear").execution.network.head
    for (a, _), weight, scale in zip(PAIRS[Stage.EXECUTION], head.weights, (1, 1, 0.1), strict=True):
        assert nearly_fills(weight, scale / math.sqrt(a))


def test_value_head_and_shared_heads_start_as_linear_layers_with_small_outputs() -> None:
    value = value_of(task_of("locomotion2d")).network
    shapes = [(64, 512), (512, 256), (256, 1)]
    assert [tuple(w.shape) for w in value.head.weights] == [(1, a, b) for a, b in shapes]
    for (a, _), weight, scale in zip(shapes, value.head.weights, (1, 1, 0.1), strict=True):
        assert nearly_fills(weight, scale / math.sqrt(a))
    assert not value.head.biases[-1].any()
    linear = policy_of(task_of("locomotion2d"), "no_control_jsmlp").execution.network.head
    assert [tuple(w.shape) for w in linear.weights] == [(1, 64, 1)]
    assert float(linear.weights[0].abs().max()) <= 0.1 / math.sqrt(64)
    assert not linear.biases[0].any()


def test_gnn_starts_as_linear_layers() -> None:
    gnn = GNN(20, (64, 64, 64))
    assert nearly_fills(gnn.embed.weight, 1 / math.sqrt(20))
    for layer in gnn.layers:
        for part in (layer.lin_rel, layer.lin_root):
            assert nearly_fills(part.weight, 1 / math.sqrt(64))
        assert layer.lin_root.bias is None


def test_log_standard_deviations() -> None:
    policy = policy_of(task_of("locomotion2d"))
    assert policy.skeleton.log_std is None
    torch.testing.assert_close(policy.attribute.log_std.detach(), torch.full((5,), -2.3))
    torch.testing.assert_close(policy.execution.log_std.detach(), torch.zeros(1))
    assert policy.attribute.log_std.requires_grad
    assert policy.execution.log_std.requires_grad


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_numbers_of_parameters(name: str, variant: str) -> None:
    """Counted from the sizes of the paper's table."""
    task = task_of(name)
    total = 0
    for stage, outputs, log_std in ((Stage.SKELETON, 3, 0), (Stage.ATTRIBUTE, 5, 5), (Stage.EXECUTION, 1, 1)):
        gnn, head = VARIANTS[variant][stage]
        inputs = task.space.num_depths + 5 + (task.state_size if stage is Stage.EXECUTION else 0)
        if gnn:
            total += (inputs + 1) * 64 + 3 * (64 * 64 + 64 + 64 * 64)
            inputs = 64
        mlp = (inputs + 1) * 128 + 129 * 128 + 129 * outputs
        total += {"jsmlp": JOINTS[name] * mlp, "mlp": mlp, "linear": (inputs + 1) * outputs}[head] + log_std
    assert sum(p.numel() for p in policy_of(task, variant).parameters()) == total
    inputs = task.feature_size + 3
    value = (inputs + 1) * 64 + 3 * (64 * 64 + 64 + 64 * 64) + 65 * 512 + 513 * 256 + 257
    assert sum(p.numel() for p in value_of(task).parameters()) == value


def test_a_head_without_joints_ignores_them() -> None:
    torch.manual_seed(0)
    head = JointMLP(4, (3,), 2, joints=1, init="linear")
    x = torch.randn(6, 4)
    assert torch.equal(head(x, ((0, 0, 2), (5, 2, 6))), head(x, ()))
