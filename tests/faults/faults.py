"""What can go wrong with a run, done to real processes. A fault takes a Case and leaves its run stopped, with or without an error."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psutil

from codesign_bench.commands import run as run_command
from codesign_bench.launching import local, plan, sweep
from tests.experiment.tiny import changed, folder_of
from tests.faults.case import STOPPED, Case, Finished, Forked, may_mount, mounted

Fault = Callable[[Case], None]
HELD = 5.0
"""Seconds for which a process is stopped at most."""


# ---- processes -------------------------------------------------------------------------------------------------------


def any_moment(case: Case, workers: int | None = None) -> Forked:
    """A run at work, or, in one of three cases, one that has just been started."""
    early, wait = case.rng.random() < 1 / 3, float(case.rng.uniform(0, 1))
    process = case.start(workers)
    if early:
        time.sleep(wait)
    else:
        case.until_working(process)
    return process


def kill_main(case: Case) -> None:
    any_moment(case).end(signal.SIGKILL)


def kill_worker(case: Case) -> None:
    """Workers sample and learn."""
    process = case.start(workers=2)
    case.until_working(process)
    if workers := process.workers():
        with contextlib.suppress(psutil.NoSuchProcess):
            workers[int(case.rng.integers(len(workers)))].kill()
    said = process.end()
    if process.code == 0:
        raise Finished
    assert (process.code, "died with SIGKILL" in said) == (2, True), said


def kill_all(case: Case) -> None:
    process = any_moment(case, workers=2)
    for each in process.workers():
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    process.end(signal.SIGKILL)


def hold(case: Case) -> None:
    """SIGSTOP for a while, of the run or of a worker, as on a machine that sleeps; meanwhile nobody else gets in. Then SIGCONT."""
    process = case.start()
    case.until_working(process)
    workers = process.workers()
    held = workers[0].pid if workers and case.rng.random() < 0.5 else process.pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(held, signal.SIGSTOP)
        time.sleep(float(case.rng.uniform(0.2, HELD)))
        if held == process.pid and process.running():
            case.refused("is in use by process")
        os.kill(held, signal.SIGCONT)
    case.stop(process, signal.SIGTERM)


def terminate(case: Case) -> None:
    _asked_to_stop(case, signal.SIGTERM)


def interrupt(case: Case) -> None:
    """Ctrl-C."""
    _asked_to_stop(case, signal.SIGINT)


def _asked_to_stop(case: Case, number: signal.Signals) -> None:
    process = any_moment(case)
    said = process.end(number)
    if process.code == 0:
        raise Finished
    assert process.code in (STOPPED[number], -signal.SIGTERM if number == signal.SIGTERM else 130), said


def two_processes(case: Case) -> None:
    first = case.start()
    case.until_working(first)
    second = case.start(0)
    said = second.end()
    if second.code == 0:  # the first one had just come to its end
        assert "is done" in said, said
        raise Finished
    assert (second.code, "is in use by process" in said) == (2, True), said
    case.stop(first, signal.SIGINT)


def two_launchers(case: Case) -> None:
    """Two sweeps over the same two runs, in opposite order. One of them is killed at a run's work, the other is stopped then."""
    runs = [case.config, changed(case.config, seed=case.config["seed"] + 1)]
    case.others = runs[1:]
    victim, delay = int(case.rng.integers(2)), float(case.rng.uniform(0, 0.3))

    def launcher(configs: list[dict[str, Any]]) -> Callable[[], object]:
        def first() -> None:
            run_command.run_one = lambda _: sweep.report(sweep.Sweep().launch(partial(local.launch, jobs=1), configs))

        return first

    def saved() -> set[int]:
        found = set()
        for path in [path for config in runs for path in (folder_of(config) / "checkpoints").glob("*.ckpt")]:
            with contextlib.suppress(FileNotFoundError):
                found.add(path.stat().st_mtime_ns)
        return found

    before = saved()
    launchers = [case.start(0, launcher(configs)) for configs in (runs, runs[::-1])]
    while all(each.running() for each in launchers) and not saved() - before:
        time.sleep(0.01)
    time.sleep(delay)
    said = [launchers[victim].end(signal.SIGKILL), launchers[1 - victim].end(signal.SIGTERM)]
    codes = launchers[victim].code, launchers[1 - victim].code
    assert codes[0] in (0, 2, -signal.SIGKILL), said
    assert codes[1] in (0, 2, 143), said
    planned = plan.read(case.folder.parents[2])
    assert len(planned) == 2, planned
    if case.status().state == "done":
        raise Finished


