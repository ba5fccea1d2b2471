"""Species that act side by side do what each one's network says by itself; and what graph networks owe to any design."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from codesign_bench.design.graph import Design
from codesign_bench.learning.batch import steps_of
from codesign_bench.learning.networks import ValueConfig
from codesign_bench.simulation.episode import NO_TRANSFORM
from codesign_bench.simulation.graphs import DesignTable, GraphBatch
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks import Task, make_task
from methods.evolution.acting import single_policy, stacked_policy
from methods.evolution.controller import Controller, ControllerConfig
from methods.evolution.random_design import random_design
from tests.reference.specification import TASKS

VALUE = ValueConfig(gnn=(8, 8), mlp=(8,))
GNN = ControllerConfig(gnn=(8, 8, 8), mlp=(16, 8), log_std=-0.5)
GAT, MLP = replace(GNN, layer="GATv2Conv"), replace(GNN, gnn=None)


def controller_of(design: Design, task: Task, config: ControllerConfig, seed: int) -> Controller:
    """With outputs that differ, and statistics in its normaliser."""
    controller, rng = Controller(design, task, config, VALUE, seed), np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in controller.actor.parameters():
            parameter += 0.1 * torch.from_numpy(rng.standard_normal(tuple(parameter.shape))).float()
    if seed % 3:
        controller.normaliser.update(rng.normal(0.1, 2, (20, len(controller.normaliser.mean))))
    return controller


def population(task: Task, config: ControllerConfig) -> tuple[list[Design], list[Controller]]:
    designs = [random_design(task, additions, np.random.default_rng(additions)) for additions in (0, 4, 1, 2)]
    return designs, [controller_of(design, task, config, i) for i, design in enumerate(designs)]


def slow_means(controller: Controller, design: Design, features: Any, task: Task) -> Any:
    """[nodes - 1]: one graph by itself, through the network that learns."""
    table = DesignTable.from_designs([design], task.space)
    state = features[:, task.space.num_depths : -5]
    steps = steps_of(table, np.array([0]), np.array([2]), state, task.space)
    forest, rows = steps.forest(np.array([0]))
    actor: Any = controller.actor
    (x,) = actor.prepare(steps)
    result = np.zeros(design.num_nodes, dtype=np.float32)
    with torch.no_grad():
        if x.shape[0] == 1:
            result[actor.view.order[1:]] = actor(x)[0]
        else:
            result[rows[1:]] = actor(x[torch.from_numpy(rows)], forest)[:, 0]
    return result[1:]


@pytest.mark.parametrize("config", [GNN, GAT, MLP], ids=["gnn", "gat", "mlp"])
@pytest.mark.parametrize("env", TASKS)
@pytest.mark.parametrize("slots", [(1, 1, 1, 1), (2, 3, 1, 2)])
def test_stacked_equals_one_by_one(env: str, config: ControllerConfig, slots: tuple[int, ...]) -> None:
    task = make_task(env)
    designs, controllers = population(task, config)
    policy = pickle.loads(pickle.dumps(stacked_policy(controllers, slots, None)))
    owner = np.repeat(np.arange(4), slots)
    sampler = Sampler(task, len(owner), np.random.SeedSequence(0), NO_TRANSFORM, [designs[i] for i in owner])
    seen: list[tuple[Any, Any]] = []

    def noted(graphs: GraphBatch) -> Any:
        decision = policy(graphs)
        seen.append((graphs.features.copy(), decision))
        return decision

    sampler.collect(noted, 4)
    for features, decision in seen:
        first = 0
        for graph, i in enumerate(owner):
            nodes = designs[i].num_nodes
            mine = slice(first, first + nodes)
            expected = slow_means(controllers[i], designs[i], features[mine], task)
            assert np.allclose(decision.actions[mine, 0][1:], expected, atol=2e-5)
            assert decision.actions[first, 0] == 0
            log_std = -0.5 * (nodes - 1) + float((controllers[i].actor.log_std.detach() + 0.5).sum()) * (nodes - 1 if config.gnn else 1)
            assert decision.log_prob[graph] == pytest.approx(-log_std - 0.5 * np.log(2 * np.pi) * (nodes - 1), abs=1e-4)
            first += nodes


@pytest.mark.parametrize("config", [GNN, MLP], ids=["gnn", "mlp"])
def test_noise_belongs_to_the_species(config: ControllerConfig) -> None:
    """Whoever acts beside it; its scale is the standard deviation, and the log-probability is that of what was drawn."""
    task = make_task("swimmer")
    designs, controllers = population(task, config)
    seeds = [np.random.SeedSequence(i) for i in range(4)]

    def first_actions(members: list[int], noisy: bool = True) -> dict[int, Any]:
        sampler = Sampler(
            task, 2 * len(members), np.random.SeedSequence(9), NO_TRANSFORM, [designs[i] for i in members for _ in range(2)],
            [np.random.SeedSequence(10 + i) for i in members for _ in range(2)],
        )  # fmt: skip
        policy = stacked_policy([controllers[i] for i in members], [2] * len(members), [seeds[i] for i in members] if noisy else None)
        rollout = sampler.collect(policy, 1)
        ends = np.cumsum([2 * designs[i].num_nodes for i in members])
        drawn = [part.reshape(2, -1)[:, 1:] for part in np.split(rollout.actions[:, 0], ends[:-1])]
        return {i: (drawn[k], rollout.log_prob[0, 2 * k : 2 * k + 2]) for k, i in enumerate(members)}

    together, means = first_actions([0, 1, 2, 3]), first_actions([0, 1, 2, 3], noisy=False)
    for members in ([1, 3], [2, 1, 0], [3]):
        for i, (actions, log_prob) in first_actions(members).items():
            assert np.allclose(actions, together[i][0], atol=1e-5)
            assert np.allclose(log_prob, together[i][1], atol=1e-5)
    for i in range(4):
        log_std = controllers[i].actor.log_std.detach().numpy()
        order = slice(None) if config.gnn else np.argsort(controllers[i].actor.view.order[1:])  # type: ignore[union-attr]
        std = np.broadcast_to(np.exp(log_std), (designs[i].num_nodes - 1,))[order]
        z = (together[i][0] - means[i][0]) / std
        expected = (-0.5 * z**2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(axis=1)
        assert np.allclose(together[i][1], expected, atol=1e-4)
        assert np.abs(z).max() < 5


def test_a_species_alone_acts_in_any_number_of_graphs() -> None:
    """Each does what the slow reference says of it alone."""
    task = make_task("gap", max_steps=12)
    designs, controllers = population(task, GNN)
    policy, seen = single_policy(controllers[1]), []

    def noted(graphs: GraphBatch) -> Any:
        seen.append((graphs.features.reshape(5, designs[1].num_nodes, -1).copy(), policy(graphs)))
        return seen[-1][1]

    Sampler(task.starting_from(designs[1]), 5, np.random.SeedSequence(0), NO_TRANSFORM).collect(noted, 3)
    for features, decision in seen:
        controls = decision.actions.reshape(5, designs[1].num_nodes, -1)[:, 1:, 0]
        assert len(np.unique(controls[:, 0])) == 5, "each has a start of its own"
        for of_graph, control in zip(features, controls, strict=True):
            np.testing.assert_allclose(control, slow_means(controllers[1], designs[1], of_graph, task), atol=1e-5)


def test_a_graph_network_does_not_see_the_order_of_the_nodes() -> None:
    """Limbs in another order: the same controls for the same bodies, the same value."""
    task = make_task("locomotion3d")
    design = task.initial_design.with_attributes(
        np.where(task.space.tunable(task.initial_design), np.random.default_rng(0).uniform(-0.9, 0.9, (5, 5)), 0.0)
    )
    controller = controller_of(design, task, GNN, 1)
    order = np.array([0, 3, 1, 4, 2])
    rows_of = ("attributes", "axis", "range", "friction", "joint_offset")
    turned = design.derived(**{name: getattr(design, name)[order] for name in rows_of})
    state = np.random.default_rng(1).normal(size=(5, task.state_size)).astype(np.float32)
    results = []
    for which, rows in ((design, np.arange(5)), (turned, order)):
        table = DesignTable.from_designs([which], task.space)
        steps = steps_of(table, np.array([0]), np.array([2]), state[rows], task.space)
        forest, at = steps.forest(np.array([0]))
        with torch.no_grad():
            value = controller.critic.values(controller.critic.prepare(steps), forest, torch.from_numpy(at))
        results.append((slow_means(controller, which, steps.features, task), value))
    (one, value), (other, other_value) = results
    assert np.allclose(one[order[1:] - 1], other, atol=1e-5)
    assert torch.allclose(value, other_value, atol=1e-5)
    assert np.ptp(one) > 1e-4
