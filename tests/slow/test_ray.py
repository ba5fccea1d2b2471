"""A real Ray cluster of two nodes, made of processes on this machine; one of them is killed during the sweep."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.experiment.tiny import OVERRIDES, command, environment, folder_of, run, status_of, tiny

LONG = ("env=swimmer", "budget.steps=6000", "budget.evaluate_every=200")
SEEDS = range(4)


@pytest.mark.slow
def test_a_node_that_is_killed_during_the_sweep(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'codesign-bench[launchers]'")
    from ray.cluster_utils import Cluster

    store = {"object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **store})
    process = None
    try:
        nodes = [cluster.add_node(num_cpus=1, **store) for _ in range(2)]
        cluster.wait_for_nodes()
        sweep = ["-m", *OVERRIDES, *LONG, f"seed=range(0,{len(SEEDS)})", f"results={tmp_path / 'ray'}"]
        line = command(*sweep, "launcher=ray", f"hydra.launcher.address='{cluster.address}'")
        process = subprocess.Popen(line, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
        configs = [tiny(tmp_path / "ray", *LONG, f"seed={seed}") for seed in SEEDS]
        _wait_for(process, lambda: sum(_working(config) for config in configs) == 2)
        owners = {(folder_of(config) / ".lock").read_text() for config in configs if _working(config)}
        assert len(owners) == 2
        cluster.remove_node(nodes[0], allow_graceful=False)
        _, errors = process.communicate(timeout=400)
    finally:
        if process is not None and process.poll() is None:
            process.kill()
            process.communicate()
        cluster.shutdown()
    assert process.returncode == 0, errors
    assert errors.splitlines()[-1] == "4 runs: 4 done"
    for seed in SEEDS:
        local = run(tiny(tmp_path / "local", *LONG, f"seed={seed}"))
        local.must_equal(run(tiny(tmp_path / "ray", *LONG, f"seed={seed}")), f"the run with seed {seed} on a cluster that lost a node")


def _working(config: dict[str, Any]) -> bool:
    status = status_of(config)
    return status["status"] == "running" and status["steps"] > 0


def _wait_for(process: subprocess.Popen[str], condition: Any) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
