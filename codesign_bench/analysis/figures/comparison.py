"""Figures of learning curves with the final designs underneath: baselines (a), ablations (b), continuous design (d).

comparison(collection, out)     writes comparison.pdf, .svg, .png and final_returns.md, .tex (with `methods`: comparison_returns)
"""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from codesign_bench.analysis import looks, measures, style, tables
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.figures import curves
from codesign_bench.analysis.figures.designs import row_of_champions
from codesign_bench.analysis.published import values as published_values


def comparison(
    collection: Collection,
    out: Path,
    *,
    methods: Sequence[str] | None = None,
    envs: Sequence[str] | None = None,
    band: str = "std",
    published: bool = False,
    designs: bool = True,
    name: str = "comparison",
    formats: Sequence[str] = style.FORMATS,
) -> list[Path]:
    """Curves of `methods` in `envs` (default: all in the collection), and the table of their final returns. Makes the figure whatever
    there is, and says on its face what is missing."""
    chosen = tuple(methods) if methods is not None else collection.methods
    with style.styled():
        figure = draw(collection, chosen, envs or collection.envs, band, published, designs)
        written = style.save(figure, out, name, formats)
    table = tables.final_returns(collection, chosen, name="final_returns" if methods is None else f"{name}_returns")
    return written + tables.write(table, out)


def draw(
    collection: Collection, methods: Sequence[str], envs: Sequence[str], band: str = "std", published: bool = False, designs: bool = True
) -> Figure:
    methods, envs = [method for method in methods if method in collection.methods], envs or ["no environment yet"]
    designs = designs and bool(methods)
    columns = max(1, min(4, len(envs)))
    lines = -(-len(envs) // columns)
    width = {1: 4.2, 2: 5.5}.get(columns, style.WIDTH)
    marks = [value for value in published_values() if published and value.method in methods and value.env in envs]
    sources = dict.fromkeys(part for value in marks for part in value.source.replace("+-", "±").split("; "))
    foot = style.wrapped(
        [
            f"Lines and bands: {curves.BANDS[band]}.",
            *(measures.cautions(collection, methods) if band == "iqm" else []),
            *([f"Stars: {'; '.join(sources)}."] if marks else []),
            *(["Underneath: the final design of each method's best seed, at one scale per environment."] if designs else []),
            *looks.on_the_command_line({method: collection.looks[method] for method in methods}),
            *measures.missing(collection, methods, envs),
            *measures.shortfall(collection, methods),
        ],
        width=int(24 * width),
    )
    handles = curves.legend_handles(methods, collection.looks, bool(marks))
    per_line = 5 if len(handles) == 5 and columns > 2 else {1: 2, 2: 3}.get(columns, 4)
    top, bottom = 0.16 * -(-len(handles) // per_line) + 0.30, 0.11 * len(foot) + (0.25 if designs else 0.42)
    panel, pictures = (2.2 if columns == 1 else 1.65), 0.78 * -(-len(methods) // 2) if designs else 0.0
    line = panel + (pictures + 0.45 if designs else 0)
    height = line * lines + 0.45 * (lines - 1) + top + bottom
    figure = Figure(figsize=(width, height))
    edges = {"left": 0.525 / width, "right": 1 - 0.175 / width, "top": 1 - top / height, "bottom": bottom / height}
    grid = figure.add_gridspec(lines, columns, **edges, wspace=0.32, hspace=0.45 / line)
    for i, env in enumerate(envs):
        place = grid[i // columns, i % columns]
        if designs:
            parts = place.subgridspec(2, 1, height_ratios=[panel, pictures + 0.01], hspace=0.9 / (panel + pictures))
            place = parts[0]
            row_of_champions(figure, parts[1], collection, env, methods)
        axes = figure.add_subplot(place)
        curves.panel(axes, collection, env, methods, band, published)
        axes.set_xlabel("simulation steps", labelpad=1)
        if i % columns == 0:
            axes.set_ylabel("total reward")
    if handles:
        figure.legend(handles=handles, loc="upper center", ncols=min(per_line, len(handles)), bbox_to_anchor=(0.5, 1.0), columnspacing=1.4)
    style.note(figure, foot)
    return figure
