"""Hydra's door to codesign_bench.launching. Hydra imports this file whenever it starts, so it imports next to nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher


class CodesignLauncher(Launcher):
    """`module` is a file of codesign_bench/launching; the other settings go to its `launch`."""

    def __init__(self, module: str, **settings: Any) -> None:
        self._module, self._settings = module, settings

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        self._context, self._sweep, self._config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        launch = partial(import_module(f"codesign_bench.launching.{self._module}").launch, **self._settings)
        configs = [self._context.config_loader.load_sweep_config(self._config, list(overrides)) for overrides in job_overrides]
        return [JobReturn(status=JobStatus.COMPLETED, _return_value=ending) for ending in self._sweep.launch(launch, configs)]


class CodesignSweeper(BasicSweeper):
    """Hydra's own, but for composing every configuration twice: our launchers compose and check all of them before any runs."""

    def validate_batch_is_legal(self, batch: Sequence[Sequence[str]]) -> None:
        pass


@dataclass
class Local:
    """conf/launcher/local.yaml says what the settings mean; so do the others."""

    _target_: str = "hydra_plugins.codesign_bench.launchers.CodesignLauncher"
    module: str = "local"
    jobs: int | None = None


@dataclass
class Slurm:
    _target_: str = "hydra_plugins.codesign_bench.launchers.CodesignLauncher"
    module: str = "slurm"
    cluster: str = "slurm"
    cores: int = 2
    hours: float = 24.0
    memory_gb: float = 4.0
    partition: str | None = None
    timeouts: int = 100
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Ray:
    _target_: str = "hydra_plugins.codesign_bench.launchers.CodesignLauncher"
    module: str = "ray_tasks"
    address: str | None = None
    cores: int = 1
    retries: int = 20


for name, node in (("codesign_local", Local), ("codesign_slurm", Slurm), ("codesign_ray", Ray)):
    ConfigStore.instance().store(group="hydra/launcher", name=name, node=node, provider="codesign_bench")
