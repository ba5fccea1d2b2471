"""Jobs placed by submitit, with its local executor: the same results as a run that nobody placed, also after being warned."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.experiment.tiny import OVERRIDES, command, environment, folder_of, run, status_of, tiny
from tests.slow import slurm_cluster

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
    """The process that works on a run; the file is empty for a moment while it changes hands."""
    words: list[str] = []
    while len(words) < 2:
        words = (folder_of(config) / ".lock").read_text().split()  # type: ignore[arg-type]
    return words[1]


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


# ---- a real Slurm ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'codesign-bench[launchers]'")
    if reason := slurm_cluster.obstacle():
        pytest.skip(reason)
    with slurm_cluster.cluster(tmp_path_factory.mktemp("slurm") / "cluster") as variables:
        yield {**environment(), **variables}


def call(slurm: dict[str, str], *line: str) -> str:
    return subprocess.run(line, env=slurm, capture_output=True, text=True, check=True).stdout.strip()


def submitted(slurm: dict[str, str], folder: Path) -> subprocess.Popen[str]:
    settings = ["launcher=slurm", "hydra.launcher.cores=1", "hydra.launcher.memory_gb=0.9"]
    line = command("-m", *OVERRIDES, *LONG, f"results={folder}", *settings)
    return subprocess.Popen(line, cwd=folder, env=slurm, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("warning", ["USR1", "TERM"])
def test_slurm_queues_a_warned_job_again(slurm: dict[str, str], tmp_path: Path, warning: str) -> None:
    config = tiny(tmp_path, *LONG)
    process = submitted(slurm, tmp_path)
    try:
        while process.poll() is None and not status_of(config).get("steps"):
            time.sleep(0.01)
        job = call(slurm, "squeue", "-h", "-o", "%A")
        call(slurm, "scancel", f"--signal={warning}", job)
        while process.poll() is None and call(slurm, "squeue", "-h", "-o", "%T") != "PENDING":
            time.sleep(0.05)
        assert 0 < status_of(config)["steps"] < 4000
        assert status_of(config)["status"] == "stopped"
        call(slurm, "scontrol", "update", f"job={job}", "StartTime=now")  # Slurm would wait for two minutes
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, errors
    assert errors.splitlines()[-1] == "1 runs: 1 done"
    run(tiny(tmp_path / "local", *LONG)).must_equal(run(config), "a job that Slurm warned and queued again")


def test_a_stopped_sweep_leaves_no_job_in_the_queue(slurm: dict[str, str], tmp_path: Path) -> None:
    config = tiny(tmp_path, *LONG)
    process = submitted(slurm, tmp_path)
    try:
        while process.poll() is None and not status_of(config).get("steps"):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130, errors
    for _ in range(300):
        if not call(slurm, "squeue", "-h"):
            break
        time.sleep(0.1)
    else:
        pytest.fail(call(slurm, "squeue"))
    run(tiny(tmp_path / "local", *LONG)).must_equal(run(config), "a cancelled job, resumed here")
