"""Figures of learning curves with the final designs underneath: baselines (a), ablations (b), continuous design (d).

comparison(collection, out)     writes comparison.pdf, .svg, .png and final_returns.md, .tex (with `methods`: comparison_returns)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from codesign_bench.analysis import looks, measures, style, tables
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.figures import curves
from codesign_bench.analysis.figures.designs import row_of_champions
from codesign_bench.analysis.table import write

PUBLISHED = Path(style.__file__).with_name("published.csv")
"""Values from the literature, for orientation, each with its source; the paper itself prints no numbers. env, method, value, low and high
(missing where the source gives none), steps, source."""

PANEL_DISTANCE, GAP = 0.85, 0.09
"""Inches: the panel of distances, and the room above it."""


def comparison(
    collection: Collection,
    out: Path,
    *,
    methods: Sequence[str] | None = None,
    envs: Sequence[str] | None = None,
    band: str = "std",
    published: bool = False,
    distance: bool = True,
    designs: bool = True,
    name: str = "comparison",
    formats: Sequence[str] = style.FORMATS,
) -> list[Path]:
    """Curves of `methods` in `envs` (default: all in the collection), and the table of their final returns. Makes the figure whatever
    there is, and says on its face what is missing."""
    chosen = tuple(methods) if methods is not None else collection.methods
    with style.styled():
        figure = draw(collection, chosen, envs or collection.envs, band, published, distance, designs)
        written = style.save(figure, out, name, formats)
    table = tables.final_returns(collection, chosen, name="final_returns" if methods is None else f"{name}_returns")
    return written + write(table, out)


def draw(
    collection: Collection,
    methods: Sequence[str],
    envs: Sequence[str],
    band: str = "std",
    published: bool = False,
    distance: bool = True,
    designs: bool = True,
) -> Figure:
    """Returns, under them how far the robots travelled (as far as it was recorded), under them the final designs."""
    methods, envs = [method for method in methods if method in collection.methods], envs or ["no environment yet"]
    designs, distance = designs and bool(methods), distance and measures.DISTANCE in collection.table
    columns = max(1, min(4, len(envs)))
    width = {1: 4.2, 2: 5.5}.get(columns, style.WIDTH)
    values = pd.read_csv(PUBLISHED)
    marks = values[values["method"].isin(methods) & values["env"].isin(envs) & published]
    sources = dict.fromkeys(part for source in marks["source"] for part in source.replace("+-", "±").split("; "))
    foot = [
        f"Lines and bands: {curves.BANDS[band]}.",
        *(measures.cautions(collection, methods) if band == "interval" else []),
        *([f"Stars: {'; '.join(sources)}."] if sources else []),
        *(["Distance: metres forward in an episode.", *measures.not_recorded(collection, methods, measures.DISTANCE)] if distance else []),
        *(["Underneath: the final design of each method's best seed, at one scale per environment."] if designs else []),
        *looks.on_the_command_line({method: collection.looks[method] for method in methods}),
        *measures.missing(collection, methods, envs),
        *measures.shortfall(collection, methods),
    ]
    handles = curves.legend_handles(methods, collection.looks, bool(sources))
    per_line = 5 if len(handles) == 5 and columns > 2 else {1: 2, 2: 3}.get(columns, 4)
    panel, pictures = (2.2 if columns == 1 else 1.65), 0.78 * -(-len(methods) // 2)
    below = PANEL_DISTANCE + GAP if distance else 0.0
    height = panel + below + (pictures + 0.45 if designs else 0.0)
    top, bottom = 0.16 * -(-len(handles) // per_line) + 0.3, 0.25 if designs else 0.42
    room: Any = {"left": 0.525, "right": 0.175, "top": top, "bottom": bottom, "across": 0.41, "down": 0.45}
    figure, places = style.panels(len(envs), 4, height, foot, width=width, **room)
    for i, (env, place) in enumerate(zip(envs, places, strict=True)):
        if designs:
            parts = place.subgridspec(2, 1, height_ratios=[panel + below, pictures + 0.01], hspace=0.9 / (panel + below + pictures))
            place = parts[0]
            row_of_champions(figure, parts[1], collection, env, methods)
        rows = place.subgridspec(
            1 + distance, 1, height_ratios=[panel, PANEL_DISTANCE][: 1 + distance], hspace=2 * GAP / (panel + below - GAP)
        )
        axes = figure.add_subplot(rows[0])
        curves.panel(axes, collection, env, methods, band)
        curves.stars(axes, marks[marks["env"] == env], collection.looks)
        if distance:
            axes.tick_params(labelbottom=False)
            lower = figure.add_subplot(rows[1], sharex=axes)
            curves.panel(lower, collection, env, methods, band, measures.DISTANCE)
            lower.set_title("")
        figure.axes[-1].set_xlabel("simulation steps", labelpad=1)
        if i % columns == 0:
            axes.set_ylabel("total reward")
            figure.axes[-1].set_ylabel("distance (m)" if distance else "total reward")
    if handles:
        figure.legend(handles=handles, loc="upper center", ncols=min(per_line, len(handles)), bbox_to_anchor=(0.5, 1.0), columnspacing=1.4)
    return figure
