"""Ctrl-C, from the first moment on that our code runs: `stopped` and exit code 130, never a traceback.

The package imports this before anything else. While a command is being imported, and after it has ended, the process leaves at once: inside
of an import a KeyboardInterrupt may be swallowed, or come out as another error. In between it is a KeyboardInterrupt, so that the command
can clean up; one that something swallowed or changed is still an interrupt. Only in our own programs: a library leaves signals alone."""

import os
import signal
import sys
from itertools import pairwise
from types import FrameType
from typing import Any, NoReturn

CODE = 128 + signal.SIGINT
PROGRAM, MODULE = "codesign-bench", "codesign_bench"

asked = False
"""Whether somebody pressed Ctrl-C since the command began."""
_listening = False


def is_program() -> bool:
    """Whether this process is one of our commands, and not told to ignore Ctrl-C, as workers are."""
    words = sys.orig_argv
    module = any(flag == "-m" and name.split(".")[0] == MODULE for flag, name in pairwise(words))
    named = bool(sys.argv) and os.path.basename(sys.argv[0]) == PROGRAM
    return (module or named) and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def leave(*_: object) -> NoReturn:
    os.write(2, b"stopped\n")
    os._exit(CODE)


def leave_at_once() -> None:
    """Before a command begins and after it has ended."""
    if _listening:
        signal.signal(signal.SIGINT, leave)


def interrupt_from_now_on() -> None:
    """While a command is at work."""
    if _listening:
        signal.signal(signal.SIGINT, _interrupt)


def listen() -> None:
    global _listening
    _listening = True
    leave_at_once()
    usual = sys.unraisablehook

    def swallowed(what: Any) -> None:
        if asked and isinstance(what.exc_value, KeyboardInterrupt):
            leave()
        usual(what)

    sys.unraisablehook = swallowed


def _interrupt(number: int, frame: FrameType | None) -> None:
    global asked
    if asked:
        leave()
    asked = True
    raise KeyboardInterrupt


if is_program():
    listen()
