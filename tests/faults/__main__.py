"""python -m tests.faults [TRIES] [FAULT ...]: the table of faults: how often each was tried, rows lost, bit-equal afterwards or not."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.faults.injection import FAULTS, attempt, obstacle, undisturbed


def main(tries: int, names: list[str]) -> int:
    print(f"{'fault':22s} {'tried':>5s} {'lost rows':>9s} {'bit-equal':>9s}")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        expected = undisturbed(Path(folder) / "undisturbed")
        for fault in [fault for fault in FAULTS if not names or fault.__name__ in names]:
            if reason := obstacle(fault):
                print(f"{fault.__name__:22s} not tried: {reason}")
                continue
            verdicts = [attempt(fault, Path(folder) / fault.__name__ / str(i), expected, i) for i in range(tries)]
            lost, differences = sum(v.lost_rows for v in verdicts), [v.difference for v in verdicts if v.difference]
            bad += lost + len(differences)
            print(f"{fault.__name__:22s} {tries:5d} {lost:9d} {'no: ' + differences[0] if differences else 'yes':>9s}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:]))
