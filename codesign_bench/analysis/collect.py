"""Run folders -> one tidy table. Everything in `analysis` reads runs through here.

    collection = collect(Path("results"), "default")
    collection.table      pandas: study, env, method, seed, then the columns of progress.csv; one row per evaluation
    collection.runs       tuple[Run]: what is known of each run besides its rows (path, configuration, manifest, status)
    collection.left_out   tuple[LeftOut]: the runs that are not in the table, each with the reason in one sentence
    collection.remarks    tuple[str]: what a reader should know of the runs that are (half-written rows, unfinished runs)
    collection.forced     tuple[str]: what `force=True` mixed; figures show it
    collection.curve(run) steps and return of one run; collection.of(env, method) the runs of one curve, by seed

Runs are comparable when budget, environment, evaluation, the method's configuration and the versions of MuJoCo and of this
package agree; the largest agreeing set stays and the others are left out by name. What was read is kept in
<study>/.collected.npz, and only files that changed since are read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import zipfile
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.run_folder import COLUMNS

Array = NDArray[Any]
KEYS = ("study", "env", "method", "seed")
CACHE = ".collected.npz"
CACHE_FORMAT = 1
FILES = ("progress.csv", "config.yaml", "manifest.json", "status.json")
STRICT_VERSIONS = ("mujoco", "codesign-bench")
"""Packages whose version changes results by itself."""
NEEDED = ("iteration", "steps", "return_mean")


@dataclass(frozen=True)
class Run:
    """One run folder. `steps` is the last recorded evaluation's; `half_rows` and `nan_rows` count rows that say nothing."""

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
    half_rows: int
    nan_rows: int

    @property
    def budget(self) -> dict[str, Any]:
        """Of the configuration, without how far to run for now."""
        return {key: value for key, value in self.config["budget"].items() if key != "until"}

    @property
    def budget_steps(self) -> int:
        return int(self.config["budget"]["steps"])

    @property
    def name(self) -> str:
        return f"{self.env}/{self.method}/seed_{self.seed}"

    @property
    def complete(self) -> bool:
        """Whether the run recorded an evaluation at the end of its budget."""
        return self.steps >= self.budget_steps


@dataclass(frozen=True)
class LeftOut:
    path: Path
    reason: str


