"""What is said of runs, from what lies on the disk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codesign_bench.commands.status import main
from codesign_bench.experiment.run_folder import RunFolder, Table
from codesign_bench.launching import plan
from codesign_bench.launching.job import Ending
from codesign_bench.launching.status import statuses
from codesign_bench.launching.watch import Watch
from tests.experiment.tiny import changed, folder_of, run, tiny

Toys = Callable[..., dict[str, Any]]


def planned(results: Path, *seeds: int, until: int = 160, steps: int = 160) -> None:
    study = results / "default"
    study.mkdir(parents=True, exist_ok=True)
    runs = {f"swimmer/toy/seed_{seed}": {"until": until, "steps": steps} for seed in seeds}
    (study / plan.NAME).write_text(json.dumps(runs))


def test_the_five_states(toy: Toys, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configs = [toy(seed=seed, results=str(tmp_path)) for seed in range(6)]
    planned(tmp_path, *range(6))
    run(configs[0])
    run(changed(configs[1], budget={"until": 80}))
    for seed, state in ((2, "stopped"), (3, "failed"), (4, "running")):
        folder_of(configs[seed]).mkdir(parents=True)
        RunFolder.of(configs[seed]).set_status(state, steps=40, until=160, reason=f"because of {seed}")
    with RunFolder.of(configs[1]).locked():
        found = statuses(tmp_path)
    assert [each.state for each in found] == ["done", "running", "stopped", "failed", "stopped", "missing"]
    assert [each.steps for each in found] == [160, 80, 40, 40, 40, 0]
    assert found[2].reason == "because of 2"
    assert found[3].reason == "because of 3"
    assert "ended without a word" in found[4].reason
    assert statuses(tmp_path)[1].reason == "waits for its next round"
    assert main([f"results={tmp_path}", "study=default"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["6 runs on swimmer: 1 done, 1 failed, 2 stopped, 1 waiting, 1 not begun", "360 of 960 steps"]
    assert len(lines) == 3 + 6 + 3
    assert lines[-2] == "swimmer/toy/seed_3 failed: because of 3"
    assert main([f"results={tmp_path}", "json=true", "seed=4,5"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["seed"], row["state"]) for row in rows][-1] == (5, "missing")
    assert len(rows) == 2
    assert main([f"study={tmp_path / 'default'}", "json=true"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["best_return"] == found[0].best_return


def test_speed_and_time_left(toy: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run at work, what it says itself; a row of progress.csv may be old. Silence makes it slower."""
    config = toy(results=str(tmp_path))
    folder = RunFolder.of(config)
    monkeypatch.setattr(time, "time", lambda: 1000.0)

    def found(**details: Any) -> tuple[float | None, ...]:
        folder.set_status("running", steps=60, until=160, **details)
        (each,) = statuses(tmp_path, ["default"])
        return each.steps_per_second, each.seconds_left

    with folder.locked():
        assert found() == (None, None)
        Table(folder.progress).append({"steps": 60, "steps_per_second": 20.0, "return_mean": 3.0, "best_return": 3.5})
        assert found() == (None, None), "of an earlier session, as far as anybody knows"
        recent = {"recent_steps": 40, "recent_seconds": 4.0}
        assert found(**recent) == (10.0, 10.0)
        monkeypatch.setattr(time, "time", lambda: 1003.0)
        assert statuses(tmp_path)[0].seconds_left == 7.0
        monkeypatch.setattr(time, "time", lambda: 1008.0)
        assert statuses(tmp_path)[0].steps_per_second == 5.0, "eight seconds without a checkpoint"
        assert statuses(tmp_path)[0].seconds_left == 12.0
        for bad in ({"recent_steps": "x"}, {"recent_seconds": []}, {"recent_steps": float("nan")}, {"recent_seconds": float("inf")}):
            assert found(**{**recent, **bad}) == (None, None)
        assert found(recent_steps=0, recent_seconds=4.0) == (None, None)
    (each,) = statuses(tmp_path)
    assert (each.state, each.steps_per_second, each.seconds_left) == ("stopped", 20.0, 5.0)
    assert (each.latest_return, each.best_return) == (3.0, 3.5)


