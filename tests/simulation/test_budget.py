from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from codesign_bench.errors import BudgetError, ConfigError
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.sampler import random_policy
from codesign_bench.simulation.workers import Group, WorkerPool
from codesign_bench.tasks import make_task
from tests.simulation import policies


def groups(*slots: int) -> list[Group]:
    task = make_task("gap")
    return [Group(task, n, np.random.SeedSequence(i)) for i, n in enumerate(slots)]


def test_every_step_of_every_slot_is_charged_once() -> None:
    ledger = Ledger(1000)
    pool = WorkerPool(groups(2, 3), 0, ledger)
    assert pool.collect(random_policy, 10).num_steps == ledger.charged == 50
    assert pool.collect(random_policy, 7).num_steps == 35
    assert (ledger.charged, ledger.left) == (85, 915)


def test_a_request_past_the_budget_is_refused_and_nothing_is_simulated() -> None:
    ledger, calls = Ledger(59), []

    def counting(graphs: Any) -> Any:
        calls.append(graphs.num_graphs)
        return random_policy(graphs)

    pool = WorkerPool(groups(2, 3), 0, ledger)
    pool.collect(counting, 10)
    before, called = pool.state_dict(), len(calls)
    with pytest.raises(BudgetError, match="10 steps were requested but the budget of 59 has 9 left; nothing was simulated"):
        pool.collect(counting, 2)
    assert pool.state_dict() == before
    assert len(calls) == called
    assert ledger.charged == 50
    pool.collect(counting, 1)
    assert (ledger.charged, ledger.left) == (55, 4)


def test_the_whole_budget_can_be_spent() -> None:
    ledger = Ledger(20)
    WorkerPool(groups(2), 0, ledger).collect(random_policy, 10)
    assert ledger.left == 0
    with pytest.raises(BudgetError):
        ledger.charge(1)


@pytest.mark.parametrize("steps", [0, -5])
def test_requests_below_one_step(steps: int) -> None:
    ledger = Ledger(10)
    with pytest.raises(BudgetError, match=f"{steps} steps were requested"):
        ledger.charge(steps)
    assert ledger.charged == 0


def test_evaluation_is_metered_apart_and_survives_a_restart() -> None:
    ledger = Ledger(10)
    ledger.charge(4)
    ledger.meter_evaluation(1000)
    again = Ledger(10)
    again.load_state_dict(ledger.state_dict())
    assert (again.charged, again.left, again.evaluation) == (4, 6, 1000)


def test_bad_budgets() -> None:
    with pytest.raises(ConfigError, match="budget is 0 steps"):
        Ledger(0)
    with pytest.raises(BudgetError, match="11 charged steps; the budget is 10"):
        Ledger(10).load_state_dict({"charged": 11, "evaluation": 0})


def test_a_wrong_number_of_policies_costs_nothing() -> None:
    ledger = Ledger(1000)
    pool = WorkerPool(groups(2, 3), 0, ledger)
    with pytest.raises(ValueError, match="polic"):
        pool.collect([policies.zeros], 5)
    assert ledger.charged == 0
