"""Continuous design and the expert as methods: pairs, quotas, windows, records, and equality with plain PPO."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from codesign_bench.configuration import load_config
from codesign_bench.design.graph import BONE
from codesign_bench.errors import ConfigError
from codesign_bench.experiment import conformance
from codesign_bench.experiment.equality import must_equal
from codesign_bench.experiment.method import Context
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.experiment.seeds import Streams
from codesign_bench.learning.actor_critic import GraphCritic
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.ppo import PPO
from codesign_bench.paths import options_of
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import NO_TRANSFORM, Episode, EpisodeRecord, Outcome, Stage
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.simulation.workers import Group, WorkerPool
from methods.continuous.controller import Controller
from methods.continuous.distribution import DesignDistribution
from methods.continuous.method import Continuous, antithetic_pairs, mean_returns
from methods.transform2act.policy import SubPolicyConfig, Transform2ActPolicy
from tests.experiment.tiny import run
from tests.reference.specification import TASKS

NETWORKS = ("method.controller.gnn=[8,8]", "method.controller.mlp=[8]", "method.value.gnn=[8]", "method.value.mlp=[8]")
TINY = (*NETWORKS, "method.ppo.minibatch=64", "method.ppo.passes=2", "env.max_steps=25", "evaluation.episodes=2")
BUDGET = ("budget=smoke", "budget.batch=100", "budget.steps=400", "budget.evaluate_every=100")


def tiny(method: str, *overrides: str, env: str = "swimmer") -> dict[str, Any]:
    """Four designs of 25 steps, four iterations."""
    plain = ("workers=0", "progress=false", "tensorboard=false", "products=mkl")
    return load_config("config", [f"method={method}", f"env={env}", *TINY, *BUDGET, *plain, *overrides])


@contextlib.contextmanager
def opened(config: dict[str, Any]) -> Iterator[Continuous]:
    plan = RunSetup.of(config)
    ledger = Ledger(plan.budget.steps)
    context = Context(plan.task, plan.budget, Streams(plan.settings.seed), ledger, plan.settings.sampler.groups, 0, "cpu")
    with contextlib.closing(plan.method_class(plan.method_config, context)) as method:
        assert isinstance(method, Continuous)
        yield method


class Watched:
    """What an iteration asked of the pool and of the distribution."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: list[list[Group]] = []
        self.rollouts: list[Rollout] = []
        self.updates: list[tuple[Any, Any]] = []
        rebuild, collect, update = WorkerPool.rebuild, WorkerPool.collect, DesignDistribution.update

        def rebuilding(pool: WorkerPool, groups: Any) -> None:
            self.groups.append(list(groups))
            rebuild(pool, groups)

        def collecting(pool: WorkerPool, *arguments: Any) -> Rollout:
            self.rollouts.append(collect(pool, *arguments))
            return self.rollouts[-1]

        def updating(distribution: DesignDistribution, noise: Any, returns: Any) -> None:
            self.updates.append((noise, returns))
            update(distribution, noise, returns)

        monkeypatch.setattr(WorkerPool, "rebuild", rebuilding)
        monkeypatch.setattr(WorkerPool, "collect", collecting)
        monkeypatch.setattr(DesignDistribution, "update", updating)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


# ---- budget ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", options_of("budget"))
@pytest.mark.parametrize("method", ["continuous", "expert"])
def test_designs_and_quotas_of_the_presets(method: str, preset: str) -> None:
    plan = RunSetup.of(load_config("config", [f"method={method}", f"budget={preset}"]))
    pairs, quota = antithetic_pairs(plan.budget.batch, plan.task.config.max_steps, plan.settings.sampler.groups)
    iterations = plan.budget.steps // plan.iteration_steps
    assert {"paper": (1000, 50, 1000), "pilot": (200, 10, 1000), "smoke": (4, 10, 1000)}[preset] == (iterations, 2 * pairs, quota)
    assert iterations * 2 * pairs * quota == plan.budget.steps


@pytest.mark.parametrize(("batch", "groups"), [(1000, 2), (1999, 2), (4001, 2), (2000, 3)])
def test_a_batch_that_pairs_cannot_share(batch: int, groups: int) -> None:
    with pytest.raises(ConfigError, match=rf"budget.batch is {batch}; allowed are multiples of 2000"):
        antithetic_pairs(batch, 1000, groups)


