"""Figures of learning curves with the final designs underneath: baselines (a), ablations (b), continuous design (d).

comparison(collection, out)     writes comparison.pdf, .svg, .png and final_returns.md, .tex; returns their paths
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from codesign_bench.analysis import measures, style, tables
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.figures import curves
from codesign_bench.tasks import TASKS


def comparison(
    collection: Collection,
    out: Path,
    *,
    methods: Sequence[str] | None = None,
    envs: Sequence[str] | None = None,
    band: str = "std",
    published: bool = False,
    name: str = "comparison",
    formats: Sequence[str] = style.FORMATS,
) -> list[Path]:
    """Curves of `methods` (default: all in the collection) in `envs` (default: the four tasks, and any other that has runs), and
    the table of their final returns. Makes the figure whatever there is, and says on its face what is missing."""
    chosen = tuple(methods) if methods is not None else style.ordered(collection.methods)
    with style.styled():
        figure = draw(collection, chosen, envs or style.ordered_envs({*TASKS, *collection.envs}), band, published)
        written = style.save(figure, out, name, formats)
    table = tables.final_returns(collection, chosen, name="final_returns" if name == "comparison" else f"{name}_returns")
    return written + tables.write(table, out)


def draw(collection: Collection, methods: Sequence[str], envs: Sequence[str], band: str = "std", published: bool = False) -> Figure:
    look = style.looks([*methods, *collection.methods])
    foot = style.wrapped([f"Lines and bands: {curves.BANDS[band]}.", *measures.shortfall(collection, methods)])
    columns = min(4, len(envs))
    lines = -(-len(envs) // columns)
    entries = len(methods) + published
    legend_lines = -(-entries // 4)
    top, bottom = 0.16 * legend_lines + 0.32, 0.11 * len(foot) + 0.45
    height = 1.75 * lines + 0.45 * (lines - 1) + top + bottom
    figure = Figure(figsize=(style.WIDTH, height))
    grid = figure.add_gridspec(
        lines, columns, left=0.07, right=0.985, top=1 - top / height, bottom=bottom / height, wspace=0.32, hspace=0.45
    )
    for i, env in enumerate(envs):
        axes = figure.add_subplot(grid[i // columns, i % columns])
        curves.panel(axes, collection, env, methods, look, band, published)
        axes.set_xlabel("simulation steps")
        if i % columns == 0:
            axes.set_ylabel("total reward")
    handles = curves.legend_handles(methods, look, published)
    if handles:
        figure.legend(handles=handles, loc="upper center", ncols=min(4, entries), bbox_to_anchor=(0.5, 1.0), columnspacing=1.4)
    style.note(figure, foot)
    return figure