@dataclass(frozen=True)
class Collection:
    study: str
    table: pd.DataFrame
    runs: tuple[Run, ...]
    left_out: tuple[LeftOut, ...]
    remarks: tuple[str, ...]
    forced: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Sentences for the face of every figure."""

    @property
    def envs(self) -> tuple[str, ...]:
        return tuple(sorted({run.env for run in self.runs}))

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(sorted({run.method for run in self.runs}))

    def of(self, env: str, method: str) -> tuple[Run, ...]:
        """The runs of one curve, by seed."""
        return self._by_curve.get((env, method), ())

    def curve(self, run: Run, metric: str = "return_mean") -> tuple[Array, Array]:
        """Steps and values of one run, without the rows whose value is not a number."""
        rows = self._by_run.get((run.study, run.env, run.method, run.seed))
        if rows is None or metric not in rows:
            return np.zeros(0), np.zeros(0)
        steps, values = rows["steps"].to_numpy(np.float64), rows[metric].to_numpy(np.float64)
        known = np.isfinite(values)
        return steps[known], values[known]

    def horizon(self, env: str) -> int:
        """Steps of the longest run in an environment: where finished runs are compared."""
        return max((run.steps for run in self.runs if run.env == env), default=0)

    def joined(self, other: Collection) -> Collection:
        """Both studies in one, each under its own name."""
        return Collection(
            f"{self.study} and {other.study}",
            pd.concat([self.table, other.table], ignore_index=True),
            self.runs + other.runs,
            self.left_out + other.left_out,
            self.remarks + other.remarks,
            self.forced + other.forced,
        )

    @cached_property
    def _by_curve(self) -> dict[tuple[str, str], tuple[Run, ...]]:
        found = defaultdict(list)
        for run in self.runs:
            found[run.env, run.method].append(run)
        return {key: tuple(sorted(runs, key=lambda run: (run.study, run.seed))) for key, runs in found.items()}

    @cached_property
    def _by_run(self) -> dict[tuple[Any, ...], pd.DataFrame]:
        return dict(iter(self.table.groupby(list(KEYS), sort=False)))


def collect(
    results: Path,
    study: str,
    *,
    force: bool = False,
    envs: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    cache: bool = True,
) -> Collection:
    """Reads a study. `envs` and `methods` narrow it down before anything is compared."""
    folder = study_folder(results, study)
    paths = sorted(path for path in folder.glob("*/*/seed_*") if path.is_dir())
    paths = [p for p in paths if (envs is None or p.parts[-3] in envs) and (methods is None or p.parts[-2] in methods)]
    kept = _load_cache(folder / CACHE) if cache else {}
    fresh = {str(path.relative_to(folder)): _read_if_changed(path, kept.get(str(path.relative_to(folder)))) for path in paths}
    if cache and any(entry is not kept.get(name) for name, entry in fresh.items()):
        _save_cache(folder / CACHE, {**{name: entry for name, entry in kept.items() if (folder / name).is_dir()}, **fresh})
    runs: list[Run] = []
    left_out: list[LeftOut] = []
    for path, entry in zip(paths, fresh.values(), strict=True):
        run = _run_of(path, study, entry)
        if isinstance(run, Run):
            runs.append(run)
        else:
            left_out.append(LeftOut(path, run))
    comparable, unlike, forced = _comparable(runs, force)
    rows = {str(run.path.relative_to(folder)): fresh[str(run.path.relative_to(folder))] for run in comparable}
    table = _table(comparable, list(rows.values()))
    return Collection(study, table, tuple(comparable), (*left_out, *unlike), tuple(_remarks(comparable)), tuple(forced))


def study_folder(results: Path, study: str) -> Path:
    """The folder of a study; ConfigError with the studies that exist if there is none."""
    folder = results / study
    if study and folder.is_dir():
        return folder
    known = sorted(p.name for p in results.iterdir() if p.is_dir() and not p.name.startswith(".")) if results.is_dir() else []
    raise ConfigError(f"There is no study '{study}' in {results}; there are {', '.join(known) or 'none'}.")


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


# ---- one run ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Entry:
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


def _read_if_changed(path: Path, known: _Entry | None) -> _Entry:
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
    return _Entry(stamps, config, manifest, status, columns, half_rows, problem, values)


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
        frame = pd.read_csv(
            io.StringIO("\n".join(lines)), header=None, dtype=np.float64, float_precision="round_trip", skip_blank_lines=False
        )
    except (ValueError, pd.errors.ParserError):
        return None
    values: Array = frame.to_numpy()
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
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError):
        return None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _run_of(path: Path, study: str, entry: _Entry) -> Run | str:
    """The run, or why it is none."""
    config = entry.config
    if not isinstance(config, dict):
        return "its config.yaml is missing or cannot be read"
    try:
        env, method, seed = str(config["env"]["name"]), str(config["method"]["name"]), int(config["seed"])
        config["budget"]["steps"] = int(config["budget"]["steps"])
    except (KeyError, TypeError, ValueError):
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
    last = int(entry.values[known][-1, entry.columns.index("steps")])
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
        half_rows=entry.half_rows,
        nan_rows=int(np.count_nonzero(~known)),
    )


def _table(runs: Sequence[Run], entries: Sequence[_Entry]) -> pd.DataFrame:
    columns = [*COLUMNS, *sorted({name for entry in entries for name in entry.columns} - set(COLUMNS))]
    blocks = []
    for entry in entries:
        block = np.full((len(entry.values), len(columns)), np.nan)
        block[:, [columns.index(name) for name in entry.columns]] = entry.values
        blocks.append(block)
    lengths = [len(block) for block in blocks]
    table = pd.DataFrame(np.concatenate(blocks) if blocks else np.zeros((0, len(columns))), columns=columns)
    for position, key in enumerate(KEYS):
        kind = np.int64 if key == "seed" else object
        column = np.repeat(np.array([getattr(run, key) for run in runs], dtype=kind), lengths)
        table.insert(position, key, column if key == "seed" else pd.Series(column, dtype="str"))
    return table.astype({"iteration": np.int64, "steps": np.int64}) if not table["iteration"].isna().any() else table


# ---- which runs may be compared ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rule:
    """Within each group, `value` must agree; `tell` says it in words."""

    what: str
    group: Callable[[Run], Hashable]
    value: Callable[[Run], Hashable]
    tell: Callable[[Run], str]


def version_of(run: Run, package: str) -> str:
    versions = run.manifest.get("versions")
    return str(versions.get(package)) if isinstance(versions, Mapping) else "unknown"


def _budget_text(run: Run) -> str:
    return f"{run.config['budget'].get('name')}, {run.budget_steps} steps"


def _shared(run: Run) -> dict[str, Any]:
    return {key: run.config.get(key) for key in ("env", "evaluation", "sampler")}


_RULES = (
    _Rule(
        "budget",
        lambda run: (),
        lambda run: digest(run.budget),
        _budget_text,
    ),
    *(
        _Rule(
            f"{package} version",
            lambda run: (),
            lambda run, package=package: version_of(run, package),  # type: ignore[misc]
            lambda run, package=package: version_of(run, package),  # type: ignore[misc]
        )
        for package in STRICT_VERSIONS
    ),
    _Rule("configuration of the environment", lambda run: run.env, lambda run: digest(_shared(run)), lambda run: digest(_shared(run))),
    _Rule(
        "configuration of the method",
        lambda run: (run.env, run.method),
        lambda run: digest(run.config["method"]),
        lambda run: digest(run.config["method"]),
    ),
)


def _comparable(runs: Sequence[Run], force: bool) -> tuple[list[Run], list[LeftOut], list[str]]:
    """The largest set of runs that agree, the others with the reason, and what force mixed."""
    kept, left_out, forced = list(runs), [], []
    for rule in _RULES:
        groups: dict[Hashable, dict[Hashable, list[Run]]] = defaultdict(lambda: defaultdict(list))
        for run in kept:
            groups[rule.group(run)][rule.value(run)].append(run)
        kept = []
        for kinds in groups.values():
            chosen = max(kinds.values(), key=lambda same: (len(same), sum(run.steps for run in same), rule.tell(same[0])))
            for same in kinds.values():
                if same is chosen or force:
                    kept += same
                    continue
                why = f"its {rule.what} ({rule.tell(same[0])}) is not the others' ({rule.tell(chosen[0])})"
                left_out += [LeftOut(run.path, why) for run in same]
            if force and len(kinds) > 1:
                forced.append(f"unequal {rule.what}: {', '.join(sorted({rule.tell(same[0]) for same in kinds.values()}))}")
    return sorted(kept, key=lambda run: (run.env, run.method, run.seed)), left_out, forced


def unlike(mine: Collection, theirs: Collection) -> list[str]:
    """In what two studies are not comparable, in words; the methods' own configurations may differ."""
    found = []
    for rule in _RULES[:-1]:
        groups: dict[Hashable, list[dict[Hashable, str]]] = defaultdict(lambda: [{}, {}])
        for side, collection in enumerate((mine, theirs)):
            for run in collection.runs:
                groups[rule.group(run)][side][rule.value(run)] = rule.tell(run)
        for key, (a, b) in groups.items():
            if a and b and set(a) != set(b):
                where = f" {key}" if key else ""
                found.append(f"{rule.what}{where}: {', '.join(a.values())} and {', '.join(b.values())}")
    return found


