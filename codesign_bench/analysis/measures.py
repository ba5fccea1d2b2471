"""What the tables and figures measure: one row per run (`finals`), one per curve (`summary`), one per pair (`pairwise`)."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from codesign_bench.analysis import statistics
from codesign_bench.analysis.collect import KEYS, Collection, Run
from codesign_bench.analysis.comparable import mixed
from codesign_bench.analysis.looks import ordered, ordered_envs
from codesign_bench.analysis.style import PAPER_SEEDS, PAPER_STEPS, span
from codesign_bench.arrays import Array
from codesign_bench.terminal import count

NOT_METRICS = ("iteration", "steps", "return_mean", "steps_per_second", "seconds")
FRACTION = 0.5
"""Of the best method's mean final return: the level of `steps_to_level`."""
MOST_POINTS = 1000
COUNTERS = ("designs", "unstable", "eval_steps", "seconds")
"""Metrics that grow with the run, of which the last value counts; of the others the mean that `final` is of the return."""
DISTANCE, PART = "net_displacement", "reward_"
"""Columns of progress.csv: metres travelled forward in an episode, and the beginning of the names of the return's parts."""
EXPLAINED = "explained_variance"
"""The share of the variance of returns that the critic foresaw: 1 at best, 0 of a constant. Methods that learn with PPO record it."""
NOT_COMPARED = ("best_return",)
"""A maximum over evaluations, of which methods have unequal numbers."""


def finals(collection: Collection) -> pd.DataFrame:
    """One row per run: study, env, method, seed, steps, final (return over the last 5 % of its steps, see statistics.final), area,
    seconds, and `reached`, whether it got as far as the longest run of its environment: only then final and area compare with others'.
    Areas of an environment begin alike, where all of its methods have been evaluated. Then every other metric in progress.csv, the
    task's own among them, over the same evaluations as the return (the last value of COUNTERS)."""
    runs, again = collection.runs, collection.reevaluations
    horizon = {env: collection.horizon(env) for env in collection.envs}
    begin = {env: max(_first(collection, env, run.method) for run in runs if run.env == env) for env in collection.envs}
    metrics = [name for name in collection.table.columns if name not in (*KEYS, *NOT_METRICS, *NOT_COMPARED)]
    columns = {
        **{key: [getattr(run, key) for run in runs] for key in (*KEYS, "steps")},
        "final": [collection.final(run) for run in runs],
        "area": [statistics.area_under_curve(*collection.curve(run), begin[run.env], horizon[run.env]) for run in runs],
        "seconds": [last(collection, run, "seconds") for run in runs],
        "reached": np.array([run.steps >= horizon[run.env] for run in runs], dtype=bool),
        "reevaluated": [again.agents[run.path].return_mean if run.path in again.agents else np.nan for run in runs],
        "retrained": [again.controllers[run.path].return_mean if run.path in again.controllers else np.nan for run in runs],
        **{name: [(last if name in COUNTERS else Collection.final)(collection, run, name) for run in runs] for name in metrics},
    }
    return pd.DataFrame(columns)


def parts(collection: Collection, env: str | None = None) -> list[str]:
    """The columns of the return's parts that are not zero all over (in an environment), in the order of the task; none of older runs."""
    table = collection.table if env is None else collection.table[collection.table["env"] == env]
    return [name for name in table.columns if name.startswith(PART) and (table[name].fillna(0) != 0).any()]


def last(collection: Collection, run: Run, metric: str) -> float:
    """Of a run's records; NaN if there is none."""
    values = collection.curve(run, metric)[1]
    return float(values[-1]) if len(values) else np.nan


def _first(collection: Collection, env: str, method: str) -> float:
    """Steps of a method's first evaluation."""
    return min(float(collection.curve(run)[0][0]) for run in collection.of(env, method))


def used(collection: Collection, env: str, method: str) -> list[Run]:
    """The runs whose numbers compare: those that reached the end, or all where none did."""
    runs = list(collection.of(env, method))
    return [run for run in runs if run.steps >= collection.horizon(env)] or runs


def levels(frame: pd.DataFrame) -> dict[str, float]:
    """Per environment: the best method's mean final return, over runs that reached the end."""
    done = frame[frame["reached"]]
    return {env: float(rows.groupby("method")["final"].mean().max()) for env, rows in done.groupby("env")}


