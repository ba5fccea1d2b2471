"""Ctrl-C and SIGTERM: the first one interrupts the run at once, outside of protected moments; the second one leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import ClassVar


class StopRequested(BaseException):
    """Raised in the main thread when the user or the system asks the run to stop. Not an Exception: nothing may swallow it."""


class StopSignals:
    """While entered, SIGINT and SIGTERM (and SIGUSR1 and SIGUSR2, warnings of Slurm and submitit) raise StopRequested."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
    latest: ClassVar[int] = signal.SIGINT
    """The signal that asked last, for the exit code."""

    def __init__(self) -> None:
        self._protected = 0
        self._requested = False

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in self.SIGNALS}
        else:
            self._before = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def protected(self) -> Iterator[None]:
        """What is written inside is written whole; a request is honoured right after."""
        self._protected += 1
        try:
            yield
        finally:
            self._protected -= 1
        if self._requested and self._protected == 0:
            raise StopRequested

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._requested:
            os._exit(128 + number)
        self._requested, StopSignals.latest = True, number
        if self._protected == 0:
            raise StopRequested
