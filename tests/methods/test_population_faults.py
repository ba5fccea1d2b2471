"""Killed at random moments, within generations too, and resumed with other numbers of workers: nothing is different."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from codesign_bench.experiment import runner
from codesign_bench.experiment.equality import outcome
from tests.experiment.tiny import command, environment, folder_of, status_of
from tests.methods.population import OVERRIDES, small


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nge", "ess"])
def test_killed_at_random_moments(method: str, tmp_path: Path) -> None:
    more = ("budget.steps=9600",)
    whole, config = (small(method, *more, env="gap", results=tmp_path / name) for name in ("undisturbed", "killed"))
    assert runner.run(whole, []) == "done"
    Path(config["results"]).mkdir()
    rng, within = np.random.default_rng(0), 0
    gnn = ("method.controller.gnn=[8,8]",) if method == "nge" else ()
    line = command(f"method={method}", "env=gap", *OVERRIDES, *gnn, *more, f"results={config['results']}")
    for kill in range(6):
        process = subprocess.Popen([*line, f"workers={kill % 3}"], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
        try:
            before = status_of(config).get("steps", 0)
            while process.poll() is None and status_of(config).get("steps", 0) <= before:
                time.sleep(0.002)
            time.sleep(float(rng.uniform(0, 0.3)))
        finally:
            process.kill()
            _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
        within += status_of(config)["steps"] % 320 != 0
    assert within > 0
    assert runner.run(config, []) == "done"
    outcome(whole).must_equal(outcome(config), "a run that was killed six times")
    for name in ("genealogy.csv", "species.csv"):
        assert (folder_of(config) / "tables" / name).read_bytes() == (folder_of(whole) / "tables" / name).read_bytes()
