"""A study without checkpoints, small enough to be committed."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.measures import shortfall
from codesign_bench.errors import ConfigError, StorageError

KEPT = (".csv", ".json", ".xml", ".png", ".yaml")
LEFT = ("checkpoints", "tensorboard", "wandb", "reevaluation")
"""Folders of a run that stay behind."""
LIST = "export.json"
"""In an export: its files with their checksums, so that the next one replaces these and nothing else."""


def export(collection: Collection, out: Path, snapshots: bool, largest: int) -> tuple[int, list[Path]]:
    """Copies the runs of a collection; returns the bytes written and the files that were too large. An earlier export in the same
    place is replaced; a folder that holds anything that no export wrote is refused."""
    if out.exists() and (stranger := _not_exported(out)) is not None:
        raise ConfigError(f"out is '{out}', which holds {stranger}, not written by export; allowed is a new folder, or an earlier export.")
    fresh = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    written, too_large = 0, []
    try:
        for one in collection.runs:
            target = fresh / one.env / one.option / f"seed_{one.seed}"
            for source in _files(one.path, snapshots):
                content = _without_place(source.read_bytes(), source, one, out.name)
                if len(content) > 1000 * largest:
                    too_large.append(source)
                    continue
                path = target / source.relative_to(one.path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                written += len(content)
        fresh.mkdir(parents=True, exist_ok=True)
        (fresh / "README.md").write_text(_readme(collection, out.name), encoding="utf-8")
        (fresh / LIST).write_text(json.dumps(_checksums(fresh), indent=0), encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        fresh.rename(out)
    except OSError as error:
        raise StorageError(f"{out} cannot be written ({error.strerror}).") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return written, too_large


def _not_exported(folder: Path) -> str | None:
    """The first file of a folder that is not as an export left it; None if all are."""
    try:
        listed = json.loads((folder / LIST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        listed = {}
    found = _checksums(folder)
    return next((name for name, checksum in found.items() if name not in (LIST, ".collected.npz") and listed.get(name) != checksum), None)


def _checksums(folder: Path) -> dict[str, str]:
    files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files}


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
    short = shortfall(collection, bands=False)
    about = "A demonstration of files and figures, not a result." if short else "A complete study."
    envs, methods = ", ".join(collection.envs), ", ".join(collection.methods)
    return (
        f"# {name}\n\n{about} {' '.join(short)}\n\n{len(collection.runs)} runs: {methods} on {envs}. Written by `codesign-bench export`: "
        f"what `make figures STUDY={name}` needs, without checkpoints, so these runs cannot go on.\n"
    )
