"""make perf: every speed bar of the project, as ratios within this run; ARGS="learning sweeps": only those parts. Exits non-zero if one is
missed."""

from __future__ import annotations

import sys

from tests.perf import bodygen, evolution, learning, simulation, sweeps
from tests.perf.table import Table

PARTS = {"simulation": simulation, "learning": learning, "bodygen": bodygen, "evolution": evolution, "sweeps": sweeps}


def main(chosen: list[str]) -> int:
    if unknown := [name for name in chosen if name not in PARTS]:
        print(f"There is no part {unknown[0]}; allowed are {', '.join(PARTS)}.")
        return 2
    table = Table()
    for name in chosen or PARTS:
        PARTS[name].measure(table)
    if table.failures:
        print(f"\n{len(table.failures)} below the bar: {'; '.join(table.failures)}")
        return 1
    print("\nall bars hold")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
