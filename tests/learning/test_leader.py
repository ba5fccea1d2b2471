"""Stackelberg PPO: forward derivatives of the kernels, the leader's second term against its slow twin and by hand, and its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call

from codesign_bench.errors import ConfigError
from codesign_bench.learning import products
from codesign_bench.learning.actor_critic import StageCritic
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.credit import DesignCredit, Taken
from codesign_bench.learning.leader import LeaderConfig, conjugate_gradients
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.ppo import PPO, PPOConfig, clipping
from codesign_bench.learning.stackelberg import LeaderLosses, StackelbergPPO, make_ppo
from codesign_bench.learning.stage_policy import StagePolicy, SubPolicy
from codesign_bench.simulation.episode import ACTION_SIZE, ATTRIBUTES, CONTROL, Stage, TransformSteps
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks import make_task
from methods.bodygen.networks import EncoderConfig, GNNConfig, policy_of, values_of
from methods.transform2act.method import AttributeConfig, ExecutionConfig, SkeletonConfig
from methods.transform2act.policy import Transform2ActPolicy
from tests.learning.material import designs_of, forest_of, steps_with, strong, value_of
from tests.methods.test_bodygen import SMALL
from tests.reference import slow_stackelberg as slow
from tests.reference import slow_transform2act
from tests.reference.sentences import assert_one_sentence

LEADER = LeaderConfig(control_steps=3, damping=0.5, iterations=500, tolerance=1e-7, limit=1.0)
CONFIG = PPOConfig(
    minibatch=32,
    passes=2,
    clip=0.2,
    gamma=0.99,
    gae_lambda=0.95,
    policy_lr=1e-3,
    value_lr=1e-3,
    policy_gradient_clip=40.0,
    shards=2,
    credit="stages",
    leader=LEADER,
)
TASK = make_task("cheetah", max_steps=25, start={"noise": 0.2})
STEPS = TransformSteps(2, 1)


def small_policy(seed: int = 0) -> Transform2ActPolicy:
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"gnn": (4, 4), "mlp": (3,), "head": "jsmlp"}
    skeleton, attribute = SkeletonConfig(steps=2, **sizes), AttributeConfig(steps=1, log_std=-2.3, **sizes)
    return strong(Transform2ActPolicy(TASK, skeleton, attribute, ExecutionConfig(log_std=-0.3, **sizes), "linear"))


def bodygen() -> tuple[Any, StageCritic]:
    torch.manual_seed(0)
    encoder, normaliser = EncoderConfig("mosat", SMALL, GNNConfig(gnn=(8, 8))), Normaliser(TASK.features.size, 10.0)
    return strong(policy_of(TASK, encoder, normaliser, -2.3, 0.0)), StageCritic(normaliser, values_of(TASK, encoder, (6, 5)))


def rollout_of(policy: Any, length: int = 60, slots: int = 5) -> Rollout:
    return Sampler(TASK, slots, np.random.SeedSequence(3), STEPS).collect(policy.acting(), length)


def loaded(ppo: StackelbergPPO, rollout: Rollout, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """A batch with random advantages in all shards; its episodes."""
    steps, _ = steps_of_rollout(rollout, TASK.space)
    settled = DesignCredit().settle(rollout, Taken(steps, rollout.actions, rollout.log_prob.ravel()))
    batch = ppo._load(settled.taken)
    rng = np.random.default_rng(seed)
    ppo.shards.set_targets(rng.normal(size=steps.num_steps), rng.normal(size=steps.num_steps))
    controls = np.setdiff1d(settled.learned, settled.design)
    return batch, *ppo.episodes(settled, controls, rng)


# ---- forward derivatives ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["mkl", "onednn"])
@pytest.mark.parametrize("network", ["mosat", "gnn and jsmlp", "head alone"])
def test_changes_of_the_controls_are_their_differences(network: str, route: Any) -> None:
    policy = bodygen()[0] if network == "mosat" else small_policy()
    execution = policy.execution.double()
    designs = designs_of(TASK, 6)
    steps = steps_with(TASK, designs, [Stage.EXECUTION] * len(designs))
    forest, rows = forest_of(steps, np.arange(len(designs)))
    x = torch.from_numpy(steps.features).double()[rows]
    if network == "head alone":
        execution.network.gnn = None
        execution.network.head = strong(type(execution.network.head)(x.shape[1], (3,), 1, TASK.space.max_nodes, "linear")).double()
    torch.manual_seed(1)
    weights = dict(execution.network.named_parameters())
    moves = {name: torch.randn_like(weight) for name, weight in weights.items()}
    with products.using(route), torch.no_grad():
        with forward_ad.dual_level():
            duals = {name: forward_ad.make_dual(weight, moves[name]) for name, weight in weights.items()}
            found = forward_ad.unpack_dual(functional_call(execution.network, duals, (x, forest))).tangent
        ahead, behind = (
            functional_call(execution.network, {n: w + h * moves[n] for n, w in weights.items()}, (x, forest)) for h in (1e-6, -1e-6)
        )
    assert found is not None
    torch.testing.assert_close(found, (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6)


# ---- the second term -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_the_second_term_is_that_of_the_slow_twin(shards: int) -> None:
    policy = small_policy()
    ppo = StackelbergPPO(policy, value_of(TASK), replace(CONFIG, shards=shards), LEADER, STEPS)
    rollout = rollout_of(policy)
    moved = strong(small_policy(), seed=6)  # ratios are not 1
    with torch.no_grad():
        for mine, other in zip(policy.parameters(), moved.parameters(), strict=True):
            mine.add_(0.02 * other)
    batch, design, drawn = loaded(ppo, rollout)
    controls = drawn[:, :3]
    assert len(design) > 5
    found, iterations = ppo.cross(batch, design, controls)
    assert 0 < iterations < 500

    every, _ = slow_transform2act.steps_of(rollout, TASK)
    old = {id(step): float(value) for step, value in zip(every, rollout.log_prob.ravel(), strict=True)}
    advantage = {id(step): float(value) for step, value in zip(every, ppo.shards.targets[0], strict=True)}
    pick = [[[every[i] for i in episode] for episode in part] for part in (design, controls)]
    expected = slow.cross(slow_transform2act.slow_policy(policy, TASK), pick[0], pick[1], old, advantage, LEADER.damping, CONFIG.clip)
    leader = found[: len(expected)].double()
    assert (leader - expected).norm() < 1e-3 * expected.norm()
    assert not found[len(expected) :].any()


class Constant(nn.Module):
    """Numbers that depend on nothing: the first is learned."""

    def __init__(self, mean: float, outputs: int) -> None:
        super().__init__()
        self.mean, self.outputs = nn.Parameter(torch.tensor([mean])), outputs

    def forward(self, x: torch.Tensor, forest: Any) -> torch.Tensor:
        rest = x.new_zeros(len(x), self.outputs - 1)
        return torch.cat([self.mean.expand(len(x), 1), rest], dim=1)


def test_the_second_term_by_hand() -> None:
    """Of each of n nodes a leader draws x around a and a follower y around b, both with deviation 1, and both get
    -(x - y)^2 - (y - 1)^2, whose mean is J = n (-(a - b)^2 - (b - 1)^2 + constant). So d = -2 n s, with (1 + damping) s = -dJ/db.
    Draws come with all their signs, which takes most of the noise out of the means."""
    a, b, damping, episodes = 0.3, -0.4, 2.0, 32_000
    columns, normaliser = np.arange(TASK.features.size), Normaliser(TASK.features.size)
    subs = [
        SubPolicy(stage, columns, Constant(mean, outputs), torch.zeros(outputs) if stage else None, normaliser)
        for stage, mean, outputs in ((Stage.SKELETON, 0.0, 3), (Stage.ATTRIBUTE, a, 5), (Stage.EXECUTION, b, 1))
    ]
    policy = StagePolicy(TASK, *subs)
    steps = steps_with(TASK, [TASK.initial_design] * 2 * episodes, [Stage.ATTRIBUTE] * episodes + [Stage.EXECUTION] * episodes)
    nodes, rng = TASK.initial_design.num_nodes, np.random.default_rng(0)
    signs = 2 * (np.arange(4**nodes)[:, None] >> np.arange(2 * nodes) & 1) - 1
    drawn = (rng.normal(size=(episodes // len(signs), 1, 2 * nodes)) * signs).reshape(episodes, 2, nodes).swapaxes(0, 1)
    noise = rng.normal(size=(2 * episodes, nodes, ACTION_SIZE))
    noise[:episodes, :, ATTRIBUTES.start], noise[episodes:, :, CONTROL] = drawn
    x, y = a + noise[:episodes, :, ATTRIBUTES.start], b + noise[episodes:, :, CONTROL]
    worth = (-((x - y) ** 2) - (y - 1) ** 2).sum(1)
    actions = noise.copy()
    actions[:episodes, :, ATTRIBUTES.start], actions[episodes:, :, CONTROL] = x, y

    leader = replace(LEADER, control_steps=1, damping=damping)
    ppo = StackelbergPPO(policy, value_of(TASK), replace(CONFIG, shards=1, clip=10.0), leader, TransformSteps(0, 1))
    batch = ppo._load(Taken(steps, actions.reshape(-1, ACTION_SIZE), np.zeros(2 * episodes)))
    ppo.shards.recompute_log_prob(steps.stage)
    advantage = np.tile(worth - worth.mean(), 2)
    ppo.shards.set_targets(advantage, advantage)
    design = np.arange(episodes)[:, None]
    found, _ = ppo.cross(batch, design, design + episodes)
    s = -nodes * (2 * (a - b) - 2 * (b - 1)) / (1 + damping)
    names = [name for name, _ in policy.named_parameters()]
    places = dict(zip(names, ppo.shards.policy._views(found), strict=True))
    assert places["attribute.network.mean"].item() == pytest.approx(-2 * nodes * s, rel=0.05)


# ---- limits ----------------------------------------------------------------------------------------------------------------------


def learned(config: PPOConfig, networks: Any = bodygen) -> tuple[torch.Tensor, Any]:
    """The weights after a batch, and the losses."""
    policy, critic = networks()
    ppo = make_ppo(policy, critic, config, STEPS)
    rollout = rollout_of(policy)
    steps, bootstrap = steps_of_rollout(rollout, TASK.space)
    losses = ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))
    return torch.cat([ppo.shards.policy.values, ppo.shards.value.values]).clone(), losses


def test_without_an_answer_leader_and_follower_learn_by_themselves() -> None:
    """Damped or limited to nothing it is PPO with minibatches of episodes for the one, of control steps for the other."""
    damped, _ = learned(replace(CONFIG, leader=replace(LEADER, damping=1e12)))
    limited, _ = learned(replace(CONFIG, leader=replace(LEADER, limit=0.0)))
    reckoning, losses = learned(CONFIG)
    assert isinstance(losses, LeaderLosses)
    assert losses.leader_cross > 0
    assert losses.leader_iterations > 1
    assert distance(damped, limited) < 0.01
    assert distance(apart(), limited) < 0.02
    assert distance(reckoning, limited) > 0.05


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Of weights, as a share of how far they moved. Adam makes much of gradients that are nothing but rounding, in a few of them."""
    policy, critic = bodygen()
    before = torch.cat([parameter.detach().ravel() for parameter in (*policy.parameters(), *critic.parameters())])
    return float((one - other).norm() / (other - before).norm())


