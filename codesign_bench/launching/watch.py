"""What people see while a benchmark runs: the plan, how fast it goes, when the next figure comes; and the figure itself."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.launching import plan
from codesign_bench.launching.job import Config, Ending
from codesign_bench.launching.status import RunStatus, duration, statuses
from codesign_bench.launching.sweep import say

FIRST, LAST = 10.0, 600.0
"""Seconds to the first line, and between lines later; the pause doubles."""


class Watch:
    """While entered, prints how far the runs of a round are, and draws the comparison anew whenever one ends."""

    def __init__(self, configs: Sequence[Config], title: str) -> None:
        self._title = title
        self._studies = sorted({(config["results"], config["study"]) for config in configs})
        self._paths = {str(RunFolder.of(config).path) for config in configs}
        self._until = configs[0]["budget"]["until"]
        self._left = threading.Event()
        self._drawing = Redraw(self._studies)
        plan.add(configs)

    def __enter__(self) -> Watch:
        runs = self._runs()
        self._began, self._steps = time.monotonic(), sum(run.steps for run in runs)
        if any(run.steps >= self._until for run in runs):
            self._drawing.request()
        print(f"{self._title}: {len(self._paths)} runs to {self._until:,} steps each", file=sys.stderr)
        print(self._line(), file=sys.stderr)
        self._thread = threading.Thread(target=self._keep_saying, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()
        self._drawing.finish()

    def finished(self, ending: Ending) -> None:
        say(ending)
        if ending.state == "done":
            self._drawing.request()

    def _keep_saying(self) -> None:
        pause = FIRST
        while not self._left.wait(pause):
            print(self._line(), file=sys.stderr)
            pause = min(2 * pause, LAST)

    def _runs(self) -> list[RunStatus]:
        found = [run for results, study in self._studies for run in statuses(Path(results), [study])]
        return [run for run in found if run.path in self._paths]

    def _line(self) -> str:
        runs, seconds = self._runs(), time.monotonic() - self._began
        speed = (sum(run.steps for run in runs) - self._steps) / seconds if seconds > 0 else 0.0
        return f"{self._title}: {outlook(runs, self._until, speed)}"


def outlook(runs: Sequence[RunStatus], until: int, speed: float) -> str:
    """How far the runs are, and how long what is left takes at `speed`, steps per second of all together."""
    done = sum(run.steps >= until for run in runs)
    steps = sum(min(run.steps, until) for run in runs)
    text = f"{done} of {len(runs)} runs, {steps:,} of {until * len(runs):,} steps"
    left, whole = until * len(runs) - steps, sum(run.budget - run.steps for run in runs)
    speeds = [run.steps_per_second for run in runs if run.steps_per_second]
    if speed <= 0:
        if not speeds:
            return f"{text}; the speed is known when the first iterations have ended, in a minute or so"
        alone = sum(speeds) / len(speeds)
        needed = f"{duration(left / alone)} to the end of the round and {duration(whole / alone)} to that of the protocol"
        return f"{text}; at {alone:,.0f} steps/s, as each run had so far, {needed}, divided by the runs side by side"
    going = [run for run in runs if run.state == "running"]
    each = [(until - run.steps) / (run.steps_per_second or speed / len(going)) for run in going]
    figure = f"next figure in {duration(max(0.0, min(each)))}, " if each else ""
    return f"{text}, {speed:,.0f} steps/s; {figure}round ends in {duration(left / speed)}, protocol in {duration(whole / speed)}"


class Redraw:
    """Draws in a process of its own, one at a time: a figure that cannot be drawn takes no run with it."""

    def __init__(self, studies: Sequence[tuple[str, str]]) -> None:
        self._studies, self._thread = studies, ThreadPoolExecutor(1)
        self._latest: Future[None] | None = None

    def request(self) -> None:
        if self._latest is not None:
            self._latest.cancel()  # unless it has begun; the new one draws its runs too
        self._latest = self._thread.submit(self._draw)

    def finish(self) -> None:
        """Waits for the last drawing and prints its table."""
        self._thread.shutdown()
        for results, study in self._studies:
            table = Path(results) / study / "figures" / "final_returns.md"
            if self._latest is not None and table.is_file():
                print(table.read_text(encoding="utf-8").strip(), file=sys.stderr)

    def _draw(self) -> None:
        for results, study in self._studies:
            line = [sys.executable, "-m", "codesign_bench.launching.comparison", results, study]
            try:
                done = subprocess.run(line, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, start_new_session=True)
            except OSError as error:
                print(f"The comparison could not be drawn: {error.strerror}.", file=sys.stderr)
                continue
            said = (done.stdout or done.stderr).strip().splitlines() or ["its process died"]
            print(said[-1] if done.returncode == 0 else f"The comparison could not be drawn: {said[-1]}", file=sys.stderr)
