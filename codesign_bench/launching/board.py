"""Many runs as a table that fits its place, under how far they are and how long the rest takes."""

import io
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from codesign_bench.launching.outlook import seconds_left
from codesign_bench.launching.status import WAITS, RunStatus
from codesign_bench.terminal import duration, one_line, short

STATES = {"running": "green", "failed": "red", "stopped": "yellow", "waiting": "", "done": "dim", "not begun": "dim"}
"""How a run is, and its colour; the first ones are shown where there is no room for all."""
NAMES = ("study", "env", "method")
"""Columns that are shortened where there is no room."""
SPARED = {"best": 30, "steps/s": 24, "return": 13, "left": 8}
"""Columns that make room, the first one first, and the characters of a name that they make room for."""
GAP, WIDEST = 2, 1000
PAUSE, SHARE = 1.0, 0.02
"""Seconds between looks, and the most of the time that looking takes."""


class Board:
    """What there is to see of the runs that `read` gives; `look` reads them again."""

    def __init__(self, read: Callable[[], list[RunStatus]], title: str = "") -> None:
        self._read, self._title, self._side_by_side = read, title, 0
        self.runs: list[RunStatus] = []

    def look(self) -> float:
        """Gives the seconds after which it is worth the while to do so again."""
        began = time.monotonic()
        self.runs = self._read()
        self._side_by_side = max(self._side_by_side, sum(run.state == "running" for run in self.runs))
        return max(PAUSE, (time.monotonic() - began) / SHARE)

    def headline(self) -> list[str]:
        """How far the runs are, now and in the end, each in a line."""
        runs, states = self.runs, [state_of(run) for run in self.runs]
        counts = [f"{states.count(state)} {state}" for state in ("done", *STATES) if state in states]
        title, envs = f"{self._title}: " if self._title else "", {one_line(run.env) for run in runs}
        place = f" on {envs.pop()}" if len(envs) == 1 else ""
        lines = [f"{title}{len(runs)} runs{place}{': ' if runs else ''}{', '.join(dict.fromkeys(counts))}"]
        speed = sum(run.steps_per_second or 0 for run in runs if run.state == "running")
        ends: dict[str, Callable[[RunStatus], int]] = {"": lambda run: run.until}
        if any(run.budget > run.until for run in runs):
            ends["in the end "] = lambda run: run.budget
        for words, end in ends.items():
            whole, left = sum(map(end, runs)), seconds_left(runs, self._side_by_side, end)
            parts = [f"{words}{short(sum(min(run.steps, end(run)) for run in runs))} of {short(whole)} steps"]
            if speed and not words:
                parts.append(f"{_number(speed, 0)} steps/s together")
            if "running" in states:
                parts.append("time left is known in a minute" if left is None else f"{duration(left)} left")
            lines.append(", ".join(parts))
        return lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """All of it within the width and height of a terminal."""
        above = Text("\n".join(self.headline())).wrap(console, options.max_width)
        room = max(0, options.size.height - len(above) - 2)  # below the names of the columns, with a free line at the end
        runs = self.runs
        if len(runs) > room:
            order, room = list(STATES), max(0, room - 1)
            runs = sorted(runs, key=lambda run: order.index(state_of(run)))
        yield from above
        if room and runs:
            yield table(runs, options.max_width, room)
        if rest := [state_of(run) for run in runs[room:]]:
            more = ", ".join(f"{rest.count(state)} {state}" for state in STATES if state in rest)
            yield Text(f"and {len(rest)} more: {more}", no_wrap=True, overflow="ellipsis")

    def text(self, width: int = WIDEST) -> str:
        """Every run, however long that is, and why those stopped and failed that did."""
        written = io.StringIO()
        console = Console(file=written, width=width, force_terminal=False, color_system=None)
        for part in (*map(Text, self.headline()), *([table(self.runs, width)] if self.runs else []), *map(Text, self._reasons())):
            console.print(part)
        return "\n".join(line.rstrip() for line in written.getvalue().splitlines())

    def _reasons(self) -> Iterator[str]:
        why: dict[tuple[str, str], list[RunStatus]] = {}
        for run in self.runs:
            if run.reason and run.reason != WAITS:
                why.setdefault((state_of(run), one_line(run.reason)), []).append(run)
        for (state, reason), (first, *others) in why.items():
            more = f" and {len(others)} more" if others else ""
            yield one_line(f"{first.env}/{first.method}/seed_{first.seed}{more} {state}: {reason}")


def state_of(run: RunStatus) -> str:
    """In a word of STATES, whatever a file says."""
    word = "waiting" if run.reason == WAITS else "not begun" if run.state == "missing" else run.state
    return word if word in STATES else "stopped"


def table(runs: Sequence[RunStatus], width: int, most: int | None = None) -> Table:
    """The first ones of the runs, without the columns for which there is no room, or nothing to tell of any run."""
    rows = [_cells(run) for run in runs]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for name in (*SPARED, "study", "env"):
        if len({*columns[name]} - {""}) <= (name in NAMES):
            del columns[name]
    for name, longest in SPARED.items():
        widths = [min(max(map(cell_len, (key, *cells))), longest if key in NAMES else WIDEST) for key, cells in columns.items()]
        if sum(widths) + GAP * (len(widths) - 1) > width:
            columns.pop(name, None)
    shown = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
    for name in columns:  # of a table that is too wide, rich shortens the columns that could wrap
        shown.add_column(name, justify="left" if name in (*NAMES, "state") else "right", no_wrap=name not in NAMES)
    for row in islice(zip(*columns.values(), strict=True), most):
        shown.add_row(*(Text(cell, STATES.get(cell, ""), no_wrap=True, overflow="ellipsis") for cell in row))
    return shown


def _cells(run: RunStatus) -> dict[str, str]:
    going = run.state == "running"
    return {
        "study": one_line(run.study),
        "env": one_line(run.env),
        "method": one_line(run.method),
        "seed": str(run.seed),
        "steps": f"{short(run.steps)} of {short(run.until)}",
        "steps/s": _number(run.steps_per_second, 0) if going else "",
        "return": _number(run.latest_return),
        "best": _number(run.best_return),
        "left": duration(run.seconds_left) if going and run.seconds_left is not None else "",
        "state": state_of(run),
    }


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:,.{digits}f}" if abs(value) < 1e6 else f"{value:.1e}"
