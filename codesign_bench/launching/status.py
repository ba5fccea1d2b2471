"""The runs there are and how they are doing, from what lies on the disk."""

import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.launching import plan

RUN = re.compile(r"(?P<env>[^/]+)/(?P<method>[^/]+)/seed_(?P<seed>\d+)")
TAIL = 4096
"""Bytes at the end of progress.csv that hold its last row."""


@dataclass(frozen=True)
class RunStatus:
    """`until` is how far the run is to go for now, `budget` in the end, both in steps; `seconds_left` is until `until`."""

    study: str
    env: str
    method: str
    seed: int
    state: Literal["done", "running", "stopped", "failed", "missing"]
    steps: int
    until: int
    budget: int
    steps_per_second: float | None
    seconds_left: float | None
    best_return: float | None
    reason: str
    path: str


def statuses(results: Path, studies: list[str] | None = None) -> list[RunStatus]:
    """Of the runs in the folders of these studies (all by default), and of those that were planned but never begun."""
    names = studies or sorted(path.name for path in results.glob("[!.]*/"))
    return [status for study in names for status in _statuses(results / study)]


def _statuses(study: Path) -> Iterator[RunStatus]:
    planned = plan.read(study)
    there = (path.relative_to(study).as_posix() for path in study.glob("[!.]*/[!.]*/seed_*/"))
    runs = [match for name in {*planned, *there} if (match := RUN.fullmatch(name))]
    for run in sorted(runs, key=lambda run: (run["env"], run["method"], int(run["seed"]))):
        yield _status(study, run, planned.get(run[0], {}))


def _status(study: Path, run: re.Match[str], planned: dict[str, int]) -> RunStatus:
    folder = RunFolder(study / run[0])
    saved, row = folder.status(), _last_row(folder.progress)
    steps = saved.get("steps", 0)
    until = max(saved.get("until", 0), planned.get("until", 0))
    budget = max(planned.get("steps", 0), until)
    state, reason = saved["status"], str(saved.get("reason", ""))
    if folder.alive():
        state, reason = "running", ""
    elif state == "running":
        state, reason = "stopped", "its process ended without a word; the run goes on from its last checkpoint"
    elif state == "done" and steps < until:
        state, reason = "stopped", "waits for its next round"
    speed = row["steps_per_second"] if row.get("steps_per_second", 0) > 0 else None
    left = (until - steps) / speed if speed and state != "done" else None
    names = (study.name, run["env"], run["method"], int(run["seed"]))
    return RunStatus(*names, state, steps, until, budget, speed, left, row.get("best_return"), reason, str(folder.path))


def _last_row(path: Path) -> dict[str, float]:
    """The last whole row of progress.csv, read from its end."""
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        columns = file.readline().decode().strip().split(",")
        file.seek(max(file.tell(), path.stat().st_size - TAIL))
        lines = file.read().decode().split("\n")[:-1]
        if lines:
            numbers = dict(zip(columns, map(float, lines[-1].split(",")), strict=True))
            return {key: value for key, value in numbers.items() if math.isfinite(value)}
    return {}


# ---- for people ------------------------------------------------------------------------------------------------------


def table(runs: list[RunStatus]) -> str:
    head = ("study", "env", "method", "seed", "state", "steps", "of", "steps/s", "left", "best", "")
    rows = [head, *(_cells(each) for each in runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    spec = "  ".join(f"{{:{side}{width}}}" for side, width in zip("<<<><>>>>><", widths, strict=True))
    return "\n".join([*(spec.format(*row).rstrip() for row in rows), summary(runs)])


def _cells(each: RunStatus) -> tuple[str, ...]:
    speed = f"{each.steps_per_second:,.0f}" if each.steps_per_second and each.state == "running" else ""
    best = f"{each.best_return:.1f}" if each.best_return is not None else ""
    left = duration(each.seconds_left) if each.seconds_left is not None and each.state == "running" else ""
    numbers = (f"{each.steps:,}", f"{each.until:,}", speed, left, best)
    return (each.study, each.env, each.method, str(each.seed), each.state, *numbers, each.reason)


def summary(runs: list[RunStatus]) -> str:
    states = [each.state for each in runs]
    counts = [f"{states.count(state)} {state}" for state in ("done", "running", "stopped", "failed", "missing") if state in states]
    steps, until, budget = (sum(getattr(each, key) for each in runs) for key in ("steps", "until", "budget"))
    return f"{len(runs)} runs: {', '.join(counts)}; {steps:,} of {until:,} steps now, {budget:,} in the end"


def duration(seconds: float) -> str:
    """As people say it: 40 s, 12 min, 3 h 20 min, 5 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours / 24:.1f} days"
