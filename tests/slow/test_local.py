"""A sweep on this machine: a run that dies takes nothing with it; Ctrl-C stops all; the same command goes on, bit-equal."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.experiment.tiny import OVERRIDES, command, environment, folder_of, run, status_of, tiny

LONG = ("env=swimmer", "budget.steps=4000", "budget.evaluate_every=200")
SEEDS = range(3)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("expected")
    return [run(tiny(folder, *LONG, f"seed={seed}")) for seed in SEEDS]


@contextlib.contextmanager
def sweeping(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, given when its first run has made a checkpoint."""
    line = command("-m", *OVERRIDES, *LONG, f"seed=range(0,{len(SEEDS)})", f"results={folder}")
    process = subprocess.Popen(line, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while process.poll() is None and not status_of(tiny(folder, *LONG)).get("steps"):
            time.sleep(0.005)
        yield process
    finally:
        process.kill()
        process.wait()


def owner(config: dict[str, Any]) -> int:
    return int((folder_of(config) / ".lock").read_text().split()[1])


def go_on(folder: Path, expected: Any) -> None:
    """The same command again: all done, and equal to what nothing disturbed."""
    with sweeping(folder) as process:
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert errors.splitlines()[-1] == "3 runs: 3 done"
    for seed in SEEDS:
        expected[seed].must_equal(run(tiny(folder, *LONG, f"seed={seed}")), f"the run with seed {seed}")


def test_a_run_that_is_killed(tmp_path: Path, expected: Any) -> None:
    config = tiny(tmp_path, *LONG)
    with sweeping(tmp_path) as process:
        os.kill(owner(config), signal.SIGKILL)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 1, errors
    assert f"failed: {folder_of(config)}\n  The process of the run died with SIGKILL." in errors
    assert errors.splitlines()[-1] == "3 runs: 2 done, 1 failed"
    assert (status_of(config)["status"], status_of(config)["reason"]) == ("failed", "The process of the run died with SIGKILL.")
    go_on(tmp_path, expected)


@pytest.mark.parametrize("what", [signal.SIGINT, signal.SIGTERM])
def test_a_sweep_that_is_stopped(tmp_path: Path, expected: Any, what: signal.Signals) -> None:
    with sweeping(tmp_path) as process:
        os.killpg(process.pid, what)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + what, errors
    assert "Traceback" not in errors
    assert re.fullmatch(r"3 runs: [12] stopped, [12] not begun; the same command goes on from there", errors.splitlines()[-1])
    assert status_of(tiny(tmp_path, *LONG))["status"] == "stopped"
    assert status_of(tiny(tmp_path, *LONG, "seed=2"))["status"] == "missing"
    go_on(tmp_path, expected)


def test_a_sweep_that_is_killed_leaves_no_process_behind(tmp_path: Path, expected: Any) -> None:
    config = tiny(tmp_path, *LONG)
    with sweeping(tmp_path) as process:
        run_process = owner(config)
        process.kill()
        process.communicate()
    for _ in range(500):
        if not Path(f"/proc/{run_process}").exists() or "Z" in Path(f"/proc/{run_process}/stat").read_text().split()[2]:
            break
        time.sleep(0.01)
    else:
        pytest.fail("the run's process outlived the sweep")
    go_on(tmp_path, expected)
