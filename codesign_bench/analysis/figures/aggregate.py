"""All environments at once: interquartile mean, performance profile, probability of improvement (definitions of rliable)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from codesign_bench.analysis import looks, measures, statistics, style
from codesign_bench.analysis.collect import Collection

LONGEST = 32
"""Letters of a name at the left."""


def aggregate(collection: Collection, methods: Sequence[str]) -> Figure:
    """Final returns as shares of the best method's mean in the same environment. The interquartile mean is over all runs together;
    in the profile and in the probability, environments count alike."""
    frame = measures.normalised(measures.finals(collection))
    shown = [method for method in methods if len(frame) and (frame.loc[frame["reached"].astype(bool), "method"] == method).any()]
    envs = [
        env for env in looks.ordered_envs(frame["env"]) if all(len(measures.scores(frame, method, [env])[0]) for method in shown)
    ]  # comparable only where everyone has runs
    left_out = sorted(set(collection.envs) - set(envs))
    look = collection.looks
    unfinished = [collection.label(method) for method in methods if method not in shown]
    foot = style.wrapped(
        [
            f"Final return as a share of the best method's mean, over {', '.join(map(collection.title, envs)) or 'no environment'}.",
            "Intervals: 95 % stratified bootstrap.",
            *measures.cautions(collection, methods),
            *([f"Without {', '.join(map(collection.title, left_out))}: runs are missing or no mean is positive."] if left_out else []),
            *([f"Without {', '.join(unfinished)}: no run that reached the end."] if unfinished and shown else []),
            *measures.shortfall(collection, methods, bands=False),
        ]
    )
    height = max(1.5, 0.24 * len(shown) + 0.6) + 0.55 + 0.11 * len(foot)
    figure = Figure(figsize=(style.WIDTH, height))
    bottom, tall = (0.42 + 0.11 * len(foot)) / height, 1 - (0.70 + 0.11 * len(foot)) / height
    left = max(0.17, 0.012 + 0.0063 * min(LONGEST, max((len(look[method].label) for method in shown), default=0)))
    first = figure.add_axes((left, bottom, 0.36 - left, tall))
    second = figure.add_axes((0.44, bottom, 0.24, tall))
    third = figure.add_axes((0.72, bottom, 0.26, tall))
    _means(first, frame, shown, envs, look)
    _profiles(second, frame, shown, envs, look)
    _improvements(third, frame, shown, envs, look)
    style.note(figure, foot)
    return figure


def _means(axes: Axes, frame: pd.DataFrame, methods: Sequence[str], envs: Sequence[str], look: dict[str, looks.Look]) -> None:
    axes.set_title("interquartile mean")
    for row, method in enumerate(methods):
        found = statistics.interquartile_mean(measures.scores(frame, method, envs))
        _bar(axes, row, found, look[method])
    _rows(axes, [style.short(look[method].label, LONGEST) for method in methods])
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.set_xlabel("share of the best method")


def _profiles(axes: Axes, frame: pd.DataFrame, methods: Sequence[str], envs: Sequence[str], look: dict[str, looks.Look]) -> None:
    axes.set_title("performance profile")
    top = max([1.0, *(float(x.max()) for method in methods for x in measures.scores(frame, method, envs) if len(x))])
    levels = np.linspace(0, top * 1.02, 101)
    for method in methods:
        share, low, high = statistics.performance_profile(measures.scores(frame, method, envs), levels)
        axes.plot(
            levels,
            share,
            color=look[method].colour,
            marker=look[method].marker,
            markevery=(methods.index(method), 12),
            markeredgewidth=0,
            ls=look[method].dashes,
        )
        axes.fill_between(levels, low, high, where=np.isfinite(low), color=look[method].colour, alpha=0.16, lw=0)
    if not methods:
        _no_runs(axes)
    axes.set_xlim(0, levels[-1])
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("share of the best method")
    axes.set_ylabel("runs above", labelpad=1)


def _improvements(axes: Axes, frame: pd.DataFrame, methods: Sequence[str], envs: Sequence[str], look: dict[str, looks.Look]) -> None:
    """The first method against each of the others, in the rows of the first panel."""
    axes.set_title("probability of improvement")
    for row, other in enumerate(methods[1:], start=1):
        a, b = measures.scores(frame, methods[0], envs), measures.scores(frame, other, envs)
        _bar(
            axes, row, statistics.probability_of_improvement(a, b) if envs else statistics.Estimate(np.nan, np.nan, np.nan, 0), look[other]
        )
    axes.axvline(0.5, color="#999999", lw=0.8, ls=(0, (3, 2)), zorder=0.5)
    _rows(axes, ["" for _ in methods])
    axes.set_xlim(0, 1.02)
    axes.set_xlabel(style.plain(f"P({look[methods[0]].label} better)") if methods else "")


def _bar(axes: Axes, row: int, found: statistics.Estimate, look: looks.Look) -> None:
    if np.isfinite(found.low):
        axes.barh(row, found.high - found.low, left=found.low, height=0.75, color=look.colour, alpha=0.3, lw=0)
    # the mark of the profile's line, whole where it lies on the axis
    axes.plot(found.value, row, ls="none", marker=look.marker, color=look.colour, ms=4, markeredgewidth=0, clip_on=False, zorder=3)


def _rows(axes: Axes, labels: list[str]) -> None:
    axes.set_yticks(range(len(labels)), [style.plain(text) for text in labels])
    axes.set_ylim(max(len(labels), 1) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    if not labels:
        _no_runs(axes)


def _no_runs(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no runs", transform=axes.transAxes, ha="center", va="center", color="#777777")
