"""What is said of runs, from what lies on the disk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codesign_bench.commands.status import main
from codesign_bench.experiment.run_folder import RunFolder, Table
from codesign_bench.launching import plan
from codesign_bench.launching.status import RunStatus, duration, statuses, table
from codesign_bench.launching.watch import Watch, outlook
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
    assert len(lines) == 8
    assert lines[-1] == "6 runs: 1 done, 3 stopped, 1 failed, 1 missing; 360 of 960 steps now, 960 in the end"
    assert main([f"results={tmp_path}", "json=true", "seed=4,5"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["seed"], row["state"]) for row in rows][-1] == (5, "missing")
    assert len(rows) == 2
    assert main([f"study={tmp_path / 'default'}", "json=true"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["best_return"] == found[0].best_return


def test_speed_and_time_left(toy: Toys, tmp_path: Path) -> None:
    config = toy(results=str(tmp_path))
    folder = RunFolder.of(config)
    with folder.locked():
        folder.set_status("running", steps=60, until=160)
        Table(folder.progress).append({"steps": 60, "steps_per_second": 20.0, "best_return": 3.5})
        (found,) = statuses(tmp_path, ["default"])
    assert (found.steps_per_second, found.seconds_left, found.best_return) == (20.0, 5.0, 3.5)


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


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (12_000, "3 h 20 min"), (432_000, "5.0 days")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


RUN = RunStatus("s", "gap", "m", 0, "running", 300, 400, 1000, 10.0, 10.0, None, "", "p")


def test_a_clock_that_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    with Watch([tiny(tmp_path)], "round 1 of 1"):
        pass
    assert "0 of 1 runs, 0 of 800 steps; the speed is known when" in capsys.readouterr().err


def test_the_outlook() -> None:
    """Two runs to 400 of 1000 steps: 300 and 0 are done, at 20 steps per second together."""
    other = replace(RUN, seed=1, state="missing", steps=0, steps_per_second=None)
    assert outlook([RUN, other], 400, 20.0) == (
        "0 of 2 runs, 300 of 800 steps, 20 steps/s; next figure in 10 s, round ends in 25 s, protocol in 85 s"
    )
    assert outlook([RUN, other], 400, 0.0) == (
        "0 of 2 runs, 300 of 800 steps; at 10 steps/s, as each run had so far, "
        "50 s to the end of the round and 3 min to that of the protocol, divided by the runs side by side"
    )
    assert outlook([other], 400, 0.0).endswith("the speed is known when the first iterations have ended, in a minute or so")


def test_the_table_is_aligned() -> None:
    lines = table([RUN, replace(RUN, method="longer", state="failed", reason="It broke.")]).splitlines()
    assert lines[0].index("state") == lines[1].index("running") == lines[2].index("failed")
    assert lines[2].endswith("It broke.")
