"""A study as one file that can be sent and named: a zip of an export, with a manifest and the checksum of every file.

`pack` writes one, `unpacked` reads one that anybody may have sent: with limits, and only what is as its list says.
"""

from __future__ import annotations

import atexit
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from codesign_bench.analysis.comparable import version_of
from codesign_bench.analysis.reading import DAMAGED, Run
from codesign_bench.errors import ConfigError, StorageError
from codesign_bench.own_files import checksum_of
from codesign_bench.plain_files import MOST_BYTES, from_json
from codesign_bench.structured import FolderName, build
from codesign_bench.terminal import printable

ENDING = ".zip"
FORMAT = 1
ABOUT, LIST = "study.json", "export.json"
"""What the study is; and its files with their checksums."""
TOP = (ABOUT, LIST, "README.md")
KEPT = (".csv", ".json", ".xml", ".png", ".yaml")
"""Endings of the files of a run that are exported."""
MOST_FILES, MOST_IN_ALL, DEEPEST = 100_000, 4_000_000_000, 8
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, EOFError, RuntimeError, ValueError, OverflowError, MemoryError)
"""What reading a file raises that is no archive, or a damaged one."""
THEN = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive: equal studies are equal files."""


@dataclass(frozen=True)
class Unpacked:
    """The root of the study's folder, its name, and whether all runs are as they were exported. Of one that is not there is only a note of
    what is damaged (reading.DAMAGED), with which it is left out wherever the study is read."""

    root: Path
    name: str
    whole: bool


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
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    sizes = [path.stat().st_size for path in files.values()]
    if len(files) > MOST_FILES or sum(sizes) > MOST_IN_ALL or max(sizes) > MOST_BYTES or not all(map(_is_plain, files)):
        limits = f"{MOST_FILES:,} files, {MOST_IN_ALL / 1e9:g} GB and {MOST_BYTES / 1e6:g} MB a file, with names of letters"
        raise ConfigError(f"The study does not fit into an archive, which holds at most {limits}; allowed is out=FOLDER, or a part of it.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(temporary, "w") as archive:
            for name, path in files.items():
                entry = zipfile.ZipInfo(name, THEN)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=9)
        os.replace(temporary, out)
    except OSError as error:
        raise StorageError(f"{out} cannot be written ({error.strerror}).") from None
    finally:
        temporary.unlink(missing_ok=True)
    return out.stat().st_size


def is_archive(path: Path) -> bool:
    """Whether a file is an archive of a study that can be read, and nothing in it damaged: one that may be made anew."""
    try:
        return unpacked(path).whole
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
        except ConfigError:
            raise
        except OSError as error:
            raise ConfigError(f"{path} cannot be read ({error.strerror or error}).") from None
        except BROKEN:
            raise ConfigError(f"{path} is not an archive of a study; allowed is a file that `codesign-bench export` wrote.") from None
    return _unpacked[key]


_unpacked: dict[tuple[Path, tuple[int, int]], Unpacked] = {}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}).") from None
    return found.st_size, found.st_mtime_ns


def _unpack(archive: zipfile.ZipFile, path: Path, root: Path) -> Unpacked:
    """A run's files are written when all of them are as the list says, and nothing else ever is."""
    entries = {entry.filename: entry for entry in archive.infolist()}
    if len(entries) != len(archive.infolist()) or len(entries) > MOST_FILES:
        raise ConfigError(f"{path} names a file twice, or has more than {MOST_FILES:,} files.")
    if sum(entry.file_size for entry in entries.values()) > MOST_IN_ALL:
        raise ConfigError(f"{path} would take more than {MOST_IN_ALL / 1e9:g} GB.")
    if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries.values()):
        raise ConfigError(f"{path} is compressed in another way than export does.")
    listed = _json(archive, entries, LIST, path)
    if not isinstance(listed, dict):
        raise ConfigError(f"The list of files in {path} is not one.")
    for name in (*entries, *listed):
        if not _is_plain(name):
            raise ConfigError(f"{path} holds '{printable(name)}', which no export writes.")
    study = root / _name_of(archive, entries, path)
    folders = defaultdict(list)
    for name in sorted({*entries, *listed} - {LIST}):
        folders["/".join(name.split("/")[:3]) if name not in TOP else ""].append(name)
    whole = True
    for folder, names in folders.items():
        contents = {name: _content(archive, entries, name) for name in names}
        bad = next((name for name, content in contents.items() if content is None or checksum_of(content) != listed.get(name)), None)
        if bad is not None:
            whole = False
            why = f"{bad.removeprefix(f'{folder}/')} is {'missing' if bad not in entries else 'not as it was exported'}"
            if not folder:
                raise ConfigError(f"{path} is damaged: {why}.")
            contents = {f"{folder}/{DAMAGED}": why.encode()}
        for name, content in contents.items():
            target = study / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content or b"")
    return Unpacked(root, study.name, whole)


def _name_of(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], path: Path) -> str:
    content = _json(archive, entries, ABOUT, path)
    known = {key: content[key] for key in ("format", "study") if key in content} if isinstance(content, dict) else {}
    try:
        described = build(_About, known)
    except ConfigError as error:
        raise ConfigError(f"{path}: {ABOUT}: {error}") from None
    if not described.study.isprintable():
        raise ConfigError(f"{path}: the study's name cannot be printed.")
    if described.format != FORMAT:
        raise ConfigError(f"{path} is of format {described.format}; this version reads {FORMAT}; a newer release may read it.")
    return described.study


def _json(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str, path: Path) -> Any:
    if name not in entries:
        raise ConfigError(f"{path} is not an archive of a study: it has no {name}.")
    content = _content(archive, entries, name)
    try:
        return from_json((content or b"").decode())
    except (ConfigError, UnicodeDecodeError):
        raise ConfigError(f"{path}: {name} cannot be read as JSON.") from None


def _is_plain(name: str) -> bool:
    """Whether an export writes files of such names."""
    parts = PurePosixPath(name).parts
    plain = name.isprintable() and "\\" not in name and str(PurePosixPath(name)) == name and not name.startswith("/")
    inside = all(part != ".." and not part.startswith(".") for part in parts) and len(parts) <= DEEPEST
    return plain and inside and (name in TOP if len(parts) < 4 else name.endswith(KEPT))


def _content(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str) -> bytes | None:
    """Of a file; None if it is not there whole."""
    if name not in entries:
        return None
    try:
        with archive.open(entries[name]) as file:
            content = file.read(MOST_BYTES + 1)
    except BROKEN:
        return None
    return content if len(content) <= MOST_BYTES else None
