"""a copy of a study without its checkpoints, small enough to be committed or sent.

  codesign-bench export study=default out=results/mine
  codesign-bench export study=default out=mine.zip

A file holds the same as a folder, and every command on studies reads it. An earlier export in the same place is replaced; anything else
that is there is refused.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from codesign_bench.analysis.export import export
from codesign_bench.commands._studies import StudyConfig, runs_of
from codesign_bench.configuration import configured
from codesign_bench.errors import ConfigError
from codesign_bench.plain_files import MOST_BYTES


@dataclass(frozen=True)
class ExportConfig(StudyConfig):
    """The content of conf/export.yaml."""

    out: str
    snapshots: bool
    largest: int
    force: bool

    def __post_init__(self) -> None:
        if self.largest < 1:
            raise ConfigError(f"largest is {self.largest}; allowed are whole numbers of kB from 1 up.")
        if self.largest > MOST_BYTES // 1000:
            raise ConfigError(f"largest is {self.largest}; allowed are at most {MOST_BYTES // 1000} kB.")
        if Path(self.out).resolve() in (Path(*self.place).resolve(), Path(self.study).resolve()):
            raise ConfigError(f"out is '{self.out}', the study itself; allowed is another place.")


def main(arguments: list[str]) -> int:
    config = configured(ExportConfig, "export", arguments)
    collection = runs_of(config, config.force)
    written, too_large = export(collection, Path(config.out), config.snapshots, config.largest)
    for path in too_large:
        print(f"left out: {path}: larger than {config.largest} kB.", file=sys.stderr)
    print(f"{config.out}: {len(collection.runs)} runs, {written / 1e6:.1f} MB")
    return 0
