"""What people see while many runs go on: how far each is, how fast it goes and how long the rest takes; and the comparison so far."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from codesign_bench.bars import live, say
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.launching.board import Board
from codesign_bench.launching.job import Config, Ending
from codesign_bench.launching.status import RunStatus, last_row, statuses

FIRST, LAST = 10.0, 600.0
"""Where there is no terminal: seconds to the first line, and between lines later; the pause doubles."""


class Watch:
    """While entered, shows how the runs of a sweep are: a table on a terminal, elsewhere a line now and then. With `draws`, the comparison
    is drawn anew whenever a run ends."""

    def __init__(self, configs: Sequence[Config], title: str = "", draws: bool = False) -> None:
        self._studies = sorted({(config["results"], config["study"]) for config in configs})
        self._until = {str(RunFolder.of(config).path): config["budget"]["until"] for config in configs}
        self._board = Board(self._runs, title)
        self._drawing = Redraw(self._studies) if draws else None
        self._left = threading.Event()
        self._screen = contextlib.ExitStack()

    def __enter__(self) -> Watch:
        pause = self._board.look()
        self._refresh = self._screen.enter_context(live(self._board, sys.stderr))
        if self._refresh is None:
            print("; ".join(self._board.headline()), file=sys.stderr)
            pause = FIRST
        if self._drawing is not None and any(run.steps >= run.until for run in self._board.runs):
            self._drawing.request()
        self._thread = threading.Thread(target=self._keep_looking, args=(pause,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._screen:
            if self._drawing is not None:
                self._drawing.finish()
            self._left.set()
            self._thread.join()
            self._board.look()
        for text in self._drawing.returns() if self._drawing is not None else ():
            say(f"\n{text}")

    def finished(self, ending: Ending) -> None:
        """Those that were stopped are counted in the end."""
        if ending.state != "stopped":
            value = last_row(RunFolder(Path(ending.path)).progress).get("return_mean")
            print(f"{sentence(ending)}{f', return {value:.1f}' if ending.state == 'done' and value is not None else ''}", file=sys.stderr)
        if ending.state == "done" and self._drawing is not None:
            self._drawing.request()

    def _keep_looking(self, pause: float) -> None:
        while not self._left.wait(pause):
            wait = self._board.look()
            if self._refresh is not None:
                self._refresh()
                pause = wait
            else:
                print("; ".join(self._board.headline()), file=sys.stderr)
                pause = min(2 * pause, LAST)

    def _runs(self) -> list[RunStatus]:
        return [run for results, study in self._studies for run in statuses(Path(results), [study], self._until)]


def sentence(ending: Ending) -> str:
    """How a run ended."""
    return f"{'/'.join(Path(ending.path).parts[-3:])}: {ending.state}{f' ({ending.reason})' if ending.reason else ''}"


class Redraw:
    """Draws in a process of its own, one at a time: a figure that cannot be drawn takes no run with it."""

    def __init__(self, studies: Sequence[tuple[str, str]]) -> None:
        self._studies, self._thread = studies, ThreadPoolExecutor(1)
        self._latest: Future[None] | None = None
        self._returns: dict[str, str] = {}

    def request(self) -> None:
        if self._latest is not None:
            self._latest.cancel()  # unless it has begun; the new one draws its runs too
        self._latest = self._thread.submit(self._draw)

    def finish(self) -> None:
        """Waits for the last drawing."""
        self._thread.shutdown()

    def returns(self) -> list[str]:
        """The final returns of each study, as they were drawn last."""
        return list(self._returns.values())

    def _draw(self) -> None:
        for results, study in self._studies:
            line = [sys.executable, "-m", "codesign_bench.launching.comparison", results, study]
            options: Any = {"stdin": subprocess.DEVNULL, "start_new_session": True, "capture_output": True, "encoding": "utf-8"}
            try:
                done = subprocess.run(line, check=False, env={**os.environ, "PYTHONIOENCODING": "utf-8"}, **options)
            except OSError as error:
                print(f"The comparison could not be drawn: {error.strerror}.", file=sys.stderr)
                continue
            *table, said = (done.stdout or done.stderr).strip().splitlines() or ["its process died"]
            if done.returncode == 0:
                self._returns[study] = "\n".join(table)
            print(said if done.returncode == 0 else f"The comparison could not be drawn: {said}", file=sys.stderr)
