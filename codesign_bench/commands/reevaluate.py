"""fresh episodes of a run's final agent; with train=STEPS also of a new controller on its design.

  codesign-bench reevaluate run=results/default/gap/transform2act/seed_0
  codesign-bench reevaluate run=results/default/gap/transform2act/seed_0 train=2M

Writes reevaluation.json and motion.json into the run's folder. Nothing is charged to the run.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.reevaluate import reevaluate
from codesign_bench.experiment.reevaluation import FILES, FreshEpisodes, Which
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
    controller: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"episodes is {self.episodes}; allowed are whole numbers from 1 up.")
        for name in ("seed", "train", "seconds"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; allowed are numbers from 0 up.")


def main(arguments: list[str]) -> int:
    c = build(ReevaluateConfig, load_config("reevaluate", arguments), "the configuration")
    folder, command = Path(c.run), ["codesign-bench", "reevaluate", *arguments]
    result = reevaluate(folder, c.episodes, c.seed, c.train, c.seconds, c.workers, command, c.controller, c.agent)
    print(f"{folder / FILES[c.agent]}: {_sentence(result.agent)}")
    if result.controller is not None:
        print(f"its design with a controller trained from scratch for {result.controller.steps} steps: {_sentence(result.controller)}")
    elif c.train:
        print("the controller's training was stopped; the same command goes on from there", file=sys.stderr)
    return 0


def _sentence(fresh: FreshEpisodes) -> str:
    return f"return {fresh.return_mean:.1f} ± {fresh.return_std:.1f} in {fresh.episodes} fresh episodes, {fresh.columns['bodies']:g} bodies"
