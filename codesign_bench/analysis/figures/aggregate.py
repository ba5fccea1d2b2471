"""All environments at once: mean, performance profile, probability of improvement (the last two as rliable defines them)."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from codesign_bench.analysis import looks, measures, statistics, style
from codesign_bench.analysis.collect import Collection
from codesign_bench.arrays import Array

Scores = Mapping[str, Sequence[Array]]
"""Of each method: normalised final returns, one array per environment."""


def aggregate(collection: Collection, methods: Sequence[str]) -> Figure:
    """Final returns as shares of the best method's mean in the same environment. Environments count alike."""
    frame = measures.normalised(measures.finals(collection))
    shown = [method for method in methods if (frame.loc[frame["reached"], "method"] == method).any()]
    everywhere = {env for env in collection.envs if all(len(measures.scores(frame, method, [env])[0]) for method in shown)}
    envs = [env for env in looks.ordered_envs(frame["env"]) if env in everywhere]  # comparable only where everyone has runs
    scores = {method: measures.scores(frame, method, envs) for method in shown}
    left_out = sorted(set(collection.envs) - set(envs))
    unfinished = [collection.label(method) for method in methods if method not in shown]
    foot = [
        f"Final return as a share of the best method's mean, over {', '.join(map(collection.title, envs)) or 'no environment'}.",
        statistics.INTERVALS,
        *measures.cautions(collection, methods),
        *([f"Without {', '.join(map(collection.title, left_out))}: runs are missing or no mean is positive."] if left_out else []),
        *([f"Without {', '.join(unfinished)}: no run that reached the end."] if unfinished and shown else []),
        *measures.shortfall(collection, methods, bands=False),
    ]
    names, room = style.row_names(map(collection.label, shown))
    left, height = max(1.2, room), max(1.35, 0.24 * len(shown) + 0.45)
    figure, places = style.panels(3, 3, height, foot, left=left, across=0.42, ratios=[2.5 - left, 1.7, 1.8])
    means, profiles, improvements = (figure.add_subplot(place) for place in places)
    _means(means, scores, names, collection.looks)
    _profiles(profiles, scores, collection.looks)
    _improvements(improvements, scores, collection.looks)
    if not shown:
        for axes in figure.axes:
            style.blank(axes, "no runs")
    return figure


def _means(axes: Axes, scores: Scores, names: Sequence[str], look: Mapping[str, looks.Look]) -> None:
    for row, (method, mine) in enumerate(scores.items()):
        _bar(axes, row, statistics.mean(mine), look[method])
    style.rows_down(axes, names)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.set(title="mean", xlabel="share of the best method")


def _profiles(axes: Axes, scores: Scores, look: Mapping[str, looks.Look]) -> None:
    top = max([1.0, *(float(x.max()) for mine in scores.values() for x in mine)])
    levels = np.linspace(0, top * 1.02, 101)
    for i, (method, mine) in enumerate(scores.items()):
        share, low, high = statistics.performance_profile(mine, levels)
        colour, marker, dashes = look[method].colour, look[method].marker, look[method].dashes
        axes.plot(levels, share, color=colour, marker=marker, markevery=(i, 12), markeredgewidth=0, ls=dashes)
        axes.fill_between(levels, low, high, where=np.isfinite(low), color=colour, alpha=0.16, lw=0)
    axes.set(title="performance profile", xlim=(0, levels[-1]), ylim=(0, 1.03), xlabel="share of the best method")
    axes.set_ylabel("runs above", labelpad=1)


def _improvements(axes: Axes, scores: Scores, look: Mapping[str, looks.Look]) -> None:
    """The first method against each of the others, in the rows of the first panel."""
    first = next(iter(scores), None)
    for row, (method, theirs) in enumerate(scores.items()):
        if first is not None and method != first:
            _bar(axes, row, statistics.probability_of_improvement(scores[first], theirs), look[method])
    axes.axvline(0.5, color="#999999", lw=0.8, ls=(0, (3, 2)), zorder=0.5)
    style.rows_down(axes, [""] * len(scores))
    axes.set(title="probability of improvement", xlim=(0, 1.02))
    axes.set_xlabel("" if first is None else style.plain(f"P({look[first].label} better)"))


def _bar(axes: Axes, row: int, found: statistics.Estimate, look: looks.Look) -> None:
    if np.isfinite(found.low):
        axes.barh(row, found.high - found.low, left=found.low, height=0.75, color=look.colour, alpha=0.3, lw=0)
    # the mark of the profile's line, whole where it lies on the axis
    axes.plot(found.value, row, ls="none", marker=look.marker, color=look.colour, ms=4, markeredgewidth=0, clip_on=False, zorder=3)
