"""What the tables and figures measure: one row per run (`finals`), one per curve (`summary`), one per pair (`pairwise`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from codesign_bench.analysis import statistics
from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.style import PAPER_SEEDS, PAPER_STEPS, count, env_title, label, ordered, ordered_envs

Array = NDArray[Any]
FRACTION = 0.5
"""Of the best method's mean final return: the level of `steps_to_level`."""
MOST_POINTS = 1000


def finals(collection: Collection) -> pd.DataFrame:
    """One row per run: study, env, method, seed, steps, final (return at its last evaluation), area, seconds, and `reached`,
    whether it got as far as the longest run of its environment: only then final and area compare with others'."""
    rows = []
    for run in collection.runs:
        horizon = collection.horizon(run.env)
        steps, values = collection.curve(run)
        _, seconds = collection.curve(run, "seconds")
        rows.append(
            {
                "study": run.study,
                "env": run.env,
                "method": run.method,
                "seed": run.seed,
                "steps": run.steps,
                "final": float(values[-1]),
                "area": statistics.area_under_curve(steps, values, horizon),
                "seconds": float(seconds[-1]) if len(seconds) else np.nan,
                "reached": run.steps >= horizon,
                **_reevaluation(run),
            }
        )
    columns = ["study", "env", "method", "seed", "steps", "final", "area", "seconds", "reached", "reevaluated", "retrained"]
    return pd.DataFrame(rows, columns=columns)


