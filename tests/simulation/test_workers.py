from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from codesign_bench.errors import ConfigError, WorkerError
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.simulation.sampler import SlotState, random_policy
from codesign_bench.simulation.workers import Group, WorkerPool
from codesign_bench.tasks import make_task
from tests.simulation import policies
from tests.simulation.test_sampler import assert_equal, random_designs

ROOT = Path(__file__).resolve().parents[2]


def groups() -> list[Group]:
    """Three unequal groups: two tasks' worth of settings, some with their own designs."""
    gap, walk = make_task("gap", max_steps=15), make_task("gap", max_steps=9, time_limit="truncate")
    return [
        Group(gap, 2, np.random.SeedSequence(1)),
        Group(walk, 3, np.random.SeedSequence(2), TransformSteps(2, 1), tuple(random_designs(walk, 3))),
        Group(gap, 1, np.random.SeedSequence(3), reset_seeds=(np.random.SeedSequence(4),)),
    ]


def is_gone(process: psutil.Process) -> bool:
    """Ended; a zombie has ended too, its parent just has not asked yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def assert_gone(processes: list[psutil.Process]) -> None:
    """Waits long, so that a slow machine cannot fail this."""
    deadline = time.monotonic() + 30
    while not all(is_gone(p) for p in processes) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [p for p in processes if not is_gone(p)] == []


def workers_of(pool: WorkerPool) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in pool.pids]


@pytest.fixture(scope="module")
def shared() -> Iterator[WorkerPool]:
    """Two workers that live as long as the tests that leave them in good health."""
    with WorkerPool(groups(), workers=2) as pool:
        yield pool


def test_the_number_of_workers_changes_nothing(shared: WorkerPool) -> None:
    local = WorkerPool(groups())
    start = json.loads(json.dumps(local.state_dict()))
    shared.load_state_dict(start)
    assert len(shared.pids) == 2
    assert local.pids == []
    mixed = [random_policy, policies.with_log_prob, policies.each_graph_alone]
    with WorkerPool(groups(), workers=1) as single:
        assert len(single.pids) == 1
        for policy, steps in ((random_policy, 40), (mixed, 30)):
            expected = local.collect(policy, steps)
            assert expected.reward.shape == (steps, 6)
            assert expected.episodes
            assert_equal(single.collect(policy, steps), expected)
            assert_equal(shared.collect(policy, steps), expected)
        assert single.state_dict() == shared.state_dict() == local.state_dict()


def test_goes_on_elsewhere(shared: WorkerPool) -> None:
    shared.collect(random_policy, 23)
    state = json.loads(json.dumps(shared.state_dict()))
    local = WorkerPool(groups())
    local.load_state_dict(state)
    assert_equal(shared.collect(random_policy, 40), local.collect(random_policy, 40))


def test_slots_are_lent_in_workers_as_here(shared: WorkerPool) -> None:
    """To agents that have not begun, and back; one group's slots next to another's."""
    local = WorkerPool(groups())
    seeds = iter(np.random.SeedSequence(5).spawn(6))
    fresh = [[SlotState.fresh(group.task.initial_design, next(seeds)) for _ in range(group.slots)] for group in groups()]
    for _ in range(2):
        for pool in (local, shared):
            pool.lend(fresh)
        policy = policies.each_graph_alone
        assert_equal(shared.collect(policy, 30).reward, local.collect(policy, 30).reward)
        assert shared.take_back() == local.take_back()
    with pytest.raises(ConfigError, match="2 lists of slots were given for 3 groups"):
        local.lend(fresh[:2])


def test_workers_load_no_heavy_packages_and_use_one_thread(shared: WorkerPool) -> None:
    assert not shared.collect(policies.tells_heavy_modules, 1).log_prob.any()
    assert (shared.collect(policies.tells_threads, 1).log_prob == 1).all()


def test_the_environment_of_the_parent_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with WorkerPool(groups()[:1], workers=4) as pool:
        assert os.environ["OMP_NUM_THREADS"] == "3"
        assert "MKL_NUM_THREADS" not in os.environ
        assert len(pool.pids) == 1, "there are never more workers than groups"
        processes = workers_of(pool)
    assert_gone(processes)


def test_the_ledger_with_workers(shared: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    from codesign_bench.errors import BudgetError

    ledger = Ledger(40)
    monkeypatch.setattr(shared, "ledger", ledger)
    shared.collect(random_policy, 6)
    before = shared.state_dict()
    with pytest.raises(BudgetError, match="6 steps were requested but the budget of 40 has 4 left"):
        shared.collect(random_policy, 1)
    assert ledger.charged == 36
    assert shared.state_dict() == before


@pytest.mark.parametrize(("workers", "count"), [(-1, 1), (0, 0), (2, 0)])
def test_impossible_pools(workers: int, count: int) -> None:
    with pytest.raises(ConfigError, match=f"{workers} workers were asked for {count} groups"):
        WorkerPool(groups()[:count], workers)


def test_an_error_in_a_policy() -> None:
    with WorkerPool(groups(), workers=2) as pool:
        processes = workers_of(pool)
        with pytest.raises(WorkerError, match=r"(?s)Worker \d raised an error:.*the policy lost its marbles"):
            pool.collect([policies.zeros, policies.raises, policies.zeros], 2)
        assert_gone(processes)


@pytest.mark.parametrize(("policy", "exit_text"), [(policies.kills_itself, "SIGKILL"), (policies.exits, "exit code 7")])
def test_a_worker_that_dies_at_work(policy: Any, exit_text: str) -> None:
    with WorkerPool(groups(), workers=2) as pool:
        processes = workers_of(pool)
        with pytest.raises(WorkerError, match=rf"Worker 1 \(process {processes[1].pid}\) died with {exit_text}"):
            pool.collect([policies.zeros, policy, policies.zeros], 2)
        assert_gone(processes)


def test_a_worker_that_died_between_two_calls() -> None:
    with WorkerPool(groups(), workers=2) as pool:
        processes = workers_of(pool)
        processes[0].kill()
        assert_gone(processes[:1])
        with pytest.raises(WorkerError, match=r"Worker 0 .* died with SIGKILL; the other workers were stopped"):
            pool.collect(random_policy, 5)
    assert_gone(processes)


def test_the_other_workers_are_stopped_as_the_message_says() -> None:
    pool = WorkerPool(groups(), workers=2)
    processes = workers_of(pool)
    processes[0].kill()
    assert_gone(processes[:1])
    try:
        with pytest.raises(WorkerError, match="the other workers were stopped"):
            pool.collect(random_policy, 5)
        with contextlib.suppress(psutil.TimeoutExpired):
            processes[1].wait(timeout=2)
        assert is_gone(processes[1])
    finally:
        pool.close()


def test_a_policy_that_cannot_be_received() -> None:
    with WorkerPool(groups()[:1], workers=1) as pool, pytest.raises(WorkerError, match="this policy cannot be read"):
        pool.collect(policies.Cannot(), 1)


def test_a_wrong_number_of_policies(shared: WorkerPool) -> None:
    with pytest.raises(ValueError, match="polic"):
        shared.collect([policies.zeros], 5)


def test_a_policy_that_cannot_be_sent_leaves_the_pool_in_order_or_closed() -> None:
    with WorkerPool(groups()[:2], workers=2) as pool:
        with pytest.raises((WorkerError, AttributeError, TypeError, ValueError)):
            pool.collect([policies.zeros, lambda graphs: policies.zeros(graphs)], 5)
        assert not pool.pids or pool.collect(policies.zeros, 7).reward.shape == (7, 5)


# ---- whole programs --------------------------------------------------------------------------------------------------

PROGRAM = """
import sys, time
import numpy as np
from codesign_bench.simulation.sampler import random_policy
from codesign_bench.simulation.workers import Group, WorkerPool
from codesign_bench.tasks import make_task