# ---- disks -----------------------------------------------------------------------------------------------------------


def full_disk(case: Case) -> None:
    """No file may grow past half a checkpoint: as on a full disk, writing fails in the middle."""
    case.some_steps()
    limit = case.checkpoint().stat().st_size // 2
    case.refused("cannot be written", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))


def full_file_system(case: Case) -> None:
    """One with room for less than another checkpoint. Needs the right to mount it."""
    case.some_steps()
    used = sum(-(-path.stat().st_size // 4096) * 4096 for path in case.folder.rglob("*") if path.is_file())
    with mounted(case, f"size={used + 4096}"):
        case.refused("cannot be written")


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


def moved_away(case: Case) -> None:
    """The folder, while the run is alive; it is brought back when that has ended. In between, maybe, the run is begun anew in its place."""
    anew, delay, elsewhere = case.rng.random() < 0.5, float(case.rng.uniform(0, 0.5)), case.root / "elsewhere"
    process = case.start()
    case.until_working(process)
    case.folder.rename(elsewhere)
    if anew:
        other = case.start(0)
        time.sleep(delay)
        other.end(signal.SIGKILL)
        assert other.code in (0, -signal.SIGKILL), other.code
    said = process.end()
    shutil.rmtree(case.folder, ignore_errors=True)
    elsewhere.rename(case.folder)
    if process.code == 0:
        raise Finished
    assert (process.code, "was moved, removed or replaced" in said) == (2, True), said


def no_locks(case: Case) -> None:
    """A file system that cannot lock, as some network file systems."""
    case.some_steps()

    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    case.refused("cannot lock files", lambda: setattr(fcntl, "flock", flock))


# ---- files and clocks ------------------------------------------------------------------------------------------------


def truncated_checkpoint(case: Case) -> None:
    case.some_steps()
    path = case.checkpoint()
    path.write_bytes(path.read_bytes()[: int(case.rng.integers(path.stat().st_size))])


def flipped_bit(case: Case) -> None:
    """Of a checkpoint."""
    case.some_steps()
    path = case.checkpoint()
    content = bytearray(path.read_bytes())
    content[int(case.rng.integers(len(content)))] ^= 1 << int(case.rng.integers(8))
    path.write_bytes(content)


def half_a_line(case: Case) -> None:
    """At the end of progress.csv."""
    case.some_steps()
    with open(case.folder / "progress.csv", "ab") as file:
        file.write(b"7,1400,3.25"[: int(case.rng.integers(1, 12))])


def clock_jumps(case: Case) -> None:
    """Each look at the clock is years before or after the last one."""
    true, jumps = time.time, itertools.cycle([0.0, 1e8, -1e8, 3e8])

    def first() -> None:
        time.time = lambda: true() + next(jumps)

    process = case.start(first=first)
    case.until_working(process)
    case.stop(process, signal.SIGTERM)


FAULTS: tuple[Fault, ...] = (
    *(kill_main, kill_worker, kill_all, hold, terminate, interrupt, two_processes, two_launchers),
    *(full_disk, full_file_system, read_only, moved_away, no_locks),
    *(truncated_checkpoint, flipped_bit, half_a_line, clock_jumps),
)


def obstacle(fault: Fault) -> str | None:
    """Why a fault cannot be done here, if so."""
    mounts = fault is full_file_system or (fault is read_only and os.geteuid() == 0)
    return "it needs the right to mount a file system" if mounts and not may_mount() else None
