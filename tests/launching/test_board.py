"""The table of runs: it fits, it accounts for every run, and nothing that a file says becomes markup or an escape sequence."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from codesign_bench.launching.board import STATES, Board, state_of
from codesign_bench.launching.status import WAITS, RunStatus

RUN = RunStatus("s", "gap", "transform2act", 0, "running", 12_345_678, 50_000_000, 50_000_000, 1566.0, 24_045.0, 1234.5, 1300.0, "", "p")
METHODS = ("transform2act", "transform2act_no_control_jsmlp", "stackelberg", "rgs")
KINDS = {"running": "", "failed": "It broke.", "stopped": "stopped by a signal", "done": "", "missing": ""}


def many(number: int, envs: Sequence[str] = ("gap",), running: int = 2) -> list[RunStatus]:
    """Of every kind in turn, `running` of them at work."""
    kinds, runs = [kind for kind in KINDS if kind != "running"], []
    for n in range(number):
        kind = "running" if n < running else kinds[n % len(kinds)]
        place = {"env": envs[n % len(envs)], "method": METHODS[n % len(METHODS)], "seed": n}
        runs.append(replace(RUN, **place, state=kind, reason=KINDS[kind], path=str(n)))  # type: ignore[arg-type]
    return runs


def board(runs: list[RunStatus], title: str = "round 1 of 4") -> Board:
    shown = Board(lambda: runs, title)
    assert shown.look() >= 1.0
    return shown


def screen(shown: Board, width: int, height: int, colours: bool = False) -> list[str]:
    """What a terminal of this size would show."""
    kind = {"force_terminal": True, "color_system": "standard"} if colours else {"color_system": None}
    console = Console(file=io.StringIO(), width=width, height=height, _environ={}, **kind)  # type: ignore[arg-type]
    with console.capture() as captured:
        console.print(shown)
    return captured.get().splitlines()


@pytest.mark.parametrize("height", [6, 10, 24, 50])
@pytest.mark.parametrize("width", [40, 80, 100, 120, 200])
@pytest.mark.parametrize("number", [1, 3, 12, 30, 200])
def test_it_fits_and_accounts_for_every_run(width: int, height: int, number: int) -> None:
    runs = many(number, ("gap", "glider_regular", "swimmer"))
    lines = screen(board(runs), width, height)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) < height or height < 10
    shown = sum(line.rstrip().endswith(tuple(STATES)) and line.split()[0] not in ("and", "round") for line in lines)
    rest = int(lines[-1].split()[1]) if lines[-1].startswith("and ") else 0
    assert shown + rest == number or width < 80
    assert lines[0].startswith(f"round 1 of 4: {number} runs")
    assert all(line.count("…") <= 2 for line in lines), "numbers and states are whole"


def test_what_there_is_no_room_for() -> None:
    """Who is at work comes first, then who failed."""
    lines = screen(board(many(40, running=3)), 100, 12)
    assert [line.split()[-1] for line in lines[3:-1]] == ["running"] * 3 + ["failed"] * 4
    assert lines[-1] == "and 33 more: 5 failed, 9 stopped, 9 done, 10 not begun"


def test_an_environment_that_is_out_of_sight_is_one() -> None:
    runs = [*many(20), replace(RUN, env="swimmer", state="missing")]
    (heading,) = [line for line in screen(board(runs), 100, 12) if "method" in line]
    assert heading.split()[:2] == ["env", "method"]


def test_columns_at_eighty_and_more() -> None:
    runs = [RUN, replace(RUN, method="rgs", seed=1, state="missing", steps=0, steps_per_second=None, seconds_left=None, latest_return=None)]
    text = screen(board(runs), 80, 24)
    assert text[0] == "round 1 of 4: 2 runs on gap: 1 running, 1 not begun"
    assert text[1] == "12.3M of 100M steps, 1,566 steps/s together, 15 h 33 min left"
    assert text[2].split() == ["method", "seed", "steps", "steps/s", "return", "left", "state"]
    assert text[3].split() == ["transform2act", "0", "12.3M", "of", "50M", "1,566", "1,234.5", "6", "h", "41", "min", "running"]
    assert text[4].split() == ["rgs", "1", "0", "of", "50M", "not", "begun"]
    runs = [replace(run, env=env) for run, env in zip(runs, ("glider_regular", "gap"), strict=True)]
    assert screen(board(runs), 120, 24)[2].split()[:2] == ["env", "method"]
    assert "best" in screen(board(runs), 120, 24)[2]
    assert "steps/s" not in screen(board(runs), 80, 24)[2], "names need the room"
    (line,) = screen(board([replace(RUN, method="transform2act_no_control_jsmlp")]), 60, 24)[3:]
    assert line.split()[0] == "transform2act_no_c…"


def test_in_the_end() -> None:
    """A round is not the whole protocol."""
    runs = [replace(RUN, steps=300, until=400, budget=1000, steps_per_second=10.0, seconds_left=10.0)]
    assert board(runs).headline() == [
        "round 1 of 4: 1 runs on gap: 1 running",
        "300 of 400 steps, 10 steps/s together, 10 s left",
        "in the end 300 of 1k steps, 70 s left",
    ]
    unknown = [replace(run, steps_per_second=None, seconds_left=None) for run in runs]
    assert board(unknown).headline()[1] == "300 of 400 steps, time left is known in a minute"
    assert board([replace(run, state="stopped") for run in runs], "").headline() == [
        "1 runs on gap: 1 stopped",
        "300 of 400 steps",
        "in the end 300 of 1k steps",
    ]
    assert board([], "").headline() == ["0 runs", "0 of 0 steps"]


def test_as_many_side_by_side_as_there_were() -> None:
    """Between two runs there is one less for a moment."""
    states = [["running", "running", "missing", "missing"], ["running", "done", "missing", "missing"]]
    found = [
        [
            replace(RUN, seed=n, steps=0, until=400, budget=400, steps_per_second=10.0, seconds_left=40.0, state=state)
            for n, state in enumerate(each)
        ]
        for each in states
    ]  # type: ignore[arg-type]
    found[1][1] = replace(found[1][1], steps=400)
    looks = iter(found)
    shown = Board(lambda: next(looks))
    shown.look()
    assert shown.headline()[1].endswith("80 s left")
    shown.look()
    assert shown.headline()[1].endswith("80 s left")


HOSTILE = (
    "[bold red]m[/]",
    "\x1b[2J\x1b]8;;http://x\x07m",
    "a\nb\rc\td",
    "\u202edrowssap",
    "[link=http://x]m[/link]",
    ":smile:",
    "名前" * 30,
    "e\u0301" * 40,
)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("width", [70, 80, 120])
def test_names_and_reasons_are_text(name: str, width: int) -> None:
    runs = [replace(RUN, study=name, method=name, env=name, state="failed", reason=name), RUN]
    for colours in (False, True):
        lines = screen(board(runs), width, 24, colours)
        assert len(lines) == 5
        text = "\n".join(lines)
        for code in ("\x1b[2J", "\x1b]", "\u202e", "\r", "\x07"):
            assert code not in text
        if not colours:
            assert max(map(cell_len, lines)) <= width
    if name.startswith("["):
        assert name in board(runs).text()
    assert all(char.isprintable() or char == "\n" for char in board(runs).text())


@pytest.mark.parametrize("state", ["[red]", "\x1b[2J", "queued", ""])
def test_a_state_that_nobody_wrote(state: str) -> None:
    assert state_of(replace(RUN, state=state)) == "stopped"  # type: ignore[arg-type]


def test_the_whole_as_plain_text() -> None:
    runs = [*many(9), replace(RUN, seed=99, state="stopped", reason=WAITS)]
    lines = board(runs, "").text().splitlines()
    assert lines[0] == "10 runs on gap: 2 done, 2 running, 2 failed, 1 stopped, 1 waiting, 2 not begun"
    assert lines[2].split() == ["method", "seed", "steps", "steps/s", "return", "best", "left", "state"]
    assert len(lines) == 3 + 10 + 2
    assert lines[13] == "gap/transform2act/seed_4 and 1 more failed: It broke."
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("number", [float("inf"), 1e300, -1e300, 1e-300])
def test_numbers_beyond_all_measure(number: float) -> None:
    runs = [replace(RUN, steps_per_second=abs(number), seconds_left=abs(number), latest_return=number, best_return=number)]
    assert max(map(len, screen(board(runs), 80, 24))) <= 80
