"""Are two runs equal? Bit for bit, in what they recorded and in their last state, wall-clock numbers aside."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch

from codesign_bench.experiment import checkpoint
from codesign_bench.experiment.run_folder import RunFolder, configuration_hash

WALL_CLOCK = ("steps_per_second", "seconds")
"""Columns of progress.csv that differ between equal runs."""


@dataclass(frozen=True)
class Outcome:
    """The rows of progress.csv and of the method's own tables, and the state in the last checkpoint."""

    rows: list[dict[str, str]]
    tables: dict[str, list[dict[str, str]]]
    state: dict[str, Any]

    def must_equal(self, other: Outcome, what: str) -> None:
        must_equal(vars(self), vars(other), what)


def outcome(config: Mapping[str, Any]) -> Outcome:
    """Of a run that is on disk."""
    folder = RunFolder.of(config)
    state, _ = checkpoint.load_latest(folder.checkpoints, configuration_hash(config))
    if state is None:
        raise AssertionError(f"The run {folder.path} has no checkpoint.")
    rows = [{key: value for key, value in row.items() if key not in WALL_CLOCK} for row in _rows(folder.progress)]
    tables = {path.stem: _rows(path) for path in sorted(folder.tables.glob("*.csv"))}
    return Outcome(rows, tables, {key: value for key, value in state.items() if key not in ("seconds", "progress_length")})


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def difference(a: Any, b: Any, where: str = "") -> str | None:
    """The first place where two values are not bit-equal."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            return f"the keys of {where or 'the state'} differ"
        pairs = [(f"{where}.{key}".lstrip("."), a[key], b[key]) for key in a]
        return next((found for place, x, y in pairs if (found := difference(x, y, place))), None)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        pairs = [(f"{where}[{i}]", x, y) for i, (x, y) in enumerate(zip_longest(a, b))]
        return next((found for place, x, y in pairs if (found := difference(x, y, place))), None)
    if isinstance(a, (torch.Tensor, np.ndarray)) and type(a) is type(b):
        x, y = np.asarray(a), np.asarray(b)
        same = x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    else:
        same = type(a) is type(b) and (a == b or (a != a and b != b))
    return None if same else f"{where} is {str(a)[:60]} and {str(b)[:60]}"


def require(ok: bool, sentence: str) -> None:
    """An AssertionError with this sentence, unless all is well."""
    if not ok:
        raise AssertionError(sentence)


def must_equal(a: Any, b: Any, what: str) -> None:
    """An AssertionError that names the first place where the two differ."""
    found = difference(a, b)
    require(found is None, f"{what} must be bit-equal to what it is compared with, but {found}.")
