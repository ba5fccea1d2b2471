"""Files that a command wrote and may write again. A list of them with their checksums lies beside them: nothing else is ever replaced or
removed, neither what somebody put there nor what somebody changed."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from codesign_bench.errors import ConfigError, StorageError

LIST = ".made"
"""In a folder of figures: a line for each file, its checksum and its name."""
CHUNK = 1 << 20


def checksum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def checksum(path: Path) -> str | None:
    """Of a regular file; None of anything else: a link, a folder, a pipe."""
    if path.is_symlink() or not path.is_file():
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()[:16]


def removed(folder: Path, listed: dict[str, str]) -> str | None:
    """Removes the listed files of a folder that are as they were listed, and then the folder and those in it as far as they are empty;
    the first that stays, if one does."""
    for name, written in listed.items():
        if checksum(folder / name) == written:
            (folder / name).unlink()
    for place in sorted({Path(), *(parent for name in listed for parent in Path(name).parents)}, key=lambda place: -len(place.parts)):
        with contextlib.suppress(OSError):
            (folder / place).rmdir()
    return next((str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))), None)


@contextlib.contextmanager
def empty_beside(folder: Path) -> Iterator[Path]:
    """A new folder next to another, for what is to be its content; whatever is still in it afterwards is removed."""
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
    except OSError as error:
        raise StorageError(f"{folder} cannot be written ({error.strerror}).") from None
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextlib.contextmanager
def published(folder: Path, earlier: set[tuple[str, str]] | None = None) -> Iterator[Path]:
    """A folder to write files into, which come to `folder` together when it is left without an error. `earlier` (by default: what `made`
    says) are the files there that may be replaced; others stay."""
    folder = folder.resolve()
    with empty_beside(folder) as fresh:
        yield fresh
        new = {path.name: checksum(path) or "" for path in sorted(fresh.iterdir())}
        before = made(folder) if earlier is None else earlier
        for name in new:
            check_own(folder / name, before)
        try:
            folder.mkdir(exist_ok=True)
            note(folder, {*before, *new.items()})  # before they come, as this process may end in between
            for name in new:
                os.replace(fresh / name, folder / name)
            note(folder, {item for item in before if item[0] not in new} | set(new.items()))
        except OSError as error:
            raise StorageError(f"{folder} cannot be written ({error.strerror}).") from None


def made(folder: Path) -> set[tuple[str, str]]:
    """Names and checksums of the files that were published in a folder."""
    try:
        lines = (folder / LIST).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return set()
    return {(name, written) for written, _, name in (line.partition("  ") for line in lines)}


def note(folder: Path, files: set[tuple[str, str]]) -> None:
    temporary = folder / f"{LIST}.{os.getpid()}.tmp"
    temporary.write_text("".join(f"{written}  {name}\n" for name, written in sorted(files)), encoding="utf-8")
    os.replace(temporary, folder / LIST)


def check_own(path: Path, files: set[tuple[str, str]]) -> None:
    """Refuses to write over what is not as it was published."""
    if (path.is_symlink() or path.exists()) and (path.name, checksum(path)) not in files:
        raise ConfigError(f"{path} was not made by this command, or was changed since; move it away, or say another out=.")
