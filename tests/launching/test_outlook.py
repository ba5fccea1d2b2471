"""Time left, on histories of which the end is known."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

import pytest

from codesign_bench.experiment.tracking import RECENT, Pace
from codesign_bench.launching.outlook import seconds_left
from codesign_bench.launching.status import RunStatus

RUN = RunStatus("s", "gap", "m", 0, "running", 300, 400, 1000, 10.0, 10.0, None, None, "", "p")


def left(runs: Sequence[RunStatus], side_by_side: int = 2) -> float | None:
    return seconds_left(runs, side_by_side, lambda run: run.until)


def history(speeds: Sequence[tuple[str, float]], side_by_side: int, now: float, until: int, each: int) -> tuple[list[RunStatus], float]:
    """Runs of these methods, one after the other in places side by side, as they are `now`, saved every `each` steps; and the time at which
    the last one ends. Runs begin without a step for five seconds."""
    free, runs = [0.0] * side_by_side, []
    for seed, (method, speed) in enumerate(speeds):
        began, checkpoints = free[0] + 5.0, until // each
        heapq.heapreplace(free, began + until / speed)
        pace, saved = Pace(0), [began + n * each / speed for n in range(1, checkpoints + 1)]
        for number, moment in enumerate(saved, 1):
            if moment <= now:
                pace.note(moment - began + 5.0, number * each)
        state = "missing" if now < began - 5.0 else "done" if saved[-1] <= now else "running"
        steps, seconds = pace.recent().values()
        known = steps / seconds if seconds else None
        silent = now - max((moment for moment in saved if moment <= now), default=now)
        remains = max(0.0, (until - pace.steps) / known - silent) if known else None
        runs.append(RunStatus("s", "gap", method, seed, state, pace.steps, until, until, known, remains, None, None, "", str(seed)))  # type: ignore[arg-type]
    return runs, max(free) - now


FAST, SLOW = ("fast", 2000.0), ("slow", 500.0)


@pytest.mark.parametrize("now", [60.0, 150.0, 400.0, 900.0])
@pytest.mark.parametrize("side_by_side", [1, 2, 4])
def test_a_minute_is_enough(now: float, side_by_side: int) -> None:
    """Equal methods: within a fifth of the truth, or of the minute that was seen, from one minute on."""
    runs, truth = history([("m", 1500.0)] * 12, side_by_side, now, 400_000, 50_000)
    found = left(runs, side_by_side)
    assert found == pytest.approx(max(truth, 0.0), rel=0.2, abs=30)


def test_runs_of_a_method_that_went_already_are_expected_to_go_as_fast() -> None:
    """One fast run has ended, a slow one is at work; four fast and two slow ones are to come."""
    runs, truth = history([FAST, SLOW, FAST, FAST, FAST, FAST, SLOW, SLOW], 2, 330.0, 400_000, 20_000)
    assert left(runs) == pytest.approx(truth, rel=0.1)
    unknown = [replace(run, steps_per_second=None) if run.method == "fast" else run for run in runs]
    assert (left(unknown) or 0.0) > 1.5 * truth, "those of which nothing is known are taken for slow ones"


def test_generations_that_are_saved_cohort_by_cohort() -> None:
    """A row of progress.csv every 400,000 steps, a checkpoint every 40,000: the first tells nothing within four minutes."""
    runs, truth = history([("nge", 1500.0)] * 4, 2, 60.0, 2_000_000, 40_000)
    assert left(runs) == pytest.approx(truth, rel=0.15)


def test_what_is_at_work_says_more_than_what_was_recorded_earlier() -> None:
    waiting = [replace(RUN, seed=seed, state="stopped", steps=0, steps_per_second=1000.0, seconds_left=0.4) for seed in (1, 2)]
    assert left([RUN, *waiting], 1) == 10.0 + 2 * 40.0
    other = [replace(run, method="other") for run in waiting]
    assert left([RUN, *other], 1) == pytest.approx(10.0 + 2 * 0.4)


def test_two_places_and_what_is_not_waited_for() -> None:
    missing = replace(RUN, seed=1, state="missing", steps=0, steps_per_second=None, seconds_left=None)
    failed, done = replace(missing, seed=2, state="failed"), replace(RUN, seed=3, state="done", steps=400)
    assert left([missing]) is None, "nothing is known yet"
    assert left([RUN, missing, failed, done]) == 40.0
    assert left([RUN, missing, failed, done], 1) == 50.0
    assert left([RUN, missing, replace(missing, seed=4)]) == 50.0
    assert seconds_left([RUN, missing], 2, lambda run: run.budget) == 100.0
    assert seconds_left([RUN], 2, lambda run: run.budget) == 70.0
    assert left([done]) == 0.0
    assert left([]) is None


def test_a_run_that_slows_down_is_soon_known_for_it() -> None:
    pace = Pace(1000)
    assert pace.recent() == {"recent_steps": 0, "recent_seconds": 0.0}
    for second in range(30, 3001, 30):  # ten times as slow from 2000 s on
        pace.note(second, 1000 + 100 * min(second, 2000) + 10 * max(0, second - 2000))
    steps, seconds = pace.recent().values()
    assert (seconds, steps) == (RECENT, 10 * RECENT)
    pace = Pace(0)
    pace.note(1000.0, 500)
    assert pace.recent() == {"recent_steps": 500, "recent_seconds": 1000.0}, "one checkpoint, however long it took"