def summary(collection: Collection, fraction: float = FRACTION) -> pd.DataFrame:
    """One row per environment and method: seeds (that reached the end) of runs (all), mean, std, low and high of its interval, area,
    area_std, steps_to_level (median over runs; infinite: never), reached_level (runs that did) of level_runs (runs of which it is known:
    an unfinished run may still get there) and first (steps of the first evaluation). Of re-evaluations, distance, the return's parts and
    the critic's explained variance: mean, NAME_std and NAME_seeds, the seeds that have it. Where no run reached the end, the numbers are
    those at the runs' own ends and `steps` says where; `complete` is False then."""
    frame, rows = finals(collection), []
    averaged = [*AVERAGED, *(name for name in (DISTANCE, EXPLAINED) if name in frame), *parts(collection)]
    best = levels(frame)
    for env, method in product(collection.envs, collection.methods):
        mine = frame[(frame["env"] == env) & (frame["method"] == method)]
        if mine.empty:
            continue
        done = mine[mine["reached"]]
        counted = mine if done.empty else done
        mean = statistics.mean([counted["final"]])
        to_level = _steps_to_level(collection, env, method, fraction * best.get(env, np.nan))
        row = {"env": env, "method": method, "seeds": len(done), "runs": len(mine), "complete": not done.empty}
        row |= {"steps": int(counted["steps"].min()), "first": _first(collection, env, method), "seconds": float(counted["seconds"].mean())}
        row |= {"mean": mean.value, "low": mean.low, "high": mean.high, "std": statistics.mean_and_std(counted["final"])[1]}
        row |= {"steps_to_level": float(np.median(to_level)) if to_level else np.nan, "level_runs": len(to_level)}
        row["reached_level"] = int(np.isfinite(to_level).sum())
        for name in averaged:
            row[name], row[f"{name}_std"] = statistics.mean_and_std(counted[name])
            row[f"{name}_seeds"] = int(counted[name].notna().sum())
        rows.append(row)
    return pd.DataFrame(rows, columns=[*SUMMARY_COLUMNS, *(f"{name}{kind}" for name in averaged for kind in ("", "_std", "_seeds"))])


def _steps_to_level(collection: Collection, env: str, method: str, level: float) -> list[float]:
    """Of the runs that reached the level, and, as infinite, of those that reached the end without it."""
    if not level > 0:
        return []
    runs = [(run, statistics.steps_to_reach(*collection.curve(run), level)) for run in collection.of(env, method)]
    return [steps for run, steps in runs if np.isfinite(steps) or run.steps >= collection.horizon(env)]


SUMMARY_COLUMNS = [
    *("env", "method", "seeds", "runs", "steps", "complete", "mean", "std", "low", "high"),
    *("steps_to_level", "reached_level", "level_runs", "first", "seconds"),
]
AVERAGED = ("area", "reevaluated", "retrained")
"""What every run may have; other columns that are averaged depend on what was recorded."""


def scores(frame: pd.DataFrame, method: str, envs: Sequence[str]) -> list[Array]:
    """Final returns of the runs that reached the end, one array per environment."""
    done = frame[frame["reached"] & (frame["method"] == method)]
    return [done.loc[done["env"] == env, "final"].to_numpy(np.float64) for env in envs]


def normalised(frame: pd.DataFrame) -> pd.DataFrame:
    """`final` as a share of the best method's mean in the same environment; environments where that is not positive drop out."""
    best = frame["env"].map(levels(frame)).astype(float)
    return frame.assign(final=frame["final"] / best)[best > 0]


