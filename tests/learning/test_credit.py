"""Credit of design steps, against a loop over episodes; scales of returns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.credit import DesignCredit, Taken, standardised
from codesign_bench.learning.ppo import PPO, PPOConfig, _credited
from codesign_bench.learning.return_scale import ReturnScales
from codesign_bench.simulation.episode import Stage, TransformSteps
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks import make_task
from tests.learning.material import policy_of, strong, value_of
from tests.reference.slow_bodygen import returns_of_episodes

CONFIG = PPOConfig(
    minibatch=32, passes=2, clip=0.2, gamma=0.99, gae_lambda=0.95, policy_lr=1e-3, value_lr=1e-3, policy_gradient_clip=40.0, shards=2
)
TASK = make_task("cheetah", max_steps=25, start={"noise": 0.2})
"""Episodes of up to 31 steps, many of them shorter."""


def batches(count: int, length: int, slots: int = 5) -> list[Rollout]:
    policy = policy_of(TASK)
    sampler = Sampler(TASK, slots, np.random.SeedSequence(3), TransformSteps(5, 1))
    return [sampler.collect(policy.acting(), length) for _ in range(count)]


def taken(rollout: Rollout, number: int = 0) -> Taken:
    """The steps of a batch; instead of its log-probability each has a number of its own, by which it is known again."""
    names = np.arange(rollout.num_steps, dtype=np.float64) + number * rollout.num_steps
    return Taken(steps_of_rollout(rollout, TASK.space)[0], rollout.actions, names)


@pytest.mark.parametrize("length", [40, 7, 3])
def test_design_steps_get_the_return_of_their_episode(length: int) -> None:
    """In the batch in which it ends, exactly once, however many batches it lasts."""
    rollouts, credit = batches(120 // length, length), DesignCredit()
    reward = np.concatenate([r.reward for r in rollouts])
    ended = np.concatenate([r.terminated | r.truncated for r in rollouts])
    design = np.concatenate([r.stage for r in rollouts]) != Stage.EXECUTION
    expected = {}
    for slot in range(reward.shape[1]):
        for time, value in enumerate(returns_of_episodes(reward[:, slot].tolist(), ended[:, slot].tolist())):
            if design[time, slot] and value is not None:
                expected[time * reward.shape[1] + slot] = value
    assert len(expected) > 30

    found: dict[float, float] = {}
    for number, rollout in enumerate(rollouts):
        settled = credit.settle(rollout, taken(rollout, number))
        stage = settled.taken.steps.stage
        assert (stage[settled.design] != Stage.EXECUTION).all()
        assert set(settled.learned) == {*settled.design, *np.flatnonzero(stage == Stage.EXECUTION)}
        for name, value in zip(settled.taken.log_prob[settled.design], settled.returns, strict=True):
            assert name not in found
            found[name] = value
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_steps_that_waited_are_what_they_were() -> None:
    """Features, tree, actions and rows of a step are the same when it is learned from a batch later."""
    first, second = batches(2, 20)
    credit, before = DesignCredit(), taken(first)
    credit.settle(first, before)
    settled = credit.settle(second, taken(second, 1))
    late = settled.taken.select(np.arange(second.num_steps, settled.taken.steps.num_steps))
    assert late.steps.num_steps > 3
    for i, name in enumerate(late.log_prob):
        (origin,) = np.flatnonzero(before.log_prob == name)
        one, other = late.select(np.array([i])), before.select(np.array([origin]))
        for field in ("stage", "count", "first", "joint_index", "parent", "sibling", "can_add", "can_delete", "features"):
            np.testing.assert_array_equal(getattr(one.steps, field), getattr(other.steps, field))
        np.testing.assert_array_equal(one.actions, other.actions)


def test_what_waits_survives_a_checkpoint() -> None:
    first, second = batches(2, 20)
    credit, loaded = DesignCredit(), DesignCredit()
    credit.settle(first, taken(first))
    loaded.load_state_dict(credit.state_dict(), TASK.space)
    one, other = (c.settle(second, taken(second)) for c in (credit, loaded))
    np.testing.assert_array_equal(one.returns, other.returns)
    np.testing.assert_array_equal(one.taken.steps.features, other.taken.steps.features)


def test_advantages_and_targets() -> None:
    """Design: return less value, target the return; control: GAE; each standardised by itself."""
    (rollout,), rng = batches(1, 60), np.random.default_rng(0)
    settled = DesignCredit().settle(rollout, taken(rollout))
    gae, target, value = rng.normal(size=(60, 5)), rng.normal(size=(60, 5)), rng.normal(size=300)
    advantage, targets = _credited(gae, target, value, settled)
    design = settled.design
    control = np.flatnonzero(rollout.stage.ravel() == Stage.EXECUTION)
    np.testing.assert_array_equal(targets[design], settled.returns)
    np.testing.assert_array_equal(targets[control], target.ravel()[control])
    for mine, raw in ((design, settled.returns - value[design]), (control, gae.ravel()[control])):
        np.testing.assert_allclose(advantage[mine], (raw - raw.mean()) / raw.std(ddof=1))
    assert standardised(np.array([3.0])).tolist() == [0.0]
    assert standardised(np.zeros(0)).tolist() == []


def test_ppo_learns_from_them() -> None:
    """Batches shorter than an episode: the skeleton network moves only once an episode has ended."""
    rollouts = batches(4, 5)
    policy, value = strong(policy_of(TASK)), value_of(TASK)
    ppo = PPO(policy, value, replace(CONFIG, credit="stages", return_scales=True))
    weights = [p.detach().clone() for p in policy.skeleton.parameters()]
    moved = []
    for rollout in rollouts:
        steps, bootstrap = steps_of_rollout(rollout, TASK.space)
        ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))
        moved.append(any((p != w).any() for p, w in zip(policy.skeleton.parameters(), weights, strict=True)))
    ended = [bool((r.terminated | r.truncated).any()) for r in rollouts]
    assert not moved[0]
    assert moved == [any(ended[: i + 1]) for i in range(4)]
    assert moved[-1]


def test_ratios_begin_at_one_after_inputs_have_changed() -> None:
    (rollout,) = batches(1, 30)
    policy, value = strong(policy_of(TASK)), value_of(TASK)
    steps, bootstrap = steps_of_rollout(rollout, TASK.space)
    policy.update_normalisers(steps)
    config = replace(CONFIG, passes=1, minibatch=10_000, kl_limit=1e-9)
    moved = PPO(policy, value, config).learn(rollout, steps, bootstrap, np.random.default_rng(0))
    recomputed = PPO(policy, value, config).learn(rollout, steps, bootstrap, np.random.default_rng(0), recompute=True)
    assert moved.kl > 1e-3
    assert abs(recomputed.kl) < 1e-9


def test_scales_of_returns() -> None:
    scales, rng = ReturnScales(), np.random.default_rng(1)
    stage = rng.integers(0, 3, 500)
    control = stage == Stage.EXECUTION
    assert scales.values(np.ones(500), stage).tolist() == [1.0] * 500
    batches_of_targets = [rng.normal(50, 20, 500), rng.normal(90, 3, 500)]
    for targets in batches_of_targets:
        scales.update(targets, stage)
    for mine in (control, ~control):
        deviation = np.concatenate([targets[mine] for targets in batches_of_targets]).std()
        np.testing.assert_allclose(scales.values(np.ones(500), stage)[mine], deviation, rtol=1e-9)
        np.testing.assert_allclose(scales.normalised(np.full(500, 7.0), stage)[mine], 7 / deviation, rtol=1e-9)
    other = ReturnScales()
    other.load_state_dict(scales.state_dict())
    assert other.values(np.ones(500), stage).tolist() == scales.values(np.ones(500), stage).tolist()


def test_gradients_of_the_critic_are_clipped() -> None:
    (rollout,) = batches(1, 30)
    steps, bootstrap = steps_of_rollout(rollout, TASK.space)
    far = replace(rollout, reward=rollout.reward + 1e4)
    moved = []
    for clip in (None, 1e-9):
        value = strong(value_of(TASK))
        before = torch.cat([p.detach().clone().ravel() for p in value.parameters()])
        PPO(policy_of(TASK), value, replace(CONFIG, value_gradient_clip=clip)).learn(far, steps, bootstrap, np.random.default_rng(0))
        moved.append(float((torch.cat([p.detach().ravel() for p in value.parameters()]) - before).abs().max()))
    assert moved[1] < 0.5 * moved[0]
