"""Two studies against each other: for people who bring their own method, or repeat somebody's runs.

A method that both have is compared with itself, one that the second has on another track only with that; a method that only the first
has is compared with each of the second's. Returns are
the final ones at the last step that both studies reached in an environment.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from codesign_bench.analysis import looks, measures, statistics, style
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.comparable import differing, own_differences
from codesign_bench.analysis.table import Columns, Table, number, with_interval
from codesign_bench.arrays import Array
from codesign_bench.errors import ConfigError
from codesign_bench.terminal import count

LONGEST = 60
"""Letters of a pair's names at the left."""


def differences(mine: Collection, theirs: Collection, force: bool = False) -> pd.DataFrame:
    """One row per environment and pair; refuses studies that are not comparable."""
    problems = differing(mine.runs, theirs.runs)
    if problems and not force:
        raise ConfigError(f"The studies are not comparable ({'; '.join(problems)}); with force=true they are compared all the same.")
    rows = []
    for env in looks.ordered_envs(set(mine.envs) & set(theirs.envs)):
        at = min(mine.horizon(env), theirs.horizon(env))
        for method in looks.ordered(run.method for run in mine.runs if run.env == env):
            rivals = _rivals(method, looks.ordered(run.method for run in theirs.runs if run.env == env))
            for other in rivals:
                a, b = _at(mine, env, method, at), _at(theirs, env, other, at)
                if len(a) and len(b):
                    rows.append({"env": env, "method": method, "other": other, "steps": at, **measures.pair([a], [b])})
    return pd.DataFrame(rows, columns=["steps", *measures.PAIR_COLUMNS])


def _rivals(method: str, others: Sequence[str]) -> Sequence[str]:
    """Itself, or itself on other tracks, or everybody."""
    alike = [other for other in others if looks.split(other)[0] == looks.split(method)[0]]
    return [method] if method in others else alike or others


def _at(collection: Collection, env: str, method: str, steps: float) -> Array:
    """Final returns, as they were there, of the runs that got so far."""
    values = np.array([collection.final(run, until=steps) for run in collection.of(env, method) if run.steps >= steps])
    return np.asarray(values[np.isfinite(values)])


def table(frame: pd.DataFrame, mine: Collection, theirs: Collection) -> Table:
    columns: Columns = {
        "Environment": lambda row: mine.title(row["env"]),
        "This study": lambda row: mine.label(row["method"]),
        "Other study": lambda row: theirs.label(row["other"]),
        "Seeds": lambda row: f"{row['runs']}, {row['other_runs']}",
        "Steps": lambda row: count(row["steps"]),
        "This": lambda row: number(row["mean"]),
        "Other": lambda row: number(row["other_mean"]),
        "Difference [95 %]": lambda row: with_interval(row["difference"], row["low"], row["high"]),
        "P(better) [95 %]": lambda row: with_interval(row["improvement"], row["improvement_low"], row["improvement_high"]),
        "Hedges' g": lambda row: number(row["hedges_g"]),
    }
    title = f"{mine.study} against {theirs.study}"
    return Table.of("against", title, columns, frame.to_dict("records"), _notes(mine, theirs), words=3)


def _notes(mine: Collection, theirs: Collection) -> list[str]:
    said = ["Difference of the mean final returns (mean over the last 5 % of the steps) as far as both studies got.", statistics.INTERVALS]
    said += dict.fromkeys([*measures.cautions(mine), *measures.cautions(theirs)])
    said += [f"Not configured alike: {text}." for text in own_differences(mine.runs, theirs.runs)]
    said += [f"Forced: {problem}." for problem in differing(mine.runs, theirs.runs)]
    said += [f"{collection.study}: {text}" for collection in (mine, theirs) for text in measures.shortfall(collection, bands=False)]
    return said


def figure(frame: pd.DataFrame, mine: Collection, theirs: Collection) -> Figure:
    """Differences with intervals: pairs down, environments across."""
    pairs = [_pair(row, mine, theirs) for row in frame.to_dict("records")]
    places_of = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    frame = frame.assign(place=[places_of[pair] for pair in pairs])
    names, room = style.row_names(places_of, LONGEST)
    envs = list(dict.fromkeys(frame["env"])) or [""]
    height = 0.19 * len(names) + 0.3
    canvas, places = style.panels(len(envs), len(envs), height, _notes(mine, theirs), left=room, top=0.45)
    for i, (env, place) in enumerate(zip(envs, places, strict=True)):
        axes = canvas.add_subplot(place)
        for row in frame[frame["env"] == env].to_dict("records"):
            look, y = mine.looks[row["method"]], row["place"]
            if np.isfinite(row["low"]):
                axes.plot([row["low"], row["high"]], [y, y], color=look.colour, lw=3, alpha=0.4, solid_capstyle="butt")
            axes.plot(row["difference"], y, marker=look.marker, color=look.colour, ms=4.5, markeredgewidth=0)
        axes.axvline(0, color="#999999", lw=0.8, ls=(0, (3, 2)))
        style.rows_down(axes, names if i == 0 else [""] * len(names))
        axes.xaxis.set_major_formatter(lambda value, _: count(value))
        axes.locator_params(axis="x", nbins=4)
        axes.set_title(style.plain(mine.title(env)))
    if frame.empty:
        axes.set_title(f"no {'evaluation' if set(mine.envs) & set(theirs.envs) else 'environment'} in common")
    title = style.plain(f"difference of the mean return: {mine.study} minus {theirs.study}")
    canvas.suptitle(title, fontsize=8, y=1 - 0.06 / canvas.get_figheight())
    return canvas


def _pair(row: dict[str, Any], mine: Collection, theirs: Collection) -> str:
    one, other = mine.label(row["method"]), theirs.label(row["other"])
    return one if row["method"] == row["other"] else f"{one} against {other}"
