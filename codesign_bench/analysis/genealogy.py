"""The genealogy of a population: which species descends from which, how fit each was, and the lineage of the champion."""

import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from codesign_bench.analysis.reading import BEYOND
from codesign_bench.analysis.style import plain, styled
from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.plain_files import read_text
from codesign_bench.simulation.rendering import Picture
from codesign_bench.tasks.base import Task

HISTORY, SPECIES = "tables/genealogy.csv", "tables/species.csv"
_WHOLE = dict.fromkeys(("generation", "species", "born", "bodies", "champion"), "int64")
COLUMNS = {HISTORY: {**_WHOLE, "parent": "Int64", "mutation": "str", "fitness": "float64"}, SPECIES: {"species": "int64", "design": "str"}}
"""What this reads of the tables that population methods write; a parent may be missing."""
CHAMPION = "#c8102e"
MOST_PORTRAITS = 7
MOST_ROWS = 60_000


@dataclass(frozen=True)
class Genealogy:
    """- history: one row per species and generation: generation, species, parent (missing for none), born, mutation, fitness,
      bodies, champion
    - designs: by species
    """

    history: pd.DataFrame
    designs: dict[int, Design]

    @property
    def champion(self) -> int:
        """The champion of the last generation."""
        last = self.history[self.history["generation"] == self.history["generation"].max()]
        return int(last.loc[last["champion"].idxmax(), "species"])

    @cached_property
    def parents(self) -> dict[int, int | None]:
        """Of every species."""
        born = self.history.drop_duplicates("species")
        return {int(s): None if pd.isna(p) else int(p) for s, p in zip(born["species"], born["parent"], strict=True)}

    def lineage(self, species: int) -> list[int]:
        """From its first ancestor to the species itself."""
        line: list[int] = []
        following: int | None = species
        while following is not None:
            line.append(following)
            following = self.parents[following]
        return line[::-1]


def read_genealogy(run: Path) -> Genealogy:
    """The genealogy of a run folder, as far as the run has come."""
    history, births = read_table(run, HISTORY), read_table(run, SPECIES)
    if not len(history):
        raise ConfigError(f"The run {run} has not finished a generation yet; let it take at least one.")
    try:
        designs = {int(number): Design.from_json(text) for number, text in zip(births["species"], births["design"], strict=True)}
    except DesignError as error:
        raise ConfigError(f"{run / SPECIES} cannot be read: {error}") from None
    known = set(history["species"])
    children = history.dropna(subset="parent")
    if not known <= set(designs) or not set(children["parent"]) <= known or (children["parent"] >= children["species"]).any():
        raise ConfigError(f"The tables in {run} do not belong together: a species is missing, or older than its parent.")
    return Genealogy(history, designs)


def read_table(run: Path, name: str) -> pd.DataFrame:
    """As far as it is written: its last row may be half there."""
    file = run / name
    if not file.is_file():
        raise ConfigError(f"There is no {file}; allowed is the folder of a run of nge, ess, rgs or derl that has finished a generation.")
    try:
        rows, _, _ = read_text(file).rpartition("\n")
        with np.errstate(invalid="ignore"):  # numbers that are not whole are told of below
            table = pd.read_csv(io.StringIO(rows), dtype=COLUMNS[name], nrows=MOST_ROWS + 1)
    except ConfigError as error:
        raise ConfigError(f"{file} {error}.") from None
    except (OSError, ValueError, TypeError, OverflowError) as error:
        raise ConfigError(f"{file} cannot be read as a table: {' '.join(str(error).split())[:200]}") from None
    if len(table) > MOST_ROWS:
        raise ConfigError(f"{file} has more than {MOST_ROWS:,} rows.")
    missing = [column for column in COLUMNS[name] if column not in table]
    if missing:
        raise ConfigError(f"{file} lacks the columns {', '.join(missing)}.")
    table = table.fillna({column: "" for column, kind in COLUMNS[name].items() if kind == "str"})
    return table.assign(fitness=table["fitness"].where(table["fitness"].abs() <= BEYOND)) if "fitness" in COLUMNS[name] else table


def lanes(genealogy: Genealogy) -> dict[int, int]:
    """A height for each species: descendants right above their ancestor, the latest born closest to it, so that no line of
    descent crosses another species' life."""
    children: dict[int | None, list[int]] = {}
    for number, parent in genealogy.parents.items():
        children.setdefault(parent, []).append(number)
    order: list[int] = []
    stack = list(reversed(children.get(None, [])))
    while stack:
        species = stack.pop()
        order.append(species)
        stack.extend(children.get(species, []))  # the last pushed, the latest born, comes first
    return {species: lane for lane, species in enumerate(order)}


