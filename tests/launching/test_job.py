"""How a run's process ends, and what the launcher makes of it. The processes here are one-liners instead of runs."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.launching import job
from codesign_bench.launching.job import Children
from codesign_bench.launching.local import launch, shares
from tests.experiment.tiny import folder_of, status_of, tiny
from tests.reference.sentences import assert_one_sentence


def pretend(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Jobs run this code instead of a run."""
    monkeypatch.setattr(job, "COMMAND", (sys.executable, "-c", f"import json, os, sys, time\n{code}"))


@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        ("sys.exit(0)", "done", ""),
        ("print('error: No such thing.'); sys.exit(2)", "failed", "No such thing."),
        ("sys.exit(3)", "stopped", ""),
        ("print('error: In use by another.'); sys.exit(4)", "in use", "In use by another."),
        ("raise RuntimeError('boom')", "failed", "The process of the run ended with exit code 1."),
        ("os.kill(os.getpid(), 9)", "failed", "The process of the run died with SIGKILL."),
        ("os.abort()", "failed", "The process of the run died with SIGABRT."),
    ],
)
def test_endings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, state: str, reason: str) -> None:
    pretend(monkeypatch, code)
    config = tiny(tmp_path)
    ending = Children().run(config, [])
    assert (ending.path, ending.state, ending.reason) == (str(folder_of(config)), state, reason)
    assert ("boom" in ending.tail) == ("boom" in code)


def test_a_process_that_died_without_a_word_is_recorded_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(tmp_path)
    with RunFolder.of(config).locked():
        RunFolder.of(config).set_status("running", steps=400, until=800)
    pretend(monkeypatch, "os.kill(os.getpid(), 11)")
    Children().run(config, [])
    status = status_of(config)
    assert (status["status"], status["steps"], status["until"]) == ("failed", 400, 800)
    assert status["reason"] == "The process of the run died with SIGSEGV."


def test_a_crash_that_could_not_be_recorded_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(tmp_path)
    pretend(monkeypatch, "raise RuntimeError('boom')")
    Children().run(config, [])
    assert (status_of(config)["status"], status_of(config)["reason"]) == ("failed", "The process of the run ended with exit code 1.")
    RunFolder.of(config).set_status("failed", reason="the run's own words")
    Children().run(config, [])
    assert status_of(config)["reason"] == "the run's own words"


def test_a_process_that_cannot_be_started_takes_no_other_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "sys.exit(0)")
    configs = [tiny(tmp_path, f"seed={seed}") for seed in range(3)]
    popen, calls = subprocess.Popen, []

    def limited(*arguments: Any, **keywords: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return popen(*arguments, **keywords)

    monkeypatch.setattr(subprocess, "Popen", limited)
    endings = list(launch(configs, jobs=1))
    assert [ending.state for ending in endings] == ["done", "failed", "done"]
    assert_one_sentence(ValueError(endings[1].reason), "could not be started", "Resource temporarily unavailable")


def test_it_gets_the_configuration_and_its_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(tmp_path)
    pretend(monkeypatch, f"json.dump([sys.argv[1:], json.load(sys.stdin)], open({str(tmp_path / 'got')!r}, 'w'))")
    assert Children().run(config, ["python", "x"], (3, 5)).state == "done"
    arguments, got = json.loads((tmp_path / "got").read_text())
    assert arguments == [str(os.getpid()), "3,5"]
    assert got == {"config": json.loads(json.dumps(config)), "command": ["python", "x"]}


@pytest.mark.skipif(not os.access("/proc/self/autogroup", os.W_OK), reason="this system does not share the processor among sessions")
def test_its_session_is_as_nice_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise runs of a sweep that was started with nice take half of the machine."""
    told = f"open({str(tmp_path / 'told')!r}, 'w').write(open('/proc/self/autogroup').read())"
    pretend(monkeypatch, f"os.nice(7)\nfrom codesign_bench.launching import job\njob._stay_nice()\n{told}")
    assert Children().run(tiny(tmp_path), []).state == "done"
    assert (tmp_path / "told").read_text().endswith(f"nice {min(19, os.nice(0) + 7)}\n")


def test_stopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs is asked to stop, what has not begun does not begin; asked twice, it is killed."""
    pretend(monkeypatch, f"open({str(tmp_path / 'up')!r}, 'w'); import signal; signal.signal(15, lambda *_: None); time.sleep(60)")
    children, endings = Children(), []
    thread = threading.Thread(target=lambda: endings.append(children.run(tiny(tmp_path), [])))
    thread.start()
    while not (tmp_path / "up").exists():
        time.sleep(0.005)
    time.sleep(0.2)
    children.stop()
    assert children.run(tiny(tmp_path), []).state == "stopped"
    children.stop()
    thread.join(timeout=30)
    assert [ending.state for ending in endings] == ["stopped"]


def test_all_are_run_and_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "job = json.load(sys.stdin); sys.exit([0, 2, 0][job['config']['seed']])")
    endings = launch([tiny(tmp_path, f"seed={seed}") for seed in range(3)])
    assert {Path(e.path).name: e.state for e in endings} == {"seed_0": "done", "seed_1": "failed", "seed_2": "done"}


def test_signals_of_the_launcher_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "sys.exit(0)")
    before = signal.getsignal(signal.SIGINT)
    assert len(list(launch([tiny(tmp_path)]))) == 1
    assert signal.getsignal(signal.SIGINT) is before


# ---- cores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cores", "jobs", "runs", "workers", "sizes"),
    [
        (8, None, 30, 1, [1] * 8),
        (8, None, 3, 1, [3, 3, 2]),
        (8, None, 30, 2, [2] * 4),
        (8, None, 30, 20, [8]),
        (8, 2, 30, 1, [4, 4]),
        (8, 2, 30, 4, [4, 4]),
        (8, 3, 1, 1, [8]),
        (1, None, 30, 1, [1]),
        (1, 1, 30, 4, [1]),
    ],
)
def test_shares(monkeypatch: pytest.MonkeyPatch, cores: int, jobs: int | None, runs: int, workers: int, sizes: list[int]) -> None:
    names = set(range(10, 10 + cores))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: names)
    parts = shares(jobs, runs, workers)
    assert [len(part) for part in parts] == sizes
    dealt: list[Any] = sorted(core for part in parts for core in part)
    assert dealt == sorted(names)


@pytest.mark.parametrize(
    ("jobs", "workers", "fragment"), [(0, 1, "jobs is 0"), (9, 1, "from 1 to 8"), (4, 4, "need 16 cores; there are 8")]
)
def test_more_jobs_than_cores(monkeypatch: pytest.MonkeyPatch, jobs: int, workers: int, fragment: str) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    with pytest.raises(ValueError, match=r"\.$") as error:
        shares(jobs, 30, workers)
    assert_one_sentence(error.value, fragment)
