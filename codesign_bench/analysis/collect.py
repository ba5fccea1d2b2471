"""Run folders -> one tidy table. Everything in `analysis` reads runs through here.

`collect(Path("results"), "default")` gives a Collection:

- table: pandas, with study, env, method, seed, then the columns of progress.csv; one row per evaluation
- runs: what is known of each run besides its rows (path, configuration, manifest, status)
- left_out: the runs that are not in the table, each with the reason in one sentence
- remarks: what a reader should know of the runs that are (half-written rows, unfinished runs)
- reevaluations: fresh episodes and new controllers, as far as they compare (reevaluations.py)
- forced: what `force=True` mixed; figures show it

Runs of different tracks are of different methods (`nge`, `nge track=strong`): nothing averages them.

Runs are comparable when budget, environment, evaluation, the method's configuration and the versions of MuJoCo and of this
package agree; the largest agreeing set stays and the others are left out by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from codesign_bench.analysis import looks, statistics
from codesign_bench.analysis.comparable import LeftOut, comparable, differing, mixed
from codesign_bench.analysis.reading import NEEDED, Run, read_run
from codesign_bench.analysis.reevaluations import Reevaluations, read_reevaluations
from codesign_bench.arrays import Array
from codesign_bench.errors import ConfigError

__all__ = ["Collection", "LeftOut", "Run", "collect", "study_folder"]

KEYS = ("study", "env", "method", "seed")


@dataclass(frozen=True)
class Collection:
    study: str
    table: pd.DataFrame
    runs: tuple[Run, ...]
    left_out: tuple[LeftOut, ...]
    remarks: tuple[str, ...]
    forced: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Sentences for the face of every figure."""

    @cached_property
    def envs(self) -> tuple[str, ...]:
        """In the order of figures, as the methods."""
        return looks.ordered_envs(run.env for run in self.runs)

    @cached_property
    def methods(self) -> tuple[str, ...]:
        return looks.ordered(run.method for run in self.runs)

    @cached_property
    def looks(self) -> dict[str, looks.Look]:
        """Of its methods; see `label` for one that it may not have."""
        return looks.looks({run.method: run.config["method"] for run in self.runs})

    def label(self, method: str) -> str:
        return self.looks[method].label if method in self.looks else method

    def title(self, env: str) -> str:
        """Of an environment, for people."""
        found = next((run.config["env"].get("title") for run in self.runs if run.env == env), None)
        return found if isinstance(found, str) and 0 < len(found) <= looks.LONGEST else env

    def of(self, env: str, method: str) -> tuple[Run, ...]:
        """The runs of one curve, by seed."""
        mine = [run for run in self.runs if (run.env, run.method) == (env, method)]
        return tuple(sorted(mine, key=lambda run: (run.study, run.seed)))

    def best_first(self, env: str, method: str) -> list[Run]:
        """The runs of one curve: those that got furthest first, among them by final return."""
        return sorted(self.of(env, method), key=lambda run: (-run.steps, -self.final(run)))

    def final(self, run: Run, metric: str = "return_mean", until: float = np.inf) -> float:
        """At the end of a run, or as it was at `until` steps: see statistics.final. NaN where nothing was recorded."""
        steps, values = self.curve(run, metric)
        return statistics.final(steps[steps <= until], values[steps <= until])

    def record(self, run: Run, metric: str = "return_mean") -> tuple[Array, Array]:
        """Steps and values of one run as they were recorded; NaN for what is not a number."""
        rows = self._by_run.get((run.study, run.env, run.method, run.seed))
        if rows is None or metric not in rows:
            return np.zeros(0), np.zeros(0)
        values = rows[metric].to_numpy(np.float64)
        return rows["steps"].to_numpy(np.float64), np.where(np.isfinite(values), values, np.nan)

    def curve(self, run: Run, metric: str = "return_mean") -> tuple[Array, Array]:
        """The record without the rows whose value is not a number."""
        steps, values = self.record(run, metric)
        known = np.isfinite(values)
        return steps[known], values[known]

    def horizon(self, env: str) -> int:
        """The last evaluation of the longest run in an environment: where finished runs are compared."""
        return max((run.steps for run in self.runs if run.env == env), default=0)

    def joined(self, other: Collection) -> Collection:
        """Both studies in one, each under its own name. That they are not comparable in some respect is noted as if it had been forced."""
        return Collection(
            f"{self.study} and {other.study}",
            pd.concat([self.table, other.table], ignore_index=True),
            self.runs + other.runs,
            self.left_out + other.left_out,
            self.remarks + other.remarks,
            (*self.forced, *other.forced, *differing(self.runs, other.runs)),
            self.notes + other.notes,
        )

    @cached_property
    def reevaluations(self) -> Reevaluations:
        return read_reevaluations(self.runs)

    @cached_property
    def _by_run(self) -> dict[tuple[Any, ...], pd.DataFrame]:
        return dict(iter(self.table.groupby(list(KEYS), sort=False)))


def collect(
    results: Path, study: str, *, force: bool = False, envs: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> Collection:
    """Reads a study. `envs` and `methods` narrow it down before anything is compared."""
    read: list[tuple[Run, pd.DataFrame]] = []
    left_out: list[LeftOut] = []
    for path in sorted(path for path in study_folder(results, study).glob("*/*/seed_*") if path.is_dir()):
        if (envs and path.parts[-3] not in envs) or (methods and path.parts[-2] not in methods):
            continue
        try:
            read.append(read_run(path, study))
        except ConfigError as error:
            left_out.append(LeftOut(path, str(error)))
    runs, others, forced = comparable([run for run, _ in read], force)
    table = _table(runs, {run.path: rows for run, rows in read})
    return Collection(study, table, tuple(runs), (*left_out, *others), (*_remarks(runs), *mixed(runs)), tuple(forced))


def study_folder(results: Path, study: str) -> Path:
    """The folder of a study; ConfigError with the studies that exist if there is none."""
    folder = results / study
    if study and folder.is_dir():
        return folder
    known = sorted(p.name for p in results.iterdir() if p.is_dir() and not p.name.startswith(".")) if results.is_dir() else []
    raise ConfigError(f"There is no study '{study}' in {results}; there are {', '.join(known) or 'none'}.")


def _table(runs: Sequence[Run], rows: Mapping[Path, pd.DataFrame]) -> pd.DataFrame:
    first = [*KEYS, *NEEDED]
    parts = [rows[run.path].assign(**{key: getattr(run, key) for key in KEYS}) for run in runs]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=first, dtype=np.float64)
    whole = np.isfinite(table["iteration"]).all()
    table = table.astype({"steps": np.int64, **({"iteration": np.int64} if whole else {})})
    return table[[*first, *table.columns.drop(first)]]


def _remarks(runs: Sequence[Run]) -> Iterable[str]:
    for run in runs:
        if run.half_rows:
            yield f"{run.name}: {run.half_rows} row(s) of progress.csv left out (half-written, not numbers, or steps that do not grow)"
        if run.nan_rows:
            yield f"{run.name}: {run.nan_rows} evaluation(s) are not a number"
        if run.status == "failed":
            yield f"{run.name}: failed at {run.charged} steps" + (f" ({run.reason})" if run.reason else "")
        elif not run.complete:
            yield f"{run.name}: {run.charged} of {run.budget_steps} steps"
