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
from codesign_bench.analysis.reading import Run


def in_common(collection: Collection) -> Collection:
    """Each environment up to the latest steps at which every method in it was evaluated with at least one seed; runs that were
    not evaluated there are left out by name, and so are environments without such steps."""
    reached = {env: _latest_in_common(collection, env) for env in collection.envs}
    runs = [run for run in collection.runs if reached[run.env] in _evaluated(collection, run)]
    behind = [LeftOut(run.path, _why(run, reached[run.env])) for run in collection.runs if run not in runs]
    table = collection.table[collection.table["steps"] <= collection.table["env"].map(reached)]
    rows = pd.MultiIndex.from_frame(table[["env", "method", "seed"]]).isin([(run.env, run.method, run.seed) for run in runs])
    return replace(
        collection,
        table=table[rows].reset_index(drop=True),
        runs=tuple(replace(run, steps=min(run.steps, reached[run.env])) for run in runs),
        left_out=(*collection.left_out, *behind),
        notes=tuple(_notes(table[rows], {env: steps for env, steps in reached.items() if steps})),
    )


def _latest_in_common(collection: Collection, env: str) -> int:
    """0: nothing."""
    methods = {run.method for run in collection.runs if run.env == env}
    steps = [set().union(*(_evaluated(collection, run) for run in collection.of(env, method))) for method in methods]
    return max(set.intersection(*steps), default=0)


def _evaluated(collection: Collection, run: Run) -> set[int]:
    steps, _ = collection.curve(run, "return_mean")
    return {int(step) for step in steps}


def _why(run: Run, reached: int) -> str:
    if not reached:
        return f"It has {run.steps:,} steps; the methods on {run.env} have no evaluation in common yet."
    return f"It has {run.steps:,} steps; the comparison is at {reached:,}."


def _notes(table: pd.DataFrame, reached: dict[str, int]) -> Iterator[str]:
    """How far the comparison goes, and who has had no second iteration yet: in evolution, one generation selects nothing."""
    if not reached:
        yield "There is nothing to compare yet: the methods have no evaluation in common."
        return
    at = ", ".join(f"{steps:,} steps on {env}" for env, steps in reached.items())
    yield f"Compared at {at}: as far as all methods have come."
    last = table.groupby("method")["iteration"].max()
    once = sorted(str(method) for method in last[last == 1].index)
    if once:
        yield f"One iteration or generation so far, and so no selection yet: {', '.join(once)}."


def main(arguments: list[str]) -> int:
    results, study = Path(arguments[0]), arguments[1]
    collection = in_common(collect(results, study))
    written = comparison(collection, results / study / "figures", envs=collection.envs, designs=False)
    print(f"{' '.join(collection.notes)} {', '.join(str(path) for path in written if path.suffix in ('.png', '.md'))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
