"""the runs there are and how they are doing; with watch=true until Ctrl-C.

codesign-bench status
codesign-bench status study=bench watch=true
codesign-bench status study=bench env=gap json=true
"""

import contextlib
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from codesign_bench import interrupts
from codesign_bench.bars import live, terminal
from codesign_bench.configuration import configured, study_at
from codesign_bench.errors import ConfigError
from codesign_bench.launching.board import Board
from codesign_bench.launching.status import RunStatus, statuses

PAUSE = 10.0
"""Seconds between two tables where there is no terminal."""


@dataclass(frozen=True)
class StatusConfig:
    """The content of conf/status.yaml."""

    results: str
    study: tuple[str, ...]
    env: tuple[str, ...]
    method: tuple[str, ...]
    seed: tuple[int, ...]
    watch: bool
    json: bool

    def __post_init__(self) -> None:
        if self.watch and self.json:
            raise ConfigError("watch and json are both true; allowed is one of them.")


def main(arguments: list[str]) -> int:
    config = configured(StatusConfig, "status", arguments)
    if config.json:
        print(json.dumps([asdict(run) for run in runs_of(config)], indent=1))
        return 0
    board = Board(lambda: runs_of(config))
    board.look()
    if config.watch:
        return watch(board)
    screen = terminal(sys.stdout)
    print(board.text() if screen is None else board.text(screen.width))
    return 0


def runs_of(config: StatusConfig) -> list[RunStatus]:
    found = []
    for results, study in [study_at(config.results, study) for study in config.study] or [(Path(config.results), "")]:
        if not (results / study).is_dir():
            raise ConfigError(f"There is no folder {results / study}; results=DIR says where the studies are.")
        found += statuses(results, [study] if study else None)
    wanted = {key: getattr(config, key) for key in ("env", "method", "seed")}
    return [run for run in found if all(not values or getattr(run, key) in values for key, values in wanted.items())]


def watch(board: Board) -> int:
    """Until somebody has seen enough."""
    with contextlib.suppress(KeyboardInterrupt), live(board, sys.stdout) as refresh:
        while True:
            pause = board.look()
            if refresh is not None:
                refresh()
            else:
                print(board.text(), flush=True)
            time.sleep(max(pause, 0 if refresh else PAUSE))
    return interrupts.CODE
