"""The flow of a run: evaluation, reopening, failures, and stops at any moment. All in this process."""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import os
import signal
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from codesign_bench.design.stored import StoredDesign
from codesign_bench.experiment import checkpoint, runner
from codesign_bench.experiment.evaluation import at_bounds, evaluate
from codesign_bench.experiment.method import Agent, Context
from codesign_bench.experiment.run_folder import configuration_hash
from codesign_bench.experiment.seeds import Streams
from codesign_bench.experiment.signals import StopRequested, StopSignals
from codesign_bench.experiment.tracking import Display
from codesign_bench.learning import products
from codesign_bench.learning.ppo import LearningError
from codesign_bench.learning.shards import Shard
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks import make_task
from methods.transform2act.method import Transform2Act
from tests.experiment.tiny import changed, checkpoints_of, folder_of, run, status_of, tiny
from tests.experiment.toy import Toy, ToyPolicy
from tests.reference.sentences import assert_one_sentence

Toys = Callable[..., dict[str, Any]]


def rows_of(config: dict[str, Any]) -> list[dict[str, str]]:
    with open(folder_of(config) / "progress.csv", newline="") as file:
        return list(csv.DictReader(file))


# ---- evaluation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", ["swimmer", "gap"])
def test_evaluation_is_what_the_episodes_say(env: str) -> None:
    task, seed = make_task(env, max_steps=30), np.random.SeedSequence(5)
    weights = np.array([0.4, 0.3, -0.2, 0.6, 0.9, -0.9, 1.0], dtype=np.float32)
    agent = Agent(task, ToyPolicy(weights, 0.2), TransformSteps(2, 2))
    found = evaluate(agent, 4, seed)
    played = Sampler(task, 4, seed, agent.steps).play(agent.policy)
    records, designs = [record for record, _ in played], [design for _, design in played]
    returns = [record.total_return for record in records]
    assert list(found.returns) == returns
    assert found.return_mean == pytest.approx(statistics.fmean(returns), rel=1e-12)
    assert found.columns["return_std"] == pytest.approx(statistics.pstdev(returns), rel=1e-9)
    assert found.columns["episode_length"] == statistics.fmean(record.execution_steps for record in records)
    assert found.columns["net_displacement"] == pytest.approx(statistics.fmean(record.net_displacement for record in records), rel=1e-12)
    assert found.columns["net_to_path"] == pytest.approx(sum(r.net_displacement for r in records) / sum(r.path for r in records), rel=1e-12)
    assert found.columns["bodies"] == statistics.fmean(design.num_nodes for design in designs)
    assert found.steps == sum(record.execution_steps + 4 for record in records)
    assert found.design.to_dict() == designs[0].to_dict()
    assert -1 <= found.columns["net_to_path"] <= 1


def test_a_champion_that_does_not_move_has_no_path() -> None:
    task = make_task("swimmer", max_steps=5, start={"noise": 0.0})
    still = evaluate(Agent(task, ToyPolicy(np.zeros(7, dtype=np.float32), 0.0), TransformSteps(0, 0)), 2, np.random.SeedSequence(0))
    assert math.isfinite(still.columns["net_to_path"])
    assert still.columns["return_std"] == 0


def test_share_of_attributes_at_their_bounds() -> None:
    """Within one percent of the range, counted over physical values one by one."""
    task = make_task("swimmer")
    space, design = task.space, task.initial_design
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = np.where(rng.random(design.attributes.shape) < 0.5, rng.choice([-1.0, 1.0, 0.9, -0.9, 0.95], design.attributes.shape), 0.3)
        other = design.with_attributes(p)
        near = total = 0
        for node in range(design.num_nodes):
            for k in range(5):
                if space.tunable(design)[node, k]:
                    value = space.lower[k] + (math.sin(math.pi / 2 * p[node, k]) + 1) / 2 * (space.upper[k] - space.lower[k])
                    share = (value - space.lower[k]) / (space.upper[k] - space.lower[k])
                    near, total = near + (share < 0.01 or share > 0.99), total + 1
        assert at_bounds(other, space) == pytest.approx(near / total)


