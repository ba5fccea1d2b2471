"""What the report shows, as plain values."""

import base64
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from codesign_bench.analysis import measures, statistics
from codesign_bench.analysis.collect import KEYS, Collection, Run
from codesign_bench.analysis.looks import Look, ordered, ordered_envs
from codesign_bench.arrays import Array

METRICS = {
    "return_mean": "return of the champion",
    "best_return": "best return so far",
    "train_return": "return while training",
    "episode_length": "episode length (steps)",
    "net_displacement": "net displacement (m)",
    "bodies": "bodies of the champion",
}
"""Columns of progress.csv that curves show, with their names for people; so do those that a task adds, under their own."""
NOT_SHOWN = (
    "iteration",
    "steps",
    "return_std",
    "net_to_path",
    "designs",
    "at_bounds",
    "unstable",
    "eval_steps",
    "steps_per_second",
    "seconds",
)
BANDS = {"std": "mean ± standard deviation", "iqm": "interquartile mean, 95 % bootstrap interval"}
MOST_POINTS = 120
"""Of a curve: more cannot be told apart in a panel of a page."""
MOST_SEED_LINES = 12
REPETITIONS = 400
LIGHT, DARK = "#ffffff", "#14171c"
"""Backgrounds of the page; a method's colour is moved until it stands out from them."""
VIDEO_BYTES = 6_000_000
"""Of all videos together; the file is to stay below 20 MB with its base64."""


@dataclass
class Missing:
    """Sentences about what the report lacks, in the order in which they were found, each once."""

    sentences: list[str] = field(default_factory=list)

    def say(self, sentence: str) -> None:
        if sentence not in self.sentences:
            self.sentences.append(sentence)


# ---- methods and environments ------------------------------------------------------------------------------------------


def method_entries(collection: Collection) -> list[dict[str, Any]]:
    return [{"name": name, "label": look.label, **_colours(look), "dashes": _dashes(look)} for name, look in collection.looks.items()]


def env_entries(collection: Collection) -> list[dict[str, str]]:
    return [{"name": env, "title": collection.title(env)} for env in collection.envs]


def _colours(look: Look) -> dict[str, str]:
    """Black would become one of many greys in the dark, and so it becomes white."""
    dark = "#ffffff" if look.colour == "#000000" else look.colour
    return {"light": standing_out(look.colour, LIGHT), "dark": standing_out(dark, DARK)}


def _dashes(look: Look) -> str:
    """Of the line, besides its colour: by marker, so that no two methods that ship look the same without colours."""
    patterns = {"o": "", "s": "7 3", "^": "2 3", "D": "9 3 2 3", "v": "12 4", "P": "4 2", "X": "9 3 2 3 2 3", "p": "1 2", "h": "14 3 3 3"}
    return {**patterns, "<": "2 3 2 6", ">": "3 5"}.get(look.marker, "6 2 1 2")


def standing_out(colour: str, background: str, contrast: float = 3.0) -> str:
    """The colour, moved towards white or black until it has this contrast (WCAG) with the background."""
    rgb, other = _rgb(colour), _rgb(background)
    target = np.ones(3) if _luminance(other) < 0.5 else np.zeros(3)
    for share in np.linspace(0, 1, 21):
        mixed = (1 - share) * rgb + share * target
        light, dark = sorted((_luminance(mixed), _luminance(other)), reverse=True)
        if (light + 0.05) / (dark + 0.05) >= contrast:
            break
    return "#" + "".join(f"{round(255 * v):02x}" for v in mixed)


def _rgb(colour: str) -> Array:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def _luminance(rgb: Array) -> float:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


# ---- curves ------------------------------------------------------------------------------------------------------------


def curves(collection: Collection) -> dict[str, Any]:
    """Per environment: steps, and per metric and method the two bands and the single runs, on a common grid."""
    return {env: _curves_of(collection, env) for env in collection.envs}


def metrics(collection: Collection) -> dict[str, str]:
    own = [name for name in collection.table.columns if name not in (*KEYS, *METRICS, *NOT_SHOWN)]
    return {**METRICS, **{name: name.replace("_", " ") for name in own}}


def _curves_of(collection: Collection, env: str) -> dict[str, Any]:
    at = measures.thinned(measures.grid(collection, env), MOST_POINTS)
    found: dict[str, dict[str, Any]] = {}
    for metric in metrics(collection):
        entries = {method: _curve(collection, env, method, metric, at) for method in collection.methods}
        found[metric] = {method: entry for method, entry in entries.items() if entry is not None}
    return {"steps": numbers(at), "metrics": found}


def _curve(collection: Collection, env: str, method: str, metric: str, at: Array) -> dict[str, Any] | None:
    runs = collection.of(env, method)
    lines = measures.curves(collection, env, method, at, metric)
    if not np.isfinite(lines).any():
        return None
    bands = {kind: [numbers(edge) for edge in statistics.band(lines, kind, REPETITIONS)] for kind in BANDS}
    seeds = [{"seed": run.seed, "values": numbers(line)} for run, line in zip(runs[:MOST_SEED_LINES], lines, strict=False)]
    return {**bands, "runs": len(runs), "known": np.isfinite(lines).sum(axis=0).tolist(), "seeds": seeds}


