"""A study without checkpoints, small enough to be committed or sent: as a folder, or as one file."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from codesign_bench.analysis.archive import ABOUT, ENDING, KEPT, LIST, about, is_archive, pack
from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.measures import shortfall
from codesign_bench.errors import ConfigError, StorageError
from codesign_bench.own_files import checksum, empty_beside, removed
from codesign_bench.plain_files import read_json
from codesign_bench.terminal import printable

LEFT = ("checkpoints", "tensorboard", "wandb", "reevaluation")
"""Folders of a run that stay behind."""


def export(collection: Collection, out: Path, snapshots: bool, largest: int) -> tuple[int, list[Path]]:
    """Copies the runs of a collection into a folder, or into an archive if `out` ends in .zip; returns the bytes written and the files that
    were too large. An earlier export in the same place is replaced; what no export wrote is refused."""
    place = out.resolve()
    name, listed = place.name.removesuffix(ENDING), _listed(place)
    as_archive = out.suffix == ENDING
    if as_archive and place.exists() and not is_archive(place):
        raise ConfigError(f"out is '{out}', which export did not write, or which was changed since; allowed is a new file.")
    if not as_archive:
        _check_folder(out, place, listed)
    try:
        with empty_beside(place) as fresh:
            written, too_large = _copy(collection, fresh, name, snapshots, largest)
            if as_archive:
                written = pack(fresh, place)
            else:
                _put_in_place(fresh, place, listed)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{out} cannot be written ({error.strerror}).") from None
    return written, too_large


def _check_folder(out: Path, place: Path, listed: dict[str, str]) -> None:
    if place.exists() and not place.is_dir():
        raise ConfigError(f"out is '{out}', a file; allowed is a new folder, a name that ends in {ENDING}, or an earlier export.")
    if place.exists() and (stranger := _not_exported(place, listed)) is not None:
        raise ConfigError(f"out is '{out}', which holds {stranger}, not written by export; allowed is a new folder, or an earlier export.")


def _copy(collection: Collection, fresh: Path, name: str, snapshots: bool, largest: int) -> tuple[int, list[Path]]:
    written, too_large = 0, []
    for one in collection.runs:
        target = fresh / one.env / one.option / f"seed_{one.seed}"
        for source in _files(one.path, snapshots):
            if source.stat().st_size > 1000 * largest:
                too_large.append(source)
                continue
            content = _without_place(source.read_bytes(), source, one, name)
            path = target / source.relative_to(one.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written += len(content)
    (fresh / "README.md").write_text(printable(_readme(collection, name)), encoding="utf-8")
    (fresh / ABOUT).write_text(json.dumps(about(collection.runs, name), indent=1), encoding="utf-8")
    (fresh / LIST).write_text(json.dumps(_checksums(fresh), indent=0), encoding="utf-8")
    return written, too_large


def _put_in_place(fresh: Path, place: Path, listed: dict[str, str]) -> None:
    """Of an earlier export, only what it wrote is removed: a run that began there a moment ago stays, beside the new export."""
    earlier = fresh.with_suffix(".earlier")
    if place.exists():
        place.rename(earlier)
    try:
        fresh.rename(place)
    except OSError:
        if earlier.exists() and not place.exists():
            earlier.rename(place)
        raise
    if earlier.exists() and (stranger := removed(earlier, listed)) is not None:
        raise StorageError(f"{place} was written, but something was put there meanwhile: it is now {earlier / stranger}.")


def _listed(folder: Path) -> dict[str, str]:
    """The files of an earlier export with their checksums, and its list itself; nothing if there is none."""
    try:
        listed = read_json(folder / LIST).items()
        inside = {name: str(written) for name, written in listed if not Path(name).is_absolute() and ".." not in Path(name).parts}
        return inside | {LIST: checksum(folder / LIST) or ""}
    except (OSError, ConfigError, AttributeError):
        return {}


def _not_exported(folder: Path, listed: dict[str, str]) -> str | None:
    """The first thing in a folder that is not as an export left it, files before folders; None if all are."""
    own = {parent for name in listed for parent in Path(name).parents}
    for path in sorted(folder.rglob("*"), key=lambda path: (path.is_dir(), path)):
        name = path.relative_to(folder)
        if name not in own if path.is_dir() and not path.is_symlink() else checksum(path) != listed.get(str(name), ""):
            return str(name)
    return None


def _checksums(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): checksum(path) or "" for path in sorted(folder.rglob("*")) if path.is_file()}


def _files(folder: Path, snapshots: bool) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in parts)
        if hidden or path.is_symlink() or parts[0] in LEFT or path.suffix not in KEPT or not path.is_file():
            continue
        if snapshots or not re.fullmatch(r"at_\d+\.(json|xml)", path.name):
            yield path


def _without_place(content: bytes, source: Path, one: Run, study: str) -> bytes:
    """Configuration and manifest without the folders and the name of the machine they were made on; other files as they are."""
    if source == one.path / "config.yaml":
        config: str = yaml.safe_dump({**one.config, "results": "results", "study": study}, sort_keys=False)
        return config.encode()
    if source == one.path / "manifest.json":
        manifest: dict[str, Any] = {key: value for key, value in one.manifest.items() if key != "host"}
        command = manifest.get("command")
        if isinstance(command, list):
            manifest["command"] = [str(word) for word in command if not str(word).startswith(("results=", "study="))]
        return json.dumps(manifest, indent=1).encode()
    return content


def _readme(collection: Collection, name: str) -> str:
    about = " ".join(shortfall(collection, bands=False)) or "The full protocol."
    envs, methods = ", ".join(collection.envs), ", ".join(collection.methods)
    return (
        f"# {name}\n\n{about}\n\n{len(collection.runs)} runs: {methods} on {envs}. Written by `codesign-bench export`: "
        f"what `make figures STUDY={name}` needs, without checkpoints, so these runs cannot go on.\n"
    )
