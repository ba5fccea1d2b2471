"""Jobs placed by submitit, with its local executor: the same results as a run that nobody placed, also after being warned."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.experiment.tiny import OVERRIDES, command, environment, folder_of, run, status_of, tiny

LONG = ("env=swimmer", "budget.steps=4000", "budget.evaluate_every=200")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("warning", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM])
def test_a_job_that_is_warned_is_queued_again(tmp_path: Path, warning: signal.Signals) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'codesign-bench[launchers]'")
    config = tiny(tmp_path / "jobs", *LONG)
    line = command("-m", *OVERRIDES, *LONG, f"results={tmp_path / 'jobs'}", "launcher=slurm", "hydra.launcher.cluster=local")
    process = subprocess.Popen(line, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        owner = ""
        for _ in range(2):  # warned twice, each time in a new process
            while process.poll() is None and not (status_of(config).get("steps") and _owner(config) != owner):
                time.sleep(0.005)
            time.sleep(0.1)
            owner = _owner(config)
            os.kill(int(owner), warning)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, errors
    assert errors.splitlines()[-1] == "1 runs: 1 done"
    assert int(_owner(config)) != int(owner)
    run(tiny(tmp_path / "local", *LONG)).must_equal(run(config), "a job that was warned and queued again")


def _owner(config: dict[str, object]) -> str:
    """The process that works on a run."""
    return (folder_of(config) / ".lock").read_text().split()[1]  # type: ignore[arg-type]


def test_a_job_that_dies_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'codesign-bench[launchers]'")
    config = tiny(tmp_path, *LONG)
    line = command("-m", *OVERRIDES, *LONG, f"results={tmp_path}", "seed=0,1", "launcher=slurm", "hydra.launcher.cluster=local")
    process = subprocess.Popen(line, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and not status_of(config).get("steps"):
            time.sleep(0.005)
        os.kill(int(_owner(config)), signal.SIGKILL)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 1
    assert f"failed: {folder_of(config)}" in errors
    assert errors.splitlines()[-1] == "2 runs: 1 done, 1 failed"
