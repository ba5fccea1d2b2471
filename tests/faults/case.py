"""A run that is to be disturbed: the command in processes forked from this one, which costs no import, and moments drawn from a seed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import codesign_bench.learning.layers  # noqa: F401 (what is imported here need not be in every process)
from codesign_bench import cli, interrupts
from codesign_bench.commands import run as run_command
from codesign_bench.launching.status import RunStatus, statuses
from codesign_bench.simulation.processes import die_with_parent
from tests.experiment.tiny import changed, folder_of

MARK = "CODESIGN_BENCH_CASE"
"""The variable by which the processes of a case are known."""
PATIENCE = 300.0
"""Seconds after which a run hangs."""
STOPPED = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""Exit codes of a run that was asked to stop."""


class Finished(Exception):
    """The run came to its end before the fault."""


class Forked:
    """The command on a configuration, in a process and session of its own; what it says goes to a file. `first` is called in there."""

    code: int | None = None

    def __init__(self, config: dict[str, Any], root: Path, first: Callable[[], object] = lambda: None) -> None:
        self._said, parent = tempfile.TemporaryFile(), os.getpid()  # noqa: SIM115 (open as long as this is)
        (root / "tmp").mkdir(exist_ok=True)
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.setsid()
                die_with_parent(parent)
                os.dup2(self._said.fileno(), 2)
                sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115 (pytest's own writes to another file)
                sys.modules["__main__"] = types.ModuleType("__main__")  # workers would import it
                multiprocessing.set_start_method(None, force=True)  # as in a program of its own
                tempfile.tempdir = os.environ["TMPDIR"] = str(root / "tmp")
                os.environ[MARK] = str(root)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                interrupts.listen()
                run_command.load_config = lambda *_: config
                first()
                cli.main([f"seed={config['seed']}"])
            except SystemExit as ended:
                code = int(ended.code or 0)
            except BaseException as error:
                os.write(2, f"Traceback: {error!r}\n".encode())
            os._exit(code)

    def running(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is None

    def end(self, number: signal.Signals | None = None) -> str:
        """Waits until it has ended, by itself or after a signal; what it said."""
        if number is not None and self.running():
            os.kill(self.pid, number)
        deadline = time.monotonic() + PATIENCE
        while self.running():
            assert time.monotonic() < deadline, "the run hangs"
            time.sleep(0.002)
        self._said.seek(0)
        said = self._said.read().decode()
        assert "Traceback" not in said, said
        return said

    def workers(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return [each for each in psutil.Process(self.pid).children(recursive=True) if "spawn_main" in " ".join(each.cmdline())]
        return []


@dataclass
class Case:
    """One run and where it lies. `rng` draws the moments of a fault."""

    config: dict[str, Any]
    rng: np.random.Generator
    root: Path
    began: list[Forked] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    """Runs that a fault began besides."""

    @property
    def folder(self) -> Path:
        return folder_of(self.config)

    def start(self, workers: int | None = None, first: Callable[[], object] = lambda: None) -> Forked:
        """The command, with two workers in one of four cases unless it is said how many."""
        drawn = 2 * int(self.rng.random() < 0.25)
        self.began.append(Forked(changed(self.config, workers=drawn if workers is None else workers), self.root, first))
        return self.began[-1]

    def until_working(self, process: Forked) -> None:
        """Waits for a moment of the run's work: after one to three checkpoints of this process, two at least in all, and a while. What
        `status` says then must be true."""
        saves, more, before = int(self.rng.integers(1, 4)), float(self.rng.uniform(0, 0.15)), self._checkpoints()
        seen: set[tuple[str, int]] = set()
        while process.running() and not (len(seen) >= saves and len(self._checkpoints()) > 1):
            seen |= self._checkpoints() - before
            time.sleep(0.002)
        time.sleep(more)
        said = self.status().state
        if not process.running():
            words = process.end()
            assert process.code == 0, words
            raise Finished
        assert said == "running", f"status says {said} of a run that is at work"

    def some_steps(self) -> None:
        """Runs to such a moment, then stops as the system asks for it."""
        process = self.start()
        self.until_working(process)
        self.stop(process, signal.SIGTERM)

    def stop(self, process: Forked, number: signal.Signals) -> None:
        """Asks the run to stop, which it must do with the signal's exit code, unless it has just come to its end."""
        said = process.end(number)
        if process.code == 0:
            raise Finished
        assert process.code == STOPPED[number], said

    def refused(self, fragment: str, first: Callable[[], object] = lambda: None) -> None:
        """The command must end with exit code 2 and one sentence."""
        process = self.start(0, first)
        said = process.end()
        assert process.code == 2, said
        last = said.splitlines()[-1]
        assert last.startswith("error: "), said
        assert fragment in last, said

    def status(self) -> RunStatus:
        """What `codesign-bench status` has to say of the run."""
        found = statuses(Path(self.config["results"]), [self.config["study"]])
        return next(each for each in found if Path(each.path) == self.folder)

    def checkpoint(self) -> Path:
        return sorted((self.folder / "checkpoints").glob("*.ckpt"))[-1]

    def _checkpoints(self) -> set[tuple[str, int]]:
        """Names and times of the files that are there."""
        found = set()
        for path in (self.folder / "checkpoints").glob("*.ckpt"):
            with contextlib.suppress(FileNotFoundError):
                found.add((path.name, path.stat().st_mtime_ns))
        return found

    def close(self) -> None:
        """Nothing runs any more."""
        for process in self.began:
            if process.running():
                with contextlib.suppress(AssertionError):
                    process.end(signal.SIGKILL)


def complete(config: dict[str, Any]) -> None:
    """Runs a configuration to its end, undisturbed."""
    root = Path(config["results"])
    root.mkdir(parents=True)
    process = Forked(config, root)
    said = process.end()
    assert process.code == 0, said


@contextlib.contextmanager
def mounted(case: Case, options: str, then: str | None = None) -> Iterator[None]:
    """The run's folder on a file system of its own; its content comes along, and back."""
    kept = case.root / "kept"
    case.folder.rename(kept)
    case.folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(case.folder)], check=True)
    try:
        subprocess.run(["cp", "-a", f"{kept}/.", str(case.folder)], check=True)
        if then:
            subprocess.run(["mount", "-o", then, str(case.folder)], check=True)
        yield
        subprocess.run(["rm", "-rf", str(kept)], check=True)
        subprocess.run(["cp", "-a", str(case.folder), str(kept)], check=True)
    finally:
        subprocess.run(["umount", str(case.folder)], check=True)
        case.folder.rmdir()
        kept.rename(case.folder)


def may_mount() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0