def pairwise(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per environment and pair of methods: the difference of the mean final returns with its interval, the probability
    that `method` beats `other`, Cliff's delta and Hedges' g. The rows with env "all" average the probability over the environments
    that both have."""
    rows = []
    for method, other in combinations(ordered(frame["method"]), 2):
        both = {env: (*scores(frame, method, [env]), *scores(frame, other, [env])) for env in ordered_envs(frame["env"])}
        shared = {env: (a, b) for env, (a, b) in both.items() if len(a) and len(b)}
        rows += [{"env": env, "method": method, "other": other, **pair([a], [b])} for env, (a, b) in shared.items()]
        if len(shared) > 1:
            rows.append({"env": "all", "method": method, "other": other, **pair(*zip(*shared.values(), strict=True))})
    return pd.DataFrame(rows, columns=PAIR_COLUMNS)


PAIR_COLUMNS = [
    *("env", "method", "other", "runs", "other_runs", "mean", "other_mean", "difference", "low", "high"),
    *("improvement", "improvement_low", "improvement_high", "cliffs_delta", "hedges_g"),
]


def pair(a: Sequence[Array], b: Sequence[Array]) -> dict[str, Any]:
    """The numbers of a pair, from the returns of both in each environment; of several environments only what needs no common scale."""
    chance = statistics.probability_of_improvement(a, b)
    row = {"runs": sum(map(len, a)), "other_runs": sum(map(len, b)), "cliffs_delta": 2 * chance.value - 1}
    row |= {"improvement": chance.value, "improvement_low": chance.low, "improvement_high": chance.high}
    if len(a) == 1:
        gap = statistics.difference_of_means(a[0], b[0])
        row |= {"mean": float(a[0].mean()), "other_mean": float(b[0].mean()), "hedges_g": statistics.hedges_g(a[0], b[0])}
        row |= {"difference": gap.value, "low": gap.low, "high": gap.high}
    return row


def grid(collection: Collection, env: str) -> Array:
    """Common steps of an environment's curves: those at which any of its runs was evaluated, thinned to MOST_POINTS."""
    return thinned(np.unique(np.concatenate([np.zeros(0), *(collection.record(run)[0] for run in collection.runs if run.env == env)])))


def thinned(steps: Array, most: int = MOST_POINTS) -> Array:
    """At most so many of the steps, the first and the last among them."""
    return steps if len(steps) <= most else steps[np.linspace(0, len(steps) - 1, most).round().astype(int)]


def curves(collection: Collection, env: str, method: str, at: Array, metric: str = "return_mean") -> Array:
    """[runs, points]: every run of a method on the common grid; an evaluation that is not a number is a gap."""
    found = [statistics.on_grid(*collection.record(run, metric), at) for run in collection.of(env, method)]
    return np.stack(found) if found else np.zeros((0, len(at)))


def fewer(runs: Array) -> Array:
    """[points]: where fewer runs speak for curves [runs, points] than did before: some have ended, or have no number there."""
    reached: Array = np.isfinite(runs).sum(axis=0)
    return np.asarray((reached > 0) & (reached < np.maximum.accumulate(reached)))


def shortfall(collection: Collection, methods: Sequence[str] | None = None, *, bands: bool = True) -> list[str]:
    """What is less than the full protocol, in words for the face of a figure (with or without bands) or for a table; empty if
    nothing is."""
    runs = [run for run in collection.runs if methods is None or run.method in methods]
    if not runs:
        return ["No runs."]
    keys = sorted({(run.env, run.method) for run in runs})
    per_curve = [len(collection.of(*key)) for key in keys]
    steps, said = [run.steps for run in runs], []
    if min(per_curve) < PAPER_SEEDS:
        said.append(f"{span(per_curve)} seed{'s' * (max(per_curve) > 1)} ({PAPER_SEEDS} in the full protocol)")
    if min(steps) < PAPER_STEPS:
        said.append(f"{span(steps)} steps ({count(PAPER_STEPS)} in the full protocol)")
    text = [f"Less than the full protocol: {', '.join(said)}."] if said else []
    if bands and min(per_curve) == 1:
        text.append("A single seed has no band.")
    short = sorted(run.name for run in runs if run.charged < collection.horizon(run.env))
    holes = sorted(run.name for run in runs if run.nan_rows)
    text += [f"Unfinished: {_few(short)}."] if short else []
    text += [f"With evaluations that are not a number: {_few(holes)}."] if holes else []
    if bands and (short or holes) and any(fewer(curves(collection, *key, grid(collection, key[0]))).any() for key in keys):
        text.append("Dashed where seeds are missing.")
    text += [f"Forced: {mark}." for mark in collection.forced]
    text += [f"{sentence}." for sentence in mixed(runs)]
    text += collection.notes
    if collection.left_out:
        text.append(f"Left out: {_few(['/'.join(item.path.parts[-3:]) for item in collection.left_out])}.")
    return text


def cautions(collection: Collection, methods: Sequence[str] | None = None) -> list[str]:
    """What to know of intervals from few seeds."""
    keys = {(run.env, run.method) for run in collection.runs if methods is None or run.method in methods}
    few = any(len(used(collection, *key)) < statistics.FEWEST for key in keys)
    return ["Fewer than three seeds have no interval."] if few else []


def missing(collection: Collection, methods: Sequence[str], envs: Sequence[str]) -> list[str]:
    """Which of the methods have no runs, in words; environments without any run of these methods say so in their panel."""
    absent: dict[str, list[str]] = {}
    for env in envs:
        names = [collection.label(method) for method in methods if not collection.of(env, method)]
        if names and len(names) < len(methods):
            absent.setdefault(", ".join(names), []).append(collection.title(env))
    where = {names: f" in {', '.join(titles)}" if len(titles) < len(envs) or len(envs) == 1 else "" for names, titles in absent.items()}
    return [f"No runs of {names}{place}." for names, place in where.items()]


def not_recorded(collection: Collection, methods: Sequence[str], metric: str) -> list[str]:
    """Which of the methods have runs without a metric, as older ones may be, in words."""
    without = [m for m in methods if any(run.method == m and not len(collection.curve(run, metric)[0]) for run in collection.runs)]
    return [f"Not recorded in all runs of {', '.join(map(collection.label, without))}."] if without else []


def _few(names: list[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
