"""A study as one file that can be sent and named: a zip of an export, with a manifest and the checksum of every file.

`pack` writes one, `unpacked` reads one that anybody may have sent: with limits, nothing outside its own place, and a run with a file that
is not as the list says left out by name.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from codesign_bench.analysis.comparable import LeftOut, version_of
from codesign_bench.analysis.reading import Run
from codesign_bench.errors import ConfigError, StorageError
from codesign_bench.own_files import checksum
from codesign_bench.plain_files import MOST_BYTES, from_json
from codesign_bench.structured import FolderName, build

ENDING = ".zip"
FORMAT = 1
ABOUT, LIST = "study.json", "export.json"
"""What the study is; and its files with their checksums."""
TOP = (ABOUT, LIST, "README.md")
KEPT = (".csv", ".json", ".xml", ".png", ".yaml")
"""Endings of the files of a run that are exported."""
MOST_FILES, MOST_IN_ALL, DEEPEST = 100_000, 4_000_000_000, 8
THEN = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive: equal studies are equal files."""


@dataclass(frozen=True)
class Unpacked:
    """The root of the study's folder, its name, and the runs that do not lie there because something in them is damaged."""

    root: Path
    name: str
    damaged: tuple[LeftOut, ...]


@dataclass(frozen=True)
class _About:
    """Of study.json, what is needed to read the rest."""

    format: int
    study: FolderName


def about(runs: tuple[Run, ...], name: str) -> dict[str, Any]:
    """The manifest of a study: what it holds and what it was made with."""
    versions = {package: sorted({version_of(run, package) for run in runs}) for package in ("codesign-bench", "mujoco", "torch")}
    commits = sorted({str(run.manifest.get("git_commit")) for run in runs})
    return {"format": FORMAT, "study": name, "versions": versions, "git_commits": commits, "runs": [_entry(run) for run in runs]}


def _entry(run: Run) -> dict[str, Any]:
    budget = {"budget": run.config["budget"].get("name"), "budget_steps": run.budget_steps, "steps": run.charged}
    env = {"env": run.env, "env_version": run.config["env"].get("version", 1)}
    return {**env, "method": run.option, "track": run.track, "seed": run.seed, **budget, "status": run.status}


def pack(folder: Path, out: Path) -> int:
    """The files of a folder as an archive, whole or not at all; returns its bytes."""
    temporary = out.with_name(f".{out.name}.{os.getpid()}.packed.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), THEN)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(entry, path.read_bytes())
        os.replace(temporary, out)
    except OSError as error:
        raise StorageError(f"{out} cannot be written ({error.strerror}).") from None
    finally:
        temporary.unlink(missing_ok=True)
    return out.stat().st_size


def is_archive(path: Path) -> bool:
    """Whether a file is an archive of a study that can be read, and nothing in it damaged: one that may be made anew."""
    try:
        return not unpacked(path).damaged
    except ConfigError:
        return False


def unpacked(path: Path) -> Unpacked:
    """The study in an archive, in a folder that is there until this process ends."""
    key = (path.resolve(), _stamp(path))
    if key not in _unpacked:
        root = Path(tempfile.mkdtemp(prefix="codesign_bench_study_"))
        atexit.register(shutil.rmtree, root, ignore_errors=True)
        try:
            with zipfile.ZipFile(path) as archive:
                _unpacked[key] = _unpack(archive, path, root)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError):
            raise ConfigError(f"{path} is not an archive of a study; allowed is a file that `codesign-bench export` wrote.") from None
        except OSError as error:
            raise ConfigError(f"{path} cannot be read ({error.strerror or error}).") from None
    return _unpacked[key]


_unpacked: dict[tuple[Path, tuple[int, int]], Unpacked] = {}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}).") from None
    return found.st_size, found.st_mtime_ns


def _unpack(archive: zipfile.ZipFile, path: Path, root: Path) -> Unpacked:
    entries = {entry.filename: entry for entry in archive.infolist()}
    if len(entries) != len(archive.infolist()) or len(entries) > MOST_FILES:
        raise ConfigError(f"{path} names a file twice, or has more than {MOST_FILES:,} files.")
    if sum(entry.file_size for entry in entries.values()) > MOST_IN_ALL:
        raise ConfigError(f"{path} would take more than {MOST_IN_ALL / 1e9:g} GB.")
    for name in entries:
        if not _is_plain(name):
            raise ConfigError(f"{path} holds '{name}', which no export writes.")
    name = _name_of(archive, entries, path)
    listed = _json(archive, entries, LIST, path)
    if not isinstance(listed, dict):
        raise ConfigError(f"The list of files in {path} is not one.")
    damaged: dict[tuple[str, ...], str] = {}
    for file in sorted({*entries, *listed} - {LIST}):
        folder = PurePosixPath(file).parts[:3]
        found = _extracted(archive, entries, file, root / name) if _is_plain(file) else None
        if found is None or found != listed.get(file):
            inside = "/".join(PurePosixPath(file).parts[3:]) or file
            damaged.setdefault(folder, f"{inside} is {'missing' if found is None else 'not as it was exported'}")
    for folder in damaged:
        shutil.rmtree((root / name).joinpath(*folder), ignore_errors=True)
    if hurt := next((parts for parts in damaged if len(parts) < 3), None):
        raise ConfigError(f"{path} is damaged: {damaged[hurt]}.")
    return Unpacked(root, name, tuple(LeftOut((root / name).joinpath(*parts), why) for parts, why in sorted(damaged.items())))


def _name_of(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], path: Path) -> str:
    content = _json(archive, entries, ABOUT, path)
    known = {key: content[key] for key in ("format", "study") if key in content} if isinstance(content, dict) else {}
    try:
        described = build(_About, known)
    except ConfigError as error:
        raise ConfigError(f"{path}: {ABOUT}: {error}") from None
    if described.format != FORMAT:
        raise ConfigError(f"{path} is of format {described.format}; this version reads {FORMAT}; a newer release may read it.")
    return described.study


def _json(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str, path: Path) -> Any:
    if name not in entries:
        raise ConfigError(f"{path} is not an archive of a study: it has no {name}.")
    with archive.open(entries[name]) as file:
        content = file.read(MOST_BYTES + 1)
    try:
        return from_json(content[:MOST_BYTES].decode())
    except (ConfigError, UnicodeDecodeError):
        raise ConfigError(f"{path}: {name} cannot be read as JSON.") from None


def _is_plain(name: str) -> bool:
    """Whether an export writes files of such names."""
    parts = PurePosixPath(name).parts
    plain = "\\" not in name and "\0" not in name and str(PurePosixPath(name)) == name and not name.startswith("/")
    inside = all(part not in ("", ".", "..") and not part.startswith(".") for part in parts) and len(parts) <= DEEPEST
    return plain and inside and (name in TOP if len(parts) < 4 else name.endswith(KEPT))


def _extracted(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str, folder: Path) -> str | None:
    """Writes a file and returns its checksum; None if it is not there whole."""
    if name not in entries:
        return None
    target = folder / name
    try:
        with archive.open(entries[name]) as file:
            content = file.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        return ""
    if len(content) > MOST_BYTES:
        return ""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return checksum(target)
