"""What commands say, without characters that tell a terminal what to do: names and reasons come from files that anybody may have sent."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

KEPT = "\n\r\t"
"""Of the characters that are not printable; progress bars need the second."""


def printable(text: str) -> str:
    """Others become question marks: escape sequences, marks that turn the direction of writing, halves of characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in KEPT else "?" for c in text)


class Printable:
    """A stream that writes printable text to another."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return int(self._stream.write(printable(text)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def plain_output() -> Iterator[None]:
    """While entered, what goes to standard output and error is printable."""
    with contextlib.redirect_stdout(Printable(sys.stdout)), contextlib.redirect_stderr(Printable(sys.stderr)):  # type: ignore[type-var]
        yield
