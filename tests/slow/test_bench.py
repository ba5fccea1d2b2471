"""A benchmark in rounds as people run it: Ctrl-C, the same command again, all runs equal to undisturbed ones, figures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codesign_bench.launching.status import statuses
from tests.experiment.tiny import OVERRIDES, environment, folder_of, run, tiny

METHODS, SEEDS = ("transform2act", "transform2act_no_gnn"), (0, 1)
SHORT_ROUNDS = "from codesign_bench import cli; from codesign_bench.launching import rounds; rounds.ROUNDS = (200, 400); cli.main()"


def bench(results: Path) -> subprocess.Popen[str]:
    arguments = [*OVERRIDES, f"method={','.join(METHODS)}", "seed=range(0,2)", "env=swimmer", "study=bench", f"results={results}"]
    line = [sys.executable, "-c", SHORT_ROUNDS, "bench", *arguments]
    return subprocess.Popen(line, cwd=results, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.slow
@pytest.mark.parametrize("what", [signal.SIGINT, signal.SIGTERM])
def test_stop_and_go_on(tmp_path: Path, what: signal.Signals) -> None:
    results = tmp_path / "results"
    results.mkdir()
    with bench(results) as process:
        while process.poll() is None and sum(each.steps for each in statuses(results, ["bench"])) < 600:
            time.sleep(0.01)
        os.killpg(process.pid, what)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 128 + what, said
    assert "Traceback" not in said
    assert "in rounds to 200, 400, 800 steps each" in said
    assert not any(each.state == "running" for each in statuses(results, ["bench"]))

    with bench(results) as process:
        _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert said.splitlines()[-1] == "4 runs: 4 done"
    assert [(each.state, each.steps) for each in statuses(results, ["bench"])] == [("done", 800)] * 4
    figures = results / "bench" / "figures"
    assert (figures / "comparison.png").stat().st_size > 1000
    assert "Compared at 800 steps on swimmer: as far as all methods have come." in (figures / "final_returns.md").read_text()
    for method in METHODS:
        for seed in SEEDS:
            config = tiny(tmp_path / "undisturbed", f"method={method}", f"seed={seed}", "study=bench")
            expected = run(config)
            expected.must_equal(run({**config, "results": str(results)}), str(folder_of(config)))
