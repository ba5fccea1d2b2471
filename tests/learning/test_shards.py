"""Learning in other processes when one of them dies: the same clear error as in sampling, no orphans, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from codesign_bench.errors import WorkerError
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.ppo import PPO
from codesign_bench.simulation.processes import Processes
from methods.evolution.learner import learn_side_by_side
from tests.learning.test_ppo import CONFIG, material
from tests.methods.population import begin, equal, make, small, weights
from tests.simulation.test_workers import ROOT, assert_gone

SHARED = Path("/dev/shm")


def shared_files() -> set[str]:
    return {path.name for path in SHARED.iterdir()} if SHARED.exists() else set()


def test_a_worker_that_is_killed_while_it_learns() -> None:
    before = shared_files()
    task, policy, value, rollout = material()
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    with contextlib.closing(Processes(2)) as processes:
        ppo = PPO(policy, value, CONFIG, "cpu", processes)
        workers = [psutil.Process(pid) for pid in processes.pids]
        gradients = ppo.shards.gradients

        def killing(minibatch: np.ndarray) -> object:
            if ppo.updates == 2:
                workers[1].send_signal(signal.SIGKILL)
            return gradients(minibatch)

        ppo.shards.gradients = killing  # type: ignore[method-assign,assignment]
        with pytest.raises(WorkerError, match=rf"Worker 1 \(process {workers[1].pid}\) died with SIGKILL; the other workers were stopped"):
            ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))
        assert_gone(workers)
    assert shared_files() <= before


PROGRAM = """
import numpy as np
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.ppo import PPO
from codesign_bench.simulation.processes import Processes
from tests.learning.test_ppo import CONFIG, material

if __name__ == "__main__":
    task, policy, value, rollout = material()
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    processes = Processes(2)
    ppo = PPO(policy, value, CONFIG, "cpu", processes)
    ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))
    print(*processes.pids, flush=True)
    while True:
        ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))
"""


def test_nothing_is_left_when_the_main_process_is_killed_while_it_learns(tmp_path: Path) -> None:
    before = shared_files()
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as process:
        assert process.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
        assert len(workers) == 2
        process.send_signal(signal.SIGKILL)
    assert_gone(workers)
    assert shared_files() <= before


@pytest.mark.parametrize("name", ["nge", "ess"])
def test_species_that_learn_side_by_side_learn_as_they_do_alone(name: str) -> None:
    """Networks, optimisers and the shuffling of minibatches after two batches each."""
    one, other = make(small(name)), make(small(name))
    for method in (one, other):
        begin(method)
    cohort, twins = one.population.species[:3], other.population.species[:3]
    with contextlib.closing(Processes(2)) as processes:
        for batch in range(2):
            rollouts = one.sampler.collect(one.population.species[: one.sampler.size], 0, batch)[: len(cohort)]
            size = len(rollouts)
            for twin in twins:
                twin.controller.renew_normaliser()  # as the sampler does
            losses = learn_side_by_side([species.learner for species in cohort[:size]], rollouts, processes)
            alone = [species.learner.learn(rollout) for species, rollout in zip(twins[:size], rollouts, strict=True)]
            assert losses == alone
    for species, twin in zip(cohort[:size], twins[:size], strict=True):
        assert equal(weights(species), weights(twin))
        assert equal(species.learner.state_dict(), twin.learner.state_dict())