def _remarks(runs: Sequence[Run]) -> Iterable[str]:
    for run in runs:
        if run.half_rows:
            yield f"{run.name}: {run.half_rows} row(s) of progress.csv left out (half-written, not numbers, or steps that do not grow)"
        if run.nan_rows:
            yield f"{run.name}: {run.nan_rows} evaluation(s) are not a number"
        if run.status == "failed":
            yield f"{run.name}: failed at {run.steps} steps" + (f" ({run.reason})" if run.reason else "")
        elif not run.complete:
            yield f"{run.name}: {run.steps} of {run.budget_steps} steps"


# ---- what was read before ----------------------------------------------------------------------------------------------


def _load_cache(path: Path) -> dict[str, _Entry]:
    """Nothing where there is none, or where it is damaged or of another format."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            index, values = json.loads(str(stored["index"])), stored["values"]
        if index["format"] != CACHE_FORMAT:
            return {}
        entries, at = {}, 0
        for name, (rows, plain) in index["runs"].items():
            size = rows * len(plain["columns"])
            entries[name] = _Entry(values=values[at : at + size].reshape(rows, len(plain["columns"])), **plain)
            at += size
        return entries if at == len(values) else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
        return {}


def _save_cache(path: Path, entries: Mapping[str, _Entry]) -> None:
    plain = [field.name for field in fields(_Entry) if field.name != "values"]
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
