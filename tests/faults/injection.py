"""What can go wrong with a run, done to real processes. Each fault is tried on a run that is then resumed and compared.

The runs are of the toy method, in processes forked from this one: a trial takes a second, so there can be many. A fault takes
a Case and leaves its run stopped, with or without an error.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from codesign_bench import cli
from codesign_bench.experiment import runner
from codesign_bench.experiment.equality import WALL_CLOCK, Outcome, difference, outcome
from tests.experiment.tiny import changed, folder_of, status_of, tiny
from tests.experiment.toy import Toy

STEPS = 2400
"""Of a run: sixty iterations, each with an evaluation and a checkpoint."""


def toy(folder: Path) -> dict[str, Any]:
    sizes = ("env.max_steps=12", "budget.batch=40", f"budget.steps={STEPS}", "budget.evaluate_every=40")
    return {**tiny(folder, *sizes), "method": {"name": "toy", "plugin": "toy", "flaw": "none"}}


class Forked:
    """The command on a configuration, in a process forked from this one; what it says goes to a file."""

    def __init__(self, config: dict[str, Any], first: Callable[[], object]) -> None:
        self._said, self.code = tempfile.TemporaryFile(), None  # noqa: SIM115 (open as long as this is)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.dup2(self._said.fileno(), 2)
            sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115 (pytest's own writes to another file)
            code = 1
            try:
                runner.method_class = lambda plugin: Toy
                first()
                cli.call = lambda _: 0 if runner.run(config, ["test"]) else 1
                cli.main([])
            except SystemExit as ended:
                code = int(ended.code or 0)
            except BaseException as error:
                os.write(2, f"Traceback: {error!r}\n".encode())
            os._exit(code)

    code: int | None

    def running(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is None

    def end(self, number: signal.Signals | None = None) -> str:
        """Waits until it has ended, by itself or after a signal; what it said."""
        if number is not None and self.running():
            os.kill(self.pid, number)
        deadline = time.monotonic() + 120
        while self.running():
            assert time.monotonic() < deadline, "the run hangs"
            time.sleep(0.002)
        self._said.seek(0)
        return self._said.read().decode()


@dataclass
class Case:
    """One trial. `rng` draws its moments."""

    config: dict[str, Any]
    rng: np.random.Generator
    root: Path
    began: list[Forked] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return folder_of(self.config)

    def start(self, workers: int = 0, first: Callable[[], object] = lambda: None) -> Forked:
        self.began.append(Forked(changed(self.config, workers=workers), first))
        return self.began[-1]

    def until_working(self, process: Forked) -> None:
        """Waits for a random moment of the run's work, after its second checkpoint."""
        began = time.time()
        while process.running() and not (status_of(self.config).get("time", 0) > began and len(list(self.folder.rglob("*.ckpt"))) > 1):
            time.sleep(0.002)
        time.sleep(float(self.rng.uniform(0, 0.3)))

    def some_steps(self) -> None:
        """Runs until a random moment, then stops as Ctrl-C does."""
        process = self.start()
        self.until_working(process)
        said = process.end(signal.SIGTERM)
        assert process.code == 0, said

    def refused(self, fragment: str, workers: int = 0, first: Callable[[], object] = lambda: None) -> None:
        """The command must end with exit code 2 and one sentence."""
        process = self.start(workers, first)
        said = process.end()
        assert process.code == 2, said
        assert "Traceback" not in said
        last = said.splitlines()[-1]
        assert last.startswith("error: "), said
        assert fragment in last, said

    def rows(self) -> list[list[str]]:
        """The whole rows of progress.csv, wall-clock columns aside."""
        path = self.folder / "progress.csv"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        head, *fields = [line.decode(errors="replace").strip().split(",") for line in lines] or [[]]
        keep = [i for i, name in enumerate(head) if name not in WALL_CLOCK]
        return [[row[i] for i in keep] for row in fields if len(row) == len(head)]

    def checkpoint(self) -> Path:
        return sorted((self.folder / "checkpoints").glob("*.ckpt"))[-1]


# ---- the faults ------------------------------------------------------------------------------------------------------


def kill_main(case: Case) -> None:
    process = case.start()
    case.until_working(process)
    process.end(signal.SIGKILL)


