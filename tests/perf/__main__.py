"""make perf: every speed bar of the project, as ratios within this run. Exits non-zero if one is missed."""

from __future__ import annotations

import sys

from tests.perf import bodygen, evolution, learning, simulation, sweeps
from tests.perf.table import Table


def main() -> int:
    table = Table()
    simulation.measure(table)
    learning.measure(table)
    bodygen.measure(table)
    evolution.measure(table)
    sweeps.measure(table)
    if table.failures:
        print(f"\n{len(table.failures)} below the bar: {'; '.join(table.failures)}")
        return 1
    print("\nall bars hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
