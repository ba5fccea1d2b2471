"""A run on disk: results/<study>/<env>/<method>/seed_<k>/ with its lock, status, manifest and configuration."""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, TextIO

import yaml

from codesign_bench.errors import CodesignError, ConfigError, StorageError
from codesign_bench.plain_files import MOST_CONFIGURATION, read_json, read_yaml

PACKAGES = ("codesign-bench", "mujoco", "torch", "torch-geometric", "gymnasium", "numpy", "hydra-core", "pandas", "joblib")
EXACT_VERSIONS = ("mujoco", "torch")
"""Packages that decide on the last bit."""

NOT_HASHED = ("study", "results", "workers", "device", "products", "progress", "tensorboard", "wandb")
NOT_HASHED_IN = {"budget": ("until",), "method": ("label", "colour"), "env": ("title",)}
"""Configuration that does not change the result."""


CHECKPOINTS = f"{'[0-9]' * 12}.ckpt"
"""The names of the files in checkpoints/ that are a run's own."""


class RunInUse(CodesignError):
    """Another process works on this run."""


class RunMoved(CodesignError):
    """The folder that lies where a run began is another one now."""


class RunDiffers(ConfigError):
    """The configuration on disk is another one."""


def configuration_hash(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(deciding(config), sort_keys=True).encode()).hexdigest()[:16]


