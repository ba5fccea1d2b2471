"""The tasks. An environment, conf/env/NAME.yaml, names one with its key `task`; classes are found through the entry-point group
`codesign_bench.tasks`, to which a third party's package can add its own."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from codesign_bench.errors import ConfigError
from codesign_bench.paths import env_config, options_of
from codesign_bench.structured import merged
from codesign_bench.tasks.base import Task
from codesign_bench.tasks.config import EnvConfig
from codesign_bench.tasks.gap import Gap
from codesign_bench.tasks.locomotion2d import Locomotion2d
from codesign_bench.tasks.locomotion3d import Locomotion3d
from codesign_bench.tasks.pusher import Pusher
from codesign_bench.tasks.stepper import Stepper
from codesign_bench.tasks.swimmer import Swimmer

TASKS: dict[str, type[Task]] = {
    "locomotion2d": Locomotion2d,
    "locomotion3d": Locomotion3d,
    "swimmer": Swimmer,
    "gap": Gap,
    "pusher": Pusher,
    "stepper": Stepper,
}
ENTRY_POINTS = "codesign_bench.tasks"

__all__ = ["TASKS", "EnvConfig", "Task", "make_task", "task_from_config"]


def make_task(name: str, **overrides: Any) -> Task:
    """The task of an environment with the numbers of conf/env/NAME.yaml; `overrides` replaces some of them.

    >>> make_task("gap", reward={"alive": 0.0}).config.reward.alive
    0.0
    """
    return task_from_config(merged(env_config(name), overrides))


def task_from_config(config: Mapping[str, Any]) -> Task:
    """The task that a complete env configuration describes."""
    if not isinstance(config, Mapping):
        raise ConfigError(f"env is {config!r}; allowed are {', '.join(options_of('env'))}.")
    known, name = _known(), config.get("task")
    if name not in known:
        raise ConfigError(f"env.task is {name!r}; installed are {', '.join(known)}.")
    found = known[name]
    cls: type[Task] = found if isinstance(found, type) else found.load()
    return cls.from_mapping(config)


@cache
def _known() -> dict[str, Any]:
    return {**TASKS, **{point.name: point for point in entry_points(group=ENTRY_POINTS)}}