def apart() -> torch.Tensor:
    """The same with two of torch's optimisers for each network, and gradients of PPO's own losses."""
    policy, critic = bodygen()
    config = replace(CONFIG, leader=replace(LEADER, limit=0.0))
    ppo = StackelbergPPO(policy, critic, config, config.leader, STEPS)  # type: ignore[arg-type]
    rollout = rollout_of(policy)
    steps, bootstrap = steps_of_rollout(rollout, TASK.space)
    parameters = {"policy": list(policy.parameters()), "value": list(critic.parameters())}
    groups = {
        ("policy", 0): [*policy.skeleton.parameters(), *policy.attribute.parameters()],
        ("policy", 1): list(policy.execution.parameters()),
        ("value", 0): [*critic.networks[0].parameters(), *critic.networks[1].parameters()],
        ("value", 1): list(critic.networks[2].parameters()),
    }
    adams = {key: torch.optim.Adam(group, lr=1e-3) for key, group in groups.items()}

    def step(network: str, which: int, norm: float) -> None:
        total = getattr(ppo.shards, network).total
        assert norm == pytest.approx(total.norm().item(), rel=1e-4)
        offset = 0
        for parameter in parameters[network]:
            parameter.grad = total[offset : offset + parameter.numel()].view_as(parameter) * clipping(
                norm, 40.0 if network == "policy" else None
            )
            offset += parameter.numel()
        outside = {id(p) for p in parameters[network]} - {id(p) for p in groups[network, which]}
        assert not any(p.grad.any() for p in parameters[network] if id(p) in outside)
        adams[network, which].step()

    ppo._step = step  # type: ignore[method-assign,assignment]
    ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))
    return torch.cat([ppo.shards.policy.values, ppo.shards.value.values])


