"""A sweep in rounds of equal budget: every run to 0.4 million steps, then to 2, 10 and 50. Learning rates are constant, so a run
that was stopped at the end of a round is an exact prefix of the full one. The comparison is drawn anew after every run."""

import math
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codesign_bench.bars import say
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Budget, known_methods, method_class
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.launching.job import Config, Ending
from codesign_bench.launching.local import stopped_by_signals
from codesign_bench.launching.sweep import Launch, Sweep, in_words, prepared
from codesign_bench.paths import options_of
from codesign_bench.structured import build

ROUNDS = (400_000, 2_000_000, 10_000_000, 50_000_000)
"""Steps, for all methods whole numbers of iterations with the paper's settings."""


class Bench(Sweep):
    """A sweep whose runs go on from round to round together."""

    draws = True

    def launch(self, launch: Launch, configs: Sequence[Config]) -> list[Ending]:
        runs = prepared(configs)
        rounds = rounds_of(runs)
        endings: list[Ending] = []
        stopped = threading.Event()
        ends = ", ".join(f"{until:,}" for until in rounds)
        say(f"{in_words(runs)}\nin rounds to {ends} steps each; Ctrl-C stops, the same command goes on")
        with stopped_by_signals(stopped.set):
            for number, until in enumerate(rounds, 1):
                part = [shortened(run, until) for run in runs]
                if until != rounds[-1] and all(RunFolder.of(run).is_done(run) for run in part):
                    continue
                self.title = f"round {number} of {len(rounds)}"
                endings = self.run(launch, part)
                if stopped.is_set() and until != rounds[-1] and all(ending.state == "done" for ending in endings):
                    endings = [replace(ending, state="stopped") for ending in endings]  # in time for this round, but not at the end
                if any(ending.state in ("stopped", "in use") for ending in endings):
                    break  # nobody gets more steps while others wait for theirs
        return endings


def rounds_of(runs: Sequence[Config]) -> list[int]:
    """The rounds below the budget, which must be the same for all, and the budget itself. A round ends where every method has
    whole iterations, so with larger ones than the paper's it may end later."""
    budgets = {run["budget"]["until"] for run in runs}
    if len(budgets) != 1:
        raise ConfigError(f"The runs have the budgets {', '.join(map(str, sorted(budgets)))}; allowed is one for all.")
    (steps,) = budgets
    whole = math.lcm(*(method_class(run["method"]["plugin"]).iteration_steps(build(Budget, run["budget"], "budget")) for run in runs))
    ends = {-(-until // whole) * whole for until in ROUNDS}
    return [*sorted(until for until in ends if until < steps), steps]


def shortened(config: Config, until: int) -> dict[str, Any]:
    return {**config, "budget": {**config["budget"], "until": until}}


def installed(methods: Sequence[str]) -> list[str]:
    """Those of an experiment's methods that this installation has; says which it lacks."""
    found = [name for name in methods if name in options_of("method")]
    missing = [name for name in methods if name not in found]
    if missing:
        print(f"Not installed, and so not part of this comparison: {', '.join(missing)}.", file=sys.stderr)
    if not found:
        raise ConfigError(f"None of the methods {', '.join(methods)} is installed; there are {', '.join(sorted(known_methods()))}.")
    return found
