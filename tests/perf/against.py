"""make perf AGAINST=REV: whole iterations of this tree and of another revision, taking turns in one run.

The other revision lives in a worktree with an environment of its own, .perf/REV, which stays for the next time. Both run their own
command; what is compared is the time between the first and the last evaluation that progress.csv records, so starting costs nothing.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from codesign_bench.learning import products
from tests.perf.table import Table, heading

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ("locomotion2d", "swimmer", "gap", "locomotion3d")
CASES = {
    "transform2act": (1.5, ["method=transform2act", "budget.until=150_000"]),
    "transform2act, minibatch 512": (None, ["method=transform2act", "budget.until=100_000", "method.ppo.minibatch=512"]),
    "nge": (1.4, ["method=nge", "budget.population=4", "budget.steps=240_000", "budget.until=240_000", "method.elimination=0.25"]),
}
"""By name: the least ratio that is asked for where oneDNN multiplies faster than MKL, and the words of the command."""
NO_SLOWER = 0.97
"""What is asked for elsewhere."""
TURNS = 2


def measure(table: Table, revision: str, cases: list[str], envs: list[str]) -> None:
    other, fastest = _worktree(revision), products.fastest()
    for case in cases:
        bar, words = CASES[case]
        heading(f"Steps/s of whole iterations of {case}, this tree / {revision}")
        for env in envs:
            rates: dict[Path, float] = {ROOT: 0.0, other: 0.0}
            for _ in range(TURNS):
                for tree in rates:
                    rates[tree] = max(rates[tree], _rate(tree, [f"env={env}", *words]))
            note = f"   {rates[ROOT]:.0f} and {rates[other]:.0f} steps/s"
            least = None if bar is None else bar if fastest == "onednn" else NO_SLOWER
            table.add(f"{case}, {env}", rates[ROOT] / rates[other], least, note=f"{note}, {fastest}")


def _worktree(revision: str) -> Path:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", f"{revision}^{{commit}}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    tree = ROOT / ".perf" / commit
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], cwd=ROOT, check=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    subprocess.run(["make", "--silent", "setup"], cwd=tree, env=environment, check=True)
    return tree


def _rate(tree: Path, words: list[str]) -> float:
    """Steps per second between the first evaluation and the last."""
    with tempfile.TemporaryDirectory() as results:
        command = [tree / ".venv/bin/python", "-m", "codesign_bench", *words, f"results={results}", "progress=false", "tensorboard=false"]
        subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (path,) = Path(results).rglob("progress.csv")
        with path.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    first, last = rows[0], rows[-1]
    return (int(last["steps"]) - int(first["steps"])) / (float(last["seconds"]) - float(first["seconds"]))


def main(arguments: list[str]) -> int:
    """REV [case ...] [environment ...]"""
    revision, *chosen = arguments
    table = Table()
    measure(
        table, revision, [c for c in CASES if c in chosen] or list(CASES), [e for e in ENVIRONMENTS if e in chosen] or list(ENVIRONMENTS)
    )
    if table.failures:
        print(f"\n{len(table.failures)} below the bar: {'; '.join(table.failures)}")
    return 1 if table.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
