"""BodyGen's networks against their slow twin, its sizes against the published ones, and the method against the conformance suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.experiment import conformance
from codesign_bench.learning import products
from codesign_bench.learning.actor_critic import StageCritic
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.forest import filled_up
from codesign_bench.learning.mosat import MoSATConfig
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.stage_policy import StagePolicy
from codesign_bench.simulation.episode import Stage
from codesign_bench.structured import build
from codesign_bench.tasks import Task, make_task
from methods.bodygen.method import BodyGenConfig
from methods.bodygen.networks import EncoderConfig, GNNConfig, policy_of, values_of
from tests.experiment.tiny import run, tiny
from tests.learning.material import assert_close, collect, designs_of, gradients, graphs_of, steps_with, strong, task_of
from tests.reference import slow_bodygen as slow
from tests.reference.sentences import assert_one_sentence

PUBLISHED = MoSATConfig(width=64, blocks=3, heads=1, hidden=256, position="topology", positions=256)
SMALL = replace(PUBLISHED, width=8, blocks=2, hidden=12)
VARIANTS = {
    "published": SMALL,
    "no TopoPE": replace(SMALL, position="none"),
    "order": replace(SMALL, position="order"),
    "four heads": replace(SMALL, heads=4),
    "one block": replace(SMALL, blocks=1),
}


def networks(task: Task, mosat: MoSATConfig = SMALL, kind: Any = "mosat") -> tuple[StagePolicy, StageCritic]:
    torch.manual_seed(0)
    encoder = EncoderConfig(kind, mosat, GNNConfig(gnn=(8, 8)))
    normaliser = Normaliser(task.features.size, 10.0)
    return policy_of(task, encoder, normaliser, -2.3, 0.0), StageCritic(normaliser, values_of(task, encoder, (6, 5)))


def number_of_parameters(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("env", "policy", "value"), [("cheetah", 464_399, 959_043), ("crawler", 464_911, 960_579), ("glider_medium", 464_207, 958_851)]
)
def test_parameters(env: str, policy: int, value: int) -> None:
    task, normaliser = make_task(env), Normaliser(1)
    encoder = EncoderConfig("mosat", PUBLISHED, GNNConfig(gnn=(8,)))
    assert number_of_parameters(policy_of(task, encoder, normaliser, -2.3, 0.0)) == policy
    assert sum(map(number_of_parameters, values_of(task, encoder, (512, 256)))) == value


# ---- against the slow twin -------------------------------------------------------------------------------------------------------


def bodies_of(features: np.ndarray, task: Task, designs: Any, mosat: MoSATConfig) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Features and positions of every body by itself."""
    found, first = [], 0
    for design in designs:
        rows = features[first : first + design.num_nodes]
        first += design.num_nodes
        order = mosat.position == "order"
        position = np.arange(design.num_nodes) if order else task.space.topology(design).joint_index
        found.append((torch.from_numpy(rows).double(), torch.from_numpy(position)))
    return found


