"""The soak finds nothing wrong with sound runs, and finds what is wrong with others."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.experiment.tiny import ROOT, environment
from tests.faults import soak
from tests.faults.case import Case
from tests.faults.faults import half_a_line, kill_main, truncated_checkpoint
from tests.faults.runs import METHODS, config_of, plugin_of
from tests.faults.trial import Found, attempt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all cases; a twin is made once."""
    return tmp_path_factory.mktemp("soak")


def test_a_run_that_is_killed_and_damaged(folder: Path) -> None:
    verdict = attempt("transform2act_no_gnn", [kill_main, truncated_checkpoint, half_a_line], [0, 0], folder)
    assert not verdict.bad, verdict
    assert [each.fault for each in verdict.found] == ["kill_main", "truncated_checkpoint", "half_a_line"][: len(verdict.found)]
    assert verdict.found[0] == Found("kill_main")
    assert not (folder / "0_0").exists()


def rows(case: Case) -> list[list[str]]:
    with open(case.folder / "progress.csv", newline="") as file:
        return list(csv.reader(file))


def write(case: Case, lines: list[list[str]]) -> None:
    with open(case.folder / "progress.csv", "w", newline="") as file:
        csv.writer(file).writerows(lines)


def lost_row(case: Case) -> None:
    case.some_steps()
    write(case, rows(case)[:-1])


def changed_number(case: Case) -> None:
    case.some_steps()
    head, first, *rest = rows(case)
    at = head.index("return_mean")
    write(case, [head, [*first[:at], first[at][:-1] + ("1" if first[at][-1] != "1" else "2"), *first[at + 1 :]], *rest])


def changed_table(case: Case) -> None:
    case.some_steps()
    path = case.folder / "tables" / "learning.csv"
    path.write_bytes(path.read_bytes().replace(b"\n1,", b"\n7,", 1))


def changed_design(case: Case) -> None:
    """The run does not write it again."""
    case.some_steps()
    path = min((case.folder / "designs").glob("at_*.json"))
    path.write_bytes(path.read_bytes() + b"\n")


def wrong_status(case: Case) -> None:
    case.some_steps()
    path = case.folder / "status.json"
    path.write_text(path.read_text().replace('"steps": ', '"steps": 7'))


def litter(case: Case) -> None:
    case.some_steps()
    (case.root / "tmp" / "litter").touch()


def orphan(case: Case) -> None:
    def first() -> None:
        subprocess.Popen(["sleep", "60"])
        os._exit(0)

    case.start(first=first).end()


FLAWS: dict[Any, Callable[[Found], bool]] = {
    lost_row: lambda each: each.lost == 1,
    changed_number: lambda each: "progress.csv[0].return_mean" in each.unequal,
    changed_table: lambda each: "learning.csv[0].iteration" in each.unequal,
    changed_design: lambda each: "designs.at_" in each.unequal,
    wrong_status: lambda each: "status says" in each.broken,
    litter: lambda each: "tmp/litter left" in each.broken,
}
FAST = (lost_row, changed_number)


@pytest.mark.parametrize("flaw", [pytest.param(flaw, id=flaw.__name__, marks=() if flaw in FAST else pytest.mark.slow) for flaw in FLAWS])
def test_it_notices(flaw: Any, folder: Path) -> None:
    verdict = attempt("transform2act_no_gnn", [flaw], [1, list(FLAWS).index(flaw)], folder)
    assert verdict.bad
    assert FLAWS[flaw](verdict.found[0]), verdict
    assert Path(verdict.folder).is_dir()


def test_it_notices_processes_that_are_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.faults import trial

    monkeypatch.setattr(trial, "LAST_MOMENT", 0.5)
    verdict = attempt("transform2act_no_gnn", [orphan], [2, 0], folder)
    assert "are left" in verdict.found[0].broken, verdict
    for process in trial.marked(folder / "2_0"):
        process.kill()


def test_every_method_has_a_run() -> None:
    assert len(METHODS) > 15
    assert {plugin_of(method) for method in ("nge", "bodygen", "continuous", "transform2act")} == {
        "nge",
        "bodygen",
        "continuous",
        "transform2act",
    }
    assert config_of("transform2act_no_gnn", Path("unused"))["method"]["execution"]["gnn"] is None


def test_a_case_follows_from_its_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn = []
    monkeypatch.setattr(soak, "attempt", lambda *arguments: drawn.append(arguments))
    for number in (*range(40), *range(40)):
        soak.case(3, number, tmp_path)
    assert drawn[:40] == drawn[40:]
    assert len({tuple(faults) for _, faults, _, _ in drawn}) > 20
    assert {method for method, *_ in drawn} == set(METHODS)


def test_the_table_and_the_command_that_repeats_a_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = soak.Verdict(17, "nge", [Found("kill_main"), Found("half_a_line", 2, "steps is 1 and 2")], str(tmp_path))
    monkeypatch.setattr(soak, "case", lambda *_: bad)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert soak.main(["0.001", "5", "17"]) == 1
    said = capsys.readouterr().out
    assert "make soak SEED=5 CASE=17" in said
    lines = [line.split() for line in said.splitlines()]
    for line in (["kill_main", "1", "0", "0", "0"], ["half_a_line", "1", "2", "1", "0"], ["all", "2", "2", "1", "0"]):
        assert line in lines


@pytest.mark.parametrize("words", [["x"], ["0"], ["1", "-1"], ["1", "0", "two"]])
def test_arguments_that_it_refuses(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(words) == 2
    assert "allowed are hours above 0 and whole numbers from 0 up" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_ends_with_the_table(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "tests.faults.soak", "1"]
    variables = {**environment(), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(line, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        while process.poll() is None and not list(tmp_path.glob("codesign_soak_*/*_*")):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert said.splitlines()[0].split() == ["fault", "tried", "rows", "lost", "not", "bit-equal", "otherwise", "broken"]
    assert not list(tmp_path.glob("codesign_soak_*"))
