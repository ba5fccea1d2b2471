"""a picture of what a run records besides its progress: who descends from whom, or how the design distribution moved.

codesign-bench plot run=results/default/gap/nge/seed_0 out=genealogy.png
codesign-bench plot run=results/default/gap/continuous/seed_0 out=distribution.png
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from codesign_bench.analysis.style import plain, save, styled
from codesign_bench.configuration import configured
from codesign_bench.errors import ConfigError, nearest
from codesign_bench.experiment.load import load_config_of
from codesign_bench.simulation.rendering import open_for_writing

SUFFIXES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class PlotConfig:
    """The content of conf/plot.yaml."""

    run: str
    out: str
    table: str | None

    def __post_init__(self) -> None:
        if Path(self.out).suffix not in SUFFIXES:
            raise ConfigError(f"out is '{self.out}'; allowed are names that end in {', '.join(SUFFIXES)}.")
        if self.table is not None and self.table not in TABLES:
            raise ConfigError(f"table is '{self.table}'{nearest(self.table, TABLES)}; allowed are {', '.join(TABLES)}.")


NAME = "{method[name]} on {env[name]}, seed {seed}"


def main(arguments: list[str]) -> int:
    config = configured(PlotConfig, "plot", arguments)
    folder = Path(config.run)
    settings = load_config_of(folder)
    has = [name for name in TABLES if (folder / "tables" / f"{name}.csv").is_file()]
    if not has and config.table is None:
        raise ConfigError(f"The run {folder} has no table to plot; {' and '.join(TABLES)} are plotted.")
    figure, about = TABLES[config.table or has[0]](folder, settings)
    out = open_for_writing(config.out)
    with styled():
        save(figure, out.parent, out.stem, [out.suffix[1:]])
    print(f"{out}: {about}")
    return 0


def _genealogy(folder: Path, settings: Mapping[str, Any]) -> tuple[Figure, str]:
    from codesign_bench.analysis.gallery import shown_task
    from codesign_bench.analysis.genealogy import draw_genealogy, read_genealogy

    genealogy = read_genealogy(folder)
    generations = int(genealogy.history["generation"].max()) + 1
    title = _described(folder, settings, f"{NAME}, {generations} generations of a budget of {{budget[steps]:,}} steps")
    *ancestors, champion = genealogy.lineage(genealogy.champion)
    descent = ", ".join(map(str, ancestors)) or "nobody"
    about = f"{len(genealogy.designs)} species; the champion, species {champion}, descends from {descent}"
    return draw_genealogy(genealogy, shown_task(settings["env"]), title), about


def _design_distribution(folder: Path, settings: Mapping[str, Any]) -> tuple[Figure, str]:
    from codesign_bench.analysis.design_distribution import draw_distribution, read_distribution

    table = read_distribution(folder)
    about = f"{len(table.drop_duplicates(['part', 'attribute']))} attributes, {table['steps'].max()} steps"
    return draw_distribution(table, f"Design distribution of {_described(folder, settings)}"), about


def _described(folder: Path, settings: Mapping[str, Any], form: str = NAME) -> str:
    """What a configuration says, in the form of a sentence."""
    try:
        return plain(form.format_map(settings))
    except (KeyError, TypeError, ValueError):
        missing = "lacks method.name, env.name, seed or budget.steps, or has something else for them"
        raise ConfigError(f"{folder / 'config.yaml'} {missing}.") from None


TABLES: Mapping[str, Callable[[Path, Mapping[str, Any]], tuple[Figure, str]]] = {
    "genealogy": _genealogy,
    "design_distribution": _design_distribution,
}
