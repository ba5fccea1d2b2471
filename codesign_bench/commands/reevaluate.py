"""fresh episodes of a run's final agent; with train=STEPS also of a new controller on its design.

  codesign-bench reevaluate run=results/default/gap/transform2act/seed_0
  codesign-bench reevaluate run=results/default/gap/transform2act/seed_0 train=2M

Writes reevaluation.json and motion.json into the run's folder. Nothing is charged to the run.
"""

import sys
from pathlib import Path

from codesign_bench.configuration import configured
from codesign_bench.experiment.reevaluate import ReevaluateConfig, reevaluate
from codesign_bench.experiment.reevaluation import FILES, FreshEpisodes
from codesign_bench.experiment.signals import StopSignals


def main(arguments: list[str]) -> int:
    config = configured(ReevaluateConfig, "reevaluate", arguments)
    result = reevaluate(config, ["codesign-bench", "reevaluate", *arguments])
    print(f"{Path(config.run) / FILES[config.agent]}: {_sentence(result.agent)}")
    if result.controller is not None:
        print(f"its design with a controller trained from scratch for {result.controller.steps} steps: {_sentence(result.controller)}")
    elif config.train:
        print("the controller's training was stopped; the same command goes on from there", file=sys.stderr)
        return 128 + StopSignals.latest
    return 0


def _sentence(fresh: FreshEpisodes) -> str:
    return f"return {fresh.return_mean:.1f} ± {fresh.return_std:.1f} in {fresh.episodes} fresh episodes, {fresh.columns['bodies']:g} bodies"
