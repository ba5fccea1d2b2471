"""Learning curves: one panel per environment, one line and band per method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from codesign_bench.analysis import measures, published, statistics
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.style import Look, count, env_title, plain

STAR: Any = {"marker": (5, 1), "ms": 6, "mfc": "white", "mew": 0.9}
"""Marks of published values."""
BANDS = {"std": "mean and standard deviation over seeds", "iqm": "interquartile mean and 95 % bootstrap interval over seeds"}


def panel(axes: Axes, collection: Collection, env: str, methods: Sequence[str], look: dict[str, Look], band: str, marks: bool) -> None:
    """The curves of one environment."""
    at = measures.grid(collection, env)
    for method in methods:
        runs = measures.curves(collection, env, method, at)
        if len(runs):
            _line(axes, at, runs, look[method], band)
    axes.set_title(plain(env_title(env)))
    axes.set_xlim(0, max(collection.horizon(env), 1))
    axes.xaxis.set_major_formatter(lambda value, _: count(value) if value else "0")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value == round(value) else f"{value:,.4g}")
    axes.locator_params(axis="x", nbins=5)
    axes.locator_params(axis="y", nbins=5)
    if not axes.lines:
        axes.text(0.5, 0.5, "no runs", transform=axes.transAxes, ha="center", va="center", color="#777777")
        axes.set_xticks([])
        axes.set_yticks([])
    if marks:
        _published(axes, env, methods, look)


def _line(axes: Axes, at: Any, runs: Any, look: Look, band: str) -> None:
    centre, low, high = statistics.band(runs, band)
    fewer, known = measures.fewer(runs), np.isfinite(centre)
    style: dict[str, Any] = {"color": look.colour, "solid_capstyle": "round", "clip_on": False}  # marks at the edge are whole
    every = max(1, int(np.count_nonzero(known)) // 8)
    full = np.where(fewer, np.nan, centre)
    axes.plot(at, full, ls=look.dashes, marker=look.marker, markevery=every, markeredgewidth=0, **style)
    if fewer.any():
        beside = fewer.copy()  # the dashed part begins where the whole one ends
        beside[1:] |= fewer[:-1]
        beside[:-1] |= fewer[1:]
        axes.plot(at, np.where(beside, centre, np.nan), ls=(0, (2, 1.5)), lw=1.0, color=look.colour)
    axes.fill_between(at, low, high, where=np.isfinite(low), color=look.colour, alpha=0.16, lw=0)


def _published(axes: Axes, env: str, methods: Sequence[str], look: dict[str, Look]) -> None:
    """Values from the literature as marks at the right edge, which stands for their own number of steps."""
    for value in published.values():
        if value.env != env or value.method not in methods:
            continue
        edge: Any = {"transform": axes.get_yaxis_transform(), "clip_on": False}
        axes.plot([1.0], [value.value], ls="none", mec=look[value.method].colour, zorder=5, **STAR, **edge)
        if value.low is not None and value.high is not None:
            axes.plot([1.0, 1.0], [value.low, value.high], lw=0.8, color=look[value.method].colour, zorder=4, **edge)
    axes.relim()
    axes.autoscale_view(scalex=False)


def legend_handles(methods: Sequence[str], look: dict[str, Look], marks: bool) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look[m].colour, marker=look[m].marker, ls=look[m].dashes, markeredgewidth=0, label=plain(look[m].label))
        for m in methods
    ]
    if marks:
        handles.append(Line2D([], [], ls="none", label="published, at 50 M steps", **STAR, mec="#444444"))
    return handles
