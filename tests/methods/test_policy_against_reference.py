"""Log-probabilities and values of a batch against the slow reference, forward and gradient."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from codesign_bench.learning.actor_critic import GraphCritic
from codesign_bench.learning.batch import Steps, steps_of_rollout
from codesign_bench.learning.forest import build_forest
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.tasks.base import Task
from methods.transform2act.policy import Transform2ActPolicy
from tests.learning.material import VARIANTS, assert_close, collect, forest_of, gradients, masked_task, policy_of, strong, task_of, value_of
from tests.reference import slow_transform2act as slow

CASES = [("locomotion2d", variant) for variant in VARIANTS] + [("locomotion3d", "full"), ("swimmer", "no_gnn"), ("masked", "full")]


@cache
def material(env: str, variant: str) -> tuple[Task, Transform2ActPolicy, GraphCritic, Rollout, Steps]:
    """Networks whose normalisers have seen a batch, and a second batch that the policy acted on. Not to be changed."""
    task = masked_task("locomotion2d") if env == "masked" else task_of(env)
    policy, value = strong(policy_of(task, variant)), strong(value_of(task))
    steps, _ = steps_of_rollout(collect(task, policy.acting(), slots=4, steps=8, seed=1), task.space)
    policy.update_normalisers(steps)
    value.update_normaliser(steps)
    rollout = collect(task, policy.acting())
    return task, policy, value, rollout, steps_of_rollout(rollout, task.space)[0]


def in_double(module: Any) -> Any:
    return copy.deepcopy(module).double()


def minibatch(steps: Steps, stage: int, seed: int = 0) -> np.ndarray:
    """The steps of one stage in a random order."""
    return np.random.default_rng(seed).permutation(np.flatnonzero(steps.stage == stage))


def log_prob(policy: Transform2ActPolicy, prepared: Any, steps: Steps, actions: torch.Tensor, chosen: np.ndarray) -> torch.Tensor:
    forest, rows = forest_of(steps, chosen)
    return policy.log_prob(prepared, steps, actions, chosen, forest, rows)


@pytest.mark.parametrize(("env", "variant"), CASES)
@pytest.mark.parametrize("stage", [0, 1, 2])
def test_log_probabilities(env: str, variant: str, stage: int) -> None:
    task, policy, _, rollout, steps = material(env, variant)
    reference = slow.slow_policy(policy, task)
    slow_steps, _ = slow.steps_of(rollout, task)
    chosen = minibatch(steps, stage)
    expected = reference.log_prob([slow_steps[i] for i in chosen])
    assert len(chosen) >= 6
    assert torch.isfinite(expected).all()

    # every graph alone gives the same as all in one batch
    alone = torch.cat([reference.log_prob([slow_steps[i]]) for i in chosen])
    assert_close(expected, alone, 1e-12)

    double = in_double(policy)
    prepared = [sub.inputs(torch.cat([step.features for step in slow_steps])) for sub in reference.stages]
    result = log_prob(double, prepared, steps, torch.from_numpy(rollout.actions).double(), chosen)
    assert_close(result, expected, 1e-9)
    slow_gradients = gradients(expected, reference)
    assert any(g is not None and g.any() for g in slow_gradients)
    for a, b in zip(gradients(result, double), slow_gradients, strict=True):
        assert_close(a, b, 1e-9)

    single = log_prob(policy, policy.prepare(steps), steps, torch.from_numpy(rollout.actions), chosen)
    assert single.dtype == torch.float32
    assert_close(single, expected, 1e-4)
    for a, b in zip(gradients(single, policy), slow_gradients, strict=True):
        assert_close(a, b, 1e-4)


@pytest.mark.parametrize("env", ["locomotion2d", "locomotion3d", "swimmer", "gap"])
def test_values(env: str) -> None:
    task, _, value, rollout, steps = material(env, "full")
    reference = slow.slow_value(value)
    slow_steps, _ = slow.steps_of(rollout, task)
    chosen = np.random.default_rng(0).permutation(steps.num_steps)
    forest, rows = forest_of(steps, chosen)
    expected = reference.values(slow.collate([slow_steps[i] for i in chosen]))
    assert_close(expected, torch.cat([reference.values(slow.collate([slow_steps[i]])) for i in chosen]), 1e-12)

    double = in_double(value)
    result = double.values(reference.inputs(slow.collate(slow_steps)), forest, rows)
    assert_close(result, expected, 1e-9)
    slow_gradients = gradients(expected, reference)
    for a, b in zip(gradients(result, double), slow_gradients, strict=True):
        assert_close(a, b, 1e-9)

    single = value.values(value.prepare(steps), forest, rows)
    assert single.dtype == torch.float32
    assert_close(single, expected, 1e-4)
    for a, b in zip(gradients(single, value), slow_gradients, strict=True):
        assert_close(a, b, 1e-4)


@pytest.mark.parametrize("env", ["locomotion2d", "locomotion3d"])
def test_inputs(env: str) -> None:
    """What the sub-policies and the value network see: the right columns, normalised; nothing of other stages."""
    task, policy, value, rollout, steps = material(env, "full")
    slow_steps, bootstrap = slow.steps_of(rollout, task)
    graphs = slow.collate(slow_steps)
    node_stage = graphs.stage[graphs.batch]
    for stage, (x, sub) in enumerate(zip(policy.prepare(steps), slow.slow_policy(policy, task).stages, strict=True)):
        mine = node_stage == stage
        assert_close(x[mine], sub.inputs(graphs.features)[mine], 1e-5)
        assert not x[~mine].any()
    assert_close(value.prepare(steps), slow.slow_value(value).inputs(graphs), 1e-5)
    _, fast_bootstrap = steps_of_rollout(rollout, task.space)
    assert_close(value.prepare(fast_bootstrap), slow.slow_value(value).inputs(slow.collate(bootstrap)), 1e-5)


def test_transform_policies_do_not_see_the_simulator() -> None:
    task, policy, _, _, _ = material("locomotion3d", "full")
    depths, size = task.space.num_depths, task.feature_size
    state = set(range(depths, depths + task.state_size))
    assert set(policy.skeleton.columns) == set(policy.attribute.columns) == set(range(size)) - state
    assert policy.execution.columns.tolist() == list(range(size))


def test_sub_policies_share_nothing() -> None:
    _, policy, value, _, _ = material("locomotion2d", "full")
    parts = [policy.skeleton, policy.attribute, policy.execution, value]
    pointers = [parameter.data_ptr() for part in parts for parameter in part.parameters()]
    assert len(pointers) == len(set(pointers))
    assert len({id(part.normaliser) for part in parts}) == 4


@pytest.mark.parametrize("env", ["locomotion2d", "locomotion3d"])
def test_value_of_the_pruned_computation_is_that_of_the_full_one_at_the_root(env: str) -> None:
    _, _, value, _, steps = material(env, "full")
    network = in_double(value).network
    forest, rows = forest_of(steps, np.arange(steps.num_steps))
    x = value.prepare(steps).double()[rows]
    full = network.head(network.gnn(x, forest), ((0, 0, forest.num_nodes),))[: forest.num_graphs, 0]
    pruned = network(x, forest)
    assert_close(pruned, full, 1e-12)
    for a, b in zip(gradients(pruned, network), gradients(full, network), strict=True):
        assert_close(a, b, 1e-12)
    for depth in range(4):
        assert_close(network.gnn(x, forest, depth=depth), network.gnn(x, forest)[: forest.up_to_depth[depth]], 1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_other_graphs_and_the_order_of_nodes_change_nothing(variant: str) -> None:
    """In float64, to 1e-9: outputs of a step alone, among others, and with its nodes in another order."""
    task, policy, _, _, steps = material("locomotion2d", variant)
    double, rng = in_double(policy), np.random.default_rng(3)
    for stage in range(3):
        sub, x = double.of_stage(stage), policy.prepare(steps)[stage].double()
        chosen = minibatch(steps, stage)
        forest, rows = forest_of(steps, chosen)
        together = torch.empty(len(x), len(sub.network.head.biases[-1][0]), dtype=torch.float64)
        together[rows] = sub(x[rows], forest)
        for step in chosen[:10]:
            forest, rows = forest_of(steps, np.array([step]))
            assert_close(sub(x[rows], forest), together[rows], 1e-9)

            first, count = int(steps.first[step]), int(steps.count[step])
            order = rng.permutation(count)  # new node i is old node order[i]
            position = np.argsort(order)
            parent = steps.parent[first : first + count][order] - first
            parent = np.where(parent < 0, -1, position[np.maximum(parent, 0)])
            joint, sibling = steps.joint_index[first : first + count][order], steps.sibling[first : first + count][order]
            forest, sorted_by_joint = build_forest(joint, parent, sibling, np.zeros(count, dtype=np.int64), task.space.joint_depths)
            shuffled = x[first : first + count][torch.from_numpy(order)]
            output = torch.empty(count, together.shape[1], dtype=torch.float64)
            output[torch.from_numpy(sorted_by_joint)] = sub(shuffled[torch.from_numpy(sorted_by_joint)], forest)
            assert_close(output, together[first : first + count][torch.from_numpy(order)], 1e-9)
