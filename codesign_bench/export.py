"""python -m codesign_bench.export study=NAME out=results/demo: a study without checkpoints, small enough to be committed."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from codesign_bench.analysis.collect import Collection, Run, collect
from codesign_bench.analysis.measures import shortfall
from codesign_bench.command_line import load_config, run
from codesign_bench.errors import ConfigError, StorageError
from codesign_bench.structured import build

KEPT = (".csv", ".json", ".xml", ".png", ".yaml")
LEFT = ("checkpoints", "tensorboard", "wandb", "reevaluation")
"""Folders of a run that stay behind."""
MARK = "Written by `python -m codesign_bench.export`"


@dataclass(frozen=True)
class ExportConfig:
    """The content of conf/export.yaml."""

    results: str
    study: str
    out: str
    envs: tuple[str, ...] | None
    methods: tuple[str, ...] | None
    snapshots: bool
    largest: int
    force: bool

    def __post_init__(self) -> None:
        if self.largest < 1:
            raise ConfigError(f"largest is {self.largest}; allowed are whole numbers of kB from 1 up.")
        if Path(self.results, self.study).resolve() == Path(self.out).resolve():
            raise ConfigError(f"out is '{self.out}', the study itself; allowed is another folder.")


def export(collection: Collection, out: Path, snapshots: bool, largest: int) -> tuple[int, list[Path]]:
    """Copies the runs of a collection; returns the bytes written and the files that were too large. An earlier export in the same
    place is replaced; any other folder that is not empty is refused."""
    if out.is_dir() and any(out.iterdir()) and not _is_export(out):
        raise ConfigError(f"out is '{out}', a folder that is not empty; allowed is a new one, or an earlier export.")
    fresh = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    written, too_large = 0, []
    try:
        for one in collection.runs:
            target = fresh / one.env / one.method / f"seed_{one.seed}"
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
        if out.exists():
            shutil.rmtree(out)
        fresh.rename(out)
    except OSError as error:
        raise StorageError(f"{out} cannot be written ({error.strerror}).") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return written, too_large


def _is_export(folder: Path) -> bool:
    readme = folder / "README.md"
    return readme.is_file() and MARK in readme.read_text(encoding="utf-8", errors="replace")


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
        f"# {name}\n\n{about} {' '.join(short)}\n\n{len(collection.runs)} runs: {methods} on {envs}. {MARK}: what "
        f"`make figures STUDY={name}` needs, without checkpoints, so these runs cannot go on.\n"
    )


def main(arguments: list[str]) -> int:
    words = ["force=true" if word == "--force" else word for word in arguments]
    config = build(ExportConfig, load_config("export", words), "the configuration")
    collection = collect(Path(config.results), config.study, force=config.force, envs=config.envs, methods=config.methods)
    for left_out in collection.left_out:
        print(f"left out: {left_out.path}: {left_out.reason}.", file=sys.stderr)
    if not collection.runs:
        raise ConfigError(f"The study '{config.study}' has no runs to export.")
    written, too_large = export(collection, Path(config.out), config.snapshots, config.largest)
    for path in too_large:
        print(f"left out: {path}: larger than {config.largest} kB.", file=sys.stderr)
    print(f"{config.out}: {len(collection.runs)} runs, {written / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    run(main)
