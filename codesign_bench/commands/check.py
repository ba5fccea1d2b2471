"""whether a method, or a task, keeps to what the benchmark asks of it; for authors of their own.

codesign-bench check method=nge env=swimmer
codesign-bench check task=gap
"""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from codesign_bench.configuration import load_config, no_such
from codesign_bench.errors import ConfigError
from codesign_bench.experiment import conformance, task_conformance
from codesign_bench.paths import options_of
from codesign_bench.tasks import make_task


def main(arguments: list[str]) -> int:
    config = load_config("check", arguments)
    task = config.pop("task")
    if task is not None:
        if task not in options_of("env"):
            raise ConfigError(no_such("environment", str(task), options_of("env")))
        return run_checks(task_conformance.CHECKS, make_task(task))
    with tempfile.TemporaryDirectory() as folder:
        return run_checks(conformance.CHECKS, config, Path(folder))


def run_checks(checks: Iterable[Callable[..., None]], *arguments: Any) -> int:
    """Each in turn, up to the first that finds something."""
    for check in checks:
        try:
            check(*arguments)
        except AssertionError as error:
            print(f"{check.__name__}: {error}")
            return 1
        print(f"{check.__name__}: ok", flush=True)
    return 0
