"""whether a method, or a task, keeps to what the benchmark asks of it; for authors of their own.

codesign-bench check method=nge env=swimmer
codesign-bench check task=gap
"""

import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path

from codesign_bench.configuration import load_config, no_such, options_of
from codesign_bench.errors import ConfigError


def main(arguments: list[str]) -> int:
    config = load_config("check", arguments)
    task = config.pop("task")
    if task is not None:
        from codesign_bench.tasks import make_task

        if task not in options_of("env"):
            raise ConfigError(no_such("environment", str(task), options_of("env")))
        of_tasks = import_module("codesign_bench.experiment.task_conformance").CHECKS
        return run_checks((check.__name__, partial(check, make_task(task))) for check in of_tasks)
    from codesign_bench.experiment.conformance import CHECKS

    with tempfile.TemporaryDirectory() as folder:
        return run_checks((check.__name__, partial(check, config, Path(folder))) for check in CHECKS)


def run_checks(checks: Iterable[tuple[str, Callable[[], None]]]) -> int:
    """Each in turn, up to the first that finds something."""
    for name, check in checks:
        try:
            check()
        except AssertionError as error:
            print(f"{name}: {error}")
            return 1
        print(f"{name}: ok", flush=True)
    return 0
