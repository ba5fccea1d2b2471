"""Transform2Act passes the conformance suite, and the suite finds what is wrong with a method."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from codesign_bench.commands import check as command
from codesign_bench.configuration import load_config
from codesign_bench.design.graph import Design
from codesign_bench.experiment import conformance
from codesign_bench.experiment.equality import difference, must_equal
from codesign_bench.experiment.evaluation import Evaluation, evaluate
from codesign_bench.experiment.runner import RunSetup
from tests.experiment.tiny import tiny


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conformance")


IN_SECONDS = [check for check in conformance.CHECKS if check is not conformance.worker_independence]


@pytest.mark.parametrize("env", ["swimmer", "gap"])
@pytest.mark.parametrize("check", IN_SECONDS, ids=lambda check: check.__name__)
def test_transform2act(check: Callable[..., None], env: str, shared: Path) -> None:
    check(tiny(shared, "budget.steps=400", env=env), shared / env)


@pytest.mark.parametrize("env", ["swimmer", pytest.param("gap", marks=pytest.mark.slow)])
def test_transform2act_with_workers(env: str, shared: Path) -> None:
    conformance.worker_independence(tiny(shared, "budget.steps=400", env=env), shared / env)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["no_gnn", "no_control_jsmlp", "no_jsmlp", "attributes"])
def test_ablations(method: str, tmp_path: Path) -> None:
    keep = [] if method != "no_gnn" else [f"method.{part}.gnn=null" for part in ("skeleton", "attribute", "execution")]
    conformance.check(tiny(tmp_path, f"method=transform2act_{method}", *keep, env="gap"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("env", ["locomotion2d", "locomotion3d"])
def test_transform2act_elsewhere(env: str, tmp_path: Path) -> None:
    conformance.check(tiny(tmp_path, env=env), tmp_path)


def test_a_method_without_a_flaw_passes(toy: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    for check in IN_SECONDS:
        check(toy(), tmp_path / "checks")


@pytest.mark.parametrize(
    ("flaw", "check", "sentence"),
    [
        ("charges twice", "equal_charging", "Iteration 2 charged 80 steps; it must charge 40."),
        ("steps of its own", "equal_charging", "Iteration 1 charged 0 steps; it must charge 40."),
        ("global numbers", "determinism", "a second run with the same seed must be bit-equal"),
        ("forgets", "resume_equality", "stopped after every iteration and resumed must be bit-equal"),
        ("forgets", "state_survives", "The iteration after a state was saved and loaded must be bit-equal"),
        ("saves objects", "state_survives", "The state of the run cannot be saved: object is of type PosixPath; allowed are "),
        ("counts workers", "worker_independence", "a run with 1 workers must be bit-equal"),
        ("other task", "legal_designs", "The champion acts in gap; the task is swimmer."),
        ("noisy champion", "champion_deterministic", "The champion's episodes with other action noise must be bit-equal"),
        ("evaluation trains", "champion_deterministic", "The method's state after its champion has played must be bit-equal"),
        ("evaluation trains", "evaluation_apart", "Training with other evaluations must be bit-equal"),
        ("litters", "writes_inside", "litter.txt"),
    ],
)
def test_a_flaw_is_found(toy: Callable[..., dict[str, Any]], tmp_path: Path, flaw: str, check: str, sentence: str) -> None:
    with pytest.raises(AssertionError) as error:
        getattr(conformance, check)(toy(flaw), tmp_path / "checks")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_an_illegal_design_is_found(toy: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_two_legs(*arguments: Any) -> Evaluation:
        found = evaluate(*arguments)
        entry = found.design.to_dict()
        return dataclasses.replace(found, design=Design.from_dict({**entry, "nodes": [*entry["nodes"], entry["nodes"][1]]}))

    monkeypatch.setattr(conformance, "evaluate", with_two_legs)
    with pytest.raises(AssertionError, match="The champion after iteration 1 has an illegal design: The root has 2 children"):
        conformance.legal_designs(toy(), tmp_path)


def test_the_command(toy: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "load_config", lambda name, arguments: {**toy("none"), "task": None})
    monkeypatch.setattr(conformance, "CHECKS", (conformance.equal_charging, conformance.state_survives))
    assert command.main(["method=toy"]) == 0
    assert capsys.readouterr().out == "equal_charging: ok\nstate_survives: ok\n"


def test_the_command_says_all_that_it_finds(
    toy: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def raising(config: Any, folder: Path) -> None:
        raise KeyError("mine")

    monkeypatch.setattr(command, "load_config", lambda name, arguments: {**toy("charges twice"), "task": None})
    monkeypatch.setattr(conformance, "CHECKS", (conformance.equal_charging, raising, raising, conformance.determinism))
    assert command.main(["method=toy"]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "equal_charging: Iteration 2 charged 80 steps; it must charge 40."
    assert said.out.splitlines()[1:3] == ["raising: it raised KeyError: 'mine'"] * 2
    assert len(said.out.splitlines()) == 4
    assert said.err.count("Traceback") == 1


def test_the_commands_settings_are_valid() -> None:
    plan = RunSetup.of({key: value for key, value in load_config("check", ["env=gap"]).items() if key != "task"})
    assert plan.budget.steps % (plan.budget.population * plan.budget.agent_batch) == 0


@pytest.mark.parametrize(
    ("a", "b", "place"),
    [
        ({"a": [1, 2.0]}, {"a": [1, 2.5]}, "a[1] is 2.0 and 2.5"),
        ({"a": 1}, {"b": 1}, "the keys of the state differ"),
        ([1], [1, 2], "[1] is None and 2"),
        (1, 1.0, " is 1 and 1.0"),
        ({"w": torch.tensor([0.0])}, {"w": torch.tensor([-0.0])}, "w is tensor([0.]) and tensor([-0.])"),
        (np.zeros(2), np.zeros(2, dtype=np.float32), " is [0. 0.] and [0. 0.]"),
    ],
)
def test_differences_are_named(a: Any, b: Any, place: str) -> None:
    assert difference(a, b) == place
    with pytest.raises(AssertionError):
        must_equal(a, b, "This")


def test_equal_values_have_no_difference() -> None:
    nan = float("nan")
    value = {"a": [nan, torch.tensor([nan, 1.0]), np.array([nan])], "b": ("x", None, True), "c": {}}
    assert difference(value, {"a": [nan, torch.tensor([nan, 1.0]), np.array([nan])], "b": ["x", None, True], "c": {}}) is None