@styled()
def draw_genealogy(genealogy: Genealogy, task: Task, title: str) -> Any:
    """A matplotlib figure: fitness per generation, the tree of all species, and portraits along the champion's lineage."""
    from matplotlib.figure import Figure

    line = genealogy.lineage(genealogy.champion)
    portraits = [line[i] for i in np.unique(np.linspace(0, len(line) - 1, min(len(line), MOST_PORTRAITS)).round().astype(int))]
    figure = Figure(figsize=(8.4, 7.4), layout="constrained", dpi=170)
    figure.suptitle(title)
    grid = figure.add_gridspec(3, len(portraits), height_ratios=[1.5, 5.5, 2.2])
    top = figure.add_subplot(grid[0, :])
    tree = figure.add_subplot(grid[1, :], sharex=top)
    _draw_fitness(top, genealogy)
    colours = _draw_tree(tree, genealogy, line)
    figure.colorbar(colours, ax=[top, tree], label="fitness", pad=0.01, fraction=0.03)
    _draw_portraits([figure.add_subplot(grid[2, i]) for i in range(len(portraits))], genealogy, portraits, task)
    return figure


def _draw_fitness(axes: Any, genealogy: Genealogy) -> None:
    finite = genealogy.history[np.isfinite(genealogy.history["fitness"])]
    fitness = finite.groupby("generation")["fitness"].agg(["min", "median", "max"])
    axes.fill_between(fitness.index, fitness["min"], fitness["max"], color="#9fb4c7", alpha=0.4, linewidth=0, label="all species")
    axes.plot(fitness["median"], color="#44617b", label="median")
    axes.plot(fitness["max"], color=CHAMPION, label="champion of the generation")
    axes.set_ylabel("fitness")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    axes.tick_params(labelbottom=False)


def _draw_tree(axes: Any, genealogy: Genealogy, line: list[int]) -> Any:
    """Lives from left to right, coloured by fitness; a thin line where a child branches off; the champion's lineage in red."""
    history, lane = genealogy.history, lanes(genealogy)
    end = history["generation"].max() + 0.5
    finite = np.isfinite(history["fitness"])
    low, high = np.percentile(history.loc[finite, "fitness"], [2, 100]) if finite.any() else (0.0, 1.0)
    width = float(np.clip(300 / len(lane), 1.0, 7.0))

    def draw_lives(rows: pd.DataFrame, **look: Any) -> Any:
        start = rows["generation"] - 0.5
        return axes.hlines(rows["species"].map(lane), start, start + 1, linewidths=width, zorder=2, **look)

    lives = draw_lives(history[finite], array=history.loc[finite, "fitness"], cmap="viridis", clim=(low, max(high, low + 1e-9)))
    draw_lives(history[~finite], colors="#bbbbbb")
    born = history.drop_duplicates("species")
    children = born.dropna(subset="parent")
    branches = children["parent"].map(lane), children["species"].map(lane)
    axes.vlines(children["born"] - 0.5, *branches, colors="#999999", linewidths=0.6, zorder=1)
    # Along each ancestor's life until the next in line branches off, and along the champion's to the end.
    births = born.set_index("species")["born"][line] - 0.5
    heights = [lane[species] for species in [*line, line[-1]]]
    axes.step([*births, end], heights, where="post", color=CHAMPION, linewidth=width * 0.25 + 1.2, zorder=3)
    axes.set(xlim=(-0.5, end), ylim=(-1, len(lane)), yticks=[], xlabel="generation", ylabel=f"{len(lane)} species, by descent")
    axes.set_title("lineage of the last champion in red", color=CHAMPION, loc="left", pad=2)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)
    return lives


def _draw_portraits(axes: list[Any], genealogy: Genealogy, species: list[int], task: Task) -> None:
    """How the champion came to be: some of its ancestors and itself."""
    for place, number in zip(axes, species, strict=True):
        rows = genealogy.history[genealogy.history["species"] == number]
        design = genealogy.designs[number]
        task.space.check(design)
        picture = Picture(design, task, 480, 480, zoom=1.5)
        place.imshow(picture.frame())
        picture.close()
        mutation, fitness = rows["mutation"].iloc[0], rows["fitness"].iloc[-1]
        name = f"champion, species {number}" if number == species[-1] else f"species {number}"
        birth = f"{plain(mutation)}, generation {int(rows['born'].iloc[0])}"
        place.set_title(f"{name}\n{birth}\n{design.num_nodes} bodies, fitness {fitness:.0f}", fontsize=7)
        place.set(xticks=[], yticks=[])
        place.spines[:].set(visible=True, color=CHAMPION if number == species[-1] else "#cccccc")
