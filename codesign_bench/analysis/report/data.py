"""What the report shows, as plain values."""

import base64
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import to_hex, to_rgb

from codesign_bench.analysis import measures, statistics
from codesign_bench.analysis.collect import KEYS, Collection
from codesign_bench.analysis.looks import Look
from codesign_bench.analysis.table import Table, clock, number
from codesign_bench.arrays import Array

METRICS = {
    "return_mean": "return of the champion",
    "train_return": "return while training",
    "episode_length": "episode length (steps)",
    measures.DISTANCE: "distance travelled (m)",
    "bodies": "bodies of the champion",
}
"""Columns of progress.csv that curves show, with their names for people; so do those that a task adds, under their own."""
NOT_SHOWN = (*measures.NOT_METRICS, *measures.NOT_COMPARED, "return_std", "net_to_path", "designs", "at_bounds", "unstable", "eval_steps")
BANDS = {"std": "mean ± standard deviation", "interval": f"mean, {statistics.T_INTERVAL}"}
MOST_POINTS = 120
"""Of a curve: more cannot be told apart in a panel of a page."""
MOST_SEED_LINES = 12
DASHES = {"o": "", "s": "7 3", "^": "2 3", "D": "9 3 2 3", "v": "12 4", "P": "4 2", "X": "9 3 2 3 2 3", "p": "1 2", "h": "14 3 3 3"}
DASHES |= {
    "<": "2 3 2 6",
    ">": "3 5",
    "*": "16 2 2 2",
    "8": "5 2 1 2 1 2",
    "H": "10 2",
    "d": "6 2 3 2",
    r"$\spadesuit$": "8 6",
    r"$\clubsuit$": "1 4",
}
"""Of a method's line, besides its colour: by marker, so that no two methods that ship look the same without colours."""
LIGHT, DARK = "#ffffff", "#14171c"
"""Backgrounds of the page; a method's colour is moved until it stands out from them."""
VIDEO_BYTES = 6_000_000
"""Of all videos together; the file is to stay below 20 MB with its base64."""