def test_the_last_row_can_be_made_again_from_the_checkpoint(undisturbed: Any) -> None:
    config, outcome = undisturbed
    plan = runner.RunSetup.of(config)
    context = Context(plan.task, plan.budget, Streams(0), Ledger(plan.budget.steps), 2, 0, "cpu")
    method = plan.method_class(plan.method_config, context)
    method.load_state_dict(outcome.state["method"])
    found = evaluate(method.champion(), 2, Streams(0).sequence("evaluation", 3))
    row = rows_of(config)[-1]
    for name in ("return_mean", "return_std", "episode_length", "net_displacement", "net_to_path", "bodies", "at_bounds"):
        assert float(row[name]) == found.columns[name], name
    assert {name: float(row[name]) for name in found.measured} == found.measured
    assert sum(found.measured.values()) == pytest.approx(found.return_mean)
    assert StoredDesign.load(folder_of(config) / "designs" / "final.json").design == found.design


def test_best_return_and_evaluation_steps_add_up(undisturbed: Any) -> None:
    rows = rows_of(undisturbed[0])
    returns = [float(row["return_mean"]) for row in rows]
    assert [float(row["best_return"]) for row in rows] == [max(returns[: i + 1]) for i in range(len(rows))]
    meant = np.cumsum([2 * (6 + float(row["episode_length"])) for row in rows])
    assert [float(row["eval_steps"]) for row in rows] == meant.tolist()
    best = StoredDesign.load(folder_of(undisturbed[0]) / "designs" / "best.json").design
    assert best.num_nodes == float(rows[int(np.argmax(returns))]["bodies"])


