"""python -m tests.faults.soak HOURS [SEED [CASE]]: small runs of every method under random faults; make soak HOURS=1 SEED=0.

A case is one run with up to six faults on its way. Which run, which faults, at which moments follows from the seed and the number of the
case; what comes of it must not depend on that. The table counts how often each fault was done, rows lost, runs not bit-equal to one that
nothing disturbed, and other broken promises. A case that fails says how to repeat it. Ctrl-C ends with the table so far.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from codesign_bench.bars import bar
from codesign_bench.simulation.processes import available_cores
from codesign_bench.terminal import duration
from tests.faults.faults import FAULTS, obstacle
from tests.faults.runs import METHODS
from tests.faults.trial import STOP, Found, Verdict, attempt

MOST_FAULTS = 6
"""On one run."""


def case(seed: int, number: int, folder: Path) -> Verdict:
    """Methods take turns, so that each gets as many cases; the rest is drawn."""
    rng = np.random.default_rng([seed, number])
    possible = np.array([fault for fault in FAULTS if obstacle(fault) is None], dtype=object)
    method = METHODS[(number + seed) % len(METHODS)]
    return attempt(method, list(rng.choice(possible, int(rng.integers(1, MOST_FAULTS + 1)))), [seed, number], folder)


@dataclass
class Table:
    """What was found, by fault."""

    found: list[Found] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{'fault':22s} {'tried':>6s} {'rows lost':>10s} {'not bit-equal':>14s} {'otherwise broken':>17s}"]
        names = [*(fault.__name__ for fault in FAULTS), *(["none"] if any(each.fault == "none" for each in self.found) else [])]
        for name in names:
            mine = [each for each in self.found if each.fault == name]
            reason = next((obstacle(fault) for fault in FAULTS if fault.__name__ == name), None)
            lines.append(f"{name:22s} not tried: {reason}" if reason else self._line(name, mine))
        return "\n".join([*lines, self._line("all", [each for each in self.found if each.fault != "none"])])

    @staticmethod
    def _line(name: str, mine: list[Found]) -> str:
        lost, unequal, broken = (
            sum(each.lost for each in mine),
            [each for each in mine if each.unequal],
            [each for each in mine if each.broken],
        )
        return f"{name:22s} {len(mine):6d} {lost:10d} {len(unequal):14d} {len(broken):17d}"


def cases(seconds: float, seed: int, folder: Path) -> Iterator[Verdict | None]:
    """As many as fit into the time, one for each core side by side; None while there is nothing new. After Ctrl-C none is begun,
    and those that run get no further fault."""
    deadline, numbers, cores = time.monotonic() + seconds, iter(range(10**9)), available_cores()
    stop = folder / STOP

    def asked(*_: object) -> None:
        stop.touch()
        print("ending the cases that run now", file=sys.stderr)

    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("spawn")) as pool:
        running: set[Future[Verdict]] = set()
        while running or (time.monotonic() < deadline and not stop.exists()):
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # processes that are started here inherit it
            while len(running) < cores and time.monotonic() < deadline and not stop.exists():
                running.add(pool.submit(case, seed, next(numbers), folder))
            signal.signal(signal.SIGINT, asked)
            done, running = wait(running, timeout=1, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in done)
            yield None


def say(verdict: Verdict, seed: int) -> None:
    for each in verdict.found:
        if each.bad:
            print(f"\ncase {verdict.number}, {verdict.method}, {each.fault}: {each.lost} rows lost; {each.unequal or 'bit-equal'}")
            print(each.broken)
    print(f"the run is in {verdict.folder}; to repeat it: make soak SEED={seed} CASE={verdict.number}")


def soak(hours: float, seed: int, only: int | None) -> int:
    folder, table, began, runs, bad = Path(tempfile.mkdtemp(prefix="codesign_soak_")), Table(), time.monotonic(), 0, 0
    seconds = 3600 * hours
    with bar("", seconds) if only is None else contextlib.nullcontext() as show:
        for verdict in cases(seconds, seed, folder) if only is None else [case(seed, only, folder)]:
            if verdict is not None:
                runs, bad = runs + 1, bad + verdict.bad
                table.found += verdict.found
                if verdict.bad:
                    say(verdict, seed)
                if only is not None:
                    print(f"{verdict.method}: {', '.join(each.fault for each in verdict.found)}")
            faults = sum(each.fault != "none" for each in table.found)
            if show is not None:
                passed = time.monotonic() - began
                show(passed, f"{runs} runs, {faults} faults, {bad} runs bad, {duration(seconds - passed)} left")
    print(f"{table}\n{runs} runs, {bad} of them bad, in {(time.monotonic() - began) / 60:.1f} minutes, seed {seed}")
    if not bad:
        shutil.rmtree(folder)
    return 1 if bad else 0


def main(words: list[str]) -> int:
    hours, seed, only = (*words, *[""] * (3 - len(words)))
    with contextlib.suppress(ValueError):
        if float(hours) > 0 and int(seed or 0) >= 0 and int(only or 0) >= 0:
            return soak(float(hours), int(seed or 0), int(only) if only else None)
    print(f"HOURS is '{hours}', SEED '{seed}', CASE '{only}'; allowed are hours above 0 and whole numbers from 0 up", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