class Stock:
    """Counts down what the report can still hold."""

    def __init__(self, size: int) -> None:
        self.left = size

    def take(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True


# ---- methods and environments ------------------------------------------------------------------------------------------


def method_entries(collection: Collection) -> list[dict[str, Any]]:
    return [{"name": name, "label": look.label, **_colours(look), "dashes": _dashes(look)} for name, look in collection.looks.items()]


def _colours(look: Look) -> dict[str, str]:
    """Black would become one of many greys in the dark, and so it becomes white."""
    dark = "#ffffff" if look.colour == "#000000" else look.colour
    return {"light": standing_out(look.colour, LIGHT), "dark": standing_out(dark, DARK)}


def _dashes(look: Look) -> str:
    pattern = DASHES.get(look.marker, "6 2 1 2")
    return pattern if look.dashes == "-" else f"{pattern or '12 3'} 1 3"


def standing_out(colour: str, background: str, contrast: float = 3.0) -> str:
    """The colour, moved towards white or black until it has this contrast (WCAG) with the background."""
    rgb, behind = np.array(to_rgb(colour)), _luminance(np.array(to_rgb(background)))
    target = 1.0 if behind < 0.5 else 0.0
    for share in np.linspace(0, 1, 21):
        mixed = (1 - share) * rgb + share * target
        dark, light = sorted((_luminance(mixed), behind))
        if (light + 0.05) / (dark + 0.05) >= contrast:
            break
    return to_hex(mixed)


def _luminance(rgb: Array) -> float:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


# ---- curves ------------------------------------------------------------------------------------------------------------


def metrics(collection: Collection) -> dict[str, str]:
    own = [name for name in collection.table.columns if name not in (*KEYS, *METRICS, *NOT_SHOWN) and collection.table[name].notna().any()]
    return {**METRICS, **{name: name.replace(measures.PART, "part of the return: ").replace("_", " ") for name in own}}


def curves(collection: Collection, env: str) -> dict[str, Any]:
    """Steps, and per metric and method the two bands and the single runs, on a common grid."""
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
    bands = {kind: [numbers(edge) for edge in statistics.band(lines, kind)] for kind in BANDS}
    seeds = [{"seed": run.seed, "values": numbers(line)} for run, line in zip(runs[:MOST_SEED_LINES], lines, strict=False)]
    return {**bands, "runs": len(runs), "known": np.isfinite(lines).sum(axis=0).tolist(), "seeds": seeds}


def numbers(values: Iterable[float], digits: int = 5) -> list[float | None]:
    return [rounded(value, digits) for value in values]


def rounded(value: float, digits: int = 5) -> float | None:
    """For JSON: few digits, and null for what is not a number."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


# ---- runs --------------------------------------------------------------------------------------------------------------


def ledger(collection: Collection) -> Table:
    """Steps of every run: charged for learning, and metered apart."""
    time, unit = clock(measures.finals(collection)["seconds"])
    rows = []
    for run in collection.runs:
        again = collection.reevaluations.found.get(run.path)
        agent, controller = (again.agent, again.controller) if again is not None else (None, None)
        fresh = [part.evaluation_steps for part in (agent, controller) if part is not None]
        evaluation, seconds, speed = (measures.last(collection, run, name) for name in ("eval_steps", "seconds", "steps_per_second"))
        apart = (evaluation, sum(fresh) if fresh else math.nan, controller.steps if controller is not None else math.nan)
        steps = ["-" if math.isnan(value) else f"{value:,.0f}" for value in (run.charged, run.budget_steps, *apart)]
        rows.append((run.name, run.status, *steps, number(seconds / unit), number(speed)))
    columns = ("Run", "Status", "Charged", "Budget", "Evaluation", "Re-evaluation", "New controller", time, "Steps per second")
    metered = "Evaluation, re-evaluation and the training of new controllers are metered apart and never charged."
    return Table("ledger", "Environment steps of every run", columns, tuple(rows), (ledger_sentence(collection), metered), words=2)


def ledger_sentence(collection: Collection) -> str:
    """Whether all runs had the same steps."""
    runs = collection.runs
    charged, budgets = {run.charged for run in runs}, {run.budget_steps for run in runs}
    if len(charged) == 1 and charged == budgets:
        return f"Each of the {len(runs)} runs was charged exactly {runs[0].charged:,} environment steps."
    short = sum(run.charged < run.budget_steps for run in runs)
    budget = " or ".join(f"{steps:,}" for steps in sorted(budgets))
    return f"The budget is {budget} environment steps; {short} of {len(runs)} runs have not recorded its end yet."


def versions(collection: Collection) -> Table:
    """What ran: each package, commit and processor with the values found and, if they differ, the number of runs of each."""
    found: dict[str, Counter[str]] = {}
    for run in collection.runs:
        packages = run.manifest.get("versions")
        facts = dict(packages) if isinstance(packages, Mapping) else {}
        facts |= {key: run.manifest.get(key) for key in ("python", "git_commit", "cpu", "system")}
        for name, value in facts.items():
            found.setdefault(str(name).replace("_", " "), Counter())[str(value) if value is not None else "not recorded"] += 1
    rows = [
        (name, "; ".join(value if len(counter) == 1 else f"{value} ({plural(n, 'run')})" for value, n in counter.most_common()))
        for name, counter in found.items()
    ]
    return Table("versions", "Recorded when each run began", ("Package or fact", "Version"), tuple(rows), words=2)


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# ---- what is missing ---------------------------------------------------------------------------------------------------


def gaps(collection: Collection) -> list[str]:
    """Combinations that other methods or environments have, seeds that others have, runs left out, and remarks."""
    said = []
    for env in collection.envs:
        title = collection.title(env)
        seeds = {method: {run.seed for run in collection.of(env, method)} for method in collection.methods}
        absent = [method for method, mine in seeds.items() if not mine]
        if absent:
            said.append(f"{title} has no runs of {', '.join(absent)}.")
        every = set().union(*seeds.values())
        for method, mine in seeds.items():
            if mine and mine != every:
                said.append(f"{title}, {method}: no run with seed {', '.join(map(str, sorted(every - mine)))}.")
    said += [f"Left out: {'/'.join(left.path.parts[-3:])}: {left.reason}." for left in collection.left_out]
    remarks = (*collection.forced, *collection.remarks, *collection.reevaluations.left_out)
    return said + [text if text.endswith(".") else f"{text}." for text in remarks]


# ---- videos ------------------------------------------------------------------------------------------------------------


def videos(study: Path, missing: list[str]) -> list[dict[str, str]]:
    """The mp4 files in the study's folder, such as a gallery's, as base64; what does not fit is named."""
    found, room = [], Stock(VIDEO_BYTES)
    for path in sorted(study.glob("*.mp4")):
        size = path.stat().st_size
        if room.take(size):
            found.append({"name": path.stem, "data": base64.b64encode(path.read_bytes()).decode()})
        else:
            missing.append(f"The video {path.name} ({size / 1e6:.1f} MB) is not embedded; the report stays below 20 MB.")
    return found
