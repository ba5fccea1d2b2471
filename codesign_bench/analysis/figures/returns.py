"""Final returns: every seed as a dot with the interquartile mean (`final_returns`), and who beats whom (`pairs`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from codesign_bench.analysis import looks, measures, statistics, style
from codesign_bench.analysis.collect import Collection

LONGEST = 32
"""Letters of a name at the left."""
ROW, CELL, SMALLEST = 0.2, 0.3, 0.2
"""Inches of a method: in the plot of returns, and the largest and smallest in a matrix."""


def final_returns(collection: Collection, methods: Sequence[str] | None = None) -> Figure:
    """One panel per environment, methods down. Only runs that reached the end count; the others are hollow."""
    chosen = [method for method in collection.methods if methods is None or method in methods]
    frame = measures.finals(collection)
    frame = frame[frame["method"].isin(chosen)]
    foot = style.wrapped(
        [
            "Dots: the return at the last evaluation of every seed.",
            *([] if frame["reached"].all() else ["Hollow: of a run that has not reached the others' last step; it does not count."]),
            "Marks and bars: interquartile mean and its 95 % bootstrap interval over seeds.",
            *looks.on_the_command_line({method: collection.looks[method] for method in chosen}),
            *measures.cautions(collection, chosen),
            *measures.shortfall(collection, chosen, bands=False),
        ],
        width=170 if len(collection.envs) > 1 else 118,
    )
    columns = min(2, len(collection.envs)) or 1
    lines = -(-len(collection.envs) // columns)
    panel, names = ROW * len(chosen) + 0.1, 0.14 + 0.052 * min(LONGEST, max(len(collection.label(method)) for method in chosen))
    height = (panel + 0.5) * lines + 0.25 + 0.11 * len(foot)
    width = style.WIDTH if columns > 1 else 0.7 * style.WIDTH
    figure = Figure(figsize=(width, height))
    for i, env in enumerate(collection.envs):
        line, column = divmod(i, columns)
        wide = (width - names - 0.12) / columns
        place = (names + column * wide, height - 0.27 - panel - line * (panel + 0.5), wide - 0.14, panel)
        axes = figure.add_axes((place[0] / width, place[1] / height, place[2] / width, place[3] / height))
        _dots(axes, frame[frame["env"] == env], chosen, collection)
        axes.set(title=style.plain(collection.title(env)), xlabel="final return" if i >= len(collection.envs) - columns else "", ylabel="")
        axes.tick_params(axis="y", length=0, labelleft=column == 0)
    style.note(figure, foot)
    return figure


def _dots(axes: Axes, frame: pd.DataFrame, methods: Sequence[str], collection: Collection) -> None:
    done, short = frame[frame["reached"].astype(bool)], frame[~frame["reached"].astype(bool)]
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
        estimator=statistics.interquartile_mean_of,
        errorbar=_interval,
        markers=[collection.looks[method].marker for method in methods],
        linestyles="none",
        markersize=4.5,
        markeredgewidth=0.5,
        markeredgecolor="white",
        err_kws={"linewidth": 1.6},
        zorder=3,
    )
    axes.set_yticks(range(len(methods)), [style.plain(style.short(collection.label(method), LONGEST)) for method in methods])
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(lambda value, _: style.count(value) if value else "0")
    axes.locator_params(axis="x", nbins=5)
    sns.despine(ax=axes, left=True)


def _interval(values: Any) -> tuple[float, float]:
    found = statistics.interquartile_mean([values])
    return (found.low, found.high) if np.isfinite(found.low) else (found.value, found.value)


def pairs(collection: Collection, methods: Sequence[str] | None = None) -> Figure:
    """The probability that a run of the row's method beats one of the column's: over all environments that both have, each counted alike,
    and in each of them."""
    table = measures.pairwise(measures.finals(collection))
    chosen = [m for m in collection.methods if (methods is None or m in methods) and ((table["method"] == m) | (table["other"] == m)).any()]
    envs = [env for env in ("all", *collection.envs) if (table["env"] == env).any()]
    labels = [style.plain(style.short(collection.label(method), LONGEST)) for method in chosen]
    names, count = 0.2 + 0.052 * max(map(len, labels), default=0), max(1, len(chosen))
    columns = max(1, min(len(envs), 2, int((style.WIDTH - names) / (SMALLEST * count + 0.15))))
    side = min(CELL * count, (style.WIDTH - names) / columns - 0.15)
    lines, width = max(1, -(-len(envs) // columns)), max(4.2, names + columns * (side + 0.15))
    foot = style.wrapped(
        [
            "Probability that a run of the row's method has a higher final return than one of the column's (a tie counts half).",
            *(["All: the mean over the environments that both methods have."] if "all" in envs else []),
            *looks.on_the_command_line({method: collection.looks[method] for method in chosen}),
            *measures.shortfall(collection, chosen, bands=False),
        ],
        width=int(24 * width),
    )
    height = lines * (side + 0.32) + names + 0.15 + 0.11 * len(foot)
    figure = Figure(figsize=(width, height))
    for i, env in enumerate(envs):
        line, column = divmod(i, columns)
        left, bottom = (
            names + (width - names - columns * (side + 0.15)) / 2 + column * (side + 0.15),
            height - 0.25 - side - line * (side + 0.32),
        )
        axes = figure.add_axes((left / width, bottom / height, side / width, side / height))
        _matrix(axes, table[table["env"] == env], chosen)
        last = i + columns >= len(envs)
        axes.set_yticklabels(labels if column == 0 else [], rotation=0)
        axes.set_xticklabels(labels if last else [], rotation=90)
        axes.set_title(style.plain(collection.title(env)) if env != "all" else "All environments")
    if not envs:
        figure.text(0.5, 0.6, "no two methods with finished runs in one environment", ha="center", va="center", color="#777777")
    style.note(figure, foot)
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
