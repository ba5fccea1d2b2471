"""Budgets: what is refused, with which sentence, and that the presets are equal for all methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import method_class
from codesign_bench.experiment.runner import RunSetup, run
from codesign_bench.paths import options_of
from tests.experiment.tiny import changed, tiny
from tests.reference.sentences import assert_one_sentence


@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        ({"steps": 850, "until": 800}, "budget.steps is 850; allowed are whole numbers of iterations of 200 steps, nearest 800 and 1000."),
        ({"until": 399}, "budget.until is 399; allowed are whole numbers of iterations of 200 steps, nearest 200 and 400."),
        ({"steps": 100, "until": 100}, "budget.steps is 100; allowed are whole numbers of iterations of 200 steps, nearest 200."),
        ({"steps": 0, "until": 0}, "budget.steps is 0; allowed are whole numbers of iterations of 200 steps, nearest 200."),
        ({"steps": -400, "until": -400}, "budget.steps is -400; allowed are whole numbers of iterations of 200 steps, nearest 200."),
        ({"until": 0}, "budget.until is 0; "),
        ({"until": -200}, "budget.until is -200; "),
        ({"until": 1000}, "budget.until is 1000; allowed is at most budget.steps, 800."),
        ({"batch": 0}, "budget.batch is 0; allowed are whole numbers from 1 up."),
        ({"batch": -200}, "budget.batch is -200; allowed are whole numbers from 1 up."),
        ({"evaluate_every": 0}, "budget.evaluate_every is 0; allowed are whole numbers from 1 up."),
        ({"population": 0}, "budget.population is 0; "),
        ({"agent_batch": -1}, "budget.agent_batch is -1; "),
        ({"steps": 800.0}, "budget.steps is 800.0; allowed is a whole number."),
        ({"steps": "many"}, "budget.steps is 'many'; allowed is a whole number."),
        ({"steps": None}, "budget.steps is None; allowed is a whole number."),
        ({"extra": 1}, "budget has an unknown key 'extra'"),
    ],
)
def test_bad_budgets(tmp_path: Path, budget: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        RunSetup.of(changed(tiny(tmp_path), budget=budget))
    assert_one_sentence(error.value, sentence)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"seed": -1}, "seed is -1; allowed are whole numbers from 0 up."),
        ({"seed": "x"}, "seed is 'x'; allowed is a whole number."),
        ({"evaluation": {"episodes": 0}}, "evaluation.episodes"),
        ({"sampler": {"groups": 0}}, "sampler.groups"),
        ({"workers": -1}, "workers"),
        ({"device": "tpu"}, "device is 'tpu'; allowed are cpu, cuda."),
        ({"method": {"plugin": "nothing"}}, "There is no method plug-in 'nothing'; installed are "),
        ({"method": {"plugin": None}}, "method.plugin"),
        ({"method": {"extra": 1}}, "method has an unknown key 'extra'"),
        ({"method": {"ppo": {"minibatch": 0}}}, "ppo.minibatch is 0"),
        ({"method": {"skeleton": {"gnn": [0]}}}, "gnn"),
        ({"method": {"value": {"mlp": [-3]}}}, "mlp"),
        ({"method": {"skeleton": {"steps": -1}}}, "steps"),
        ({"study": None}, "study is None; allowed is text."),
    ],
)
def test_other_bad_values(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    """Before anything is written."""
    with pytest.raises(ConfigError) as error:
        run(changed(tiny(tmp_path / "results"), **changes))
    assert_one_sentence(error.value, sentence)
    assert not list(tmp_path.rglob("config.yaml"))


@pytest.mark.parametrize("missing", ["env", "method", "budget", "seed"])
def test_a_part_that_is_missing(tmp_path: Path, missing: str) -> None:
    with pytest.raises(ConfigError) as error:
        RunSetup.of({key: value for key, value in tiny(tmp_path).items() if key != missing})
    assert_one_sentence(error.value, missing)


def test_a_batch_that_the_slots_cannot_share(tmp_path: Path) -> None:
    config = changed(tiny(tmp_path), budget={"batch": 201, "steps": 402, "until": 402})
    with pytest.raises(ConfigError) as error:
        run(config)
    assert_one_sentence(error.value, "budget.batch is 201; allowed are multiples of 4")


# ---- presets ---------------------------------------------------------------------------------------------------------

PRESETS = {"paper": 50_000_000, "pilot": 2_000_000, "smoke": 40_000}


def budget_of(preset: str) -> dict[str, Any]:
    budget: dict[str, Any] = load_config("config", [f"budget={preset}"])["budget"]
    return budget


def test_all_presets_are_known_here() -> None:
    assert options_of("budget") == sorted(PRESETS)


@pytest.mark.parametrize("preset", options_of("budget"))
def test_presets_are_exactly_equal_for_batch_and_population_methods(preset: str) -> None:
    budget = budget_of(preset)
    assert budget["steps"] == budget["until"] == PRESETS[preset]
    assert budget["steps"] % budget["batch"] == 0
    assert budget["steps"] % (budget["population"] * budget["agent_batch"]) == 0


def test_the_protocols_numbers() -> None:
    def counts(preset: str) -> tuple[int, ...]:
        b = budget_of(preset)
        generations = b["steps"] // (b["population"] * b["agent_batch"])
        return b["steps"] // b["batch"], b["batch"], generations, b["population"], b["agent_batch"]

    assert counts("paper") == (1000, 50_000, 125, 20, 20_000)
    assert counts("pilot") == (200, 10_000, 50, 10, 4_000)
    assert counts("smoke") == (4, 10_000, 4, 5, 2_000)
    assert budget_of("paper")["evaluate_every"] == 50_000


@pytest.mark.parametrize("preset", options_of("budget"))
@pytest.mark.parametrize("method", options_of("method"))
def test_every_method_spends_a_preset_exactly(method: str, preset: str) -> None:
    config = load_config("config", [f"method={method}", f"budget={preset}", "env=gap"])
    plan = RunSetup.of(config)
    assert plan.budget.steps % plan.iteration_steps == 0
    assert plan.method_class is method_class(config["method"]["plugin"])
