"""Worker processes around samplers: where groups run. What they sample does not depend on how many workers there are.

Workers are spawned, never forked; each computes on one thread, and ends when its parent does.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError, WorkerError
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.simulation.graphs import Policy, Rollout
from codesign_bench.simulation.sampler import Sampler, SlotState
from codesign_bench.tasks.base import Task


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Of the libraries below numpy: what is spread over cores are workers and shards."""


@dataclass(frozen=True)
class Group:
    """How to build a sampler, wherever it will run."""

    task: Task
    slots: int
    seed: np.random.SeedSequence
    steps: TransformSteps | None = None
    designs: tuple[Design, ...] | None = None
    reset_seeds: tuple[np.random.SeedSequence, ...] | None = None

    def build(self) -> Sampler:
        return Sampler(self.task, self.slots, self.seed, self.steps, self.designs, self.reset_seeds)


class WorkerPool:
    """Groups of slots spread over worker processes; with `workers=0` they run in this process.

    Every step is charged to the ledger, if there is one, before it is simulated.
    """

    def __init__(self, groups: Sequence[Group], workers: int = 0, ledger: Ledger | None = None) -> None:
        if workers < 0 or not groups:
            raise ConfigError(f"{workers} workers were asked for {len(groups)} groups; allowed are 0 and more for 1 and more.")
        self.groups, self.ledger = list(groups), ledger
        count = min(workers, len(groups))
        self._local = [group.build() for group in groups] if count == 0 else []
        self._owner = [i % count for i in range(len(groups))] if count else []
        self._workers: list[_Worker] = []
        try:
            for number in range(count):
                self._workers.append(_Worker(number))
            self._ask("build", list(groups))
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:
        return sum(group.slots for group in self.groups)

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    def collect(self, policy: Policy | Sequence[Policy], steps: int) -> Rollout:
        """`steps` steps in every slot of every group, with one policy for all or one for each group."""
        policies = self._one_each(policy if isinstance(policy, Sequence) else [policy] * len(self.groups), "policies")
        if self.ledger is not None:
            self.ledger.charge(steps * self.slots)
        return Rollout.concatenate(self._each("collect", [(p, steps) for p in policies]))

    def rebuild(self, groups: Sequence[Group]) -> None:
        """As many other groups in the processes of the old ones: new designs and streams; open episodes are dropped."""
        self.groups = self._one_each(groups, "new groups")
        if self._local:
            self._local = [group.build() for group in groups]
        else:
            self._ask("build", self.groups)

    def lend(self, slots: Sequence[Sequence[SlotState]]) -> None:
        """Gives the slots of every group to agents; see `Sampler.lend`."""
        self._each("lend", [(mine,) for mine in self._one_each(slots, "lists of slots")])

    def take_back(self) -> list[list[SlotState]]:
        """The slots of every group as they are now, for `lend`."""
        return self._each("take_back", [()] * len(self.groups))

    def state_dict(self) -> list[dict[str, Any]]:
        """The state of every group, in order."""
        return self._each("state_dict", [()] * len(self.groups))

    def load_state_dict(self, states: Sequence[dict[str, Any]]) -> None:
        self._each("load_state_dict", [(state,) for state in self._one_each(states, "states")])

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _one_each(self, values: Sequence[Any], what: str) -> list[Any]:
        if len(values) != len(self.groups):
            raise ConfigError(f"{len(values)} {what} were given for {len(self.groups)} groups; allowed is one for each.")
        return list(values)

    def _each(self, name: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of every group's sampler, wherever it runs."""
        if self._local:
            return [getattr(sampler, name)(*mine) for sampler, mine in zip(self._local, arguments, strict=True)]
        return self._ask(name, arguments)

    def _ask(self, command: str, values: list[Any]) -> list[Any]:
        """Sends every group's value to its worker and gathers the replies in the order of the groups. Everything is packed
        before anything is sent; a worker that fails takes the pool down."""
        shares = [{i: value for i, value in enumerate(values) if self._owner[i] == worker.number} for worker in self._workers]
        messages = [pickle.dumps((command, share), protocol=pickle.HIGHEST_PROTOCOL) for share in shares]
        results: dict[int, Any] = {}
        waiting = {worker.connection: worker for worker in self._workers}
        try:
            for worker, message in zip(self._workers, messages, strict=True):
                worker.send(message)
            while waiting:
                for ready in wait(list(waiting)):
                    results.update(waiting.pop(ready).receive())  # type: ignore[call-overload]
        except BaseException:
            self.close()
            raise
        return [results[i] for i in sorted(results)]


class _Worker:
    """The parent's end of one process."""

    def __init__(self, number: int) -> None:
        self.number = number
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, os.getpid()), name=f"codesign-worker-{number}", daemon=True)
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


def _work(connection: Connection, parent: int) -> None:
    """The worker's loop: a command in, a reply out, until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent(parent)
    samplers: dict[int, Sampler] = {}
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            message = connection.recv_bytes()
            try:
                command, value = pickle.loads(message)
                reply: tuple[bool, Any] = (True, _perform(command, value, samplers))
            except Exception:
                reply = (False, traceback.format_exc())
            connection.send_bytes(pickle.dumps(reply, protocol=pickle.HIGHEST_PROTOCOL))


def _perform(command: str, value: Any, samplers: dict[int, Sampler]) -> dict[int, Any]:
    if command == "build":
        samplers.update({i: group.build() for i, group in value.items()})
        return dict.fromkeys(value)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return {i: getattr(samplers[i], command)(*arguments) for i, arguments in value.items()}


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
