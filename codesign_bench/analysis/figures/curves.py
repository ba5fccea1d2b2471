"""Learning curves: one panel per environment, one line and band per method. seaborn draws; centre and band are our statistics, since its
own sort values within a step, close gaps and know nothing of seeds that ended."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from codesign_bench.analysis import measures, statistics
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.looks import Look
from codesign_bench.analysis.style import blank, plain
from codesign_bench.arrays import Array
from codesign_bench.terminal import count

STAR: Any = {"marker": (5, 1), "ms": 6, "mfc": "white", "mew": 0.9}
"""Marks of published values."""
BANDS = {"std": "mean and standard deviation over seeds", "interval": f"mean over seeds and its {statistics.T_INTERVAL}"}
_DASHES = {"-": "", "--": (4, 1.5), "-.": (4, 1.5, 1, 1.5), ":": (1, 1.5)}
"""matplotlib's line styles as seaborn writes them."""
FEWER = " with fewer seeds"
COLUMNS = ["method", "stretch", "style", "steps", "centre", "low", "high"]


def lines(collection: Collection, env: str, methods: Sequence[str], band: str, metric: str = "return_mean") -> pd.DataFrame:
    """Centre and band of every method, one row per point of the common grid, cut into stretches at gaps and where seeds are missing.
    `style` is the method, or the method FEWER; such a stretch begins and ends on its neighbours, so that the line is whole."""
    at, parts = measures.grid(collection, env), [pd.DataFrame(columns=COLUMNS)]
    for method in methods:
        runs = measures.curves(collection, env, method, at, metric)
        if not len(runs):
            continue
        centre, low, high = statistics.band(runs, band)
        known, fewer = np.isfinite(centre), measures.fewer(runs)
        beside = fewer.copy()
        beside[1:] |= fewer[:-1]
        beside[:-1] |= fewer[1:]
        for style, mine in ((method, known & ~fewer), (method + FEWER, known & beside)):
            points = np.flatnonzero(mine)
            numbers = {"steps": at[points], "centre": centre[points], "low": low[points], "high": high[points]}
            parts.append(pd.DataFrame({"method": method, "stretch": _stretches(mine)[points], "style": style, **numbers}))
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)


def _stretches(mask: Array) -> Array:
    """[points]: the number of the run of True that a point is in."""
    return np.cumsum(np.diff(mask.astype(int), prepend=0) == 1)


def panel(axes: Axes, collection: Collection, env: str, methods: Sequence[str], band: str, metric: str = "return_mean") -> None:
    """The curves of one environment."""
    table, look = lines(collection, env, methods, band, metric), collection.looks
    if len(table):
        shown = [method for method in methods if (table["method"] == method).any()]
        sns.lineplot(
            table,
            x="steps",
            y="centre",
            hue="method",
            style="style",
            units="stretch",
            estimator=None,
            palette={method: look[method].colour for method in shown},
            dashes={**{m: _DASHES[look[m].dashes] for m in shown}, **{m + FEWER: (2, 1.5) for m in shown}},
            markers={**{m: look[m].marker for m in shown}, **{m + FEWER: look[m].marker for m in shown}},
            markevery=max(1, table["steps"].nunique() // 8),
            markeredgewidth=0,
            clip_on=False,  # marks at the edge are whole
            legend=False,
            ax=axes,
        )
        for (method, _, _), part in table.groupby(["method", "style", "stretch"], sort=False):
            where = np.isfinite(part["low"])
            axes.fill_between(part["steps"], part["low"], part["high"], where=where, color=look[str(method)].colour, alpha=0.16, lw=0)
    else:
        blank(axes, "not recorded" if any(collection.of(env, method) for method in methods) else "no runs")
    axes.set(title=plain(collection.title(env)), xlabel="", ylabel="", xlim=(0, max(collection.horizon(env), 1)))
    axes.xaxis.set_major_formatter(lambda value, _: count(value))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value == round(value) else f"{value:,.4g}")
    axes.locator_params(axis="both", nbins=5)


def stars(axes: Axes, published: pd.DataFrame, look: Mapping[str, Look]) -> None:
    """Values from the literature as marks at the right edge, which stands for their own number of steps."""
    edge: Any = {"transform": axes.get_yaxis_transform(), "clip_on": False}
    for value in published.itertuples():
        axes.plot([1.0], [value.value], ls="none", mec=look[value.method].colour, zorder=5, **STAR, **edge)
        if np.isfinite(value.low) and np.isfinite(value.high):
            axes.plot([1.0, 1.0], [value.low, value.high], lw=0.8, color=look[value.method].colour, zorder=4, **edge)
    if len(published):
        axes.relim()
        axes.autoscale_view(scalex=False)


def legend_handles(methods: Sequence[str], look: Mapping[str, Look], marks: bool) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look[m].colour, marker=look[m].marker, ls=look[m].dashes, markeredgewidth=0, label=plain(look[m].label))
        for m in methods
    ]
    if marks:
        handles.append(Line2D([], [], ls="none", label="published, at 50 M steps", **STAR, mec="#444444"))
    return handles
