"""python -m codesign_bench.genealogy run=RUN out=FILE.png: the lineage tree of a population method's run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codesign_bench.command_line import load_config, run
from codesign_bench.errors import ConfigError
from codesign_bench.structured import build

SUFFIXES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class GenealogyConfig:
    """The content of conf/genealogy.yaml."""

    run: str
    out: str

    def __post_init__(self) -> None:
        if Path(self.out).suffix not in SUFFIXES:
            raise ConfigError(f"out is '{self.out}'; allowed are names that end in {', '.join(SUFFIXES)}.")


def main(arguments: list[str]) -> int:
    config = build(GenealogyConfig, load_config("genealogy", arguments), "the configuration")
    from codesign_bench.analysis.genealogy import draw_genealogy, read_genealogy
    from codesign_bench.experiment.load import load_config_of
    from codesign_bench.simulation.rendering import open_for_writing
    from codesign_bench.tasks import task_from_config

    folder = Path(config.run)
    settings = load_config_of(folder)
    genealogy = read_genealogy(folder)
    out = open_for_writing(config.out)
    budget, generations = settings["budget"], int(genealogy.history["generation"].max()) + 1
    title = f"{settings['method']['name']} on {settings['env']['name']}, seed {settings['seed']}"
    title += f", {generations} generations of a budget of {budget['steps']:,} steps"
    draw_genealogy(genealogy, task_from_config(settings["env"]), title).savefig(out)
    *ancestors, champion = genealogy.lineage(genealogy.champion)
    descent = ", ".join(map(str, ancestors)) or "nobody"
    print(f"{out}: {len(genealogy.designs)} species; the champion, species {champion}, descends from {descent}")
    return 0


if __name__ == "__main__":
    run(main)
