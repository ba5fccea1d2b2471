"""the runs there are and how they are doing.

codesign-bench status
codesign-bench status study=bench env=gap json=true
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from codesign_bench.configuration import configured, study_at
from codesign_bench.errors import ConfigError
from codesign_bench.launching.status import statuses, table


@dataclass(frozen=True)
class StatusConfig:
    """The content of conf/status.yaml."""

    results: str
    study: tuple[str, ...]
    env: tuple[str, ...]
    method: tuple[str, ...]
    seed: tuple[int, ...]
    json: bool


def main(arguments: list[str]) -> int:
    config = configured(StatusConfig, "status", arguments)
    found = []
    for results, study in [study_at(config.results, study) for study in config.study] or [(Path(config.results), "")]:
        if not (results / study).is_dir():
            raise ConfigError(f"There is no folder {results / study}; results=DIR says where the studies are.")
        found += statuses(results, [study] if study else None)
    for key in ("env", "method", "seed"):
        wanted = getattr(config, key)
        found = [run for run in found if not wanted or getattr(run, key) in wanted]
    print(json.dumps([asdict(run) for run in found], indent=1) if config.json else table(found))
    return 0
