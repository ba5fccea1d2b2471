"""How long what is left of many runs takes, from how fast those have been lately that are at work."""

import heapq
from collections.abc import Callable, Sequence
from itertools import groupby
from statistics import fmean

from codesign_bench.launching.status import RunStatus


def seconds_left(runs: Sequence[RunStatus], side_by_side: int, end: Callable[[RunStatus], int]) -> float | None:
    """Until all have come to their `end`, in steps, if so many are at work at a time; None as long as no speed is known. Runs that failed
    are not waited for."""
    known = [run for run in runs if run.steps_per_second]
    going = [run for run in known if run.state == "running"]
    expected: dict[tuple[str, str], float] = {}  # seconds of a step
    for group in (known, going):  # what is at work says more than what was recorded earlier
        for kind, alike in groupby(sorted(group, key=_kind), _kind):
            expected[kind] = _seconds_per_step(list(alike))
    usual = _seconds_per_step(going or known)
    free = [0.0] * max(1, side_by_side)  # when each place is free again
    for run in sorted(runs, key=lambda run: run.state != "running"):
        if run.state == "failed" or run.steps >= end(run):
            continue
        if run.state == "running" and run.steps_per_second and run.seconds_left is not None:
            seconds = run.seconds_left + max(0, end(run) - run.until) / run.steps_per_second
        else:
            seconds = (end(run) - run.steps) * expected.get(_kind(run), usual)
        heapq.heapreplace(free, free[0] + seconds)
    return max(free) if known else None


def _kind(run: RunStatus) -> tuple[str, str]:
    return run.env, run.method


def _seconds_per_step(runs: Sequence[RunStatus]) -> float:
    return fmean(1 / run.steps_per_second for run in runs if run.steps_per_second) if runs else 0.0