def hangs(graphs):
    time.sleep(600)


if __name__ == "__main__":
    print("starting", flush=True)
    try:
        with WorkerPool([Group(make_task("gap"), 2, np.random.SeedSequence(i)) for i in range(2)], workers=2) as pool:
            pool.collect(random_policy, 5)
            print(*pool.pids, flush=True)
            while True:
                pool.collect(hangs if "hang" in sys.argv else random_policy, 50)
    except KeyboardInterrupt:
        print("stopped", flush=True)
        sys.exit(130)
"""


@contextlib.contextmanager
def program(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """PROGRAM in a process group of its own, as a shell would start it."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where the tests run in the background of a shell
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "starting\n"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("arguments", [(), ("hang",)])
def test_no_orphans_when_the_parent_is_killed(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Also if the workers are in the middle of something that takes long."""
    with program(tmp_path, *arguments) as parent:
        assert parent.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        assert len(workers) == 2
        time.sleep(0.3)
        assert not any(is_gone(worker) for worker in workers)
        parent.kill()
        assert_gone(workers)


@pytest.mark.parametrize("arguments", [(), ("hang",)])
def test_ctrl_c_ends_all_without_a_word_from_the_workers(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with program(tmp_path, *arguments) as parent:
        assert parent.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        time.sleep(0.3)
        os.killpg(parent.pid, signal.SIGINT)
        output, errors = parent.communicate(timeout=60)
        assert (output, errors, parent.returncode) == ("stopped\n", "", 130)
        assert_gone(workers)


def test_ctrl_c_while_the_workers_start(tmp_path: Path) -> None:
    with program(tmp_path) as parent:
        assert parent.stdout is not None
        while not any("spawn_main" in " ".join(child.cmdline()) for child in psutil.Process(parent.pid).children()):
            time.sleep(0.01)
        time.sleep(0.1)
        os.killpg(parent.pid, signal.SIGINT)
        _, errors = parent.communicate(timeout=60)
        assert errors == ""
