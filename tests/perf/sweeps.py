"""What many runs cost besides their own work: a sweep of trivial runs, and a look at a thousand run folders."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from codesign_bench.analysis.collect import collect
from codesign_bench.launching.status import statuses
from tests.analysis.study import write_run
from tests.experiment.tiny import OVERRIDES, environment
from tests.perf.table import Table, heading, interleaved

IMPORTS = "import codesign_bench.experiment.runner, methods.transform2act.method, torch.optim, torch._dynamo"
"""What the process of a run imports; the last one is imported by torch's Adam when it is made."""


def measure_sweep(table: Table, runs: int = 20) -> None:
    heading(f"A sweep of {runs} trivial runs, one at a time, against the imports of a run's process plus half a second")
    (imports,) = interleaved(lambda: subprocess.run([sys.executable, "-c", IMPORTS], check=True, env=environment()), repeats=3)
    trivial = [*OVERRIDES, "budget.steps=200", "evaluation.episodes=1", "hydra.launcher.jobs=1"]
    seconds = []
    for number in (runs // 4, runs):
        with tempfile.TemporaryDirectory() as results:
            start = time.perf_counter()
            line = [sys.executable, "-m", "codesign_bench", "-m", *trivial, f"seed=range(0,{number})", f"results={results}"]
            subprocess.run(line, check=True, env=environment(), capture_output=True)
            seconds.append(time.perf_counter() - start)
    each = (seconds[1] - seconds[0]) / (runs - runs // 4)  # without what a sweep costs once
    table.add("a run of the sweep / (imports + 0.5 s)", each / (imports + 0.5), 1, at_most=True, note=f"   {each:.2f} and {imports:.2f} s")


def measure_folders(table: Table, runs: int = 1000) -> None:
    heading(f"A look at {runs} run folders of 100 rows, in seconds")
    with tempfile.TemporaryDirectory() as results:
        for seed in range(runs):
            write_run(Path(results), "nge", seed=seed, returns=list(range(100)), budget="pilot", every=20_000, designs=False)
        for name, look in (("status", lambda: statuses(Path(results))), ("collect", lambda: collect(Path(results), "study"))):
            start = time.perf_counter()
            found = look()
            table.add(name, time.perf_counter() - start)
            assert len(found if isinstance(found, list) else found.runs) == runs


def measure(table: Table) -> None:
    measure_sweep(table)
    measure_folders(table)