def test_a_run_says_how_fast_it_was_lately(toy: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, float]] = []
    keep = RunFolder.set_status

    def listening(self: RunFolder, status: str, **details: Any) -> None:
        if "recent_steps" in details:
            said.append((details["recent_steps"], details["recent_seconds"]))
        keep(self, status, **details)

    monkeypatch.setattr(RunFolder, "set_status", listening)
    run(toy(results=str(tmp_path)))
    assert [steps for steps, _ in said] == [40, 80, 120, 160]
    assert [seconds for _, seconds in said] == sorted(seconds for _, seconds in said)


@pytest.mark.parametrize("content", [b"", b"[1]", b"{}", b'{"status"', b"\xff\xfe"])
def test_damaged_files_are_no_obstacle(toy: Toys, tmp_path: Path, content: bytes) -> None:
    config = toy(results=str(tmp_path))
    run(config)
    for name in ("status.json", "progress.csv", "../../../plan.json"):
        (folder_of(config) / name).write_bytes(content)
    (tmp_path / "default" / "swimmer" / "toy" / "seed_x").mkdir()
    (tmp_path / "default" / "notes.txt").write_text("")
    (found,) = statuses(tmp_path)
    assert (found.state, found.steps_per_second) == ("missing", None)


def test_half_a_row_is_not_the_last_one(toy: Toys, tmp_path: Path) -> None:
    config = toy(results=str(tmp_path))
    run(config)
    (before,) = statuses(tmp_path)
    with open(folder_of(config) / "progress.csv", "ab") as file:
        file.write(b"5,200,1.")
    assert statuses(tmp_path) == [before]


@pytest.mark.parametrize(
    ("arguments", "fragment"), [(["mars"], "not understood"), (["study=mars"], "There is no folder"), (["studdy=1"], "nearest is study")]
)
def test_refusals(tmp_path: Path, arguments: list[str], fragment: str) -> None:
    with pytest.raises(ValueError, match=fragment):
        main([f"results={tmp_path}", *arguments])


def test_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"results={tmp_path}"]) == 0
    assert "0 runs" in capsys.readouterr().out


def test_a_sweep_that_is_watched_without_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also by a clock that stands still."""
    config = tiny(tmp_path)
    plan.add([config])
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    with Watch([config], "round 1 of 1") as watch:
        watch.finished(Ending.of(config, "failed", "It broke."))
        watch.finished(Ending.of(config, "stopped"))
    assert capsys.readouterr().err.splitlines() == [
        "round 1 of 1: 1 runs on swimmer: 1 not begun; 0 of 800 steps",
        "swimmer/transform2act/seed_0: failed (It broke.)",
    ]


def test_runs_that_went_further_before_are_done_with_this_round(toy: Toys, tmp_path: Path) -> None:
    config = toy(results=str(tmp_path))
    run(config)
    path = str(folder_of(config))
    assert [(each.state, each.until) for each in statuses(tmp_path, None, {path: 80})] == [("done", 80)]
    RunFolder.of(config).set_status("stopped", steps=120, until=160, reason="stopped by a signal")
    assert [(each.state, each.reason) for each in statuses(tmp_path, None, {path: 80})] == [("done", "")]
    assert [each.state for each in statuses(tmp_path)] == ["stopped"]
    assert statuses(tmp_path, None, {}) == []


def test_watching_elsewhere_than_on_a_terminal(
    toy: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table again and again, until somebody has seen enough: nothing is said of that."""
    planned(tmp_path, 0, 1)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    assert main([f"results={tmp_path}", "watch=true"]) == 130
    assert pauses == [10.0, 10.0]
    output, errors = capsys.readouterr()
    assert output.count("2 runs on swimmer: 2 not begun\n0 of 320 steps\n") == 2
    assert errors == ""
    with pytest.raises(ValueError, match="watch and json are both true"):
        main([f"results={tmp_path}", "watch=true", "json=true"])
