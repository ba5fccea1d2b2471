"""What the tests of learning share: designs of all sizes, networks with weights that matter, rollouts, batches of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from codesign_bench.design.graph import Design
from codesign_bench.design.transform import ADD_JOINT, skeleton_transform
from codesign_bench.learning.actor_critic import GraphCritic
from codesign_bench.learning.batch import NUM_STAGES, Steps, steps_of
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.networks import ValueConfig
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.simulation.episode import Stage, TransformSteps
from codesign_bench.simulation.graphs import DesignTable, GraphBatch, Rollout
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.simulation.showing import random_design
from codesign_bench.tasks import make_task
from codesign_bench.tasks.base import Task
from methods.transform2act.method import AttributeConfig, ExecutionConfig, SkeletonConfig
from methods.transform2act.policy import Transform2ActPolicy

GNN, MLP = (64, 64, 64), (128, 128)
VARIANTS: dict[str, dict[Stage, tuple[Any, str]]] = {
    "full": dict.fromkeys(Stage, (GNN, "jsmlp")),
    "no_gnn": dict.fromkeys(Stage, (None, "jsmlp")),
    "no_control_jsmlp": {Stage.SKELETON: (GNN, "jsmlp"), Stage.ATTRIBUTE: (GNN, "jsmlp"), Stage.EXECUTION: (GNN, "linear")},
    "no_jsmlp": dict.fromkeys(Stage, (GNN, "linear")),
    "shared_mlp": dict.fromkeys(Stage, (GNN, "mlp")),
}


def policy_of(
    task: Task, variant: str = "full", seed: int = 0, mlp: tuple[int, ...] = MLP, init: Any = "published", **layer: Any
) -> Transform2ActPolicy:
    """`layer`: layer and layer_options of all three sub-policies."""
    common = {stage: {"gnn": gnn, "mlp": mlp, "head": head, **layer} for stage, (gnn, head) in VARIANTS[variant].items()}
    skeleton = SkeletonConfig(steps=5, **common[Stage.SKELETON])
    attribute = AttributeConfig(steps=1, log_std=-2.3, **common[Stage.ATTRIBUTE])
    execution = ExecutionConfig(log_std=0.0, **common[Stage.EXECUTION])
    torch.manual_seed(seed)
    return Transform2ActPolicy(task, skeleton, attribute, execution, init)


def value_of(task: Task, seed: int = 1, **layer: Any) -> GraphCritic:
    torch.manual_seed(seed)
    config = ValueConfig(gnn=GNN, mlp=(512, 256), **layer)
    return GraphCritic(Normaliser(task.features.size + NUM_STAGES), config, sees_stage=True)


def strong(module: Any, seed: int = 5) -> Any:
    """The module with weights so large that a mistake in any of them shows (initial ones hardly reach the output)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not name.endswith("log_std"):
                fan_in = parameter.shape[1] if parameter.dim() > 1 else 4
                parameter.normal_(0, 1 / fan_in**0.5, generator=generator)
    return module


def full_design(task: Task) -> Design:
    """Every joint that the task can reach."""
    design = task.initial_design
    while design.num_nodes < task.space.max_nodes:
        design = skeleton_transform(design, np.full(design.num_nodes, ADD_JOINT), task.space)
    return design


def designs_of(task: Task, count: int, seed: int = 3) -> list[Design]:
    """Random designs; the first is the initial one and the last has all joints."""
    rng = np.random.default_rng(seed)
    return [task.initial_design, *[random_design(task, rng) for _ in range(count - 2)], full_design(task)]


@cache
def task_of(name: str, **overrides: Any) -> Task:
    return make_task(name, **overrides)


@cache
def masked_task(name: str) -> Task:
    return make_task(name, design={"mask_illegal_actions": True})


def collect(task: Task, policy: Any, slots: int = 6, steps: int = 14, seed: int = 7) -> Rollout:
    """Two skeleton steps, one attribute step, then execution, from designs of all sizes."""
    return Sampler(task, slots, np.random.SeedSequence(seed), TransformSteps(2, 1), designs_of(task, slots)).collect(policy, steps)


def graphs_of(task: Task, designs: Sequence[Design], stages: Sequence[int], seed: int = 0) -> GraphBatch:
    """A batch to act on, with random simulator states."""
    rng = np.random.default_rng(seed)
    table = DesignTable.from_designs(designs, task.space)
    state = rng.normal(size=(len(table.depth), task.state_size))
    state[np.repeat(np.asarray(stages) != Stage.EXECUTION, np.diff(table.offsets))] = 0
    return GraphBatch(
        features=task.features.features(table.depth, table.attributes, state),
        stage=np.array(stages),
        time=np.zeros(len(designs), dtype=np.int64),
        slot=np.arange(len(designs)),
        rng=np.random.default_rng(seed + 1),
        **vars(table),
    )


def steps_with(task: Task, designs: Sequence[Design], stages: Sequence[int], seed: int = 0) -> Steps:
    """One step with each design, laid out for learning."""
    graphs = graphs_of(task, designs, stages, seed)
    state = graphs.features[:, task.features.state]
    return steps_of(DesignTable.from_designs(designs, task.space), np.arange(len(designs)), np.array(stages), state, task.space)


def forest_of(steps: Steps, chosen: np.ndarray) -> tuple[Forest, torch.Tensor]:
    """The chosen steps as a forest, and the row of each of its nodes."""
    forest, rows = steps.forest(chosen)
    return forest, torch.as_tensor(rows)


def gradients(output: torch.Tensor, module: nn.Module, seed: int = 11) -> list[torch.Tensor | None]:
    """Of a random weighting of the output, for every parameter."""
    weighting = torch.randn(output.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(output.dtype)
    return list(torch.autograd.grad((output * weighting).sum(), list(module.parameters()), allow_unused=True))


def assert_close(a: torch.Tensor | None, b: torch.Tensor | None, tolerance: float) -> None:
    """Within `tolerance` of the largest value; None is zeros."""
    if a is None or b is None:
        assert a is None or not a.any()
        assert b is None or not b.any()
        return
    scale = max(1.0, float(b.detach().abs().max())) if b.numel() else 1.0
    assert a.shape == b.shape
    assert float((a.detach().double() - b.detach().double()).abs().max()) <= tolerance * scale if b.numel() else True
