"""Files that anybody may have written: run folders are moved, sent and edited. They are read with limits, as plain values that nothing in
them can turn into something else; what is not plain is a ConfigError, the end of a sentence that begins with the file's name."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from codesign_bench.errors import ConfigError

MOST_BYTES = 64_000_000
MOST_CONFIGURATION = 1_000_000
DEEPEST = 32
MOST_VALUES = 1_000_000
LARGEST = 2**63 - 1
"""Of whole numbers: arrays hold 64 bits, and so do seeds."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Of a regular file; nobody waits for the other end of a pipe. OSError if there is none or it cannot be read."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with open(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise ConfigError("is no regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ConfigError(f"has more than {most:,} bytes")
    return content


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    try:
        return read_bytes(path, most).decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError("is not text in UTF-8") from None


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    return _parsed(read_text(path, most), json.loads, "JSON")


def read_yaml(path: Path) -> Any:
    """YAML has dates and keys that are no text, and names that stand for a whole tree; all but plain values are refused."""
    return _parsed(read_text(path, MOST_CONFIGURATION), _from_yaml, "YAML")


def _from_yaml(text: str) -> Any:
    """The depth is looked at first: the parser that is written in C builds what it reads with calls within calls, until it crashes."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise RecursionError
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<":
            raise ValueError("mappings that are merged can be merged again and again, until they fill the memory")
    return yaml.load(text, Loader=_LOADER)


def from_json(text: str) -> Any:
    return _parsed(text, json.loads, "JSON")


def _parsed(text: str, parse: Callable[[str], Any], kind: str) -> Any:
    try:
        value = parse(text)
    except RecursionError:
        raise ConfigError(f"is nested more than {DEEPEST} deep") from None
    except (ValueError, yaml.YAMLError, TypeError, AttributeError, OverflowError, MemoryError):  # YAML's constructors, of strange dates
        raise ConfigError(f"cannot be read as {kind}") from None
    check_plain(value)
    return value


def check_plain(value: Any) -> None:
    """Text, numbers, true, false, nothing; lists of them, and mappings from text to them."""
    level, seen = [value], 0
    for _ in range(DEEPEST):
        below: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                if not all(type(key) is str for key in part):
                    raise ConfigError("has a key that is no text")
                below.extend(part.values())
            elif isinstance(part, list):
                below.extend(part)
            elif isinstance(part, int) and abs(part) > LARGEST:
                raise ConfigError(f"has a whole number beyond {LARGEST:.0e}")
            elif part is not None and not isinstance(part, (str, int, float)):
                raise ConfigError(f"has a value of type {type(part).__name__}")
            if seen + len(below) > MOST_VALUES:
                raise ConfigError(f"has more than {MOST_VALUES:,} values")
        seen += len(below)
        if not below:
            return
        level = below
    raise ConfigError(f"is nested more than {DEEPEST} deep")