def test_expert_is_continuous_without_spread_and_without_learning() -> None:
    expert, continuous = load_config("config", ["method=expert"]), load_config("config", ["method=continuous"])
    assert expert["method"]["name"] == "expert"
    assert continuous["method"]["name"] == "continuous"
    for key in ("name", "label", "colour"):
        assert expert["method"].pop(key) != continuous["method"].pop(key)
    still = {"sigma": 0.0, "learning_rate": 0.0}
    assert expert["method"] == {**continuous["method"], "design": {**continuous["method"]["design"], **still}}
    assert expert == {**continuous, "method": expert["method"]}


def test_networks_and_learning_are_those_of_transform2act() -> None:
    mine, theirs = load_config("config", ["method=continuous"])["method"], load_config("config", ["method=transform2act"])["method"]
    assert mine["ppo"] == theirs["ppo"]
    assert mine["value"] == theirs["value"]
    assert mine["controller"] == {**theirs["execution"], "init": theirs["jsmlp"]["init"]}


# ---- pairs, quotas and returns (H2, H8) ------------------------------------------------------------------------------


def test_pairs_share_their_starts_and_every_design_has_its_quota(watched: Watched) -> None:
    with opened(tiny("continuous", "budget.batch=300", "budget.steps=600", "sampler.groups=3")) as method:
        method.iterate()
        method.iterate()
        starts = []
        for groups, rollout, (noise, _) in zip(watched.groups, watched.rollouts, watched.updates, strict=True):
            designs = [design for group in groups for design in group.designs or ()]
            seeds = [str(seed.state) for group in groups for seed in group.reset_seeds or ()]
            assert len(designs) == len(set(designs)) == 12
            assert seeds[0::2] == seeds[1::2]
            assert len(set(seeds)) == 6
            assert noise.shape == (6, method.parameters.size)
            assert rollout.reward.shape == (25, 12)
            assert np.all(rollout.stage == Stage.EXECUTION)
            table = rollout.designs.attributes.reshape(-1, 3, 5)
            for slot, design in enumerate(designs):
                assert all(np.array_equal(table[row], design.attributes) for row in set(rollout.design[:, slot]))
            starts.append(set(seeds))
        assert not starts[0] & starts[1]
        assert method.context.ledger.charged == 600


def test_the_gradient_sees_the_samples_before_clipping(watched: Watched) -> None:
    with opened(tiny("continuous")) as method:
        method.iterate()
        (noise, returns), designs = watched.updates[0], [d for group in watched.groups[0] for d in group.designs or ()]
        expert = method.task.initial_design.attributes[method.parameters.tunable]
        wanted = expert + np.stack([0.1 * noise, -0.1 * noise], axis=1).reshape(4, -1)
        applied = np.array([design.attributes[method.parameters.tunable] for design in designs])
        assert np.any(wanted < -1)  # start extensions begin at their lower bound
        assert np.array_equal(applied, np.clip(wanted, -1, 1))
        again = DesignDistribution(method.parameters.size, method.config.design)
        again.update(noise, returns)
        assert np.array_equal(again.mu, method.distribution.mu)
        assert np.all(again.mu != 0)


def test_returns_are_means_over_the_episodes_of_a_design() -> None:
    def episode(slot: int, value: float) -> EpisodeRecord:
        return EpisodeRecord(slot, value, 1, 1, 0.0, 0.0, 2, "", {})

    assert mean_returns([episode(1, 4.0), episode(0, 1.0), episode(1, 2.0)], 2).tolist() == [1.0, 3.0]


def test_returns_that_reach_the_distribution(watched: Watched) -> None:
    """Recomputed from the rewards of the rollout; hoppers fall, so there are several episodes per design."""
    with opened(tiny("continuous", "env.end.max_angle=1.0", env="locomotion2d")) as method:
        method.iterate()
    rollout, (_, returns) = watched.rollouts[0], watched.updates[0]
    several = 0
    for slot in range(4):
        totals, total = [], 0.0
        for reward, ended in zip(rollout.reward[:, slot], rollout.terminated[:, slot], strict=True):
            total += reward
            if ended:
                totals.append(total)
                total = 0.0
        several += len(totals) > 1
        assert returns[slot] == pytest.approx(np.mean(totals), rel=1e-12)
    assert several


# ---- the expert (H9, H10) --------------------------------------------------------------------------------------------


