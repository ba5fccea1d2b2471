"""Final returns: every seed as a dot with their mean (`final_returns`), and who beats whom (`pairs`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from codesign_bench.analysis import looks, measures, statistics, style
from codesign_bench.analysis.collect import Collection
from codesign_bench.terminal import count

ROW, CELL, SMALLEST = 0.2, 0.3, 0.2
"""Inches of a method: in the plot of returns, and the largest and smallest in a matrix."""


def final_returns(collection: Collection, methods: Sequence[str] | None = None) -> Figure:
    """One panel per environment, methods down. Only runs that reached the end count; the others are hollow."""
    chosen = [method for method in collection.methods if methods is None or method in methods]
    frame = measures.finals(collection)
    frame = frame[frame["method"].isin(chosen)]
    foot = [
        "Dots: the final return of every seed (mean over the last 5 % of its steps).",
        *([] if frame["reached"].all() else ["Hollow: of a run that has not reached the others' last step; it does not count."]),
        f"Marks and bars: mean over seeds and its {statistics.T_INTERVAL}.",
        *looks.on_the_command_line({method: collection.looks[method] for method in chosen}),
        *measures.cautions(collection, chosen),
        *measures.shortfall(collection, chosen, bands=False),
    ]
    names, room = style.row_names(map(collection.label, chosen))
    envs, width = collection.envs, style.WIDTH if len(collection.envs) > 1 else 0.7 * style.WIDTH
    figure, places = style.panels(len(envs), 2, ROW * len(chosen) + 0.1, foot, width=width, left=room, right=0.25)
    for i, (env, place) in enumerate(zip(envs, places, strict=True)):
        axes = figure.add_subplot(place)
        _dots(axes, frame[frame["env"] == env], chosen, collection)
        style.rows_down(axes, names if i % 2 == 0 else [""] * len(names))
        axes.set(title=style.plain(collection.title(env)), xlabel="final return" if i >= len(envs) - 2 else "", ylabel="")
    return figure


def _dots(axes: Axes, frame: pd.DataFrame, methods: Sequence[str], collection: Collection) -> None:
    done, short = frame[frame["reached"]], frame[~frame["reached"]]
    palette = {method: collection.looks[method].colour for method in methods}
    common: dict[str, Any] = {"x": "final", "y": "method", "order": methods, "legend": False, "ax": axes}
    sns.stripplot(done, **common, hue="method", palette=palette, jitter=False, alpha=0.45, size=3.6, linewidth=0)
    if len(short):
        sns.stripplot(short, **common, jitter=False, size=3.2, facecolors="none", edgecolor="#888888", linewidth=0.7)
    sns.pointplot(
        done,
        **common,
        hue="method",
        hue_order=methods,
        palette=palette,
        errorbar=_interval,
        markers=[collection.looks[method].marker for method in methods],
        linestyles="none",
        markersize=4.5,
        markeredgewidth=0.5,
        markeredgecolor="white",
        err_kws={"linewidth": 1.6},
        zorder=3,
    )
    axes.xaxis.set_major_formatter(lambda value, _: count(value))
    axes.locator_params(axis="x", nbins=5)
    sns.despine(ax=axes, left=True)


def _interval(values: Any) -> tuple[float, float]:
    found = statistics.mean([values])
    return (found.low, found.high) if np.isfinite(found.low) else (found.value, found.value)


def pairs(collection: Collection, methods: Sequence[str] | None = None) -> Figure:
    """The probability that a run of the row's method beats one of the column's: over all environments that both have, each counted alike,
    and in each of them."""
    table = measures.pairwise(measures.finals(collection))
    chosen = [m for m in collection.methods if (methods is None or m in methods) and ((table["method"] == m) | (table["other"] == m)).any()]
    envs = [env for env in ("all", *collection.envs) if (table["env"] == env).any()]
    names, room = style.row_names(map(collection.label, chosen))
    count = max(1, len(chosen))
    columns = max(1, min(len(envs), 2, int((style.WIDTH - room) / (SMALLEST * count + 0.15))))
    side = min(CELL * count, (style.WIDTH - room) / columns - 0.15)
    wide = room + columns * (side + 0.15)
    width = max(4.2, wide)
    foot = [
        "Probability that a run of the row's method has a higher final return than one of the column's (a tie counts half).",
        *(["All: the mean over the environments that both methods have."] if "all" in envs else []),
        *looks.on_the_command_line({method: collection.looks[method] for method in chosen}),
        *measures.shortfall(collection, chosen, bands=False),
    ]
    beside = (width - wide) / 2
    margins: dict[str, Any] = {"left": room + beside, "right": beside + 0.15, "bottom": room + 0.22}
    figure, places = style.panels(len(envs), columns, side, foot, width=width, **margins, down=0.32)
    for i, (env, place) in enumerate(zip(envs, places, strict=True)):
        axes = figure.add_subplot(place)
        _matrix(axes, table[table["env"] == env], chosen)
        axes.set_yticklabels(names if i % columns == 0 else [], rotation=0)
        axes.set_xticklabels(names if i + columns >= len(envs) else [], rotation=90)
        axes.set_title(style.plain(collection.title(env)) if env != "all" else "All environments")
    if not envs:
        figure.text(0.5, 0.6, "no two methods with finished runs in one environment", ha="center", va="center", color="#777777")
    return figure


def _matrix(axes: Axes, table: pd.DataFrame, methods: Sequence[str]) -> None:
    there = table.pivot(index="method", columns="other", values="improvement").reindex(index=methods, columns=methods).astype(float)
    both = there.fillna(1 - there.T)
    words = both.map(lambda value: "" if np.isnan(value) else f"{round(value, 2):g}".removeprefix("0") or "0")
    shades: dict[str, Any] = {"vmin": -0.2, "vmax": 1.2, "cmap": "RdBu"}  # beyond 0 and 1, whose colours would be too dark to read on
    sns.heatmap(both, **shades, annot=words, fmt="", annot_kws={"size": 6}, cbar=False, linewidths=0.5, square=True, ax=axes)
    axes.set(xlabel="", ylabel="")
    axes.grid(visible=False)
    axes.tick_params(length=0, pad=2)
