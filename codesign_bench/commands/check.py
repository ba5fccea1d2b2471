"""whether a method, or a task, keeps to what the benchmark asks of it; and whether a study may be compared with others.

codesign-bench check method=nge env=swimmer
codesign-bench check task=gap
codesign-bench check study=mine.zip

Of a study: that its budgets are equal, ledgers whole, versions the same, and rows as they were recorded; study= is a name, a folder or a
file that `export` wrote. Exit codes: 0 all is well, 1 something is not, 2 refused.
"""

import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from codesign_bench.analysis import check_study
from codesign_bench.commands._studies import StudyConfig, all_of
from codesign_bench.configuration import configured, load_config, no_such
from codesign_bench.errors import ConfigError
from codesign_bench.experiment import conformance, task_conformance
from codesign_bench.paths import options_of
from codesign_bench.tasks import make_task


def main(arguments: list[str]) -> int:
    if any(word.startswith("study=") for word in arguments):
        return check_of_study(configured(StudyConfig, "check_study", arguments))
    config = load_config("check", arguments)
    task = config.pop("task")
    if task is not None:
        if task not in options_of("env"):
            raise ConfigError(no_such("environment", str(task), options_of("env")))
        return run_checks(task_conformance.CHECKS, make_task(task))
    with tempfile.TemporaryDirectory() as folder:
        return run_checks(conformance.CHECKS, config, Path(folder))


def run_checks(checks: Iterable[Callable[..., None]], *arguments: Any) -> int:
    """Each in turn, and what it finds. Somebody's method or task may raise anything: where it did is said once."""
    raised: set[str] = set()
    failed = 0
    for check in checks:
        said = "ok"
        try:
            check(*arguments)
        except ConfigError:
            raise
        except AssertionError as error:
            said = str(error)
        except Exception as error:
            said = f"it raised {type(error).__name__}: {error}"
            if said not in raised:
                traceback.print_exc()
            raised.add(said)
        failed += said != "ok"
        print(f"{check.__name__}: {said}", flush=True)
    return 1 if failed else 0


def check_of_study(config: StudyConfig) -> int:
    """One line for each thing that is wrong, and a summary."""
    study = all_of(config)
    wrong = check_study.problems(study)
    for each in wrong:
        print(f"{'/'.join(each.path.parts[-3:])}: {each.reason}.")
    for remark in check_study.remarks(study):
        print(f"note: {remark}.")
    count, bad = len(study.runs) + len(study.left_out), len({each.path for each in wrong})
    print(f"{study.study}: {count - bad} of {count} runs may be compared")
    return 0 if count and not bad else 1
