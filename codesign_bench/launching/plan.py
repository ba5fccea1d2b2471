"""results/<study>/plan.json: the runs that somebody asked for, so that the status can name those that are missing."""

import contextlib
import fcntl
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.run_folder import RunFolder, write_atomically
from codesign_bench.launching.job import Config
from codesign_bench.plain_files import read_json

NAME = "plan.json"


def add(configs: Sequence[Config]) -> None:
    """Adds runs to the plans of their studies."""
    studies: dict[Path, dict[str, Any]] = {}
    for config in configs:
        study = Path(config["results"]) / config["study"]
        budget = config["budget"]
        name = str(RunFolder.of(config).path.relative_to(study))
        studies.setdefault(study, {})[name] = {"until": budget["until"], "steps": budget["steps"]}
    for study, runs in studies.items():
        try:
            study.mkdir(parents=True, exist_ok=True)
            with open(study / ".plan.lock", "w") as lock:  # another sweep may add to the same study now
                fcntl.flock(lock, fcntl.LOCK_EX)
                planned = read(study)
                if not planned and (study / NAME).exists():
                    raise ConfigError(f"{study / NAME} is no plan of runs; move it away, and say the same again.")
                write_atomically(study / NAME, json.dumps({**planned, **runs}, indent=1))
        except OSError as error:
            raise ConfigError(f"The folder {study} cannot be written ({error.strerror or error}); choose another results=DIR.") from None


def read(study: Path) -> dict[str, dict[str, int]]:
    """Run folders, relative to the study, with how far each is to go now (`until`) and in the end (`steps`)."""
    with contextlib.suppress(OSError, ConfigError):
        content = read_json(study / NAME)
        if isinstance(content, dict):
            return {name: run for name, run in content.items() if isinstance(run, dict) and all(type(n) is int for n in run.values())}
    return {}
