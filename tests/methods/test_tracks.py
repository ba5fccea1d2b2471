"""Tracks: one word for the settings of all methods, and a batch that is learned from in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codesign_bench.configuration import command_file, has_settings, load_config
from codesign_bench.errors import ConfigError
from codesign_bench.experiment import runner
from codesign_bench.experiment.method import Iteration
from codesign_bench.experiment.run_folder import RunDiffers
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.paths import options_of
from codesign_bench.simulation.budget import Ledger
from tests.experiment.tiny import tiny

CANDIDATES = ("values", "updates", "minibatches", "updates_kl", "minibatches_kl")
METHODS = ("transform2act", "nge", "ess", "rgs", "continuous", "expert")


def settings(*words: str) -> dict[str, Any]:
    method = load_config("config", list(words))["method"]
    return {"inner_iterations": method["inner_iterations"], **method["ppo"]}


def differences(*words: str) -> dict[str, Any]:
    """From the paper's settings of the same method."""
    paper = settings(*(word for word in words if not word.startswith("track=")))
    return {key: value for key, value in settings(*words).items() if value != paper[key]}


@pytest.mark.parametrize("method", METHODS)
def test_candidates_are_the_same_for_every_method(method: str) -> None:
    found = [differences(f"method={method}", f"track={track}") for track in CANDIDATES]
    values, five, small = {"normalise_values": True}, {"inner_iterations": 5}, {"minibatch": 512}
    limit = {"kl_limit": settings("track=updates_kl")["kl_limit"]}
    assert found == [values, values | five, values | five | small, values | five | limit, values | five | small | limit]
    assert differences(f"method={method}", "track=paper") == {}


def test_strong_settings_are_a_candidate() -> None:
    """Of every method that was part of the search, of their variants, and of DERL, which learns as NGE does."""
    strong = command_file("strong")
    assert set(METHODS) <= set(strong) <= set(options_of("method"))
    for method, choice in strong.items():
        config = load_config("config", [f"method={method}", "track=strong"])
        assert config["track"] == "strong"
        assert differences(f"method={method}", "track=strong") == differences(f"method={method}", f"track={choice['track']}")
        RunSetup.of(config)


def test_what_is_said_on_the_command_line_wins() -> None:
    assert settings("track=strong", "method.ppo.minibatch=99")["minibatch"] == 99


def test_methods_without_strong_settings_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_settings("paper", "stranger")
    assert not has_settings("strong", "stranger")
    monkeypatch.setattr(runner, "has_settings", lambda track, name: False)
    runner.run(tiny(tmp_path), [])
    assert "transform2act has no settings of its own on track=paper; it runs with its defaults" in capsys.readouterr().err


def test_unknown_tracks() -> None:
    with pytest.raises(ConfigError, match="There is no track 'string', nearest is strong; allowed are"):
        load_config("config", ["track=string"])


def test_a_run_keeps_its_settings(tmp_path: Path) -> None:
    runner.run(tiny(tmp_path, "budget.until=400"), [])
    with pytest.raises(RunDiffers, match=r"method\.ppo\.normalise_values is False on disk and True now"):
        runner.run(tiny(tmp_path, "budget.until=400", "method.ppo.normalise_values=true"), [])


# ---- a batch in parts ------------------------------------------------------------------------------------------------


def first_iteration(*words: str) -> tuple[Iteration, Any, Ledger]:
    setup = RunSetup.of(load_config("config", ["env=swimmer", "budget=smoke", "env.max_steps=100", "budget.batch=2000", *words]))
    ledger = Ledger(setup.budget.steps)
    method: Any = setup.new_method(ledger)
    iteration = method.iterate()
    method.close()
    return iteration, method, ledger


@pytest.mark.parametrize("name", ["transform2act", "continuous"])
def test_a_batch_in_parts_charges_the_same(name: str) -> None:
    small = ("method.ppo.minibatch=250", "method.ppo.passes=1", "sampler.groups=2")
    whole, once, ledger = first_iteration(f"method={name}", *small)
    parts, often, other = first_iteration(f"method={name}", *small, "method.inner_iterations=4")
    assert ledger.charged == other.charged == 2000
    assert once.ppo.updates == often.ppo.updates == 8
    assert often.pool.slots < once.pool.slots
    assert set(parts.metrics) == set(whole.metrics)
    if name == "continuous":
        assert often.pairs == 4 * often.pool.slots // 2
        assert [row["iteration"] for row in parts.tables["population"]] == [1]
        assert parts.new_designs == 2 * often.pairs


def test_parts_must_divide_the_batch() -> None:
    with pytest.raises(ConfigError, match=r"method.inner_iterations is 3; allowed are divisors of budget.batch, 2000\."):
        first_iteration("method=transform2act", "method.inner_iterations=3")
