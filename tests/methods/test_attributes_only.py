"""Transform2Act without skeleton changes: it starts at the expert, keeps its skeleton, and tunes what continuous design tunes."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.method import Context
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.experiment.seeds import Streams
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import Stage
from methods.continuous.parameters import DesignParameters
from methods.transform2act.method import Transform2Act
from tests.experiment.tiny import tiny
from tests.reference.specification import TASKS


@pytest.mark.parametrize("env", TASKS)
def test_designs_are_the_expert_with_other_attributes(env: str) -> None:
    plan = RunSetup.of(tiny(Path("nowhere"), "method=transform2act_attributes", "env.max_steps=20", env=env))
    context = Context(plan.task, plan.budget, Streams(0), Ledger(plan.budget.steps), 2, 0, "cpu")
    with contextlib.closing(plan.method_class(plan.method_config, context)) as method:
        assert isinstance(method, Transform2Act)
        expert, space = plan.task.with_expert().initial_design, plan.task.with_expert().space
        assert method.task.initial_design == expert
        assert (method.task.space.lower, method.task.space.upper) == (space.lower, space.upper)
        rollout = method.pool.collect(method.policy.acting(), 50)
        assert set(np.unique(rollout.stage)) == {Stage.ATTRIBUTE, Stage.EXECUTION}
        first = rollout.stage == Stage.ATTRIBUTE
        assert first[0].all()
        nodes = np.diff(rollout.designs.offsets)
        assert set(nodes) == {expert.num_nodes}
        attributes = rollout.designs.attributes.reshape(-1, expert.num_nodes, 5)
        parents = rollout.designs.parents.reshape(-1, expert.num_nodes)
        assert np.array_equal(parents, np.tile(expert.parents, (len(parents), 1)))
        assert np.array_equal(attributes[rollout.design[0]], np.tile(expert.attributes, (rollout.design.shape[1], 1, 1)))
        acting = np.unique(rollout.design[~first])
        tunable = DesignParameters(method.task, "additive").tunable
        changed = np.abs(attributes[acting] - expert.attributes)
        assert np.all(changed[:, tunable] > 0)
        assert np.all(changed[:, ~tunable] == 0)
        assert 0.05 < changed[:, tunable & (np.abs(expert.attributes) < 0.7)].mean() < 0.11  # 0.08 for a deviation of 0.1
        final = evaluate(method.champion(), 1, np.random.SeedSequence(0)).design
        assert np.abs(final.attributes - expert.attributes).max() < 0.05  # before any learning
