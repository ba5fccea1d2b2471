"""The runs there are and how they are doing, from what lies on the disk."""

import contextlib
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.launching import plan

RUN = re.compile(r"(?P<env>[^/]+)/(?P<method>[^/]+)/seed_(?P<seed>\d+)")
TAIL = 4096
"""Bytes at the end of progress.csv that hold its last row."""
WAITS = "waits for its next round"


@dataclass(frozen=True)
class RunStatus:
    """`until` is how far the run is to go for now, `budget` in the end, both in steps; `seconds_left` is until `until`. The speed of a run
    that is at work is how fast it has been lately, as far as it has said so; of others, how fast they were."""

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
    latest_return: float | None
    best_return: float | None
    reason: str
    path: str


def statuses(results: Path, studies: list[str] | None = None, until: Mapping[str, int] | None = None) -> list[RunStatus]:
    """Of the runs in the folders of these studies (all by default), and of those that were planned but never begun. `until`: only of the
    runs in these folders, and how far each is to go."""
    names = studies or sorted(path.name for path in results.glob("[!.]*/"))
    return [status for study in names for status in _statuses(results / study, until)]


def _statuses(study: Path, until: Mapping[str, int] | None) -> Iterator[RunStatus]:
    planned = plan.read(study)
    there = (path.relative_to(study).as_posix() for path in study.glob("[!.]*/[!.]*/seed_*/"))
    runs = [match for name in {*planned, *there} if (match := RUN.fullmatch(name))]
    for run in sorted(runs, key=lambda run: (run["env"], run["method"], int(run["seed"]))):
        if until is None:
            yield _status(study, run, planned.get(run[0], {}))
        elif (path := str(study / run[0])) in until:
            yield _status(study, run, planned.get(run[0], {}), until[path])


def _status(study: Path, run: re.Match[str], planned: Mapping[str, int], until: int | None = None) -> RunStatus:
    folder = RunFolder(study / run[0])
    saved, row = folder.status(), last_row(folder.progress)
    steps = saved.get("steps", 0)
    until = max(saved.get("until", 0), planned.get("until", 0)) if until is None else until
    budget = max(planned.get("steps", 0), until)
    state, reason = saved["status"], str(saved.get("reason", ""))
    speed, silent = row["steps_per_second"] if row.get("steps_per_second", 0) > 0 else None, 0.0
    if folder.alive():
        state, reason = "running", ""
        speed, silent = _lately(saved)
    elif state == "running":
        state, reason = "stopped", "its process ended without a word; the run goes on from its last checkpoint"
    elif state == "done" and steps < until:
        state, reason = "stopped", WAITS
    elif state == "stopped" and steps >= until:
        state, reason = "done", ""
    left = max(0.0, (until - steps) / speed - silent) if speed and state != "done" else None
    names = (study.name, run["env"], run["method"], int(run["seed"]))
    returns = (row.get("return_mean"), row.get("best_return"))
    return RunStatus(*names, state, steps, until, budget, speed, left, *returns, reason, str(folder.path))


def _lately(saved: Mapping[str, Any]) -> tuple[float | None, float]:
    """Steps per second that a run at work came to lately, as its last checkpoint says, and seconds since that. A silence that is longer
    than the time it speaks of counts as time without steps."""
    try:
        steps, seconds, saved_at = (float(saved[key]) for key in ("recent_steps", "recent_seconds", "time"))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None, 0.0
    silent = max(0.0, time.time() - saved_at)
    whole = max(seconds, silent)
    return (steps / whole if 0 < steps < math.inf and 0 < whole < math.inf else None), silent


def last_row(path: Path) -> dict[str, float]:
    """The last whole row of progress.csv, read from its end."""
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        columns = file.readline().decode().strip().split(",")
        file.seek(max(file.tell(), path.stat().st_size - TAIL))
        lines = file.read().decode().split("\n")[:-1]
        if lines:
            numbers = dict(zip(columns, map(float, lines[-1].split(",")), strict=True))
            return {key: value for key, value in numbers.items() if math.isfinite(value)}
    return {}