def deciding(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a configuration decides on the result."""
    kept = {key: value for key, value in config.items() if key not in NOT_HASHED}
    for part, names in NOT_HASHED_IN.items():
        if part != "method" or isinstance(kept.get(part), Mapping):  # without a budget or env it is no configuration
            kept[part] = {key: value for key, value in kept[part].items() if key not in names}
    plain: dict[str, Any] = _plain(kept)
    return plain


def _plain(value: Any) -> Any:
    """Equal values look the same: 0.0 as 0, tuples as lists."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class RunFolder:
    """Paths and small files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.designs = path / "designs"
        self.progress = path / "progress.csv"
        self.tables = path / "tables"
        self._lock: os.stat_result | None = None

    @staticmethod
    def of(config: Mapping[str, Any]) -> RunFolder:
        root = Path(config["results"]) / config["study"] / config["env"]["name"] / config["method"]["name"]
        return RunFolder(root / f"seed_{config['seed']}")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the run's lock, which the system releases however this process ends."""
        try:
            for folder in (self.path, self.checkpoints, self.designs):
                folder.mkdir(parents=True, exist_ok=True)
            handle = open(self.path / ".lock", "a+")  # noqa: SIM115 (held open below)
        except OSError as error:
            raise ConfigError(f"The run folder {self.path} cannot be written ({error.strerror}); choose another results=DIR.") from None
        with handle:
            if not _locks(handle, fcntl.LOCK_EX):
                time.sleep(0.1)  # somebody may have asked just now whether it is `alive`
            if not _locks(handle, fcntl.LOCK_EX):
                handle.seek(0)
                raise RunInUse(f"The run {self.path} is in use by {handle.read(200) or 'another process'}; nothing was done.")
            with contextlib.suppress(OSError):  # who holds it is only for people to read; a full disk is told by what must be written
                os.ftruncate(handle.fileno(), 0)
                os.write(handle.fileno(), f"process {os.getpid()} on {socket.gethostname()}".encode())
            self._lock = os.fstat(handle.fileno())
            try:
                self.check_place()
                yield
            finally:
                self._lock = None

    def check_place(self) -> None:
        """Raises RunMoved unless the lock that this process holds still lies here. Where the folder was moved away, another process may
        have begun the same run anew: nothing of this one may get into that."""
        try:
            here = os.stat(self.path / ".lock")
        except OSError:
            here = None
        if self._lock is not None and (here is None or not os.path.samestat(here, self._lock)):
            raise RunMoved(
                f"The run folder {self.path} was moved, removed or replaced while this run was at work; it stops here, and goes on with "
                "the same command when its folder is back."
            )

    def alive(self) -> bool:
        """Whether a process holds the run's lock."""
        try:
            with open(self.path / ".lock") as handle:
                return not _locks(handle, fcntl.LOCK_SH)
        except (OSError, ConfigError):
            return False

    # ---- status ------------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        try:
            value = read_json(self.path / "status.json", MOST_CONFIGURATION)
        except (OSError, ConfigError):
            value = None
        if not isinstance(value, dict) or not isinstance(value.get("status"), str):
            return {"status": "missing"}
        return {key: part for key, part in value.items() if key not in ("steps", "until") or type(part) is int}

    def set_status(self, status: str, **details: Any) -> None:
        """running, stopped, done or failed, with the steps done and, where there is one, the reason."""
        write_atomically(self.path / "status.json", json.dumps({"status": status, "time": time.time(), **details}, indent=1))

    # ---- configuration -----------------------------------------------------------------------------------------------

    def is_done(self, config: Mapping[str, Any]) -> bool:
        """Whether this configuration has been run to its budget.until, as far as small files tell."""
        status = self.status()
        return status["status"] == "done" and status.get("steps", 0) >= config["budget"]["until"] and self._changes(config) == []

    def check_configuration(self, config: Mapping[str, Any]) -> None:
        """Refuses to go on with a run that was configured differently or made with other versions. One that says that it never came to
        a checkpoint has nothing to lose and begins anew."""
        if not self._begun and self.has_results():
            raise RunDiffers(f"The run {self.path} has results, but no checkpoint to go on from; choose another study=NAME.")
        if self._begun:
            changes = self._changes(config)
            if changes is None:
                raise RunDiffers(f"{self.path / 'config.yaml'} cannot be read; move the run folder away and start again.")
            if changes:
                other = "choose another study=NAME, or method.name=NAME for a variant"
                raise RunDiffers(f"The run {self.path} was configured differently: {'; '.join(changes)}; {other}.")
            self._check_versions(self.path / "manifest.json")

    def _changes(self, config: Mapping[str, Any]) -> list[str] | None:
        """Where the configuration on disk decides otherwise than this one; None if it cannot be read."""
        try:
            saved = read_yaml(self.path / "config.yaml")
            pairs = differences(deciding(saved), deciding(config))
            return [f"{where} is {before!r} on disk and {now!r} now" for where, before, now in pairs]
        except (OSError, ValueError, AttributeError, KeyError, TypeError):
            return None

    def write_configuration(self, config: Mapping[str, Any], command: list[str], products: str) -> None:
        """Configuration and, for a new run, manifest. What was refused must not get here: it would rewrite a good run's."""
        manifest = self.path / "manifest.json"
        write_atomically(self.path / "config.yaml", yaml.safe_dump(dict(config), sort_keys=False))
        if not self._begun or not manifest.exists():
            write_atomically(manifest, json.dumps(_manifest(config, command, products), indent=1))

    def has_results(self) -> bool:
        """Whether rows were recorded and saved; where nothing says otherwise, rows that are there were."""
        return bool(self.status().get("steps", self.progress.exists()))

    def is_export(self) -> bool:
        """Whether it has results, but no checkpoint to go on from."""
        return self.has_results() and not any(self.checkpoints.glob(CHECKPOINTS))

    @property
    def _begun(self) -> bool:
        return (self.path / "config.yaml").exists() and any(self.checkpoints.glob(CHECKPOINTS))

    def _check_versions(self, manifest: Path) -> None:
        """Another MuJoCo or torch would not go on bit-equally, and the manifest would say something false."""
        try:
            versions = read_json(manifest, MOST_CONFIGURATION)["versions"]
            then = {name: versions[name] for name in EXACT_VERSIONS}
        except (OSError, ValueError, KeyError, TypeError):
            return  # nothing is known
        for name, before in then.items():
            if before != _version(name):
                raise RunDiffers(
                    f"The run {self.path} was made with {name} {before}, and here is {_version(name)}; "
                    f"install {name}=={before} to go on, or choose another study=NAME."
                )


def _locks(handle: TextIO, kind: int) -> bool:
    """False if somebody else holds it. A file system without locks must not look like one where everything is in use."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise ConfigError(f"The file system of {handle.name} cannot lock files ({error.strerror}); choose another results=DIR.") from None
    return True


def differences(a: Any, b: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ, as a dotted path, and what each has there; None for nothing."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in dict.fromkeys([*a, *b]):
            yield from differences(a.get(key), b.get(key), f"{where}.{key}".lstrip("."))
    elif a != b or type(a) is not type(b):  # True is no 1
        yield where, a, b


def _manifest(config: Mapping[str, Any], command: list[str], products: str) -> dict[str, Any]:
    return {
        "versions": {name: _version(name) for name in PACKAGES},
        "python": sys.version.split()[0],
        "git_commit": _git_commit(),
        "host": socket.gethostname(),
        "system": platform.platform(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "products": products,
        "command": command,
        "configuration_hash": configuration_hash(config),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """Of the repository that this code is in; not of one in which somebody has installed it."""
    package = Path(__file__).resolve().parents[1]
    ask = ["git", "-C", str(package), "rev-parse", "--show-toplevel", "HEAD"]
    try:
        top, commit = subprocess.run(ask, capture_output=True, text=True, timeout=5, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return commit if Path(top, package.name).resolve() == package else None


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def write_atomically(path: Path, content: str | bytes, shared: bool = False) -> Path:
    """Under a temporary name, flushed to the disk, then renamed: readers see the old file or the new one, never half. `shared`: other
    processes may write it as well, and its folder may be missing."""
    temporary = path.with_name(f".{path.name}{f'.{os.getpid()}' * shared}.tmp")
    try:
        if shared:
            path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written ({error.strerror}); what was there before is kept.") from None
    finally:
        with contextlib.suppress(OSError):  # it has its name, or it is not whole
            temporary.unlink()
    return path


class Table:
    """A csv file that only grows, by whole rows, begun with its first ones, whose keys are its columns. A resume cuts it back to the
    length that its checkpoint knows; without one it is begun anew."""

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path = path
        self.columns: tuple[str, ...] = ()
        if length == 0:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(f"{path} cannot be begun anew ({error.strerror}).") from None
        elif not path.is_file() or path.stat().st_size < length:
            raise StorageError(f"{path} has lost rows that its checkpoint knows of; put the file back or move the run folder away.")
        else:
            with self._changed("r+b") as file:
                file.truncate(length)
                self.columns = tuple(next(csv.reader([file.readline().decode("utf-8", "replace")]), ()))

    @property
    def length(self) -> int:
        return self.path.stat().st_size if self.columns else 0

    def append(self, *rows: Mapping[str, Any]) -> None:
        if not rows:
            return
        columns = self.columns or tuple(rows[0])
        for row in rows:
            if row.keys() != set(columns):
                raise ValueError(f"A row of {self.path.name} has the columns {', '.join(row)}; they must be {', '.join(columns)}.")
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, columns)
        if not self.columns:
            writer.writeheader()
        writer.writerows(rows)
        with self._changed("ab") as file:
            file.write(text.getvalue().encode())
        self.columns = columns

    @contextlib.contextmanager
    def _changed(self, mode: str) -> Iterator[IO[bytes]]:
        """Flushed to the disk when it is left."""
        try:
            with open(self.path, mode) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written ({error.strerror}).") from None


class Tables:
    """What a method keeps besides progress.csv: tables/NAME.csv. `lengths` belongs into the checkpoint; a table that it does not know of
    is begun anew with its first rows."""

    def __init__(self, folder: Path, lengths: Mapping[str, int]) -> None:
        self.folder = folder
        self._tables = {name: Table(folder / f"{name}.csv", length) for name, length in lengths.items()}

    @property
    def lengths(self) -> dict[str, int]:
        return {name: table.length for name, table in self._tables.items()}

    def columns(self, name: str) -> tuple[str, ...]:
        """Of a table that has been begun; none otherwise."""
        return self._tables[name].columns if name in self._tables else ()

    def append(self, tables: Mapping[str, Sequence[Mapping[str, float | int | str | None]]]) -> None:
        for name, rows in tables.items():
            if not re.fullmatch("[a-z0-9_]+", name):
                raise ValueError(f"A table is named {name!r}; allowed are lower-case letters, digits and underscores.")
            if rows:
                if name not in self._tables:
                    self.folder.mkdir(exist_ok=True)
                    self._tables[name] = Table(self.folder / f"{name}.csv")
                self._tables[name].append(*rows)