def test_one_critic_of_all_stages_has_one_optimiser() -> None:
    ppo = StackelbergPPO(small_policy(), value_of(TASK), CONFIG, LEADER, STEPS)
    rollout = rollout_of(ppo.actor)
    steps, bootstrap = steps_of_rollout(rollout, TASK.space)
    ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))
    policy, value = ([count for name, count in ppo.counts.items() if name.startswith(kind)] for kind in ("policy", "value"))
    assert len(policy) == 2
    assert value == [sum(policy)]


# ---- episodes --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [60, 11])
def test_design_steps_stay_with_control_steps_of_their_episode(length: int) -> None:
    """Over batches, too: steps that waited come with the control steps of the batch in which their episode ended."""
    policy = small_policy()
    ppo = StackelbergPPO(policy, value_of(TASK), CONFIG, LEADER, STEPS)
    sampler, credit, seen, paired, begun = Sampler(TASK, 5, np.random.SeedSequence(3), STEPS), DesignCredit(), 0, 0, np.zeros(5, int)
    for _ in range(120 // length):
        rollout = sampler.collect(policy.acting(), length)
        steps, _ = steps_of_rollout(rollout, TASK.space)
        ended = rollout.terminated | rollout.truncated
        truth = np.vstack([begun, begun + np.cumsum(ended, axis=0)])
        name = (truth[:-1] * 5 + np.arange(5)).ravel().astype(float)  # of a step's episode, in place of its log-probability
        begun = truth[-1]
        settled = credit.settle(rollout, Taken(steps, rollout.actions, name))
        controls = np.setdiff1d(settled.learned, settled.design)
        design, drawn = ppo.episodes(settled, controls, np.random.default_rng(0))
        names = settled.taken.log_prob
        assert (names[design] == names[design][:, :1]).all()
        assert (names[drawn] == names[design][:, :1]).all()
        assert (settled.taken.steps.stage[design] != Stage.EXECUTION).all()
        assert (settled.taken.steps.stage[drawn] == Stage.EXECUTION).all()
        for mine in drawn:
            its = int((names[controls] == names[mine[0]]).sum())
            assert its < 6 or len(set(mine)) == 6
        seen += int(ended.sum())
        paired += len(design)
    assert seen - 8 <= paired <= seen  # but those that end before they control


# ---- conjugate gradients ---------------------------------------------------------------------------------------------------------


def test_conjugate_gradients() -> None:
    rng = np.random.default_rng(0)
    factor = torch.from_numpy(rng.normal(size=(12, 12)))
    matrix, right = factor @ factor.T + torch.eye(12), torch.from_numpy(rng.normal(size=12))
    found, steps = conjugate_gradients(lambda x: matrix @ x, right, 50, 1e-12)
    torch.testing.assert_close(found, torch.linalg.solve(matrix, right))
    assert steps <= 20
    assert conjugate_gradients(lambda x: matrix @ x, right, 3, 1e-12)[1] == 3
    nothing, steps = conjugate_gradients(lambda x: -x, right, 50, 1e-12)
    assert steps == 0
    assert not nothing.any()
    assert conjugate_gradients(lambda x: matrix @ x, torch.zeros(12, dtype=torch.float64), 50, 1e-12)[1] == 0


# ---- bad input -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "steps", "words"),
    [({"credit": "gae"}, STEPS, ("method.ppo.credit is gae", "stages")), ({}, TransformSteps(0, 0), ("method.ppo.leader", "design steps"))],
)
def test_refused(changes: dict[str, Any], steps: TransformSteps, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as error:
        make_ppo(small_policy(), value_of(TASK), replace(CONFIG, **changes), steps)
    assert_one_sentence(error.value, *words)


def test_without_a_leader_it_is_ppo() -> None:
    ppo = make_ppo(small_policy(), value_of(TASK), replace(CONFIG, leader=None), STEPS)
    assert type(ppo) is PPO
