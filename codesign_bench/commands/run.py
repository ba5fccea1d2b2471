"""one run, which goes on where it stopped if it exists; with -m, a run of every combination of values.

  codesign-bench method=transform2act env=gap seed=0 budget=smoke
  codesign-bench -m method=transform2act,nge seed="range(0,6)" env=gap study=mine
  codesign-bench experiment=ablation

Ctrl-C or SIGTERM stops; the same command goes on. Exit codes: 0 done, 1 runs of a sweep failed, 2 refused, 130 or 143 stopped.
"""

from codesign_bench.bars import say
from codesign_bench.configuration import asks_for_many, load_config


def main(arguments: list[str]) -> int:
    overrides = [argument for argument in arguments if argument != "-m"]
    if len(overrides) < len(arguments) or asks_for_many(overrides):
        from codesign_bench.launching.sweep import Sweep, report, run_sweep

        return report(run_sweep(overrides, Sweep()))
    return run_one(overrides)


def run_one(overrides: list[str]) -> int:
    config = load_config("config", overrides)
    from codesign_bench.experiment import runner
    from codesign_bench.experiment.run_folder import RunFolder
    from codesign_bench.experiment.signals import StopSignals

    setup, folder = runner.RunSetup.of(config), RunFolder.of(config)
    names = f"{config['method']['name']} on {config['env']['name']}, seed {config['seed']}, budget {config['budget']['name']}"
    say(f"{names}: {folder.path}")
    if runner.run(config, ["codesign-bench", *overrides], setup, folder) == "done":
        return 0
    return 128 + StopSignals.latest
