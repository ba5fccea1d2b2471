"""all methods (or method=a,b) with six seeds (or seed=0,1), in rounds of equal budget.

  codesign-bench bench env=gap
  codesign-bench bench env=gap method=transform2act,nge seed=0,1 budget=pilot study=mine
  codesign-bench bench experiment=ablation

Every run goes to 0.4 million steps, then to 2, 10 and 50, as far as its budget goes; the comparison is drawn anew after every run.
Ctrl-C stops; the same command goes on.
"""

from codesign_bench.configuration import swept_values
from codesign_bench.errors import ConfigError
from codesign_bench.launching.rounds import Bench, installed
from codesign_bench.launching.sweep import report, run_sweep


def main(arguments: list[str]) -> int:
    arguments = [argument for argument in arguments if argument != "-m"]
    if any(word.startswith("hydra/launcher=") and not word.startswith("hydra/launcher=codesign_") for word in arguments):
        raise ConfigError("A benchmark in rounds needs one of our launchers; say launcher=local, slurm or ray.")
    overrides = arguments if any(a.startswith("experiment=") for a in arguments) else ["experiment=bench", *arguments]
    if not any(argument.startswith("method=") for argument in overrides) and (methods := swept_values(overrides, "method")):
        overrides = [*overrides, f"method={','.join(installed(methods))}"]
    return report(run_sweep(overrides, Bench()))
