"""The policy as it acts: the same distributions as in learning, whatever else is in the batch."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.simulation.episode import Stage
from codesign_bench.simulation.graphs import GraphBatch
from codesign_bench.tasks.base import Task
from methods.transform2act.policy import Transform2ActPolicy
from tests.learning.material import VARIANTS, collect, designs_of, forest_of, graphs_of, masked_task, policy_of, steps_with, strong, task_of

CLOSE = {"rtol": 1e-4, "atol": 2e-5}


def trained(task: Task, variant: str = "full") -> Transform2ActPolicy:
    """Strong weights, and normalisers that have seen a batch."""
    policy = strong(policy_of(task, variant))
    policy.update_normalisers(steps_of_rollout(collect(task, policy.acting(), slots=4, steps=8, seed=1), task.space)[0])
    return policy


def one_graph(graphs: GraphBatch, g: int) -> GraphBatch:
    rows = slice(graphs.offsets[g], graphs.offsets[g + 1])
    names = ("features", "parents", "sibling", "joint_index", "can_add", "can_delete")
    alone = {name: getattr(graphs, name)[rows] for name in names}
    return replace(graphs, stage=graphs.stage[g : g + 1], offsets=graphs.offsets[g : g + 2] - graphs.offsets[g], **alone)


def learning_outputs(policy: Transform2ActPolicy, task: Task, designs: list, stages: list[int]) -> list[np.ndarray]:
    """Logits or means of every graph in the order of its nodes, from the networks that learn."""
    steps = steps_with(task, designs, stages)
    prepared = policy.prepare(steps)
    result = []
    for step, stage in enumerate(stages):
        forest, rows = forest_of(steps, np.array([step]))
        with torch.no_grad():
            output = policy.of_stage(stage)(prepared[stage][rows], forest).numpy()
        in_order = np.empty_like(output)
        in_order[rows.numpy() - steps.first[step]] = output
        result.append(in_order)
    return result


@pytest.mark.parametrize(("env", "variant"), [*[("locomotion2d", v) for v in VARIANTS], ("locomotion3d", "full"), ("masked", "full")])
def test_acting_and_learning_agree_on_the_log_probabilities(env: str, variant: str) -> None:
    task = masked_task("locomotion2d") if env == "masked" else task_of(env)
    policy = trained(task, variant)
    rollout = collect(task, policy.acting())
    steps, _ = steps_of_rollout(rollout, task.space)
    prepared, actions, old = policy.prepare(steps), torch.from_numpy(rollout.actions), rollout.log_prob.ravel()
    for stage in range(3):
        chosen = np.flatnonzero(steps.stage == stage)
        assert len(chosen)
        with torch.no_grad():
            new = policy.log_prob(prepared, steps, actions, chosen, *forest_of(steps, chosen)).numpy()
        assert np.isfinite(new).all()
        np.testing.assert_allclose(old[chosen], new, **CLOSE)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("env", ["locomotion2d", "locomotion3d"])
def test_deterministic_actions_are_the_likeliest_choice_and_the_means(env: str, variant: str) -> None:
    task = task_of(env)
    policy = trained(task, variant)
    designs, stages = designs_of(task, 9), [0, 1, 2] * 3
    graphs = graphs_of(task, designs, stages)
    before = graphs.rng.bit_generator.state
    actions = policy.acting(deterministic=True)(graphs).actions
    assert graphs.rng.bit_generator.state == before, "no random number is drawn"
    assert actions.shape == (graphs.num_nodes, 7)
    for g, output in enumerate(learning_outputs(policy, task, designs, stages)):
        mine = actions[graphs.offsets[g] : graphs.offsets[g + 1]]
        own = {Stage.SKELETON: [6], Stage.ATTRIBUTE: [1, 2, 3, 4, 5], Stage.EXECUTION: [0]}[Stage(stages[g])]
        if stages[g] == Stage.SKELETON:
            np.testing.assert_array_equal(mine[:, 6], output.argmax(axis=1))
        else:
            np.testing.assert_allclose(mine[:, own], output, **CLOSE)
        assert not np.delete(mine, own, axis=1).any(), "columns of other stages stay zero"


@pytest.mark.parametrize("variant", ["full", "no_jsmlp"])
def test_graphs_act_alone_as_in_a_batch(variant: str) -> None:
    task = task_of("locomotion2d")
    policy = trained(task, variant)
    designs, stages = designs_of(task, 12), [2, 1, 0, 2] * 3
    graphs = graphs_of(task, designs, stages)
    act = policy.acting(deterministic=True)
    together = act(graphs).actions
    for g in range(len(designs)):
        alone = act(one_graph(graphs, g)).actions
        np.testing.assert_allclose(alone, together[graphs.offsets[g] : graphs.offsets[g + 1]], **CLOSE)
    others = graphs_of(task, designs[:1] + designs_of(task, 11, seed=8), stages, seed=9)
    others.features[: designs[0].num_nodes] = graphs.features[: designs[0].num_nodes]
    np.testing.assert_allclose(act(others).actions[: designs[0].num_nodes], together[: designs[0].num_nodes], **CLOSE)


def test_nodes_in_another_order_act_the_same() -> None:
    task = task_of("locomotion3d")
    policy = trained(task)
    rng = np.random.default_rng(0)
    for stage in (0, 1, 2):
        for design in designs_of(task, 4):
            graphs = graphs_of(task, [design], [stage])
            order = np.concatenate([[0], 1 + rng.permutation(design.num_nodes - 1)])
            parents = graphs.parents[order]
            moved = {name: getattr(graphs, name)[order] for name in ("features", "sibling", "joint_index", "can_add", "can_delete")}
            shuffled = replace(graphs, parents=np.where(parents < 0, -1, np.argsort(order)[parents]), **moved)
            expected = policy.acting(deterministic=True)(graphs).actions[order]
            np.testing.assert_allclose(policy.acting(deterministic=True)(shuffled).actions, expected, **CLOSE)


def test_what_is_remembered_of_a_batch_does_not_outlive_it() -> None:
    """The same acting policy on changing batches, and on one batch whose stages and states change in place."""
    task = task_of("locomotion2d")
    policy = trained(task)
    act = policy.acting(deterministic=True)
    designs = designs_of(task, 6)
    for seed in range(3):
        graphs = graphs_of(task, designs[seed:] + designs[:seed], [0, 1, 2] * 2, seed)
        for stages in ([0, 1, 2, 0, 1, 2], [2, 2, 2, 2, 1, 0], [2] * 6, [0] * 6):
            graphs.stage[:] = stages
            graphs.features[:, 5] += 0.1
            fresh = policy.acting(deterministic=True)(graphs).actions
            np.testing.assert_array_equal(act(graphs).actions, fresh)


def test_an_acting_policy_is_a_snapshot_and_can_be_sent() -> None:
    task = task_of("locomotion2d")
    policy = trained(task)
    graphs = graphs_of(task, designs_of(task, 6), [0, 1, 2] * 2)
    act = policy.acting(deterministic=True)
    before = act(graphs).actions
    sent = pickle.loads(pickle.dumps(act))
    np.testing.assert_array_equal(sent(graphs).actions, before)
    strong(policy, seed=77)
    policy.execution.normaliser.update(np.full((5, task.feature_size), 3.0))
    np.testing.assert_array_equal(act(graphs).actions, before)
    assert not np.array_equal(policy.acting(deterministic=True)(graphs).actions, before)


def test_samples_follow_the_distributions() -> None:
    task = task_of("locomotion2d")
    policy = trained(task)
    design, copies = designs_of(task, 4)[2], 3000
    for stage in (0, 1, 2):
        graphs = graphs_of(task, [design], [stage])
        many = graphs_of(task, [design] * copies, [stage] * copies)
        many.features[:] = np.tile(graphs.features, (copies, 1))
        actions = policy.acting()(many).actions.reshape(copies, design.num_nodes, 7)
        (output,) = learning_outputs_of(policy, graphs, task, stage)
        if stage == Stage.SKELETON:
            share = np.stack([(actions[:, :, 6] == choice).mean(axis=0) for choice in range(3)], axis=1)
            likely = torch.softmax(torch.from_numpy(output), dim=1).numpy()
            np.testing.assert_allclose(share, likely, atol=5 * 0.5 / copies**0.5)
        else:
            column, std = (slice(1, 6), np.exp(-2.3)) if stage == Stage.ATTRIBUTE else (slice(0, 1), 1.0)
            np.testing.assert_allclose(actions[:, :, column].mean(axis=0), output, atol=5 * std / copies**0.5)
            np.testing.assert_allclose(actions[:, :, column].std(axis=0), std, rtol=0.1)


def learning_outputs_of(policy: Transform2ActPolicy, graphs: GraphBatch, task: Task, stage: int) -> list[np.ndarray]:
    """As `learning_outputs`, from the deterministic means; logits come from the learning network on the same features."""
    act = policy.acting(deterministic=True)(graphs).actions
    if stage == Stage.ATTRIBUTE:
        return [act[:, 1:6]]
    if stage == Stage.EXECUTION:
        return [act[:, :1]]
    return learning_outputs(policy, task, [designs_of(task, 4)[2]], [stage])


def test_masked_choices_are_never_taken() -> None:
    task = masked_task("locomotion3d")
    policy = trained(task)
    designs = designs_of(task, 40)
    graphs = graphs_of(task, designs, [0] * 40)
    for deterministic in (False, True):
        choice = policy.acting(deterministic)(graphs).actions[:, 6]
        assert not ((choice == 1) & ~graphs.can_add).any()
        assert not ((choice == 2) & ~graphs.can_delete).any()
    assert (choice[~graphs.can_add & ~graphs.can_delete] == 0).all()
    unmasked = trained(task_of("locomotion3d")).acting()(graphs).actions[:, 6]
    assert ((unmasked == 1) & ~graphs.can_add).any()
