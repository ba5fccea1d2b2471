"""Many runs from one command: Hydra makes their configurations, a launcher runs them, the report says how they ended."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from codesign_bench.bars import say
from codesign_bench.configuration import hydra_initialised, plain
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.signals import StopSignals
from codesign_bench.launching import plan
from codesign_bench.launching.job import NOT_BEGUN, Config, Ending, run_here, this_command
from codesign_bench.launching.watch import Watch, sentence

Launch = Callable[[Sequence[Config]], Iterable[Ending]]
"""Runs configurations and gives the ending of each as it ends."""


class Sweep:
    """What Hydra's launchers run. Ours hand all configurations to `launch`; other people's call it with one at a time."""

    title, draws = "", False
    """Of what is shown meanwhile; see Watch."""

    def __call__(self, config: Any) -> Ending:
        ending = run_here(plain(config), this_command())
        print(sentence(ending), file=sys.stderr)
        return ending

    def launch(self, launch: Launch, configs: Sequence[Config]) -> list[Ending]:
        return self.run(launch, prepared(configs))

    def run(self, launch: Launch, runs: Sequence[Config]) -> list[Ending]:
        """Runs what is not done yet."""
        plan.add(runs)
        done = [RunFolder.of(run).is_done(run) for run in runs]
        endings = [Ending.of(run, "done") for run, ended in zip(runs, done, strict=True) if ended]
        left = [run for run, ended in zip(runs, done, strict=True) if not ended]
        ends = launch(left) if left else ()  # refuses what is impossible before anything is said
        if not self.title:
            say(f"{in_words(runs)}; Ctrl-C stops, the same command goes on")
        if endings:
            print(f"{len(endings)} of {len(runs)} runs were done already", file=sys.stderr)
        if left or self.draws:
            with Watch(runs, self.title, self.draws) as watch:
                for ending in ends:
                    watch.finished(ending)
                    endings.append(ending)
        return endings


def in_words(runs: Sequence[Config]) -> str:
    """What is run."""
    values = {key: dict.fromkeys(str(run[key]["name"]) for run in runs) for key in ("method", "env", "budget")}
    values["seed"] = dict.fromkeys(str(run["seed"]) for run in runs)
    parts = (f"{key} {', '.join(values[key])}" for key in ("method", "env", "seed", "budget"))
    return f"{len(runs)} runs: {'; '.join(parts)}"


def run_sweep(overrides: list[str], sweep: Sweep) -> list[Ending]:
    """Runs every combination of the values that the overrides, or the experiment among them, name."""
    from hydra.core.global_hydra import GlobalHydra

    with hydra_initialised("config", overrides, sweep=True) as words:
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        batches = hydra.multirun("config", sweep, ["hydra.mode=MULTIRUN", *words], with_log_configuration=False)
    return [job.return_value for batch in batches for job in batch]


def prepared(configs: Sequence[Config]) -> list[Config]:
    """The same configurations. Refuses the sweep before anything runs if a run of it is impossible, or two of them are in one folder."""
    from codesign_bench.experiment.runner import RunSetup

    if not configs:
        raise ConfigError("This sweep has no runs; name at least one method, environment and seed.")
    folders: set[Path] = set()
    for config in configs:
        RunSetup.of(config)
        path = RunFolder.of(config).path
        if path in folders:
            raise ConfigError(f"Two runs of this sweep would be in one folder, {path}; give each a study or a method.name of its own.")
        folders.add(path)
    return list(configs)


def report(endings: Sequence[Ending]) -> int:
    """Lists what failed, with the last lines it said; the exit code of the sweep."""
    failed = [ending for ending in endings if ending.state == "failed"]
    for ending in failed:
        print(f"\nfailed: {ending.path}\n  {ending.reason}", file=sys.stderr)
        for line in ending.tail.splitlines():
            print(f"  | {line}", file=sys.stderr)
    states = ["not begun" if ending.reason == NOT_BEGUN else ending.state for ending in endings]
    counts = {state: states.count(state) for state in ("done", "failed", "stopped", "not begun", "in use")}
    stopped = counts["stopped"] + counts["not begun"] > 0
    text = f"{len(endings)} runs: {', '.join(f'{n} {state}' for state, n in counts.items() if n)}"
    print(f"{text}; the same command goes on from there" if stopped else text, file=sys.stderr)
    if stopped:
        return 128 + StopSignals.latest
    if counts["in use"]:
        print("some runs are in use by another process; the same command goes on with them when they are free", file=sys.stderr)
    return 1 if failed else 2 if counts["in use"] else 0
