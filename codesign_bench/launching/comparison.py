"""python -m codesign_bench.launching.comparison RESULTS STUDY: the comparison of a study that is still running.

Runs are compared where all methods have come to, so that nobody is ahead for having been run longer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from codesign_bench.analysis.collect import Collection, LeftOut, collect
from codesign_bench.analysis.figures.comparison import comparison


def in_common(collection: Collection) -> Collection:
    """Each environment up to the steps that every method in it has reached with at least one seed; runs that have not come so
    far are left out by name."""
    reached = {env: min(max(run.steps for run in collection.of(env, m)) for m in _methods(collection, env)) for env in collection.envs}
    runs = [run for run in collection.runs if run.steps >= reached[run.env] > 0]
    behind = [
        LeftOut(run.path, f"It has {run.steps:,} steps; the comparison is at {reached[run.env]:,}.")
        for run in collection.runs
        if run not in runs
    ]
    table = collection.table[collection.table["steps"] <= collection.table["env"].map(reached)]
    rows = pd.MultiIndex.from_frame(table[["env", "method", "seed"]]).isin([(run.env, run.method, run.seed) for run in runs])
    return replace(
        collection,
        table=table[rows].reset_index(drop=True),
        runs=tuple(replace(run, steps=min(run.steps, reached[run.env])) for run in runs),
        left_out=(*collection.left_out, *behind),
        notes=tuple(_notes(table[rows], reached)),
    )


def _notes(table: pd.DataFrame, reached: dict[str, int]) -> Iterator[str]:
    """How far the comparison goes, and who has had no second iteration yet: in evolution, one generation selects nothing."""
    at = ", ".join(f"{steps:,} steps on {env}" for env, steps in reached.items())
    yield f"Compared at {at}: as far as all methods have come."
    last = table.groupby("method")["iteration"].max()
    once = sorted(str(method) for method in last[last == 1].index)
    if once:
        yield f"One iteration or generation so far, and so no selection yet: {', '.join(once)}."


def _methods(collection: Collection, env: str) -> list[str]:
    return sorted({run.method for run in collection.runs if run.env == env})


def main(arguments: list[str]) -> int:
    results, study = Path(arguments[0]), arguments[1]
    collection = in_common(collect(results, study))
    written = comparison(collection, results / study / "figures", envs=collection.envs)
    print(f"{' '.join(collection.notes)} {', '.join(str(path) for path in written if path.suffix in ('.png', '.md'))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