@pytest.mark.parametrize(
    ("env", "variant", "multiple"),
    [*(("glider_hard", variant, 1) for variant in VARIANTS), ("glider_hard", "four heads", 16), ("cheetah", "published", 16)],
)
def test_policy_and_values_against_the_slow_twin(env: str, variant: str, multiple: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and gradients, bodies of all sizes at once, with and without rows that only fill up."""
    monkeypatch.setattr(products, "multiple_of_rows", lambda: multiple)
    task, mosat = task_of(env), VARIANTS[variant]
    policy, critic = (strong(module).double() for module in networks(task, mosat))
    designs = [*designs_of(task, 4), task.initial_design]
    for stage in Stage:
        steps = steps_with(task, designs, [stage] * len(designs))
        policy.of_stage(0).normaliser.update(steps.features)
        chosen = np.random.default_rng(0).permutation(len(designs))
        forest, rows = steps.forest(chosen)
        if multiple > 1:
            forest, rows = filled_up(forest, rows, multiple)
        sub, value = policy.of_stage(stage), critic.networks[stage]
        normalised = sub.normaliser(steps.features)
        bodies, values = bodies_of(normalised[:, sub.columns], task, designs, mosat), bodies_of(normalised, task, designs, mosat)

        x = torch.from_numpy(normalised[:, sub.columns][rows]).double()
        encoded = sub.network.encoder(x, forest)[: forest.num_nodes]
        expected = [slow.mosat(sub.network.encoder, *bodies[i]) for i in chosen]
        together = torch.cat([encoded[forest.graph == i] for i in range(len(chosen))])
        places = [torch.from_numpy(rows)[forest.graph == i] - steps.first[chosen[i]] for i in range(len(chosen))]
        by_joint = torch.cat([body[place] for body, place in zip(expected, places, strict=True)])
        assert_close(together, by_joint, 1e-9)
        for a, b in zip(gradients(together, sub.network), gradients(by_joint, sub.network), strict=True):
            assert_close(a, b, 1e-9)

        result = critic.values(critic.prepare(steps).double(), forest, torch.from_numpy(rows))[: len(chosen)]
        slowly = torch.stack([slow.value(value, *values[i]) for i in chosen])
        assert_close(result, slowly, 1e-9)
        for a, b in zip(gradients(result, value), gradients(slowly, value), strict=True):
            assert_close(a, b, 1e-9)


def test_values_of_steps_of_all_stages_together() -> None:
    task = task_of("cheetah")
    _, critic = networks(task)
    strong(critic)
    designs = designs_of(task, 9)
    steps = steps_with(task, designs, [i % 3 for i in range(9)])
    prepared = critic.prepare(steps)

    def values(chosen: np.ndarray) -> torch.Tensor:
        forest, rows = steps.forest(chosen)
        return critic.values(prepared, forest, torch.from_numpy(rows))

    together = values(np.arange(9))
    for i in range(9):
        assert_close(together[i : i + 1], values(np.array([i])), 1e-5)
    for kind in ("gnn",):
        _, other = networks(task, kind=kind)
        forest, rows = steps.forest(np.arange(9))
        assert other.values(other.prepare(steps), forest, torch.from_numpy(rows)).shape == (9,)


@pytest.mark.parametrize("kind", ["mosat", "gnn"])
@pytest.mark.parametrize("env", ["cheetah", "crawler"])
def test_it_learns_from_what_it_acted(env: str, kind: Any) -> None:
    """Log-probabilities while acting, many bodies at a time, are those that learning finds."""
    task = task_of(env)
    policy, _ = networks(task, kind=kind)
    strong(policy)
    policy.of_stage(0).normaliser.update(steps_of_rollout(collect(task, policy.acting(), seed=1), task.space)[0].features)
    rollout = collect(task, policy.acting())
    steps, _ = steps_of_rollout(rollout, task.space)
    prepared, actions = policy.prepare(steps), torch.from_numpy(rollout.actions)
    for stage in Stage:
        chosen = np.flatnonzero(steps.stage == stage)
        forest, rows = steps.forest(chosen)
        found = policy.log_prob(prepared, steps, actions, chosen, forest, torch.from_numpy(rows))
        assert_close(found, torch.from_numpy(rollout.log_prob.ravel()[chosen]), 1e-4)


def test_two_limbs_in_one_place_are_told_apart_by_their_position_alone() -> None:
    task = task_of("walker_medium")
    for position, apart in (("topology", True), ("order", True), ("none", False)):
        policy, _ = networks(task, replace(SMALL, position=position))  # type: ignore[arg-type]
        decision = policy.acting(deterministic=True)(graphs_of(task, [task.initial_design], [Stage.ATTRIBUTE]))
        assert (decision.actions[1] != decision.actions[2]).any() == apart


# ---- configuration ---------------------------------------------------------------------------------------------------------------


def config_of(*overrides: str) -> BodyGenConfig:
    method = load_config("config", ["method=bodygen", *overrides])["method"]
    return build(BodyGenConfig, {k: v for k, v in method.items() if k not in ("name", "plugin", "label", "colour")}, "method")


def test_published_settings() -> None:
    config = config_of("env=cheetah")
    assert config.mosat == PUBLISHED
    assert (config.encoder, config.value.mlp, config.clip_features, config.merge) == ("mosat", (512, 256), 10.0, "before")
    assert (config.skeleton.steps, config.attribute.steps, config.attribute.log_std) == (5, 1, -2.3)
    names = ("crawler", "terraincrosser", "pusher", "stepper", "stepper_hard", "cheetah", "walker_hard", "swimmer_bodygen", "glider_medium")
    assert [config.execution.log_std_of(name) for name in names] == [-0.5] * 5 + [0.0] * 4
    ppo = config.ppo
    assert (ppo.gamma, ppo.gae_lambda, ppo.clip, ppo.minibatch, ppo.passes) == (0.995, 0.95, 0.2, 2048, 10)
    assert (ppo.policy_lr, ppo.value_lr, ppo.policy_gradient_clip, ppo.value_gradient_clip) == (5e-5, 3e-4, 40.0, 40.0)
    assert (ppo.credit, ppo.return_scales, ppo.normalise_values) == ("stages", True, False)
    assert load_config("config", ["method=bodygen_no_credit"])["method"]["ppo"]["credit"] == "gae"


def test_heads_that_do_not_divide_the_width() -> None:
    with pytest.raises(ConfigError) as error:
        config_of("method.mosat.heads=5")
    assert_one_sentence(error.value, "method.mosat.heads is 5", "64")


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (["method.mosat.positions=3"], ["method.mosat.positions is 3", "14"]),
        (["method.start=expert", "env=walker_medium"], ["walker_medium", "expert"]),
    ],
)
def test_what_it_cannot_take_is_refused_before_anything_is_written(overrides: list[str], parts: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        run(tiny_bodygen(tmp_path, *overrides))
    assert_one_sentence(error.value, *parts)
    assert not list(tmp_path.iterdir())


# ---- the method ------------------------------------------------------------------------------------------------------------------


def tiny_bodygen(results: Path, *overrides: str, env: str = "cheetah") -> dict[str, Any]:
    sizes = ("method.mosat.width=8", "method.mosat.blocks=2", "method.mosat.hidden=8", "method.gnn.gnn=[8]", "method.value.mlp=[8]")
    return tiny(results, "method=bodygen", "budget.steps=600", *overrides, env=env, networks=sizes)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bodygen")


@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Callable[..., None], shared: Path) -> None:
    check(tiny_bodygen(shared), shared / "checks")


@pytest.mark.parametrize(
    "overrides",
    [
        ("method=bodygen_no_credit",),
        ("method=stackelberg", "env=crawler"),
        ("method.encoder=gnn", "method.merge=after"),
        ("method.inner_iterations=2", "method.ppo.normalise_values=true", "method.ppo.kl_limit=0.02", "env=crawler"),
    ],
    ids=" ".join,
)
@pytest.mark.slow
def test_options(overrides: tuple[str, ...], tmp_path: Path) -> None:
    conformance.check(tiny_bodygen(tmp_path, *overrides), tmp_path)


@pytest.mark.parametrize("method", ["transform2act_credit", "transform2act_stackelberg", "stackelberg"])
def test_others_that_use_its_credit(method: str, tmp_path: Path) -> None:
    make = tiny_bodygen if method == "stackelberg" else tiny
    config = make(tmp_path, f"method={method}", "budget.steps=600", env="cheetah")  # type: ignore[operator]
    for check in (conformance.equal_charging, conformance.resume_equality, conformance.worker_independence):
        check(config, tmp_path)


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (["method.ppo.credit=gae"], ["method.ppo.credit is gae", "stages"]),
        (["method.skeleton.steps=0", "method.attribute.steps=0"], ["method.ppo.leader", "design steps"]),
        (["method.ppo.leader.damping=0"], ["method.ppo.leader.damping is 0", "above 0"]),
    ],
)
def test_a_leader_that_cannot_lead_is_refused(overrides: list[str], parts: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        run(tiny_bodygen(tmp_path, "method=stackelberg", *overrides))
    assert_one_sentence(error.value, *parts)
    assert not list(tmp_path.iterdir())
