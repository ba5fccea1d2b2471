"""python -m codesign_bench.reevaluate run=RUN [train=STEPS]: fresh episodes of a final agent, and its design with a new controller."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from codesign_bench.command_line import load_config, run
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.load import Which
from codesign_bench.experiment.reevaluation import FILES, FreshEpisodes, reevaluate
from codesign_bench.structured import build


@dataclass(frozen=True)
class ReevaluateConfig:
    """The content of conf/reevaluate.yaml."""

    run: str
    agent: Which
    episodes: int
    seed: int
    train: int
    seconds: float
    workers: int | None

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"episodes is {self.episodes}; allowed are whole numbers from 1 up.")
        for name in ("seed", "train", "seconds"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; allowed are numbers from 0 up.")


def main(arguments: list[str]) -> int:
    config = build(ReevaluateConfig, load_config("reevaluate", arguments), "the configuration")
    folder, command = Path(config.run), ["python", "-m", "codesign_bench.reevaluate", *arguments]
    result = reevaluate(folder, config.episodes, config.seed, config.train, config.seconds, config.workers, command, config.agent)
    print(f"{folder / FILES[config.agent]}: {_sentence(result.agent)}")
    if result.controller is not None:
        print(f"its design with a controller trained from scratch for {result.controller.steps} steps: {_sentence(result.controller)}")
    elif config.train:
        print("the controller's training was stopped; the same command goes on from there", file=sys.stderr)
    return 0


def _sentence(fresh: FreshEpisodes) -> str:
    return f"return {fresh.return_mean:.1f} ± {fresh.return_std:.1f} in {fresh.episodes} fresh episodes, {fresh.columns['bodies']:g} bodies"


if __name__ == "__main__":
    run(main)
