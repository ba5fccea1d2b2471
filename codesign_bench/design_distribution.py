"""python -m codesign_bench.design_distribution run=RUN out=FILE.png: mu and sigma of each attribute over the training of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codesign_bench.analysis.design_distribution import save_distribution
from codesign_bench.command_line import load_config, run
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.load import load_config_of
from codesign_bench.simulation.rendering import open_for_writing
from codesign_bench.structured import build

FORMATS = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class DesignDistributionConfig:
    """The content of conf/design_distribution.yaml."""

    run: str
    out: str

    def __post_init__(self) -> None:
        if Path(self.out).suffix not in FORMATS:
            raise ConfigError(f"out is '{self.out}'; allowed are files that end in {', '.join(FORMATS)}.")


def main(arguments: list[str]) -> int:
    config = build(DesignDistributionConfig, load_config("design_distribution", arguments), "the configuration")
    folder = Path(config.run)
    of_run = load_config_of(folder)
    names = [value.get("name") if isinstance(value := of_run.get(key), dict) else value for key in ("method", "env")]
    title = f"Design distribution of {names[0]} on {names[1]}, seed {of_run.get('seed')}"
    table = save_distribution(folder, title, open_for_writing(config.out))
    print(f"{config.out}: {len(table.drop_duplicates(['part', 'attribute']))} attributes, {table['steps'].max()} steps")
    return 0


if __name__ == "__main__":
    run(main)
