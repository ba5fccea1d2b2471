"""What can go wrong with a run, done to real processes. Each fault is tried on a run that is then resumed and compared.

A fault takes a Case: a run folder, and how to start the command on it. It leaves the run stopped, with or without an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from codesign_bench.experiment.equality import WALL_CLOCK, Outcome, difference, outcome
from codesign_bench.experiment.run_folder import COLUMNS
from tests.experiment.tiny import OVERRIDES, command, environment, folder_of, run, status_of, tiny

LONG = ("env=gap", "budget.steps=6000", "budget.evaluate_every=200")


@dataclass
class Case:
    """One trial. `rng` draws its moments."""

    config: dict[str, Any]
    rng: np.random.Generator
    root: Path

    @property
    def folder(self) -> Path:
        return folder_of(self.config)

    @contextlib.contextmanager
    def started(self, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """The command on this run, in a session of its own; whatever is left of it is killed."""
        line = command(*OVERRIDES, *LONG, f"results={self.config['results']}", *arguments)
        variables = {**environment(), **options.pop("variables", {})}
        pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
        process = subprocess.Popen(line, cwd=self.root, env=variables, **pipe, **options)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def until_working(self, process: subprocess.Popen[str]) -> None:
        """Waits for a random moment of the run's work, after its first checkpoint in this process."""
        began = time.time()
        while process.poll() is None and not (status_of(self.config).get("time", 0) > began and list(self.folder.rglob("*.ckpt"))):
            time.sleep(0.005)
        time.sleep(float(self.rng.uniform(0, 0.6)))

    def some_steps(self) -> None:
        """Runs until a random moment, then stops as Ctrl-C does."""
        with self.started() as process:
            self.until_working(process)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=120)

    def refused(self, fragment: str, *arguments: str, **options: Any) -> None:
        """The command must end with exit code 2 and one sentence."""
        with self.started(*arguments, **options) as process:
            _, errors = process.communicate(timeout=300)
        assert process.returncode == 2, errors
        assert "Traceback" not in errors
        last = errors.splitlines()[-1]
        assert last.startswith("error: "), errors
        assert fragment in last, errors

    def rows(self) -> list[list[str]]:
        """The whole rows of progress.csv, wall-clock columns aside."""
        path = self.folder / "progress.csv"
        lines = path.read_bytes().split(b"\n")[1:-1] if path.exists() else []
        fields = [line.decode(errors="replace").strip().split(",") for line in lines]
        keep = [i for i, name in enumerate(COLUMNS) if name not in WALL_CLOCK]
        return [[row[i] for i in keep] for row in fields if len(row) == len(COLUMNS)]

    def checkpoint(self) -> Path:
        return sorted((self.folder / "checkpoints").glob("*.ckpt"))[-1]


# ---- the faults ------------------------------------------------------------------------------------------------------


def kill_main(case: Case) -> None:
    with case.started(f"workers={case.rng.integers(3)}") as process:
        case.until_working(process)
        process.kill()


def kill_worker(case: Case) -> None:
    with case.started("workers=2") as process:
        case.until_working(process)
        workers = [p for p in psutil.Process(process.pid).children(recursive=True) if "spawn_main" in " ".join(p.cmdline())]
        os.kill(workers[int(case.rng.integers(len(workers)))].pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, "died with SIGKILL" in errors) == (2, True), errors


def kill_all(case: Case) -> None:
    with case.started("workers=2") as process:
        case.until_working(process)
        for each in [*psutil.Process(process.pid).children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)


def disk_full(case: Case) -> None:
    """No file may grow past half a checkpoint: as on a full disk, writing fails in the middle."""
    case.some_steps()
    limit = case.checkpoint().stat().st_size // 2
    case.refused("cannot be written", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))


def disk_full_tmpfs(case: Case) -> None:
    """A file system with room for less than another checkpoint. Needs the right to mount one."""
    case.some_steps()
    with mounted(case, f"size={_used(case.folder) + case.checkpoint().stat().st_size // 2 + 65536}"):
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
    """Each call of the clock is years before or after the last one."""
    (case.root / "sitecustomize.py").write_text(
        "import itertools, time\ntrue, jumps = time.time, itertools.cycle([0, 1e8, -1e8, 3e8])\ntime.time = lambda: true() + next(jumps)\n"
    )
    paths = os.pathsep.join([str(case.root), environment()["PYTHONPATH"]])
    with case.started(variables={"PYTHONPATH": paths}) as process:
        while process.poll() is None and len(case.rows()) < 3:
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors, errors


def two_processes(case: Case) -> None:
    with case.started() as first:
        case.until_working(first)
        case.refused("is in use by process", "workers=1")
        first.send_signal(signal.SIGINT)
        _, errors = first.communicate(timeout=120)
    assert first.returncode == 0, errors


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
    return run(tiny(folder, *LONG))


def attempt(fault: Callable[[Case], None], folder: Path, expected: Outcome, number: int) -> Verdict:
    """Does the fault, resumes the run, and looks for what is missing or different."""
    config = tiny(folder, *LONG)
    folder.mkdir(parents=True)
    case = Case(config, np.random.default_rng([number, *fault.__name__.encode()]), folder)
    fault(case)
    before = case.rows()
    with case.started("workers=1") as process:
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    after = case.rows()
    assert json.loads((case.folder / "status.json").read_text())["status"] == "done"
    assert not list(case.folder.rglob("*.tmp"))
    found = outcome(config)
    return Verdict(sum(row not in after for row in before), difference(vars(expected), vars(found)))


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