def _reevaluation(run: Run) -> dict[str, float]:
    """Mean returns of `python -m codesign_bench.reevaluate`: fresh episodes, and a new controller on the final design. NaN without,
    and if the run has gone on since."""
    try:
        found = json.loads((run.path / "reevaluation.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    values, agent = {}, found.get("agent") if isinstance(found, dict) else None
    current = isinstance(agent, dict) and agent.get("steps") == run.steps
    for name, part in (("reevaluated", "agent"), ("retrained", "controller")):
        inner = found.get(part) if current else None
        value = inner.get("return_mean") if isinstance(inner, dict) else None
        values[name] = float(value) if isinstance(value, (int, float)) else np.nan
    return values


def levels(frame: pd.DataFrame) -> dict[str, float]:
    """Per environment: the best method's mean final return, over runs that reached the end."""
    done = frame[frame["reached"].astype(bool)]
    return {env: float(rows.groupby("method")["final"].mean().max()) for env, rows in done.groupby("env")}


def summary(collection: Collection, fraction: float = FRACTION) -> pd.DataFrame:
    """One row per environment and method: seeds (that reached the end) of runs (all), mean, std, iqm with low and high, area,
    area_std, steps_to_level (median over runs; infinite: never) and reached_level (runs that did). Where no run reached the end, the
    numbers are those at the runs' own ends and `steps` says where; `complete` is False then."""
    frame, rows = finals(collection), []
    best = levels(frame)
    for env in ordered_envs(frame["env"]):
        for method in ordered(frame.loc[frame["env"] == env, "method"]):
            mine = frame[(frame["env"] == env) & (frame["method"] == method)]
            done = mine[mine["reached"].astype(bool)]
            used = done if len(done) else mine
            mean, std = statistics.mean_and_std(used["final"])
            area, area_std = statistics.mean_and_std(used["area"])
            fresh, fresh_std = statistics.mean_and_std(used["reevaluated"])
            retrained, retrained_std = statistics.mean_and_std(used["retrained"])
            iqm = statistics.interquartile_mean([used["final"]])
            level = fraction * best.get(env, np.nan)
            to_level = [statistics.steps_to_reach(*collection.curve(run), level) for run in collection.of(env, method)] if level > 0 else []
            rows.append(
                {
                    "env": env,
                    "method": method,
                    "seeds": len(done),
                    "runs": len(mine),
                    "steps": int(used["steps"].min()),
                    "complete": bool(len(done)),
                    "mean": mean,
                    "std": std,
                    "iqm": iqm.value,
                    "low": iqm.low,
                    "high": iqm.high,
                    "area": area,
                    "area_std": area_std,
                    "steps_to_level": float(np.median(to_level)) if to_level else np.nan,
                    "reached_level": int(np.isfinite(to_level).sum()),
                    "seconds": float(used["seconds"].mean()),
                    "reevaluated": fresh,
                    "reevaluated_std": fresh_std,
                    "retrained": retrained,
                    "retrained_std": retrained_std,
                }
            )
    return pd.DataFrame(rows, columns=SUMMARY_COLUMNS)


SUMMARY_COLUMNS = [
    *("env", "method", "seeds", "runs", "steps", "complete", "mean", "std", "iqm", "low", "high"),
    *("area", "area_std", "steps_to_level", "reached_level", "seconds"),
    *("reevaluated", "reevaluated_std", "retrained", "retrained_std"),
]


def scores(frame: pd.DataFrame, method: str, envs: Sequence[str]) -> list[Array]:
    """Final returns of the runs that reached the end, one array per environment."""
    done = frame[frame["reached"].astype(bool) & (frame["method"] == method)]
    return [done.loc[done["env"] == env, "final"].to_numpy(np.float64) for env in envs]


def normalised(frame: pd.DataFrame) -> pd.DataFrame:
    """`final` as a share of the best method's mean in the same environment; environments where that is not positive drop out."""
    best = levels(frame)
    usable = frame[frame["env"].map(lambda env: best.get(env, np.nan) > 0).astype(bool)]
    return usable.assign(final=usable["final"] / usable["env"].map(best).astype(float))


def pairwise(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per environment and pair of methods: the difference of the mean final returns with its interval, the probability
    that `method` beats `other`, Cliff's delta and Hedges' g. The rows with env "all" average the probability over the environments
    that both have."""
    rows = []
    methods = ordered(frame["method"])
    envs = ordered_envs(frame["env"])
    for i, method in enumerate(methods):
        for other in methods[i + 1 :]:
            shared = []
            for env in envs:
                (a,), (b,) = scores(frame, method, [env]), scores(frame, other, [env])
                if len(a) and len(b):
                    shared.append((a, b))
                    rows.append({"env": env, "method": method, "other": other, **_pair([a], [b])})
            if len(shared) > 1:
                rows.append({"env": "all", "method": method, "other": other, **_pair([a for a, _ in shared], [b for _, b in shared])})
    return pd.DataFrame(rows, columns=PAIR_COLUMNS)


PAIR_COLUMNS = [
    *("env", "method", "other", "seeds", "other_seeds", "difference", "low", "high"),
    *("improvement", "improvement_low", "improvement_high", "cliffs_delta", "hedges_g"),
]


def _pair(a: list[Array], b: list[Array]) -> dict[str, Any]:
    chance = statistics.probability_of_improvement(a, b)
    single = len(a) == 1
    gap = statistics.difference_of_means(a[0], b[0]) if single else statistics.Estimate(np.nan, np.nan, np.nan, 0)
    return {
        "seeds": sum(map(len, a)),
        "other_seeds": sum(map(len, b)),
        "difference": gap.value,
        "low": gap.low,
        "high": gap.high,
        "improvement": chance.value,
        "improvement_low": chance.low,
        "improvement_high": chance.high,
        "cliffs_delta": 2 * chance.value - 1,
        "hedges_g": statistics.hedges_g(a[0], b[0]) if single else np.nan,
    }


def grid(collection: Collection, env: str) -> Array:
    """Common steps of an environment's curves: as many points as its longest record has, up to MOST_POINTS."""
    horizon = collection.horizon(env)
    rows = [len(collection.curve(run)[0]) for run in collection.runs if run.env == env]
    points = min(MOST_POINTS, max(rows, default=0))
    return np.linspace(horizon / points, horizon, points) if points else np.zeros(0)


def curves(collection: Collection, env: str, method: str, at: Array) -> Array:
    """[runs, points]: every run of a method on the common grid."""
    found = [statistics.on_grid(*collection.curve(run), at) for run in collection.of(env, method)]
    return np.stack(found) if found else np.zeros((0, len(at)))


def shortfall(collection: Collection, methods: Sequence[str] | None = None, *, bands: bool = True) -> list[str]:
    """What is less than the full protocol, in words for the face of a figure (with or without bands) or for a table; empty if
    nothing is."""
    runs = [run for run in collection.runs if methods is None or run.method in methods]
    if not runs:
        return ["No runs."]
    per_curve = [len(collection.of(*key)) for key in {(run.env, run.method) for run in runs}]
    said = []
    if min(per_curve) < PAPER_SEEDS:
        seeds = f"{min(per_curve)}" if min(per_curve) == max(per_curve) else f"{min(per_curve)} to {max(per_curve)}"
        said.append(f"{seeds} seed{'s' * (seeds != '1')} ({PAPER_SEEDS} in the full protocol)")
    steps = sorted({run.steps for run in runs})
    if steps[0] < PAPER_STEPS:
        span = count(steps[0]) if count(steps[0]) == count(steps[-1]) else f"{count(steps[0])} to {count(steps[-1])}"
        said.append(f"{span} steps ({count(PAPER_STEPS)} in the full protocol)")
    text = [f"Less than the full protocol: {', '.join(said)}."] if said else []
    if bands and min(per_curve) == 1:
        text.append("A single seed has no band.")
    short = sorted(run.name for run in runs if run.steps < collection.horizon(run.env))
    if short:
        text.append(f"Unfinished{', dashed where runs are missing' * bands}: {_few(short)}.")
    text += [f"Forced: {mark}." for mark in collection.forced]
    text += collection.notes
    if collection.left_out:
        text.append(f"Left out: {_few(['/'.join(item.path.parts[-3:]) for item in collection.left_out])}.")
    return text


def missing(collection: Collection, methods: Sequence[str], envs: Sequence[str]) -> list[str]:
    """Which of the methods have no runs, in words; environments without any run of these methods say so in their panel."""
    absent: dict[str, list[str]] = {}
    for env in envs:
        names = [label(method) for method in methods if not collection.of(env, method)]
        if names and len(names) < len(methods):
            absent.setdefault(", ".join(names), []).append(env_title(env))
    return [f"No runs of {names}{_in(titles, len(envs))}." for names, titles in absent.items()]


def _in(titles: list[str], all_of_them: int) -> str:
    return f" in {', '.join(titles)}" if len(titles) < all_of_them or all_of_them == 1 else ""


def _few(names: list[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
