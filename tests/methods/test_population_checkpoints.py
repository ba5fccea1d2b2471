"""Populations that stop and go on: within a generation, at the end of a round, with their tables."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from codesign_bench.experiment import checkpoint, runner
from codesign_bench.experiment.equality import must_equal, outcome
from codesign_bench.structured import merged
from tests.methods.population import Stopped, make, small, stop_after, tables


@pytest.mark.parametrize("method", ["nge", "rgs", "derl", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ess", "gm_uc"))])
def test_resume_in_the_middle_of_a_generation(method: str, tmp_path: Path) -> None:
    """Every checkpoint, between cohorts too, goes on to the same end."""
    surrogate = ("method.gm_uc.enabled=true", "method.gm_uc.steps=3", "method.elimination=0.5", "budget.steps=1600")
    options = {"gm_uc": surrogate, "rgs": ("method.redraw_every=2",)}
    config = small("nge" if method == "gm_uc" else method, *options.get(method, ()))
    saved: list[tuple[int, dict[str, Any]]] = []
    found = make(config, lambda: saved.append((found.context.ledger.charged, json_free(found.state_dict(), tmp_path))))
    episodes = []
    while found.context.ledger.left:
        episodes.append(found.iterate().episodes)
    if method == "gm_uc":
        assert [bool(state["surrogate"]["optimiser"]["state"]) for _, state in saved] == [False] * 3 + [True] * 2
    assert [charged for charged, _ in saved] == [160 + 320 * i for i in range(len(episodes))]
    for charged, state in saved:
        again = make(config)
        again.load_state_dict(state)
        again.context.ledger.charged = charged
        iteration = again.iterate()
        assert iteration.episodes == episodes[charged // 320]
        while again.context.ledger.left:
            again.iterate()
        must_equal(found.state_dict(), again.state_dict(), f"a population resumed at {charged} steps")


def json_free(state: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A state as a checkpoint gives it back."""
    checkpoint.save(folder, 1, state, "hash")
    loaded, _ = checkpoint.load_latest(folder, "hash")
    assert loaded is not None
    return loaded


def test_a_run_stopped_between_cohorts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables too: what a stopped session wrote after its last checkpoint is cut away."""
    config = small("nge", results=tmp_path / "one")
    assert runner.run(config, []) == "done"
    expected = tables(config)
    stopped = merged(config, {"results": str(tmp_path / "two")})
    for steps in (160, 480, 640, 800):
        stop_after(stopped, steps)
    record = runner.LiveRun.record

    def lost(job: Any, evaluation: Any) -> None:  # after the tables were written, before the checkpoint
        record(job, evaluation)
        raise Stopped

    monkeypatch.setattr(runner.LiveRun, "record", lost)
    with pytest.raises(Stopped):
        runner.run(stopped, [])
    monkeypatch.undo()
    assert len(tables(stopped)["genealogy"]) == 12
    assert runner.run(stopped, []) == "done"
    assert tables(stopped) == expected
    outcome(config).must_equal(outcome(stopped), "a run that was stopped five times")


def test_a_round_boundary_is_an_exact_prefix(tmp_path: Path) -> None:
    config = small("nge", results=tmp_path / "short")
    short = merged(config, {"budget": {"until": 640}})
    long = merged(config, {"results": str(tmp_path / "long")})
    runner.run(short, [])
    runner.run(long, [])
    rows, more = tables(short), tables(long)
    with open(runner.RunFolder.of(long).progress, newline="") as file:
        assert [int(row["steps"]) for row in csv.DictReader(file)] == [320, 640, 960]  # a row for every generation
    for name in rows:
        assert rows[name] == more[name][: len(rows[name])]
        assert len(more[name]) > len(rows[name])