def test_the_critics_explained_variance_is_recorded_where_a_method_reports_it(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    config = toy(budget={"evaluate_every": 80})
    run(config)
    assert {row["explained_variance"] for row in rows_of(config)} == {"nan"}
    note = runner.LiveRun.note

    def noting(self: runner.LiveRun, iteration: Any) -> None:
        note(self, replace(iteration, metrics={**iteration.metrics, "explained_variance": 0.1 * (self.counts.iteration + 1)}))

    monkeypatch.setattr(runner.LiveRun, "note", noting)
    config = toy(budget={"evaluate_every": 80}, study="with")
    run(config)
    assert [float(row["explained_variance"]) for row in rows_of(config)] == pytest.approx([0.2, 0.4]), "of the latest iteration"


def test_training_return_is_the_mean_of_the_episodes_since_the_last_row(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[float]] = []
    note = runner.LiveRun.note

    def noting(self: runner.LiveRun, iteration: Any) -> None:
        seen.append([episode.total_return for episode in iteration.episodes])
        note(self, iteration)

    monkeypatch.setattr(runner.LiveRun, "note", noting)
    config = toy(budget={"evaluate_every": 80})
    run(config)
    rows = rows_of(config)
    assert [row["steps"] for row in rows] == ["80", "160"]
    for row, episodes in zip(rows, (seen[0] + seen[1], seen[2] + seen[3]), strict=True):
        assert float(row["train_return"]) == float(np.mean(episodes))


@pytest.mark.parametrize(("every", "steps"), [(1, [40, 80, 120, 160]), (60, [80, 120, 160]), (120, [120, 160]), (1000, [160])])
def test_when_an_evaluation_is_due(toy: Toys, every: int, steps: list[int]) -> None:
    """At the first boundary past each multiple, and at the end of the budget."""
    config = toy(budget={"evaluate_every": every})
    run(config)
    assert [int(row["steps"]) for row in rows_of(config)] == steps


def test_the_bar_is_at_the_steps_that_are_saved(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped while the second evaluation is on its way: 80 steps are charged, 40 are saved."""
    shown: list[int] = []
    evaluated: list[int] = []

    def stopping(*arguments: Any) -> Any:
        evaluated.append(1)
        if len(evaluated) == 2:
            signal.raise_signal(signal.SIGINT)
        return evaluate(*arguments)

    monkeypatch.setattr(runner, "evaluate", stopping)
    monkeypatch.setattr(Display, "update", lambda self, done: shown.append(done))
    config = toy()
    assert runner.run(config) == "stopped"
    assert (status_of(config)["steps"], shown) == (40, [40])


@pytest.mark.parametrize("clock", [[0.0], [1e9, 0.0], [0.0, 1e8, -1e8, 3e8]], ids=["stands still", "goes back", "jumps"])
def test_clocks_that_cannot_be_trusted(toy: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    """All that a row says of time is a number, and the rest of it is as ever."""
    expected = run(toy(results=str(tmp_path / "expected")))
    times = itertools.chain(clock, itertools.cycle(clock[-3:]))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    monkeypatch.setattr(time, "time", lambda: next(times))
    config = toy()
    for until in (80, 160):
        found = run(changed(config, budget={"until": until}))
    expected.must_equal(found, "a run with such a clock")
    for row in rows_of(config):
        assert 0 <= float(row["seconds"]) < math.inf
        assert 0 <= float(row["steps_per_second"]) < math.inf


# ---- reopening -------------------------------------------------------------------------------------------------------


def test_a_run_that_is_done_reopens_for_a_larger_until(tmp_path: Path, undisturbed: Any) -> None:
    config = tiny(tmp_path)
    for until in (200, 600):
        run(changed(config, budget={"until": until}))
        assert (status_of(config)["status"], status_of(config)["steps"]) == ("done", until)
    undisturbed[1].must_equal(run(config), "a run that was reopened")


def test_the_route_of_products_is_the_runs_own(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who calls a run goes on multiplying as before."""
    before, found, iterate = products.in_use(), [], Toy.iterate
    monkeypatch.setattr(Toy, "iterate", lambda self: (found.append(products.in_use()), iterate(self))[1])
    run(toy(products="onednn"))
    assert set(found) == {"onednn"} != {before}
    assert products.in_use() == before


def test_a_smaller_until_does_nothing(toy: Toys) -> None:
    config = toy()
    expected = run(changed(config, budget={"until": 120}))
    expected.must_equal(run(changed(config, budget={"until": 40})), "a run that is further already")


# ---- failures --------------------------------------------------------------------------------------------------------


@pytest.fixture
def nan_at_600(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value network breaks before the third iteration learns."""
    iterate = Transform2Act.iterate

    def breaking(self: Transform2Act) -> Any:
        if self.pool.ledger is not None and self.pool.ledger.charged == 400:
            with torch.no_grad():
                next(iter(self.value.parameters())).fill_(float("nan"))
        return iterate(self)

    monkeypatch.setattr(Transform2Act, "iterate", breaking)


def test_a_loss_that_is_not_finite_stops_the_run(
    tmp_path: Path, undisturbed: Any, nan_at_600: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(tmp_path)
    with pytest.raises(LearningError) as error:
        runner.run(config)
    assert_one_sentence(error.value, "A loss or gradient is not finite", "nan")
    status = status_of(config)
    assert (status["status"], status["steps"], status["reason"]) == ("failed", 400, str(error.value))
    assert [path.name for path in checkpoints_of(config)] == ["000000000200.ckpt", "000000000400.ckpt"]
    assert len(rows_of(config)) == 2
    monkeypatch.undo()
    undisturbed[1].must_equal(run(config), "a run that failed and went on")


def test_a_loss_that_is_not_finite_names_the_step_and_leaves_a_dump(tmp_path: Path, nan_at_600: None) -> None:
    config = tiny(tmp_path)
    run(changed(config, budget={"until": 400}))
    before = {path.name for path in folder_of(config).rglob("*")}
    with pytest.raises(LearningError) as error:
        runner.run(config)
    assert "600" in str(error.value) or "400" in str(error.value) or "iteration 3" in str(error.value), str(error.value)
    assert {path.name for path in folder_of(config).rglob("*")} > before


def test_gradients_that_are_not_finite_never_reach_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ratio that overflows where the clip hides it: the loss is finite, its gradient 0 * inf."""
    log_prob = Shard._log_prob

    def overflowing(self: Shard, batch: Any, chosen: Any, *rest: Any) -> Any:
        return log_prob(self, batch, chosen, *rest) + 100.0 * (batch.advantage[chosen] > 0)

    monkeypatch.setattr(Shard, "_log_prob", overflowing)
    config = tiny(tmp_path, "method.ppo.minibatch=200", "method.ppo.passes=1")
    with pytest.raises(LearningError):
        runner.run(config)
    for path in checkpoints_of(config):
        policy = checkpoint.load(path, configuration_hash(config))["method"]["policy"]
        assert all(bool(torch.isfinite(value).all()) for value in policy.values() if isinstance(value, torch.Tensor))


def test_an_error_of_the_method_is_recorded(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any) -> None:
        raise ZeroDivisionError("no\nluck")

    monkeypatch.setattr(Toy, "iterate", broken)
    config = toy()
    with pytest.raises(ZeroDivisionError):
        runner.run(config)
    assert (status_of(config)["status"], status_of(config)["reason"]) == ("failed", "no luck")
    assert "ZeroDivisionError" in (folder_of(config) / "error.txt").read_text()


# ---- stops at any moment ---------------------------------------------------------------------------------------------


class SendAt:
    """Sends this process a signal at the n-th call."""

    def __init__(self, number: int, what: signal.Signals) -> None:
        self.left, self.what = number, what

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.what)


@pytest.mark.parametrize(("call", "what"), [(1, signal.SIGINT), (75, signal.SIGTERM), (210, signal.SIGUSR1)])
def test_stopped_in_the_middle_of_a_batch_or_an_evaluation(
    tmp_path: Path, undisturbed: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: int, what: signal.Signals
) -> None:
    config, send, observe = tiny(tmp_path), SendAt(call, what), Sampler._observe

    def observing(self: Sampler) -> Any:
        send()
        return observe(self)

    monkeypatch.setattr(Sampler, "_observe", observing)
    handlers = [signal.getsignal(number) for number in StopSignals.SIGNALS]
    assert runner.run(config) == "stopped"
    assert [signal.getsignal(number) for number in StopSignals.SIGNALS] == handlers
    assert status_of(config)["status"] == "stopped"
    assert status_of(config)["reason"] == "stopped by a signal"
    assert f"stopped at {status_of(config)['steps']} steps" in capsys.readouterr().err
    undisturbed[1].must_equal(run(config), "a run that was stopped and resumed")


@pytest.mark.parametrize("moment", [1, 2, 9, 17, 26, 33])
def test_stopped_while_files_are_written(toy: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """A signal at any fsync, which may be inside of a protected moment or not."""
    expected, config = run(toy()), toy(results=str(tmp_path / "other"))
    send, fsync = SendAt(moment, signal.SIGTERM), os.fsync

    def syncing(handle: int) -> None:
        send()
        fsync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", syncing)
        assert runner.run(config) in ("stopped", "done")
    expected.must_equal(run(config), "a run that was stopped while it wrote")


@pytest.mark.parametrize("moment", [1, 2, 9, 17, 26, 33])
def test_a_crash_while_files_are_written(toy: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    expected, config = run(toy()), toy(results=str(tmp_path / "other"))
    left, fsync = [moment], os.fsync

    def crashing(handle: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise SystemError("crash")
        fsync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", crashing)
        with contextlib.suppress(SystemError):
            runner.run(config)
    expected.must_equal(run(config), "a run that crashed while it wrote")


def test_a_protected_moment_is_finished_first() -> None:
    done = []

    def work(signals: StopSignals) -> None:
        with signals.protected():
            os.kill(os.getpid(), signal.SIGINT)
            with signals.protected():
                done.append("inner")
            done.append("outer")
        done.append("after")

    with StopSignals() as signals, pytest.raises(StopRequested):
        work(signals)
    assert done == ["inner", "outer"]


def test_without_protection_it_is_immediate() -> None:
    with StopSignals(), pytest.raises(StopRequested):
        os.kill(os.getpid(), signal.SIGTERM)


def test_an_error_in_a_protected_moment_is_not_hidden_by_a_signal() -> None:
    def work(signals: StopSignals) -> None:
        with signals.protected():
            os.kill(os.getpid(), signal.SIGINT)
            raise KeyError("x")

    with StopSignals() as signals, pytest.raises(KeyError):
        work(signals)


def test_a_checkpoint_holds_what_is_asked_of_it(toy: Toys) -> None:
    config = toy()
    run(config)
    state, _ = checkpoint.load_latest(folder_of(config) / "checkpoints", configuration_hash(config))
    assert state is not None
    assert tuple(state) == runner.LiveRun.STATE
