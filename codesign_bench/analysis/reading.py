"""One run folder, read: its rows, configuration, manifest and status."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from codesign_bench.errors import ConfigError
from codesign_bench.plain_files import MOST_CONFIGURATION, read_bytes, read_json, read_text, read_yaml

LARGEST, BEYOND = 10**15, 1e100
"""Of whole numbers in a configuration; and of numbers in a row, as the square of a larger one is none."""
MOST_COLUMNS, LONGEST_NAME = 200, 100
TAKEN = ("study", "env", "method", "seed", "final", "area", "reached", "reevaluated", "retrained")
"""Columns that tables of runs have besides those of progress.csv."""
NEEDED = ("iteration", "steps", "return_mean")
DAMAGED = ".damaged"
"""In place of a run's files, where an archive holds them otherwise than its list says: a note of what is wrong."""
PAPER = "paper"
"""The track of configurations that name none."""


@dataclass(frozen=True)
class Run:
    """One run folder.

    - method: its configuration's name. On another track than the paper's it is another method, called as it is typed, "nge
      track=strong", so that nothing averages the two
    - steps: of the last evaluation that is a number; charged: of the last recorded row, whatever it holds
    - half_rows, nan_rows: how many rows say nothing
    """

    path: Path
    study: str
    env: str
    method: str
    seed: int
    config: dict[str, Any]
    manifest: dict[str, Any]
    status: str
    reason: str
    steps: int
    charged: int
    half_rows: int
    nan_rows: int

    @property
    def budget_steps(self) -> int:
        return int(self.config["budget"]["steps"])

    @property
    def option(self) -> str:
        """What the method is called on the command line and in folders, whatever its track."""
        return str(self.config["method"]["name"])

    @property
    def track(self) -> str:
        return track_of(self.config)

    @property
    def name(self) -> str:
        return f"{self.env}/{self.option}/seed_{self.seed}"

    @property
    def complete(self) -> bool:
        """Whether the run was charged its whole budget."""
        return self.charged >= self.budget_steps


def read_run(path: Path, study: str) -> tuple[Run, pd.DataFrame]:
    """The run and the rows of its progress.csv; ConfigError with the reason if it has none that can be shown."""
    with contextlib.suppress(OSError):
        raise ConfigError(read_text(path / DAMAGED, 1000))
    config, manifest, status = _config(path / "config.yaml"), _facts(path / "manifest.json"), _facts(path / "status.json")
    try:
        env, method, seed = str(config["env"]["name"]), str(config["method"]["name"]), _whole(config["seed"])
        budget = {key: _whole(value) for key, value in config["budget"].items() if key != "name"}["steps"]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ConfigError("its config.yaml lacks env.name, method.name, seed or budget.steps, or has something else for them") from None
    if (env, method, f"seed_{seed}") != path.parts[-3:]:
        raise ConfigError(f"its config.yaml is of {env}/{method}/seed_{seed}, another place")
    try:
        rows, half_rows = read_progress(read_bytes(path / "progress.csv"))
    except FileNotFoundError:
        raise ConfigError("it has no progress.csv yet") from None
    except OSError as error:
        raise ConfigError(f"its progress.csv cannot be read ({error.strerror})") from None
    except ConfigError as error:
        raise ConfigError(f"its progress.csv {error}") from None
    numbers = rows.columns.drop(["iteration", "steps"])
    rows = rows.assign(**{name: rows[name].where(rows[name].abs() <= BEYOND) for name in numbers})
    known = rows[np.isfinite(rows["return_mean"])]
    if known.empty:
        raise ConfigError("it has no evaluation yet" if rows.empty else "none of its evaluations is a number")
    charged = int(rows["steps"].iloc[-1])
    if charged > budget:
        raise ConfigError(f"its progress.csv goes to {charged} steps, beyond its budget of {budget}")
    method += "" if track_of(config) == PAPER else f" track={track_of(config)}"
    state, reason = str(status.get("status", "missing")), str(status.get("reason", ""))
    steps, nan_rows = int(known["steps"].iloc[-1]), len(rows) - len(known)
    return Run(path, study, env, method, seed, config, manifest, state, reason, steps, charged, half_rows, nan_rows), rows


def track_of(config: Mapping[str, Any]) -> str:
    return str(config.get("track") or PAPER)


def read_progress(content: bytes) -> tuple[pd.DataFrame, int]:
    """The rows, and the number of those that were dropped: half-written ones, ones that are not numbers, and ones whose steps do not
    grow. A last line without its line end is half-written, even where it looks whole."""
    whole, _, rest = content.rpartition(b"\n")
    lines = whole.decode("utf-8", errors="replace").splitlines()
    if not lines:
        raise ConfigError("cannot be read: it is empty")
    columns = [name.strip() for name in lines[0].split(",")]
    if not set(NEEDED) <= set(columns) or len(set(columns)) != len(columns):
        raise ConfigError(f"cannot be read: its first line must name the columns {', '.join(NEEDED)} once each")
    if taken := [name for name in columns if name in TAKEN]:
        raise ConfigError(f"has a column {taken[0]}, which tables have for something else")
    if len(columns) > MOST_COLUMNS or max(map(len, columns)) > LONGEST_NAME:
        raise ConfigError(f"has more than {MOST_COLUMNS} columns, or names of more than {LONGEST_NAME} letters")
    numbers = [row for row in map(_numbers, lines[1:]) if len(row) == len(columns)]
    rows = pd.DataFrame(numbers, columns=columns, dtype=np.float64)
    steps = rows["steps"].where(np.isfinite(rows["steps"]))
    earlier = steps.cummax().ffill().shift()
    kept = rows[(steps >= 0) & ~(steps <= earlier)]
    return kept, len(lines) - 1 - len(kept) + bool(rest.strip())


def _numbers(line: str) -> list[float]:
    """An empty field is NaN; a line that holds anything but numbers says nothing."""
    try:
        return [float(field) if field.strip() else np.nan for field in line.split(",")]
    except ValueError:
        return []


def _config(path: Path) -> dict[str, Any]:
    try:
        config = read_yaml(path)
    except OSError as error:
        raise ConfigError(f"its config.yaml is missing or cannot be read ({error.strerror})") from None
    except ConfigError as error:
        raise ConfigError(f"its config.yaml {error}") from None
    if not isinstance(config, dict):
        raise ConfigError("its config.yaml holds no configuration")
    return config


def _whole(value: Any) -> int:
    """A whole number as a configuration has it, which text is not."""
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise ValueError
    return value


def _facts(path: Path) -> dict[str, Any]:
    """What a file holds; nothing where it is missing or damaged."""
    try:
        found = read_json(path, MOST_CONFIGURATION)
    except (OSError, ConfigError):
        return {}
    return found if isinstance(found, dict) else {}
