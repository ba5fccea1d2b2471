"""Many runs from one command: Hydra makes their configurations, a launcher runs them, the report says how they ended."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from codesign_bench.configuration import hydra_initialised, plain
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.signals import StopSignals
from codesign_bench.launching import plan
from codesign_bench.launching.job import Config, Ending, run_here, this_command

Launch = Callable[[Sequence[Config]], Iterable[Ending]]
"""Runs configurations and gives the ending of each as it ends."""


class Sweep:
    """What Hydra's launchers run. Ours hand all configurations to `launch`; other people's call it with one at a time."""

    def __init__(self, finished: Callable[[Ending], None] = lambda ending: None) -> None:
        self.finished = finished

    def __call__(self, config: Any) -> Ending:
        ending = run_here(plain(config), this_command())
        self.finished(ending)
        return ending

    def launch(self, launch: Launch, configs: Sequence[Config]) -> list[Ending]:
        return self.run(launch, prepared(configs))

    def run(self, launch: Launch, runs: Sequence[Config]) -> list[Ending]:
        """Runs what is not done yet."""
        plan.add(runs)
        endings, left = [], []
        for run in runs:
            if RunFolder.of(run).is_done(run):
                endings.append(Ending.of(run, "done"))
            else:
                left.append(run)
        if endings:
            print(f"{len(endings)} of {len(runs)} runs were done already", file=sys.stderr)
        for ending in launch(left) if left else ():
            self.finished(ending)
            endings.append(ending)
        return endings


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


def say(ending: Ending) -> None:
    """One line per run as it ends."""
    print(f"{'/'.join(Path(ending.path).parts[-3:])}: {ending.state}{f' ({ending.reason})' if ending.reason else ''}", file=sys.stderr)


def report(endings: Sequence[Ending]) -> int:
    """Lists what failed, with the last lines it said; the exit code of the sweep."""
    failed = [ending for ending in endings if ending.state == "failed"]
    for ending in failed:
        print(f"\nfailed: {ending.path}\n  {ending.reason}", file=sys.stderr)
        for line in ending.tail.splitlines():
            print(f"  | {line}", file=sys.stderr)
    counts = {state: sum(ending.state == state for ending in endings) for state in ("done", "failed", "stopped", "in use")}
    print(f"{len(endings)} runs: {', '.join(f'{n} {state}' for state, n in counts.items() if n)}", file=sys.stderr)
    if counts["stopped"]:
        print("stopped; the same command goes on from there", file=sys.stderr)
        return 128 + StopSignals.latest
    if counts["in use"]:
        print("some runs are in use by another process; the same command goes on with them when they are free", file=sys.stderr)
    return 1 if failed else 2 if counts["in use"] else 0
