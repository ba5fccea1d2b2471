"""Killed at random moments and resumed, with another number of workers each time: nothing is lost, nothing is different."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.commands.test_run import LONG, expected, started
from tests.experiment.tiny import OVERRIDES, command, environment, folder_of, run, status_of, tiny
from tests.simulation.test_workers import assert_gone

__all__ = ["expected"]

pytestmark = pytest.mark.slow


def test_killed_at_ten_random_moments(tmp_path: Path) -> None:
    """Moments are counted from when the run says that it is running, so that they fall into its work on any machine."""
    overrides = (*OVERRIDES, "env=gap", "budget.steps=8000", "budget.evaluate_every=200")
    undisturbed = run(tiny(tmp_path / "undisturbed", *overrides))
    config = tiny(tmp_path / "killed", *overrides)
    Path(config["results"]).mkdir()
    rng, steps = np.random.default_rng(0), [0]
    for kill in range(10):
        line = command(*overrides, f"results={config['results']}", f"workers={kill % 3}")
        process = subprocess.Popen(line, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            seen = time.time()
            while process.poll() is None and not (status_of(config).get("time", 0) > seen and status_of(config)["status"] == "running"):
                time.sleep(0.005)
            if kill % 2:  # while it works, not while it starts
                while process.poll() is None and status_of(config)["steps"] == steps[-1]:
                    time.sleep(0.002)
            time.sleep(float(rng.uniform(0, 0.5)))
            children = [child for child in _children(process.pid) if process.poll() is None]
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
        assert "Traceback" not in errors
        assert_gone(children)
        assert status_of(config)["status"] == "running"
        steps.append(status_of(config)["steps"])
    assert steps == sorted(steps)
    assert 0 < steps[-1] < 8000
    undisturbed.must_equal(run({**config, "workers": 2}), "a run that was killed ten times")
    assert not list(folder_of(config).rglob("*.tmp"))


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def test_a_worker_that_is_killed(tmp_path: Path, expected: Any) -> None:
    config = tiny(tmp_path, *LONG)
    with started(config, "workers=2") as process:
        children = _children(process.pid)
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        assert len(workers) == 2
        os.kill(workers[0].pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=120)
        assert_gone(children)
    assert process.returncode == 2
    line = errors.splitlines()[-1]
    assert line.startswith("error: Worker ")
    assert "died with SIGKILL" in line
    assert "Traceback" not in errors
    status = status_of(config)
    assert status["status"] == "failed"
    assert "died with SIGKILL" in status["reason"]
    expected.must_equal(run(config), "a run whose worker was killed")


@pytest.mark.parametrize("what", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_random_moments(tmp_path: Path, expected: Any, what: signal.Signals) -> None:
    """It exits as who was stopped, and is equal in the end, however often."""
    config = tiny(tmp_path, *LONG)
    rng = np.random.default_rng(int(what))
    for workers in (0, 2, 1):
        with started(config, f"workers={workers}") as process:
            while process.poll() is None and status_of(config)["status"] != "running":
                time.sleep(0.005)
            time.sleep(float(rng.uniform(0, 0.4)))
            process.send_signal(what)
            _, errors = process.communicate(timeout=120)
        assert (status_of(config)["status"], process.returncode) in (("stopped", 128 + what), ("done", 0)), errors
        assert "Traceback" not in errors
    expected.must_equal(run(config), "a run that was stopped three times")
