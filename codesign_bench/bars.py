"""What a terminal shows while something goes on: at its bottom, with all that is printed meanwhile above it. Elsewhere there are lines."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from codesign_bench.terminal import Printable, duration, printable

SHORT = 2.0
"""Seconds: of work that takes less nothing is said where there is no terminal."""


class Terminal(Console):
    """Writes text as it is, without markup. The cursor stays visible, so that a process that is killed leaves a terminal in order."""

    def __init__(self, stream: Any) -> None:
        super().__init__(file=stream, markup=False, emoji=False, highlight=False)

    def show_cursor(self, show: bool = True) -> bool:
        return False


def terminal(stream: Any) -> Terminal | None:
    """The terminal that a stream is, if nothing is shown on it yet."""
    raw = stream.stream if isinstance(stream, Printable) else stream
    if raw is None or raw.closed or isinstance(raw, FileProxy) or not raw.isatty():
        return None
    found = Terminal(raw)
    return found if found.is_interactive else None


def say(text: str) -> None:
    """To standard error; on a terminal no line breaks within a word."""
    screen = terminal(sys.stderr)
    if screen is None:
        print(text, file=sys.stderr)
    else:
        screen.print(Text(printable(text)))


@contextlib.contextmanager
def live(shown: RenderableType, stream: Any) -> Iterator[Callable[[], None] | None]:
    """Shows it on a terminal, and gives what to call when it has changed; None where there is no terminal."""
    screen = terminal(stream)
    if screen is None:
        yield None
        return
    with Live(shown, console=screen, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as display, _above(screen):
        yield display.refresh


@contextlib.contextmanager
def bar(text: str, total: float, done: int = 0, stays: bool = False) -> Iterator[Callable[[float, str], None] | None]:
    """Gives what to call with how much of the total is done, and with what to say of that; None where there is no terminal."""
    screen = terminal(sys.stderr)
    if screen is None:
        yield None
        return
    columns = (BarColumn(20), TextColumn("{task.description}", markup=False))
    options: Any = {"refresh_per_second": 2, "transient": not stays, "redirect_stdout": False, "redirect_stderr": False}
    with Progress(*columns, console=screen, **options) as progress, _above(screen):
        task = progress.add_task(text, total=total, completed=done)
        yield lambda done, text: progress.update(task, completed=done, description=text)


@contextlib.contextmanager
def counted(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Gives what to call after each part of some work ("gallery: frame"): a bar with the time left, or a line at its beginning and one at
    its end."""
    began, done, said = time.monotonic(), 0, False
    with bar(f"{what} 0 of {total}", total) as show:

        def part() -> None:
            nonlocal done, said
            done, seconds = done + 1, time.monotonic() - began
            if show is not None:
                show(done, f"{what} {done} of {total}, {duration(seconds / done * max(0, total - done))} left")
            elif seconds > SHORT and not said:
                said = True
                print(f"{what} {done} of {total}", file=sys.stderr)

        yield part
    if said:
        print(f"{what.partition(':')[0]}: done after {duration(time.monotonic() - began)}", file=sys.stderr)


@contextlib.contextmanager
def _above(screen: Terminal) -> Iterator[None]:
    """While entered, lines of both streams are printed above what is shown, made printable first: rich would obey their escapes."""
    with contextlib.ExitStack() as redirected:
        for redirect, stream in ((contextlib.redirect_stdout, sys.stdout), (contextlib.redirect_stderr, sys.stderr)):
            if stream.isatty():
                redirected.enter_context(redirect(Printable(FileProxy(screen, stream))))  # type: ignore[type-var]
        yield
