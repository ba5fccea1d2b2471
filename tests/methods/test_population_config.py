"""Configurations of NGE, ESS and RGS: the numbers of the comparison, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.experiment import runner
from codesign_bench.experiment.runner import RunSetup
from tests.methods.population import make, small

METHODS = ("nge", "ess", "rgs")


@pytest.mark.parametrize("method", METHODS)
def test_numbers_of_the_comparison(method: str) -> None:
    """The table of Transform2Act's appendix, and the operators of NGE's released code."""
    plan = RunSetup.of(load_config("config", [f"method={method}"]))
    config: Any = plan.method_config
    assert config.controller.gnn == ((64, 64, 64) if method == "nge" else None)
    assert config.controller.mlp == (128, 128)
    assert config.controller.log_std == 0.0
    assert (config.value.gnn, config.value.mlp) == ((64, 64, 64), (512, 256))
    ppo = config.ppo
    assert (ppo.policy_lr, ppo.value_lr) == (5e-5, 3e-4)
    assert (ppo.clip, ppo.minibatch, ppo.passes, ppo.gae_lambda, ppo.gamma) == (0.2, 2048, 10, 0.95, 0.995)
    assert RunSetup.of(load_config("config", [f"method={method}", "env=gap"])).method_config.ppo.gamma == 0.999
    assert config.inner_iterations == 1
    if method == "rgs":
        assert config.redraw_every == 0
        return
    assert config.elimination == 0.15
    assert (config.initial.least, config.initial.most) == (1, 4)
    mutation = config.mutation
    assert (mutation.add, mutation.delete, mutation.perturb, mutation.add_graph, mutation.node_rate) == (0.2, 0.2, 0.6, 0.0, 0.1)
    assert (mutation.new_attributes, mutation.noise) == ("uniform", "gaussian")
    if method == "ess":
        assert config.amortized
        assert not config.inherit_if_same_topology
        assert config.grace == 0
    else:
        assert not config.gm_uc.enabled
        assert (config.gm_uc.pool, config.gm_uc.steps, config.gm_uc.batch, config.gm_uc.lr) == (10, 100, 64, 1e-3)


def test_strict_ess_is_ess_without_amortised_fitness() -> None:
    ess, strict = (load_config("config", [f"method={name}"])["method"] for name in ("ess", "ess_strict"))
    look = {key: strict[key] for key in ("label", "colour")}
    assert strict == {**ess, **look, "name": "ess_strict", "amortized": False}


@pytest.mark.parametrize(("budget", "cohort", "slots"), [("paper", 4, 20), ("pilot", 5, 4), ("smoke", 5, 2)])
def test_cohorts_take_at_least_the_batch_of_a_single_agent(budget: str, cohort: int, slots: int) -> None:
    method = make(load_config("config", ["method=nge", f"budget={budget}"]))
    assert (method.sampler.size, method.sampler.slots, method.sampler.steps_per_slot) == (cohort, slots, 1000)


@pytest.mark.parametrize(("budget", "steps"), [("paper", 50_000_000), ("pilot", 2_000_000), ("smoke", 40_000)])
@pytest.mark.parametrize("method", METHODS)
def test_presets_come_out_exactly(method: str, budget: str, steps: int) -> None:
    plan = RunSetup.of(load_config("config", [f"method={method}", f"budget={budget}"]))
    assert plan.budget.steps == steps
    assert steps % plan.iteration_steps == 0
    if budget == "paper":
        assert (plan.budget.population, plan.budget.agent_batch, steps // plan.iteration_steps) == (20, 20_000, 125)


def test_a_budget_that_is_no_whole_number_of_generations_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"budget.steps is 1000; .* iterations of 320 steps, nearest 960 and 1280"):
        RunSetup.of(small("nge", "budget.steps=1000"))


@pytest.mark.parametrize(
    ("method", "override", "sentence"),
    [
        ("nge", "method.elimination=1", "method.elimination is 1.0; allowed are numbers from 0 up, below 1"),
        ("nge", "method.controller.gnn=null", "NGE needs graph networks"),
        ("nge", "method.cohort=3", "method.cohort is 3; allowed are divisors of the population, 4"),
        ("nge", "method.cohort=0", "method.cohort is 0; allowed"),
        ("nge", "method.inner_iterations=0", "method.inner_iterations is 0; allowed"),
        ("nge", "method.gm_uc.pool=0", "method.gm_uc.pool is 0; allowed"),
        ("nge", "method.initial.least=5", "method.initial is 5 to 4; allowed"),
        ("ess", "budget.population=1", "budget.population is 1; allowed are 2 and more"),
        ("ess", "method.grace=-1", "method.grace is -1; allowed are whole numbers from 0 up"),
        ("ess", "method.grace=4", "method.grace is 4; allowed are 0 to 3, the generations of budget.steps."),
        ("rgs", "method.redraw_every=-1", "method.redraw_every is -1; allowed"),
        ("rgs", "budget.agent_batch=81", "budget.agent_batch is 81; allowed are multiples of 2"),
    ],
)
def test_impossible_values_are_refused_in_a_sentence(method: str, override: str, sentence: str) -> None:
    whole = ("budget.steps=12960",) if "budget" in override else ()
    with pytest.raises(ConfigError) as error:
        make(small(method, override, *whole))
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("method", "override"), [("ess", "method.grace=4"), ("ess", "budget.population=1"), ("nge", "budget.population=1")]
)
def test_what_does_not_go_with_the_budget_is_refused_before_a_run_has_a_folder(method: str, override: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        runner.run(small(method, override, results=tmp_path), [])
    assert not list(tmp_path.iterdir())