def numbers(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """For JSON: few digits, and null for what is not a number."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values]


# ---- leaderboard -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """A row of the leaderboard of one environment. NaN where something is not known."""

    method: str
    row: Mapping[str, Any]
    bodies: float
    designs: float


def standings(collection: Collection, env: str) -> list[Standing]:
    """The methods of one environment, best mean final return first."""
    table = measures.summary(collection)
    rows = table[table["env"] == env].sort_values(["complete", "mean"], ascending=False, kind="stable")
    found = []
    for row in rows.to_dict("records"):
        runs = measures.used(collection, env, str(row["method"]))
        found.append(
            Standing(
                method=str(row["method"]),
                row={str(key): value for key, value in row.items()},
                bodies=_mean(measures.last(collection, run, "bodies") for run in runs),
                designs=_mean(measures.last(collection, run, "designs") for run in runs),
            )
        )
    return found


def inside(run: Run, error: Exception) -> str:
    """The error without the machine's own path."""
    return str(error).replace(f"{run.path}/", f"{run.name}/")


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def overall(collection: Collection) -> list[dict[str, Any]]:
    """Across environments: the interquartile mean of the runs' shares of the best method's mean final return."""
    frame = measures.normalised(measures.finals(collection))
    envs = ordered_envs(frame["env"])
    rows = []
    for method in ordered(frame["method"]):
        strata = [scores for scores in measures.scores(frame, method, envs) if len(scores)]
        if strata:
            estimate = statistics.interquartile_mean(strata)
            rows.append({"method": method, "envs": len(strata), "of": len(envs), "estimate": estimate})
    return sorted(rows, key=lambda row: (-row["envs"], -row["estimate"].value))


def pairs(collection: Collection) -> pd.DataFrame:
    return measures.pairwise(measures.finals(collection))


# ---- runs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LedgerRow:
    """Steps of one run: charged for learning, and metered apart."""

    run: Run
    charged: int
    evaluation: float
    reevaluation: float
    retraining: float
    seconds: float
    speed: float


def ledger(collection: Collection) -> list[LedgerRow]:
    rows = []
    for run in collection.runs:
        again = collection.reevaluations.found.get(run.path)
        controller = again.controller if again is not None else None
        fresh = [part.evaluation_steps for part in (again.agent if again is not None else None, controller) if part is not None]
        rows.append(
            LedgerRow(
                run=run,
                charged=run.charged,
                evaluation=measures.last(collection, run, "eval_steps"),
                reevaluation=sum(fresh) if fresh else math.nan,
                retraining=controller.steps if controller is not None else math.nan,
                seconds=measures.last(collection, run, "seconds"),
                speed=measures.last(collection, run, "steps_per_second"),
            )
        )
    return rows


def ledger_sentence(rows: list[LedgerRow]) -> str:
    """Whether all runs had the same steps."""
    if not rows:
        return "There are no runs."
    charged, budgets = {row.charged for row in rows}, {row.run.budget_steps for row in rows}
    if len(charged) == 1 and charged == budgets:
        return f"Each of the {len(rows)} runs was charged exactly {rows[0].charged:,} environment steps."
    short = sum(row.charged < row.run.budget_steps for row in rows)
    budget = " or ".join(f"{steps:,}" for steps in sorted(budgets))
    return f"The budget is {budget} environment steps; {short} of {len(rows)} runs have not recorded its end yet."


def versions(collection: Collection) -> list[tuple[str, list[tuple[str, int]]]]:
    """What ran: each package, commit and processor with the values found and the number of runs of each."""
    found: dict[str, Counter[str]] = {}
    for run in collection.runs:
        packages = run.manifest.get("versions")
        facts = dict(packages) if isinstance(packages, Mapping) else {}
        facts |= {key: run.manifest.get(key) for key in ("python", "git_commit", "cpu", "system")}
        for name, value in facts.items():
            found.setdefault(str(name).replace("_", " "), Counter())[str(value) if value is not None else "not recorded"] += 1
    return [(name, counter.most_common()) for name, counter in found.items()]


# ---- what is missing ---------------------------------------------------------------------------------------------------


def note_gaps(collection: Collection, missing: Missing) -> None:
    """Combinations that other methods or environments have, seeds that others have, runs left out, and remarks."""
    if not collection.runs:
        missing.say("There are no runs that can be shown.")
    for env in collection.envs:
        present = {run.method for run in collection.runs if run.env == env}
        absent = [method for method in collection.methods if method not in present]
        if absent:
            missing.say(f"{collection.title(env)} has no runs of {', '.join(absent)}.")
        seeds = {method: {run.seed for run in collection.of(env, method)} for method in present}
        every = set().union(*seeds.values())
        for method in ordered(present):
            lacking = sorted(every - seeds[method])
            if lacking:
                missing.say(f"{collection.title(env)}, {method}: no run with seed {', '.join(map(str, lacking))}.")
    for left in collection.left_out:
        missing.say(f"Left out: {'/'.join(left.path.parts[-3:])}: {left.reason}.")
    for text in (*collection.forced, *collection.remarks, *collection.reevaluations.left_out):
        missing.say(text if text.endswith(".") else f"{text}.")


# ---- videos ------------------------------------------------------------------------------------------------------------


def videos(study: Path, missing: Missing) -> list[dict[str, str]]:
    """The mp4 files in the study's folder, such as a gallery's, as base64; what does not fit is named."""
    found, left = [], VIDEO_BYTES
    for path in sorted(study.glob("*.mp4")):
        size = path.stat().st_size
        if size > left:
            missing.say(f"The video {path.name} ({size / 1e6:.1f} MB) is not embedded; the report stays below 20 MB.")
            continue
        left -= size
        found.append({"name": path.stem, "data": base64.b64encode(path.read_bytes()).decode()})
    return found
