"""python -m codesign_bench.launching.comparison RESULTS STUDY: the comparison of a study that is still running.

Runs are compared where all methods have come to, so that nobody is ahead for having been run longer: with as many seeds as
possible, and, where one seed of every method is further, there too (comparison_ahead).
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from codesign_bench import own_files
from codesign_bench.analysis import tables
from codesign_bench.analysis.collect import Collection, LeftOut, collect
from codesign_bench.analysis.figures.comparison import comparison
from codesign_bench.analysis.reading import Run
from codesign_bench.launching import plan


def in_common(collection: Collection, planned: Iterable[str] = (), ahead: bool = False) -> Collection:
    """Each environment up to the steps at which most of its methods were evaluated, all of them if possible: the latest ones with as
    many seeds as possible, or, `ahead`, the latest with at least one. Runs that were not evaluated there are left out by name.
    `planned` are the methods that are to come, recorded or not."""
    reached = {env: _reached_in_common(collection, env, ahead) for env in collection.envs}
    runs = [run for run in collection.runs if reached[run.env] in _evaluated(collection, run)]
    why = "It has {:,} steps; the comparison is at {:,}."
    behind = [LeftOut(run.path, why.format(run.steps, reached[run.env])) for run in collection.runs if run not in runs]
    table = collection.table[collection.table["steps"] <= collection.table["env"].map(reached)]
    rows = pd.MultiIndex.from_frame(table[["env", "method", "seed"]]).isin([(run.env, run.method, run.seed) for run in runs])
    to_come = {*planned, *collection.methods} - {name for run in runs for name in (run.method, run.option)}
    return replace(
        collection,
        table=table[rows].reset_index(drop=True),
        runs=tuple(replace(run, steps=min(run.steps, reached[run.env])) for run in runs),
        left_out=(*collection.left_out, *behind),
        notes=tuple(_notes(table[rows], reached, to_come, ahead)),
    )


def _reached_in_common(collection: Collection, env: str, ahead: bool) -> int:
    seeds = []  # of each method, at every step
    for method in {run.method for run in collection.runs if run.env == env}:
        runs = collection.of(env, method)
        counted = [run for run in runs if run.status != "failed"] or runs  # a run that failed keeps nobody waiting
        seeds.append(Counter(step for run in counted for step in _evaluated(collection, run)))

    def worth(step: int) -> tuple[int, int, int]:
        there = [of[step] for of in seeds if of[step]]
        return len(there), 1 if ahead else min(there), step

    return max(set().union(*seeds), key=worth)


def _evaluated(collection: Collection, run: Run) -> set[int]:
    steps, _ = collection.curve(run, "return_mean")
    return {int(step) for step in steps}


def _notes(table: pd.DataFrame, reached: dict[str, int], to_come: set[str], ahead: bool) -> Iterator[str]:
    """How far the comparison goes, who is not in it yet, and who has had no second iteration: in evolution, one generation
    selects nothing."""
    if not reached:
        yield "There is nothing to compare yet: no run has been evaluated."
        return
    at = ", ".join(f"{steps:,} steps on {env}" for env, steps in reached.items())
    yield f"Compared at {at}: as far as {'these' if to_come else 'all'} methods have come{' with at least one seed' if ahead else ''}."
    if to_come:
        yield f"Not there yet: {', '.join(sorted(to_come))}."
    last = table.groupby("method")["iteration"].max()
    once = sorted(str(method) for method in last[last == 1].index)
    if once:
        yield f"One iteration or generation so far, and so no selection yet: {', '.join(once)}."


def main(arguments: list[str]) -> int:
    results, study = Path(arguments[0]), arguments[1]
    everything, out = collect(results, study), results / study / "figures"
    planned = {name.split("/")[1] for name in plan.read(results / study) if name.split("/")[0] in everything.envs}
    collection, ahead = in_common(everything, planned), in_common(everything, planned, ahead=True)
    further = any(ahead.horizon(env) > collection.horizon(env) for env in collection.envs)
    with own_files.published(out) as fresh:
        written = comparison(collection, fresh, envs=collection.envs, designs=False)
        if further:
            written += comparison(ahead, fresh, envs=ahead.envs, methods=ahead.methods, designs=False, name="comparison_ahead")
    if not further:
        own_files.removed(out, {name: checksum for name, checksum in own_files.made(out) if name.startswith("comparison_ahead")})
    shown = ", ".join(str(out / path.name) for path in written if path.suffix in (".png", ".md"))
    print(tables.final_returns(collection).text())
    print(f"{' '.join(collection.notes)} {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
