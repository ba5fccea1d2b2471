"""What commands say, without characters that tell a terminal what to do: names and reasons come from files that anybody may have sent."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

KEPT = "\n\r\t"
"""Of the characters that are not printable; progress bars need the second."""


def duration(seconds: float) -> str:
    """As people say it: 40 s, 12 min, 3 h 20 min, 5 days."""
    if seconds < 90:
        return f"{max(0.0, seconds):.0f} s"
    if not seconds < 3e9:
        return "a century"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours / 24:.1f} days"


def count(number: float) -> str:
    """12,345 as 12.3 k, 50,000,000 as 50 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= 0.9995 * size:  # what would be rounded to 1000 of the unit below
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def short(number: float) -> str:
    """12.3k, 50M: where there is little room."""
    return count(number).replace(" ", "")


def printable(text: str) -> str:
    """Others become question marks: escape sequences, marks that turn the direction of writing, halves of characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in KEPT else "?" for c in text)


def one_line(text: str) -> str:
    """Printable text without line breaks."""
    return " ".join(printable(text).split())


class Printable:
    """A stream that writes printable text to another."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return int(self.stream.write(printable(text)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def plain_output() -> Iterator[None]:
    """While entered, what goes to standard output and error is printable."""
    with contextlib.ExitStack() as stack:
        out, err = (stream or stack.enter_context(open(os.devnull, "w")) for stream in (sys.stdout, sys.stderr))  # None if it was closed
        stack.enter_context(contextlib.redirect_stdout(Printable(out)))  # type: ignore[type-var]
        stack.enter_context(contextlib.redirect_stderr(Printable(err)))  # type: ignore[type-var]
        yield
