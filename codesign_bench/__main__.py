"""python -m codesign_bench method=transform2act env=gap seed=0 budget=smoke results=DIR: one run, resumed if it exists."""

from __future__ import annotations

import sys

from codesign_bench.command_line import load_config, run


def main(arguments: list[str]) -> int:
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


if __name__ == "__main__":
    run(main)
