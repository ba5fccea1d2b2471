"""Hydra's door to codesign_bench.launching. Hydra imports this file whenever it starts, so it imports next to nothing.

A launcher, because our runs are processes on cores of their own (or Slurm's, or Ray's) that outlive each other's crashes; a sweeper,
because Hydra's own writes a file and composes every configuration before ours composes and checks them all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, RangeSweep
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher

MOST_RUNS = 10_000
"""Of a sweep."""


class CodesignLauncher(Launcher):
    """`module` is a file of codesign_bench/launching; the other settings go to its `launch`."""

    def __init__(self, module: str, **settings: Any) -> None:
        self._module, self._settings = module, settings

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        self._context, self._sweep, self._config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        launch = partial(import_module(f"codesign_bench.launching.{self._module}").launch, **self._settings)
        composed = import_module("codesign_bench.launching.compositions").composed
        configs = composed(self._context.config_loader, self._config, job_overrides)
        return [JobReturn(status=JobStatus.COMPLETED, _return_value=ending) for ending in self._sweep.launch(launch, configs)]


class CodesignSweeper(BasicSweeper):
    """Every combination of values, handed to the launcher at once."""

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        assert self.hydra_context is not None
        assert self.launcher is not None
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides([*self._parse_config(), *arguments])
        check_number(overrides)
        (batch,) = self.split_arguments(overrides, None)
        return [self.launcher.launch(batch, initial_job_idx=0)]


def check_number(overrides: Sequence[Override]) -> None:
    """Counts the runs of a sweep before it is spelled out: a range may have a billion values."""
    numbers = {}
    for override in overrides:
        if override.is_discrete_sweep():
            value = override.value()
            values = value.range() if isinstance(value, RangeSweep) else override.sweep_iterator()
            numbers[override.get_key_element()] = sum(1 for _ in islice(values, MOST_RUNS + 1))
    if math.prod(numbers.values()) > MOST_RUNS:
        from codesign_bench.errors import ConfigError

        raise ConfigError(f"This sweep has more than {MOST_RUNS:,} runs; name fewer values, or split it.")


@dataclass
class Sweeper:
    _target_: str = "hydra_plugins.codesign_bench.launchers.CodesignSweeper"
    max_batch_size: int | None = None
    params: dict[str, str] | None = None


@dataclass
class Local:
    """Processes on this machine, each on cores of its own."""

    _target_: str = "hydra_plugins.codesign_bench.launchers.CodesignLauncher"
    module: str = "local"
    jobs: int | None = None  # runs at a time; null: as many as there are cores, fewer if `workers` is set


@dataclass
class Slurm:
    """Slurm, through submitit (pip install codesign-bench[launchers]). A job that Slurm warns (SIGUSR1, SIGUSR2) or ends (SIGTERM)
    leaves at its last checkpoint and is queued again. The results folder must be on a shared file system."""

    _target_: str = "hydra_plugins.codesign_bench.launchers.CodesignLauncher"
    module: str = "slurm"
    cluster: str = "slurm"  # local: submitit's processes on this machine, to try it out
    cores: int = 2  # of each run
    hours: float = 24.0  # of one job; a run that takes longer is queued again where it stopped
    memory_gb: float = 4.0
    partition: str | None = None
    timeouts: int = 100  # how often a run may be queued again for having used up its hours
    extra: dict[str, Any] = field(default_factory=dict)  # other parameters of submitit: +hydra.launcher.extra.slurm_account=robots


@dataclass
class Ray:
    """Ray, for clusters without Slurm (pip install codesign-bench[launchers]): each run is a task. When a node dies, its runs go on
    elsewhere where they stopped. The results folder must be on a shared file system."""

    _target_: str = "hydra_plugins.codesign_bench.launchers.CodesignLauncher"
    module: str = "ray_tasks"
    address: str | None = None  # of a cluster; null: the one that RAY_ADDRESS names, or one made of this machine
    cores: int = 1  # of each run
    retries: int = 20  # of a run whose node died


_store = partial(ConfigStore.instance().store, provider="codesign_bench")
_store(group="hydra/sweeper", name="codesign", node=Sweeper)
for name, node in (("local", Local), ("slurm", Slurm), ("ray", Ray)):
    _store(group="hydra/launcher", name=f"codesign_{name}", node=node)
    _store(group="launcher", name=name, node={"defaults": [{"override /hydra/launcher": f"codesign_{name}"}]}, package="_global_")
