"""What the commands on studies share: which runs they are about."""

import sys
from dataclasses import dataclass
from pathlib import Path

from codesign_bench.analysis import studies
from codesign_bench.analysis.collect import Collection, collect, study_folder
from codesign_bench.errors import ConfigError, nearest


@dataclass(frozen=True)
class StudyConfig:
    """Of every conf/COMMAND.yaml of a command on a study: a study, by name, folder or archive, and the part of it that is asked for."""

    results: str
    study: str
    env: tuple[str, ...]
    method: tuple[str, ...]

    @property
    def place(self) -> tuple[Path, str]:
        return studies.find_study(self.results, self.study)


def runs_of(config: StudyConfig, force: bool = False) -> Collection:
    """The runs of a study; says which are left out. A study without any, or without what is asked for, is refused."""
    collection = all_of(config, force)
    if not collection.runs:
        why = f" ({collection.left_out[0].path}: {collection.left_out[0].reason})" if collection.left_out else ""
        raise ConfigError(f"The study '{collection.study}' has no runs that can be shown{why}.")
    for left_out in collection.left_out:
        print(f"left out: {left_out.path}: {left_out.reason}.", file=sys.stderr)
    return collection


def all_of(config: StudyConfig, force: bool = False) -> Collection:
    """The runs of a study, those that are left out too. What is asked for must be there."""
    results, study = config.place
    paths = [path.parts for path in study_folder(results, study).glob("*/*/seed_*")]
    for key, place in (("env", -3), ("method", -2)):
        there = sorted({parts[place] for parts in paths})
        for name in getattr(config, key):
            if name not in there:
                raise ConfigError(f"{key} is '{name}'{nearest(name, there)}; the study '{study}' holds {', '.join(there) or 'no runs'}.")
    return collect(results, study, force=force, envs=config.env or None, methods=config.method or None)
