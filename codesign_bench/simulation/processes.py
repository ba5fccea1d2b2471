"""Processes that hold objects and call their methods: samplers while a batch is collected, shards of a minibatch while it is learned.

Processes are spawned, never forked; each computes on one thread, and ends when its parent does.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import reduction
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.errors import WorkerError

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Of the libraries below numpy: what is spread over cores are workers and shards."""


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SharedMemory:
    """Memory that several processes map. It is a file without a name, so nothing is left of it when they are gone, however they went."""

    ALIGNMENT = 4096
    """Arrays begin at multiples of it, where a page does."""

    def __init__(self, file: int | None = None) -> None:
        self.file = _nameless_file() if file is None else file
        self.reserved = 0
        """Below this nothing moves; what is above may be laid out anew by whoever writes there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach, (reduction.DupFd(self.file),)  # type: ignore[attr-defined]

    def reserve(self, layout: Layout) -> int:
        """A place for arrays that stay; where they begin."""
        start = self.reserved
        self.reserved += sum(self._sizes(layout))
        return start

    def arrays(self, layout: Layout, start: int) -> dict[str, Array]:
        """Arrays by name from a place on; the memory grows if it has to. What was mapped before stays valid."""
        sizes = self._sizes(layout)
        end = start + sum(sizes)
        if os.fstat(self.file).st_size < end:
            os.ftruncate(self.file, end)
        mapped = mmap.mmap(self.file, end - start, offset=start)
        places = np.cumsum([0, *sizes])
        return {
            name: np.ndarray(shape, dtype, mapped, place) for (name, (shape, dtype)), place in zip(layout.items(), places, strict=False)
        }

    def _sizes(self, layout: Layout) -> list[int]:
        """In bytes, whole pages."""
        sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in layout.values()]
        return [-(-max(size, 1) // self.ALIGNMENT) * self.ALIGNMENT for size in sizes]

    def close(self) -> None:
        """Arrays that exist stay valid."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


Layout = dict[str, tuple[tuple[int, ...], Any]]
"""Shape and type of arrays by name."""


def layout_of(arrays: dict[str, Array]) -> Layout:
    return {name: (array.shape, array.dtype.str) for name, array in arrays.items()}


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("codesign_bench")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _attach(file: Any) -> SharedMemory:
    return SharedMemory(file.detach())


Factory = Callable[[SharedMemory], Any]
"""Makes an object where it will live; is given the memory that all processes share."""


class Processes:
    """Objects in worker processes, by name and number: the i-th lives in process i modulo `count`. With count 0 they live here."""

    def __init__(self, count: int) -> None:
        self.memory = SharedMemory()
        self._here: Objects = {}
        self._workers: list[_Worker] = []
        try:
            for number in range(count):
                self._workers.append(_Worker(number, self.memory))
        except BaseException:
            self.close()
            raise

    @property
    def count(self) -> int:
        return len(self._workers)

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    def place(self, name: str, factories: Sequence[Factory]) -> None:
        """Makes an object of each factory; they replace those that had the name."""
        self._ask("", name, [(factory,) for factory in factories])

    def call(self, method: str, name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of as many objects as there are arguments, side by side; results in their order."""
        return self._ask(method, name, arguments)

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()
        self.memory.close()
        self._workers, self._here = [], {}

    def _ask(self, method: str, name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Everything is packed before anything is sent; a worker that fails takes all down."""
        if not self._workers:
            return list(_perform(method, name, dict(enumerate(arguments)), self._here, self.memory).values())
        shares = [{i: arguments[i] for i in range(worker.number, len(arguments), self.count)} for worker in self._workers]
        pairs = [(worker, share) for worker, share in zip(self._workers, shares, strict=True) if share]
        messages = [pickle.dumps((method, name, share), protocol=pickle.HIGHEST_PROTOCOL) for _, share in pairs]
        results: dict[int, Any] = {}
        waiting = {worker.connection: worker for worker, _ in pairs}
        try:
            for (worker, _), message in zip(pairs, messages, strict=True):
                worker.send(message)
            while waiting:
                for ready in wait(list(waiting)):
                    results.update(waiting.pop(ready).receive())  # type: ignore[call-overload]
        except BaseException:
            self.close()
            raise
        return [results[i] for i in sorted(results)]


Objects = dict[tuple[str, int], Any]


class _Worker:
    """The parent's end of one process."""

    def __init__(self, number: int, memory: SharedMemory) -> None:
        self.number = number
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, os.getpid(), memory), name=f"codesign-worker-{number}", daemon=True)
        with environment(ONE_THREAD), _without_interrupts():
            self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid or -1

    def send(self, message: bytes) -> None:
        try:
            self.connection.send_bytes(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._death() from None

    def receive(self) -> dict[int, Any]:
        try:
            ok, value = pickle.loads(self.connection.recv_bytes())
        except (EOFError, ConnectionResetError):
            raise self._death() from None
        if not ok:
            error = WorkerError(f"Worker {self.number} raised an error: {value.strip().splitlines()[-1]}.")
            error.add_note(value)
            raise error
        result: dict[int, Any] = value
        return result

    def stop(self) -> None:
        self.connection.close()
        self._process.terminate()
        self._process.join(timeout=1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _death(self) -> WorkerError:
        self._process.join(timeout=2)
        code = self._process.exitcode
        name = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
        return WorkerError(f"Worker {self.number} (process {self.pid}) died with {name}; the other workers were stopped.")


def _work(connection: Connection, parent: int, memory: SharedMemory) -> None:
    """The worker's loop: a command in, a reply out, until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent(parent)
    objects: Objects = {}
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            message = connection.recv_bytes()
            try:
                method, name, arguments = pickle.loads(message)
                if "torch" in sys.modules:
                    sys.modules["torch"].set_num_threads(1)
                reply: tuple[bool, Any] = (True, _perform(method, name, arguments, objects, memory))
            except Exception:
                reply = (False, traceback.format_exc())
            connection.send_bytes(pickle.dumps(reply, protocol=pickle.HIGHEST_PROTOCOL))


def _perform(method: str, name: str, arguments: dict[int, tuple[Any, ...]], objects: Objects, memory: SharedMemory) -> dict[int, Any]:
    if not method:
        for key in [key for key in objects if key[0] == name]:
            del objects[key]
        objects.update({(name, i): factory(memory) for i, (factory,) in arguments.items()})
        return dict.fromkeys(arguments)
    return {i: getattr(objects[name, i], method)(*mine) for i, mine in arguments.items()}


def die_with_parent(parent: int) -> None:
    """Asks Linux to kill this process when its parent is gone, however that happened."""
    if sys.platform == "linux":
        parent_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """A process that is started here ignores Ctrl-C, which goes to the whole process group, from its first moment on: the
    parent decides what to do. One that arrives in this process meanwhile is not lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """These variables meanwhile, as they were afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
