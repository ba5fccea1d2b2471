"""The whole method on a tiny task: the return rises beyond what a random policy gets, by more than seeds differ."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch

from codesign_bench.configuration import load_config
from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.method import Context
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.experiment.seeds import Streams
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.sampler import Sampler, random_policy
from codesign_bench.tasks.base import Task

OVERRIDES = ["env=swimmer", "env.max_steps=100", "budget=smoke", "budget.batch=2000", "budget.steps=60000", "workers=0"]
OVERRIDES += ["method.ppo.minibatch=500", "method.ppo.policy_lr=3e-4", "method.ppo.shards=1"]
ITERATIONS, SEEDS = 30, 3


def returns_of_a_random_policy(task: Task) -> list[float]:
    return [
        float(np.mean([record.total_return for record, _ in Sampler(task, 10, np.random.SeedSequence(seed)).play(random_policy)]))
        for seed in range(SEEDS)
    ]


def returns_of_learning(seed: int) -> tuple[float, float, Task]:
    """Deterministic return before and after."""
    torch.set_num_threads(1)
    plan = RunSetup.of(load_config("config", [*OVERRIDES, f"seed={seed}"]))
    streams = Streams(seed)
    context = Context(plan.task, plan.budget, streams, Ledger(plan.budget.steps), 2, 0, "cpu")
    with contextlib.closing(plan.method_class(plan.method_config, context)) as method:
        before = evaluate(method.champion(), 10, streams.sequence("evaluation")).return_mean
        for _ in range(ITERATIONS):
            method.iterate()
        after = evaluate(method.champion(), 10, streams.sequence("evaluation")).return_mean
    assert context.ledger.charged == ITERATIONS * plan.budget.batch
    return before, after, plan.task


@pytest.mark.slow
def test_the_return_rises_beyond_that_of_a_random_policy() -> None:
    results = [returns_of_learning(seed) for seed in range(SEEDS)]
    learned = [after for _, after, _ in results]
    by_chance = returns_of_a_random_policy(results[0][2])
    spread = max(np.ptp(learned), np.ptp(by_chance))
    assert np.mean(learned) - np.mean(by_chance) > spread, (learned, by_chance)
    assert min(learned) > max(by_chance)
    assert all(after > before for before, after, _ in results), results
