"""python -m codesign_bench method=transform2act env=gap seed=0 budget=smoke results=DIR: one run, resumed if it exists.
With -m, a run of every combination: python -m codesign_bench -m method=transform2act,nge seed="range(0,6)" env=gap"""

from __future__ import annotations

import sys

from codesign_bench.command_line import asks_for_many, load_config, run


def main(arguments: list[str]) -> int:
    overrides = [argument for argument in arguments if argument not in ("-m", "--multirun")]
    if len(overrides) < len(arguments) or asks_for_many(overrides):
        return run_many(overrides)
    return run_one(overrides)


def run_one(arguments: list[str]) -> int:
    config = load_config("config", arguments)
    from codesign_bench.experiment.run_folder import RunFolder
    from codesign_bench.experiment.runner import Plan
    from codesign_bench.experiment.runner import run as run_experiment

    Plan.of(config)

    if not arguments:
        print(
            "No arguments: running Transform2Act on locomotion2d with the paper's budget; see conf/ for what can be set.", file=sys.stderr
        )
    folder = RunFolder.of(config).path
    print(
        f"{config['method']['name']} on {config['env']['name']}, seed {config['seed']}, budget {config['budget']['name']}: {folder}",
        file=sys.stderr,
    )
    run_experiment(config, ["python", "-m", "codesign_bench", *arguments])
    return 0


def run_many(arguments: list[str]) -> int:
    from codesign_bench.launching.sweep import Sweep, report, run_sweep, say

    return report(run_sweep(arguments, Sweep(say)))


if __name__ == "__main__":
    run(main)
