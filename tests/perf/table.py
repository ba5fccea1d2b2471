"""A table of measured ratios with bars; times are compared only within one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Table:
    rows: list[tuple[str, float, float | None, bool]] = field(default_factory=list)

    def add(self, name: str, value: float, bar: float | None = None, *, at_most: bool = False, note: str = "") -> None:
        """One row, printed at once. `bar`: the least (or with `at_most` the largest) value allowed; None only reports."""
        failed = bar is not None and (value > bar if at_most else value < bar)
        sign = "" if bar is None else f"{'<=' if at_most else '>='} {bar:g}"
        print(f"{name:<58}{value:>9.2f}   {sign:<8}{'BELOW THE BAR' if failed else 'ok' if bar is not None else '':<6}{note}", flush=True)
        self.rows.append((name, value, bar, failed))

    @property
    def failures(self) -> list[str]:
        return [name for name, _, _, failed in self.rows if failed]


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def interleaved(*work: Callable[[], object], repeats: int = 5) -> list[float]:
    """The least time in seconds of each piece of work, taking turns so that a noisy neighbour disturbs all alike."""
    best = [float("inf")] * len(work)
    for _ in range(repeats):
        for i, piece in enumerate(work):
            start = time.perf_counter()
            piece()
            best[i] = min(best[i], time.perf_counter() - start)
    return best
