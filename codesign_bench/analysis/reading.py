"""One run folder, read: its rows, configuration, manifest and status; and the memory of what was read before."""

import contextlib
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from codesign_bench.arrays import Array
from codesign_bench.errors import ConfigError

CACHE = ".collected.npz"
CACHE_FORMAT = 1
FILES = ("progress.csv", "config.yaml", "manifest.json", "status.json")
NEEDED = ("iteration", "steps", "return_mean")


@dataclass(frozen=True)
class Run:
    """One run folder. `steps` is the last evaluation's that is a number, `charged` the last recorded row's, whatever it holds;
    `half_rows` and `nan_rows` count rows that say nothing."""

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
    def name(self) -> str:
        return f"{self.env}/{self.method}/seed_{self.seed}"

    @property
    def complete(self) -> bool:
        """Whether the run was charged its whole budget."""
        return self.charged >= self.budget_steps


@dataclass(frozen=True)
class Entry:
    """What was read from a run folder: plain values, and the rows as one block of numbers [rows, columns]."""

    stamps: list[list[int]]
    config: Any
    manifest: Any
    status: Any
    columns: list[str]
    half_rows: int
    problem: str
    values: Array


def _stamps(path: Path) -> list[list[int]]:
    found = []
    for name in FILES:
        try:
            stat = os.stat(path / name)
            found.append([stat.st_size, stat.st_mtime_ns])
        except OSError:
            found.append([-1, -1])
    return found


def read_if_changed(path: Path, known: Entry | None) -> Entry:
    stamps = _stamps(path)
    if known is not None and known.stamps == stamps:
        return known
    config, manifest, status = _yaml(path / "config.yaml"), _json(path / "manifest.json"), _json(path / "status.json")
    try:
        columns, values, half_rows = read_progress((path / "progress.csv").read_bytes())
        problem = ""
    except FileNotFoundError:
        columns, values, half_rows, problem = [], np.zeros((0, 0)), 0, "it has no progress.csv yet"
    except (OSError, ConfigError) as error:
        columns, values, half_rows, problem = [], np.zeros((0, 0)), 0, f"its progress.csv cannot be read ({error})"
    return Entry(stamps, config, manifest, status, columns, half_rows, problem, values)


def read_progress(content: bytes) -> tuple[list[str], Array, int]:
    """Columns, rows [rows, columns] and the number of rows that were dropped: half-written ones, ones that are not numbers,
    and ones whose steps do not grow. A last line without its line end is half-written, even where it looks whole."""
    whole, _, rest = content.rpartition(b"\n")
    lines = whole.decode("utf-8", errors="replace").splitlines()
    if not lines:
        raise ConfigError("it is empty")
    columns = [name.strip() for name in lines[0].split(",")]
    if not set(NEEDED) <= set(columns) or len(set(columns)) != len(columns):
        raise ConfigError(f"its first line must name the columns {', '.join(NEEDED)} once each")
    rows = _fast_rows(lines[1:], len(columns))
    if rows is None:
        rows = slow_rows(lines[1:], len(columns))
    half = len(lines) - 1 - len(rows) + bool(rest.strip())
    steps = rows[:, columns.index("steps")]
    earlier = np.concatenate([[-np.inf], np.maximum.accumulate(np.where(np.isfinite(steps), steps, -np.inf))[:-1]]) if len(rows) else steps
    grows = np.isfinite(steps) & (steps >= 0) & (steps > earlier)
    return columns, rows[grows], half + int(np.count_nonzero(~grows))


def _fast_rows(lines: list[str], width: int) -> Array | None:
    """The common case, a file without a flaw, in one call; None where there is one."""
    if not lines:
        return np.zeros((0, width))
    if any(line.count(",") != width - 1 for line in lines):
        return None
    try:
        values = np.loadtxt(lines, delimiter=",", comments=None, ndmin=2)
    except ValueError:
        return None
    return values if values.shape == (len(lines), width) else None


def slow_rows(lines: Iterable[str], width: int) -> Array:
    """Line by line; a line that is not `width` numbers is dropped."""
    rows = []
    for line in lines:
        fields = line.split(",")
        with contextlib.suppress(ValueError):
            numbers = [float(field) if field.strip() else np.nan for field in fields]
            if len(numbers) == width:
                rows.append(numbers)
    return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def _yaml(path: Path) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):  # a date that there is none is a plain ValueError
        return None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def run_of(path: Path, study: str, entry: Entry) -> Run | str:
    """The run, or why it is none."""
    config = entry.config
    if not isinstance(config, dict):
        return "its config.yaml is missing or cannot be read"
    try:
        env, method, seed = str(config["env"]["name"]), str(config["method"]["name"]), int(config["seed"])
        budget = int(config["budget"]["steps"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return "its config.yaml lacks env.name, method.name, seed or budget.steps"
    if (env, method, f"seed_{seed}") != path.parts[-3:]:
        return f"its config.yaml is of {env}/{method}/seed_{seed}, another place"
    if entry.problem:
        return entry.problem
    manifest = entry.manifest if isinstance(entry.manifest, dict) else {}
    status = entry.status if isinstance(entry.status, dict) else {}
    values = entry.values[:, entry.columns.index("return_mean")]
    known = np.isfinite(values)
    if not known.any():
        return "it has no evaluation yet" if not len(values) else "none of its evaluations is a number"
    steps = entry.values[:, entry.columns.index("steps")]
    last, charged = int(steps[known][-1]), int(steps[-1])
    if charged > budget:
        return f"its progress.csv goes to {charged} steps, beyond its budget of {budget}"
    return Run(
        path=path,
        study=study,
        env=env,
        method=method,
        seed=seed,
        config=config,
        manifest=manifest,
        status=str(status.get("status", "missing")),
        reason=str(status.get("reason", "")),
        steps=last,
        charged=charged,
        half_rows=entry.half_rows,
        nan_rows=int(np.count_nonzero(~known)),
    )


# ---- what was read before --------------------------------------------------------------------------------------------


def load_memory(path: Path) -> dict[str, Entry]:
    """Nothing where there is none, or where it is damaged or of another format."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            index, values = json.loads(str(stored["index"])), stored["values"]
        if index["format"] != CACHE_FORMAT:
            return {}
        entries, at = {}, 0
        for name, (rows, plain) in index["runs"].items():
            size = rows * len(plain["columns"])
            entries[name] = Entry(values=values[at : at + size].reshape(rows, len(plain["columns"])), **plain)
            at += size
        return entries if at == len(values) else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
        return {}


def save_memory(path: Path, entries: Mapping[str, Entry]) -> None:
    plain = [field.name for field in fields(Entry) if field.name != "values"]
    runs = {name: [len(entry.values), {key: getattr(entry, key) for key in plain}] for name, entry in entries.items()}
    values = np.concatenate([entry.values.ravel() for entry in entries.values()]) if entries else np.zeros(0)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        index = json.dumps({"format": CACHE_FORMAT, "runs": runs})
        with open(temporary, "wb") as file:
            np.savez(file, index=np.array(index), values=values)
        os.replace(temporary, path)
    except (OSError, TypeError, ValueError):  # a study that cannot be written, or a configuration with odd values: read again next time
        with contextlib.suppress(OSError):
            temporary.unlink()