def test_the_expert_is_plain_ppo() -> None:
    """Against a loop that knows nothing of populations."""
    config = tiny("expert")
    plan, streams = RunSetup.of(config), Streams(0)
    task = plan.task.with_expert()
    torch.manual_seed(streams.integer("networks"))
    controller = Controller(task, plan.method_config.controller)
    value = GraphCritic(Normaliser(task.features.size), plan.method_config.value)
    ppo = PPO(controller, value, plan.method_config.ppo)
    with opened(config) as method:
        for iteration in range(3):
            method.iterate()
            starts = [streams.sequence("starts", iteration, slot // 2) for slot in range(4)]
            samplers = [
                Sampler(task, 2, streams.sequence("sampler", iteration, g), NO_TRANSFORM, None, starts[2 * g : 2 * g + 2]) for g in range(2)
            ]
            rollout = Rollout.concatenate([sampler.collect(controller.acting(), 25) for sampler in samplers])
            steps, bootstrap = steps_of_rollout(rollout, task.space)
            ppo.learn(rollout, steps, bootstrap, streams.generator("minibatches", iteration))
            controller.update_normaliser(steps)
            value.update_normaliser(steps)
            must_equal(method.controller.state_dict(), controller.state_dict(), "The controller")
            must_equal(method.value.state_dict(), value.state_dict(), "The value network")
        assert not method.distribution.mu.any()
        assert not method.distribution.sigma.any()
        assert method.champion().task.initial_design == task.initial_design


def test_the_expert_tries_one_design_and_keeps_no_tables_of_designs(tmp_path: Path) -> None:
    config = {**tiny("expert"), "results": str(tmp_path)}
    outcome = run(config)
    assert [row["designs"] for row in outcome.rows] == ["1"] * 4
    assert outcome.tables.keys() == {"learning"}


def test_design_and_controller_learn_apart() -> None:
    """The design's step does not touch the networks, and PPO does not touch the distribution."""

    def after_one(*overrides: str) -> tuple[Any, Any]:
        with opened(tiny("continuous", *overrides)) as method:
            method.iterate()
            return method.controller.state_dict(), method.distribution.state_dict()

    networks, distribution = after_one()
    same_networks, other_distribution = after_one("method.design.learning_rate=0.05")
    other_networks, same_distribution = after_one("method.ppo.policy_lr=0.01")
    must_equal(networks, same_networks, "The networks")
    must_equal(distribution, same_distribution, "The distribution")
    assert distribution["mu"] != other_distribution["mu"]
    assert not torch.equal(networks["log_std"], other_networks["log_std"])


# ---- windows (H11) ---------------------------------------------------------------------------------------------------


def test_warm_up_and_freeze(watched: Watched) -> None:
    with opened(tiny("continuous", "method.design.warmup_steps=100", "method.design.freeze_last_steps=200")) as method:
        history, new = [method.distribution.state_dict()], []
        for _ in range(4):
            new.append(method.iterate().new_designs)
            history.append(method.distribution.state_dict())
        learned = [before != after for before, after in itertools.pairwise(history)]
        assert learned == [False, True, False, False]
        distinct = [len({design for group in groups for design in group.designs or ()}) for groups in watched.groups]
        assert distinct == [4, 4, 1, 1]
        assert new == [4, 4, 1, 0]
        assert watched.groups[-1][0].designs is not None
        assert watched.groups[-1][0].designs[0] == method.champion().task.initial_design


# ---- records ---------------------------------------------------------------------------------------------------------


def test_tables_of_a_run(tmp_path: Path, watched: Watched) -> None:
    config = {**tiny("continuous"), "results": str(tmp_path)}
    outcome = run(config)
    distribution, population = outcome.tables["design_distribution"], outcome.tables["population"]
    assert len(distribution) == 5 * 10
    assert [row["steps"] for row in distribution[::10]] == ["0", "100", "200", "300", "400"]
    assert {(row["part"], row["attribute"]) for row in distribution} == {
        (part, attribute) for part in ("middle", "tail") for attribute in ("length", "slant", "motor strength", "radius", "start extension")
    }
    saved = outcome.state["method"]["distribution"]
    assert [float(row["mu"]) for row in distribution[-10:]] == saved["mu"]
    assert [float(row["sigma"]) for row in distribution[-10:]] == saved["sigma"]
    first = distribution[0]
    assert (first["part"], first["attribute"], float(first["mu"]), float(first["sigma"])) == ("middle", "length", 0.0, 0.1)
    assert float(first["value"]) == pytest.approx(-1.0)
    for row, (_, returns) in zip(population, watched.updates, strict=True):
        assert float(row["return_mean"]) == returns.mean()
        assert (float(row["return_best"]), float(row["return_worst"])) == (returns.max(), returns.min())


# ---- the controller --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", ["locomotion3d", "gap"])
def test_the_controller_is_transform2acts_execution_policy(env: str) -> None:
    """The same weights give the same controls; acting and learning agree on log-probabilities, which leave the root out."""
    with opened(tiny("continuous", env=env)) as method:
        task, controller = method.task, method.controller
        with torch.no_grad():
            for parameter in controller.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        part = SubPolicyConfig(gnn=(8, 8), mlp=(8,), head="jsmlp", log_std=0.0)
        theirs = Transform2ActPolicy(task, part, part, part)
        theirs.execution.network.load_state_dict(controller.network.state_dict())
        sampler = Sampler(task, 3, np.random.SeedSequence(0), NO_TRANSFORM)
        rollout = sampler.collect(controller.acting(), 10)
        steps, _ = steps_of_rollout(rollout, task.space)
        controller.update_normaliser(steps)
        theirs.execution.normaliser.load_state_dict(controller.normaliser.state_dict())
        graphs = sampler._observe()
        mine, other = controller.acting(deterministic=True)(graphs), theirs.acting(deterministic=True)(graphs)
        assert other.actions[:, 0].std() > 0.1
        np.testing.assert_allclose(mine.actions[:, 0], other.actions[:, 0], atol=1e-6)
        rollout = sampler.collect(controller.acting(), 20)
        steps, _ = steps_of_rollout(rollout, task.space)
        everything = np.arange(steps.num_steps)
        forest, rows = steps.forest(everything)
        actions = torch.from_numpy(rollout.actions)
        with torch.no_grad():
            learned = controller.log_prob(controller.prepare(steps), steps, actions, everything, forest, torch.from_numpy(rows))
            spoiled = actions.clone()
            spoiled[torch.from_numpy(steps.first)] += 7.0
            same = controller.log_prob(controller.prepare(steps), steps, spoiled, everything, forest, torch.from_numpy(rows))
        np.testing.assert_allclose(learned.numpy(), rollout.log_prob.ravel(), rtol=1e-4, atol=1e-4)
        assert torch.equal(learned, same)


# ---- learning --------------------------------------------------------------------------------------------------------


def test_designs_improve_where_only_the_design_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No physics: the return is the total length of the bones, which can grow from 2 m by half along each axis."""

    def execute(episode: Episode, control: Any) -> Outcome:
        episode.time += 1
        value = float(np.linalg.norm(episode.task.space.physical(episode.design.attributes)[1:, BONE], axis=1).sum())
        episode.total_return += value
        return Outcome(value, True, False)

    monkeypatch.setattr(Episode, "_execute", execute)
    monkeypatch.setattr(Episode, "_enter_execution_if_due", lambda episode: None)
    steps = ("env.max_steps=1", "budget.batch=20", "budget.steps=1000", "method.ppo.passes=1", "method.design.learning_rate=0.05")

    def length(method: Continuous) -> float:
        attributes = method.champion().task.initial_design.attributes
        return float(np.linalg.norm(method.task.space.physical(attributes)[1:, BONE], axis=1).sum())

    with opened(tiny("continuous", *steps)) as method:
        assert length(method) == pytest.approx(2.0)
        for _ in range(50):
            method.iterate()
        assert length(method) > 3.0


# ---- conformance -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conformance")


IN_SECONDS = [check for check in conformance.CHECKS if check is not conformance.worker_independence]


@pytest.mark.parametrize("check", IN_SECONDS, ids=lambda check: check.__name__)
def test_conformance(check: Callable[..., None], shared: Path) -> None:
    check(tiny("continuous"), shared)


@pytest.mark.slow
@pytest.mark.parametrize("env", TASKS)
@pytest.mark.parametrize("method", ["continuous", "expert"])
def test_conformance_everywhere(method: str, env: str, tmp_path: Path) -> None:
    conformance.check(tiny(method, env=env), tmp_path)


@pytest.mark.slow
def test_conformance_of_the_other_options(tmp_path: Path) -> None:
    options = ("method.design.range=scale75", "method.design.shaping=ranks", "method.design.penalty=0.005")
    windows = ("method.design.warmup_steps=100", "method.design.freeze_last_steps=100")
    conformance.check(tiny("continuous", *options, *windows), tmp_path)
