"""What shows at the bottom of a terminal while something goes on, and the lines that stand in for it elsewhere."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import time

import pytest
from rich.text import Text

from codesign_bench import bars
from codesign_bench.bars import bar, counted, live, say, terminal
from codesign_bench.terminal import Printable, count, duration, plain_output, short

HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"


class Screen(io.StringIO):
    """A terminal that keeps what it was sent."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """80 by 24."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "80"), ("LINES", "24")):
        monkeypatch.setenv(name, value)
    return Screen()


def lines(text: str) -> list[str]:
    """Without what moves the cursor."""
    return [line.strip() for line in re.split(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]", text) if line.strip()]


def test_what_is_printed_stands_above(screen: Screen) -> None:
    with contextlib.redirect_stderr(screen), plain_output(), live(Text("the board"), sys.stderr) as refresh:
        assert refresh is not None
        print("a message", file=sys.stderr)
        refresh()
        assert terminal(sys.stderr) is None, "one thing at a time"
        with bar("inner", 10) as show:
            assert show is None
    sent = screen.getvalue()
    assert lines(sent) == ["the board", "a message", "the board", "the board", "the board"]
    assert HIDDEN not in sent, "a process that is killed leaves the cursor"
    assert sent.endswith("\n")
    assert not isinstance(sys.stderr, Printable)


def test_what_is_printed_is_text(screen: Screen) -> None:
    with contextlib.redirect_stderr(screen), plain_output(), live(Text("the board"), sys.stderr):
        print("\x1b]8;;http://x\x07\x1b[31m[bold]x[/bold] :smile:\u202e", file=sys.stderr)
    sent = screen.getvalue()
    assert "?]8;;http://x??[31m[bold]x[/bold] :smile:?" in sent
    for code in ("\x1b]", "\x1b[31m", "\u202e", "\x07"):
        assert code not in sent


def test_no_line_breaks_within_a_word(screen: Screen) -> None:
    text = "method " + "transform2act, " * 12 + "[x]"
    with contextlib.redirect_stderr(screen):
        say(text)
    assert max(map(len, screen.getvalue().splitlines())) <= 80
    assert screen.getvalue().split() == text.split()


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"TTY_COMPATIBLE": "0"}])
def test_a_terminal_that_cannot(screen: Screen, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert terminal(screen) is None


def test_colours_that_are_forced_make_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert terminal(io.StringIO()) is None


def test_a_bar_is_gone_when_its_work_is_done(screen: Screen) -> None:
    with contextlib.redirect_stderr(screen), counted("gallery: frame", 3) as part:
        for _ in range(3):
            part()
        time.sleep(0.6)  # it is drawn twice a second
        print("a warning", file=sys.stderr)
    sent = screen.getvalue()
    assert "gallery: frame 3 of 3, 0 s left" in sent
    assert "a warning" in sent
    assert sent.endswith("\x1b[2K"), "the line is empty again"
    assert HIDDEN not in sent


def test_a_line_at_either_end_elsewhere(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with counted("gallery: frame", 3) as part:
        part()
    assert capsys.readouterr().err == "", "short work"
    now = [0.0]
    monkeypatch.setattr(bars.time, "monotonic", lambda: now[0])
    with counted("gallery: frame", 3) as part:
        for now[0] in (3.0, 6.0, 9.0):
            part()
    assert capsys.readouterr().err == "gallery: frame 1 of 3\ngallery: done after 9 s\n"
    with contextlib.suppress(ValueError), counted("gallery: frame", 3) as part:
        now[0] = 20.0
        part()
        raise ValueError("no line at the end")
    assert capsys.readouterr().err == "gallery: frame 1 of 3\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0, "0 s"),
        (89, "89 s"),
        (90, "2 min"),
        (3600, "60 min"),
        (12_000, "3 h 20 min"),
        (432_000, "5.0 days"),
        (1e300, "a century"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
    assert duration(float("inf")) == duration(float("nan")) == "a century"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (12_345, "12.3 k"), (999_600, "1 M"), (50_000_000, "50 M"), (2e9, "2 G")]
)
def test_counts(number: float, text: str) -> None:
    assert count(number) == text
    assert short(number) == text.replace(" ", "")
