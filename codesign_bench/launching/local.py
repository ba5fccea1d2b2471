"""Many runs on this machine: processes side by side, each on cores of its own."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Queue
from types import FrameType

from joblib import Parallel, delayed

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.signals import StopSignals
from codesign_bench.launching.job import Children, Config, Ending, this_command
from codesign_bench.simulation.processes import available_cores


def launch(configs: Sequence[Config], *, jobs: int | None = None) -> Iterator[Ending]:
    """Runs all configurations, `jobs` at a time (null: one per core), and gives the ending of each as it ends.

    The cores are dealt out to the jobs, so that they never compete for one, however many workers a run has.
    """
    return _side_by_side(configs, shares(jobs, len(configs), max((config["workers"] or 1 for config in configs), default=1)))


def _side_by_side(configs: Sequence[Config], parts: Sequence[tuple[int, ...]]) -> Iterator[Ending]:
    children, command = Children(), this_command()
    free: Queue[tuple[int, ...]] = Queue()
    for part in parts:
        free.put(part)

    def run(config: Config) -> Ending:
        part = free.get()
        try:
            return children.run({**config, "progress": False}, command, part)
        except OSError as error:  # no memory or no process left: the others go on
            return Ending.of(config, "failed", f"The process of the run could not be started ({error.strerror}).")
        finally:
            free.put(part)

    with stopped_by_signals(children.stop):
        # threads that wait for processes: a process that dies takes nothing with it, as it would in a process pool
        yield from Parallel(len(parts), backend="threading", return_as="generator_unordered")(delayed(run)(c) for c in configs)


def shares(jobs: int | None, runs: int, workers: int) -> list[tuple[int, ...]]:
    """The cores of each of the jobs. More jobs than cores is an error; null is as many as keep all cores busy."""
    cores = available_cores()
    names = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(cores))
    if jobs is not None and not 1 <= jobs <= cores:
        raise ConfigError(f"jobs is {jobs}; allowed are whole numbers from 1 to {cores}, the cores that there are, or null.")
    if jobs is not None and jobs > 1 and jobs * workers > cores:
        raise ConfigError(f"{jobs} jobs with {workers} workers each need {jobs * workers} cores; there are {cores}.")
    count = max(1, min(jobs or max(1, cores // workers), runs))
    return [tuple(names[i::count]) for i in range(count)]


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """While entered, Ctrl-C and SIGTERM stop the runs instead of this process. Who waits further out hears of it too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        _asked.set()
        StopSignals.latest = number
        for each in reversed(_stops):
            each()

    _stops.append(stop)
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    try:
        if _asked.is_set():  # before this one began to listen
            stop()
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _stops.pop()
        if not _stops:
            _asked.clear()


_stops: list[Callable[[], None]] = []
"""Of all who wait now, the outermost first."""
_asked = threading.Event()
"""Whether one of them was asked to stop."""
