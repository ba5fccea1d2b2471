"""fresh episodes of a run's final agent, or of all in a study; with train=STEPS also of a new controller on its design.

  codesign-bench reevaluate run=results/default/gap/transform2act/seed_0
  codesign-bench reevaluate run=results/default/gap/transform2act/seed_0 train=2M
  codesign-bench reevaluate study=default train=2M

Writes reevaluation.json and motion.json into the runs' folders. Nothing is charged to the runs. Ctrl-C stops; the same command goes on.
Exit codes: 0 done, 1 runs of a study could not be re-evaluated, 2 refused, 130 or 143 stopped.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from codesign_bench.analysis.collect import Run
from codesign_bench.commands._studies import StudyConfig, runs_of
from codesign_bench.configuration import load_config
from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.experiment.reevaluate import ReevaluateConfig, reevaluate
from codesign_bench.experiment.reevaluation import FILES, FreshEpisodes, Reevaluation
from codesign_bench.experiment.signals import StopRequested, StopSignals
from codesign_bench.structured import build
from codesign_bench.terminal import duration


def main(arguments: list[str]) -> int:
    values = load_config("reevaluate", arguments)
    study, results = values.pop("study"), values.pop("results")
    if (values["run"] is None) == (study is None):
        raise ConfigError(f"run and study are {'both given' if study is not None else 'missing'}; allowed is run=FOLDER or study=NAME.")
    config = build(ReevaluateConfig, {**values, "run": values["run"] or ""})
    command = ["codesign-bench", "reevaluate", *arguments]
    try:
        if study is None:
            _one(config, command)
            return 0
        return _all(config, build(StudyConfig, {"results": results, "study": study, "env": [], "method": []}), command)
    except StopRequested:
        print("the controller's training was stopped; the same command goes on from there", file=sys.stderr)
        return 128 + StopSignals.latest


def _one(config: ReevaluateConfig, command: list[str]) -> None:
    result = reevaluate(config, command)
    print(f"{Path(config.run) / FILES[config.agent]}: {_sentence(result.agent)}")
    if result.controller is not None:
        print(f"its design with a controller trained from scratch for {result.controller.steps} steps: {_sentence(result.controller)}")


def _all(config: ReevaluateConfig, study: StudyConfig, command: list[str]) -> int:
    """One seed of every method first. A run that cannot be re-evaluated takes no other with it."""
    failed, made, began, runs = 0, 0, time.monotonic(), sorted(runs_of(study).runs, key=lambda run: run.seed)
    for number, run in enumerate(runs):
        try:
            if _is_done(run, config):
                print(f"{run.path} is done", file=sys.stderr)
                continue
            left = f", {duration((time.monotonic() - began) / made * (len(runs) - number))} left" if made else ""
            print(f"run {number + 1} of {len(runs)}{left}: {run.path}", file=sys.stderr)
            made += 1
            _one(replace(config, run=str(run.path)), command)
        except CodesignError as error:
            failed += 1
            print(f"{run.path}: {' '.join(str(error).split())}", file=sys.stderr)
    return 1 if failed else 0


def _is_done(run: Run, config: ReevaluateConfig) -> bool:
    """Whether this was asked before, of the run as it is now."""
    try:
        found = Reevaluation.load(run.path, config.agent)
    except ConfigError:  # damaged, and made again
        return False
    if found is None or (found.agent.steps, found.agent.seed, found.agent.episodes) != (run.charged, config.seed, config.episodes):
        return False
    trained, asked = found.controller, (config.train, config.seed, config.episodes, config.training)
    return not config.train or (trained is not None and (trained.steps, trained.seed, trained.episodes, trained.training) == asked)


def _sentence(fresh: FreshEpisodes) -> str:
    values = f"return {fresh.return_mean:.1f} ± {fresh.return_std:.1f}, {fresh.columns['net_displacement']:.1f} m"
    return f"{values} in {fresh.episodes} fresh episodes, {fresh.columns['bodies']:g} bodies"