def kill_worker(case: Case) -> None:
    process = case.start(workers=2)
    case.until_working(process)
    workers = [p for p in psutil.Process(process.pid).children(recursive=True) if "spawn_main" in " ".join(p.cmdline())]
    os.kill(workers[int(case.rng.integers(len(workers)))].pid, signal.SIGKILL)
    said = process.end()
    assert (process.code, "died with SIGKILL" in said) == (2, True), said


def kill_all(case: Case) -> None:
    process = case.start(workers=2)
    case.until_working(process)
    for each in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    process.end(signal.SIGKILL)


def disk_full(case: Case) -> None:
    """No file may grow past half a checkpoint: as on a full disk, writing fails in the middle."""
    case.some_steps()
    limit = case.checkpoint().stat().st_size // 2
    case.refused("cannot be written", first=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))


def disk_full_tmpfs(case: Case) -> None:
    """A file system with room for less than another checkpoint. Needs the right to mount one."""
    case.some_steps()
    with mounted(case, f"size={_used(case.folder) + 4096}"):
        case.refused("cannot be written")


def truncated_checkpoint(case: Case) -> None:
    case.some_steps()
    path = case.checkpoint()
    path.write_bytes(path.read_bytes()[: int(case.rng.integers(path.stat().st_size))])


def flipped_bit(case: Case) -> None:
    case.some_steps()
    path = case.checkpoint()
    content = bytearray(path.read_bytes())
    content[int(case.rng.integers(len(content)))] ^= 1 << int(case.rng.integers(8))
    path.write_bytes(content)


def half_a_line(case: Case) -> None:
    case.some_steps()
    with open(case.folder / "progress.csv", "ab") as file:
        file.write(b"7,1400,3.25"[: int(case.rng.integers(1, 12))])


def clock_jump(case: Case) -> None:
    """Each look at the clock is years before or after the last one."""
    true, jumps = time.time, itertools.cycle([0.0, 1e8, -1e8, 3e8])

    def jump() -> None:
        time.time = lambda: true() + next(jumps)

    process = case.start(first=jump)
    while process.running() and len(case.rows()) < 5:
        time.sleep(0.002)
    said = process.end(signal.SIGTERM)
    assert "Traceback" not in said, said


def two_processes(case: Case) -> None:
    first = case.start()
    case.until_working(first)
    case.refused("is in use by process")
    said = first.end(signal.SIGINT)
    assert first.code == 0, said


def read_only(case: Case) -> None:
    """Needs the right to mount a file system, or not to be root."""
    case.some_steps()
    if os.geteuid() != 0:
        case.folder.chmod(0o500)
        case.refused("cannot be written")
        case.folder.chmod(0o700)
        return
    with mounted(case, "size=64m", then="remount,ro"):
        case.refused("cannot be written")


FAULTS: tuple[Callable[[Case], None], ...] = (
    *(kill_main, kill_worker, kill_all, disk_full, disk_full_tmpfs, truncated_checkpoint, flipped_bit, half_a_line),
    *(clock_jump, two_processes, read_only),
)


# ---- trying them -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    lost_rows: int
    difference: str | None


def undisturbed(folder: Path) -> Outcome:
    case = Case(toy(folder), np.random.default_rng(0), folder)
    case.start().end()
    return outcome(case.config)


def attempt(fault: Callable[[Case], None], folder: Path, expected: Outcome, number: int) -> Verdict:
    """Does the fault, resumes the run, and looks for what is missing or different."""
    folder.mkdir(parents=True)
    case = Case(toy(folder), np.random.default_rng([number, *fault.__name__.encode()]), folder)
    try:
        fault(case)
    finally:
        for process in case.began:
            process.end(signal.SIGKILL)
    before = case.rows()
    assert before, "the fault came before the run had recorded anything"
    process = case.start()
    said = process.end()
    assert process.code == 0, said
    after = case.rows()
    assert status_of(case.config)["status"] == "done"
    assert not list(case.folder.rglob("*.tmp"))
    return Verdict(sum(row not in after for row in before), difference(vars(expected), vars(outcome(case.config))))


def obstacle(fault: Callable[[Case], None]) -> str | None:
    """Why a fault cannot be done here, if so."""
    mounts = fault is disk_full_tmpfs or (fault is read_only and os.geteuid() == 0)
    may = sys.platform == "linux" and os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0
    return "it needs the right to mount a file system" if mounts and not may else None


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


def _used(folder: Path) -> int:
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())
