"""The update: advantages, minibatches, and both networks after learning, against the slow reference in float64."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from codesign_bench.errors import ConfigError
from codesign_bench.learning.actor_critic import GraphCritic
from codesign_bench.learning.batch import Steps, steps_of_rollout
from codesign_bench.learning.gae import advantages
from codesign_bench.learning.ppo import PPO, LearningError, PPOConfig, _advantages_and_targets, minibatches
from codesign_bench.learning.vectors import new_vectors
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.processes import Processes
from codesign_bench.tasks import make_task
from codesign_bench.tasks.base import Task
from methods.transform2act.policy import Transform2ActPolicy
from tests.learning.material import collect, policy_of, strong, value_of
from tests.reference import slow_transform2act as slow

CONFIG = PPOConfig(
    minibatch=32, passes=2, clip=0.2, gamma=0.9, gae_lambda=0.8, policy_lr=1e-3, value_lr=1e-3, policy_gradient_clip=40.0, shards=2
)


def material(seen: bool = True, **overrides: Any) -> tuple[Task, Transform2ActPolicy, GraphCritic, Rollout]:
    """Networks, and a batch with ends of every kind: cut by a time limit, cut by the end of the batch, and (put in by hand, because
    nothing falls within a few steps) terminal ones."""
    task = make_task("locomotion2d", **{"max_steps": 6, "time_limit": "truncate", **overrides})
    policy, value = strong(policy_of(task)), strong(value_of(task))
    if seen:
        steps, _ = steps_of_rollout(collect(task, policy.acting(), slots=4, steps=8, seed=1), task.space)
        policy.update_normalisers(steps)
        value.update_normaliser(steps)
    rollout = collect(task, policy.acting(), slots=6, steps=20)
    fallen = (np.random.default_rng(2).random(rollout.reward.shape) < 0.1) & (rollout.stage == 2) & ~rollout.truncated
    return task, policy, value, replace(rollout, terminated=rollout.terminated | fallen)


def learn(policy: Any, value: Any, rollout: Rollout, task: Task, config: PPOConfig = CONFIG, seed: int = 0) -> PPO:
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    ppo = PPO(policy, value, config)
    ppo.learn(rollout, steps, bootstrap, np.random.default_rng(seed))
    return ppo


def weights(module: torch.nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters()]


def naive_gae(rollout: Rollout, value: np.ndarray, bootstrap: np.ndarray, gamma: float, lam: float) -> np.ndarray:
    """A sum over what follows within the episode, for each step on its own."""
    time, slots = rollout.reward.shape
    cut = {(t.time, t.slot): bootstrap[slots + i] for i, t in enumerate(rollout.truncations)}
    result = np.zeros((time, slots))
    for s in range(slots):
        for t in range(time):
            weight = 1.0
            for k in range(t, time):
                ended = rollout.terminated[k, s] or rollout.truncated[k, s]
                if rollout.terminated[k, s]:
                    after = 0.0
                elif rollout.truncated[k, s]:
                    after = cut[k, s]
                else:
                    after = bootstrap[s] if k == time - 1 else value[k + 1, s]
                result[t, s] += weight * (rollout.reward[k, s] + gamma * after - value[k, s])
                weight *= gamma * lam
                if ended:
                    break
    return result


# ---- advantages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.0, 0.95, 1.0])
def test_gae_is_the_naive_sum(lam: float) -> None:
    rng = np.random.default_rng(0)
    reward, value, after = rng.normal(size=(3, 30, 4))
    ended = rng.random((30, 4)) < 0.15
    after[ended & (rng.random((30, 4)) < 0.5)] = 0.0
    expected = np.zeros((30, 4))
    for s in range(4):
        for t in range(30):
            weight = 1.0
            for k in range(t, 30):
                expected[t, s] += weight * (reward[k, s] + 0.97 * after[k, s] - value[k, s])
                weight *= 0.97 * lam
                if ended[k, s]:
                    break
    np.testing.assert_allclose(advantages(reward, value, after, ended, 0.97, lam), expected, rtol=0, atol=1e-12)


def test_advantages_of_a_rollout_with_every_kind_of_end() -> None:
    _, _, _, rollout = material()
    assert rollout.truncated.any()
    assert rollout.terminated.any()
    assert not (rollout.terminated | rollout.truncated)[-1].all(), "some episodes are cut by the end of the batch"
    rng = np.random.default_rng(1)
    value, bootstrap = rng.normal(size=rollout.reward.shape), rng.normal(size=rollout.reward.shape[1] + len(rollout.truncations))
    advantage, target = _advantages_and_targets(rollout, value.ravel(), bootstrap, CONFIG)
    expected = naive_gae(rollout, value, bootstrap, CONFIG.gamma, CONFIG.gae_lambda)
    np.testing.assert_allclose(advantage, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(target, expected + value, rtol=0, atol=1e-12)


def test_time_limits_end_without_bootstrap_unless_the_task_says_truncate() -> None:
    _, _, _, rollout = material(time_limit="terminal")
    assert not rollout.truncated.any()
    assert rollout.truncations == ()


# ---- minibatches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "size", "parts"), [(50_000, 2048, 24), (100, 32, 3), (10, 2048, 1), (1024, 2048, 1), (3100, 2048, 2)])
def test_minibatches(steps: int, size: int, parts: int) -> None:
    stage = np.random.default_rng(0).choice(3, steps, p=[0.05, 0.01, 0.94])
    result = minibatches(stage, size, np.random.default_rng(1))
    assert len(result) == parts
    order = np.concatenate(result)
    np.testing.assert_array_equal(np.sort(order), np.arange(steps))
    assert (np.diff(stage[order]) >= 0).all(), "grouped by stage"
    sizes = [len(part) for part in result]
    assert max(sizes) - min(sizes) <= 1
    again = np.concatenate(minibatches(stage, size, np.random.default_rng(1)))
    np.testing.assert_array_equal(order, again)
    other = np.concatenate(minibatches(stage, size, np.random.default_rng(2)))
    if steps > 10:
        assert not np.array_equal(order, other)
        assert (np.diff(order[stage[order] == 2]) < 0).any(), "shuffled within a stage"


# ---- the whole update ------------------------------------------------------------------------------------------------


class InDouble:
    """A policy or value network that learns in float64: its inputs are made wider, the rest follows."""

    def __init__(self, module: Any) -> None:
        self.module = copy.deepcopy(module).double()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def prepare(self, steps: Steps) -> Any:
        prepared = self.module.prepare(steps)
        return prepared.double() if isinstance(prepared, torch.Tensor) else [part.double() for part in prepared]


@pytest.mark.parametrize("gradient_clip", [40.0, 0.05])
def test_learning_is_that_of_the_reference(gradient_clip: float) -> None:
    """Two passes of several minibatches in float64. No normaliser was updated, so that both see the same float32 features."""
    task, policy, value, rollout = material(seen=False)
    config = replace(CONFIG, policy_gradient_clip=gradient_clip)
    slow_policy, slow_value = slow.slow_policy(policy, task), slow.slow_value(value)
    steps, bootstrap = slow.steps_of(rollout, task)
    with torch.no_grad():
        v, last = slow_value.values(slow.collate(steps)).numpy(), slow_value.values(slow.collate(bootstrap)).numpy()
    advantage = naive_gae(rollout, v.reshape(rollout.reward.shape), last, config.gamma, config.gae_lambda).ravel()
    target = torch.tensor((advantage + v).astype(np.float32)).double()
    standardised = torch.tensor(((advantage - advantage.mean()) / (advantage.std() + 1e-8)).astype(np.float32)).double()
    old = torch.tensor(rollout.log_prob.ravel()).double()
    rng = np.random.default_rng(0)
    optimisers = slow.adam(slow_policy, config.policy_lr), slow.adam(slow_value, config.value_lr)
    for _ in range(config.passes):
        parts = minibatches(rollout.stage.ravel(), config.minibatch, rng)
        assert len(parts) >= 3
        slow.slow_learning_pass(
            (slow_policy, slow_value), optimisers, steps, old, standardised, target, parts, config.clip, config.policy_gradient_clip
        )

    fast_policy, fast_value = InDouble(policy), InDouble(value)
    before = weights(fast_policy.module) + weights(fast_value.module)
    learn(fast_policy, fast_value, rollout, task, config)
    after = weights(fast_policy.module) + weights(fast_value.module)
    expected = weights(slow_policy) + weights(slow_value)
    for old_weight, a, b in zip(before, after, expected, strict=True):
        assert not torch.equal(old_weight, b)
        torch.testing.assert_close(a, b, rtol=0, atol=1e-8)  # a step is 1e-3


def test_ratio_is_one_on_the_first_minibatch(monkeypatch: pytest.MonkeyPatch) -> None:
    task, policy, value, rollout = material()
    old, ratios = torch.from_numpy(rollout.log_prob.ravel()), []
    log_prob = policy.log_prob

    def recorded(prepared: Any, steps: Steps, actions: Any, chosen: np.ndarray, *rest: Any) -> torch.Tensor:
        result = log_prob(prepared, steps, actions, chosen, *rest)
        ratios.append(torch.exp(result.detach() - old[chosen]))
        return result

    monkeypatch.setattr(policy, "log_prob", recorded)
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    config = replace(CONFIG, passes=1, minibatch=10_000)
    losses = PPO(policy, value, config).learn(rollout, steps, bootstrap, np.random.default_rng(0))
    ratio = torch.cat(ratios)
    assert len(ratio) == rollout.num_steps
    torch.testing.assert_close(ratio, torch.ones_like(ratio), rtol=0, atol=1e-4)
    assert losses.clipped == 0
    assert abs(losses.policy) < 1e-4, "minus the mean of standardised advantages"


def test_every_policy_parameter_is_stepped_in_every_minibatch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam's momentum moves the transform policies during minibatches that hold only execution steps."""
    task, policy, value, rollout = material()
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    ppo = PPO(policy, value, replace(CONFIG, passes=1))
    history = [weights(policy)]
    step = ppo.shards.step

    def recorded(*arguments: Any) -> None:
        step(*arguments)
        history.append(weights(policy))

    monkeypatch.setattr(ppo.shards, "step", recorded)
    ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))
    parts = minibatches(steps.stage, CONFIG.minibatch, np.random.default_rng(0))
    assert len(history) == 1 + len(parts)
    assert set(steps.stage[parts[-1]]) == {2}, "the last minibatch is execution only"
    names = [name for name, _ in policy.named_parameters()]
    first_used = {"skeleton": 0, "attribute": next(i for i, part in enumerate(parts) if 1 in steps.stage[part])}
    for sub, first in first_used.items():
        for i in range(first, len(parts)):
            moved = [not torch.equal(a, b) for name, a, b in zip(names, history[i], history[i + 1], strict=True) if name.startswith(sub)]
            assert all(moved), f"{sub} in minibatch {i}"
    assert ppo.updates == len(parts)


def test_number_of_updates() -> None:
    task, policy, value, rollout = material()
    ppo = learn(policy, value, rollout, task, replace(CONFIG, passes=3))
    assert ppo.updates == 3 * round(rollout.num_steps / 32)


def gradients_of_the_policy(policy: Any, value: Any, rollout: Rollout, task: Task, config: PPOConfig) -> tuple[list[torch.Tensor], float]:
    """In the first minibatch, as the optimiser sees them, and the norm that was reported."""
    found: list[list[torch.Tensor]] = []
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    ppo = PPO(policy, value, config)
    step = ppo.shards.step

    def recorded(scales: tuple[float, float], *rest: Any) -> None:
        found.append([ppo.shards.policy.total * scales[0]])
        step(scales, *rest)

    ppo.shards.step = recorded  # type: ignore[method-assign]
    norm = ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0)).gradient_norm
    return found[0], norm


def test_the_policy_gradient_is_clipped_as_a_whole() -> None:
    task, policy, value, rollout = material()
    free = gradients_of_the_policy(*copy.deepcopy((policy, value)), rollout, task, replace(CONFIG, passes=1, minibatch=10_000))
    norm = float(torch.cat([g.ravel() for g in free[0]]).norm())
    assert free[1] == pytest.approx(norm, rel=1e-4)
    limit = norm / 10
    config = replace(CONFIG, passes=1, minibatch=10_000, policy_gradient_clip=limit)
    clipped, reported = gradients_of_the_policy(policy, value, rollout, task, config)
    assert reported == pytest.approx(norm, rel=1e-4), "the norm before clipping"
    for a, b in zip(clipped, free[0], strict=True):
        torch.testing.assert_close(a, b / 10, rtol=1e-3, atol=1e-6)


def test_advantages_are_standardised() -> None:
    """With a value network that says 0, rewards ten times as large (and time limits that are not bootstrapped) change nothing."""
    task, policy, value, rollout = material()
    with torch.no_grad():
        value.network.head.weights[-1].zero_()
        value.network.head.biases[-1].zero_()
    config = replace(CONFIG, passes=1, minibatch=10_000)
    one, _ = gradients_of_the_policy(*copy.deepcopy((policy, value)), rollout, task, config)
    ten, _ = gradients_of_the_policy(*copy.deepcopy((policy, value)), replace(rollout, reward=10 * rollout.reward), task, config)
    for a, b in zip(one, ten, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_normalisers_are_frozen_while_learning() -> None:
    task, policy, value, rollout = material()
    parts = [policy.skeleton, policy.attribute, policy.execution, value]
    before = [part.normaliser.state_dict() for part in parts]
    learn(policy, value, rollout, task)
    assert [part.normaliser.state_dict() for part in parts] == before
    steps, _ = steps_of_rollout(rollout, task.space)
    nodes = np.repeat(steps.stage, steps.count)
    policy.update_normalisers(steps)
    value.update_normaliser(steps)
    added = [part.normaliser.count - old["_extra_state"]["count"] for part, old in zip(parts, before, strict=True)]
    assert added == [int((nodes == stage).sum()) for stage in range(3)] + [len(nodes)], "each sees the nodes of its own stage"


# ---- processes -------------------------------------------------------------------------------------------------------


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As the runner sets it, and as every other process has it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_results_do_not_depend_on_the_number_of_processes(shards: int, one_thread: None) -> None:
    task, policy, value, rollout = material()
    config = replace(CONFIG, shards=shards)
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    expected, losses = copy.deepcopy((policy, value)), []
    losses.append(PPO(*expected, config).learn(rollout, steps, bootstrap, np.random.default_rng(0)))
    for count in (1, 2):
        found = copy.deepcopy((policy, value))
        with contextlib.closing(Processes(count)) as processes:
            losses.append(PPO(*found, config, "cpu", processes).learn(rollout, steps, bootstrap, np.random.default_rng(0)))
        for a, b in zip(weights(expected[0]) + weights(expected[1]), weights(found[0]) + weights(found[1]), strict=True):
            assert torch.equal(a, b)
    assert losses[0] == losses[1] == losses[2]


def test_shards_sum_to_the_gradient_of_the_minibatch() -> None:
    """Also when there are more shards than steps."""
    task, policy, value, rollout = material()
    of_one, _ = gradients_of_the_policy(*copy.deepcopy((policy, value)), rollout, task, replace(CONFIG, shards=1))
    for shards in (3, 50):
        of_many, _ = gradients_of_the_policy(*copy.deepcopy((policy, value)), rollout, task, replace(CONFIG, shards=shards))
        for a, b in zip(of_one, of_many, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_optimisers_go_on_where_they_stopped() -> None:
    task, policy, value, rollout = material()
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    ppo = learn(policy, value, rollout, task)
    other_policy, other_value = copy.deepcopy((policy, value))
    other = PPO(other_policy, other_value, CONFIG)
    other.load_state_dict(copy.deepcopy(ppo.state_dict()))
    for one in (ppo, other):
        one.learn(rollout, steps, bootstrap, np.random.default_rng(5))
    for a, b in zip(weights(policy) + weights(value), weights(other_policy) + weights(other_value), strict=True):
        assert torch.equal(a, b)


def test_a_loss_that_is_not_finite_stops_learning_and_leaves_the_weights() -> None:
    task, policy, value, rollout = material()
    reward = rollout.reward.copy()
    reward[3, 2] = np.nan
    before = weights(policy) + weights(value)
    with pytest.raises(LearningError, match="not finite"):
        learn(policy, value, replace(rollout, reward=reward), task)
    for a, b in zip(before, weights(policy) + weights(value), strict=True):
        assert torch.equal(a, b)


def test_a_gradient_that_is_not_finite_stops_learning_and_leaves_the_weights() -> None:
    task, policy, value, rollout = material()
    t, s = np.argwhere(rollout.stage == 2)[3]
    reward, log_prob = np.zeros_like(rollout.reward), rollout.log_prob.copy()
    reward[t, s], log_prob[t, s] = 1000.0, -200.0
    config = replace(CONFIG, passes=1, minibatch=10_000, gamma=0.0, gae_lambda=0.0)
    before = weights(policy)
    with pytest.raises(LearningError, match="not finite"):
        learn(policy, value, replace(rollout, reward=reward, log_prob=log_prob), task, config)
    for a, b in zip(before, weights(policy), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("change", [{"minibatch": 0}, {"passes": 0}, {"shards": 0}, {"clip": 0.0}, {"gamma": 1.1}, {"gae_lambda": -0.1}])
def test_bad_configurations(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="allowed"):
        replace(CONFIG, **change)


# ---- optimisers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 3])
def test_the_step_is_that_of_torch(shards: int) -> None:
    """Bit by bit, with the fused Adam on one vector."""
    generator = torch.Generator().manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(size, generator=generator)) for size in ((50, 70), (4001,), (3,))]
    twin = torch.nn.Parameter(torch.cat([p.detach().ravel() for p in parameters]))
    optimiser, vectors = torch.optim.Adam([twin], lr=3e-3, fused=True), new_vectors(parameters, shards)
    for count in range(1, 6):
        gradients = [torch.randn(len(twin), generator=generator) for _ in range(shards)]
        vectors.gradients.copy_(torch.stack(gradients))
        twin.grad = sum(gradients[1:], gradients[0].clone())
        norm = float(torch.nn.utils.clip_grad_norm_([twin], 10.0))
        assert np.sqrt(sum(vectors.sum_gradients(part, shards) for part in range(shards))) == pytest.approx(norm, rel=1e-5)
        scale = float(torch.clamp(10.0 / (torch.tensor(norm) + 1e-6), max=1.0))
        optimiser.step()
        for part in range(shards):
            vectors.step(part, scale, 3e-3, count)
        assert torch.equal(vectors.values, twin.detach())
    assert all(p.data_ptr() >= vectors.values.data_ptr() for p in parameters)


def test_a_gradient_that_is_missing_is_zero() -> None:
    one, other = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2))
    vectors = new_vectors([one, other], 1)
    vectors.take(0, (2 * one).sum() + other.sum())
    assert vectors.gradients.tolist() == [[2, 2, 2, 1, 1]]
    vectors.take(0, (3 * one).sum())
    assert vectors.gradients.tolist() == [[3, 3, 3, 0, 0]]


# ---- how far one batch may move a policy -----------------------------------------------------------------------------


def test_a_batch_is_left_when_the_policy_is_too_far_away() -> None:
    task, policy, value, rollout = material()
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    quick = replace(CONFIG, policy_lr=1e-2, passes=5)
    free = PPO(*copy.deepcopy((policy, value)), quick)
    assert free.learn(rollout, steps, bootstrap, np.random.default_rng(0)).passes == 5
    bound = PPO(policy, value, replace(quick, kl_limit=0.01))
    losses = bound.learn(rollout, steps, bootstrap, np.random.default_rng(0))
    assert 0 < losses.passes < 5
    assert 0 < bound.updates < free.updates
    assert bound.updates == round(losses.passes * round(rollout.num_steps / CONFIG.minibatch))


# ---- values on a scale of their own ----------------------------------------------------------------------------------


def test_predictions_stay_when_the_scale_moves() -> None:
    task, _, value, rollout = material()
    steps, _ = steps_of_rollout(rollout, task.space)
    forest, rows = steps.forest(np.arange(steps.num_steps))

    def predictions() -> np.ndarray:
        with torch.no_grad():
            return value.scale.values(value.values(value.prepare(steps), forest, torch.from_numpy(rows)).double().numpy())

    rng = np.random.default_rng(0)
    value.scale.update(rng.normal(100, 20, 1000), *value.outputs)
    assert value.scale.mean.item() == pytest.approx(100, abs=2)
    assert value.scale.deviation.item() == pytest.approx(20, abs=2)
    before = predictions()
    value.scale.update(rng.normal(400, 70, 1000), *value.outputs)
    assert value.scale.mean.item() > 110
    np.testing.assert_allclose(predictions(), before, rtol=1e-4)
    targets = rng.normal(200, 50, 100)
    np.testing.assert_allclose(value.scale.values(value.scale.normalised(targets)), targets)


def test_a_critic_learns_large_returns_on_their_own_scale() -> None:
    """Returns of a thousand are out of reach of a plain critic within a few updates."""
    task, policy, value, rollout = material()
    far = replace(rollout, reward=rollout.reward + 100)
    steps, bootstrap = steps_of_rollout(far, task.space)
    errors = {}
    for normalised in (False, True):
        critic = copy.deepcopy(value)
        ppo = PPO(copy.deepcopy(policy), critic, replace(CONFIG, normalise_values=normalised, gae_lambda=1.0, gamma=0.95, value_lr=3e-3))
        for i in range(10):
            ppo.learn(far, steps, bootstrap, np.random.default_rng(i))
        value_now, last = (ppo._raw(ppo._outputs(those), those.stage) for those in (steps, bootstrap))
        _, target = _advantages_and_targets(far, value_now, last, ppo.config)
        errors[normalised] = abs(value_now.mean() / target.mean() - 1)
    assert errors[True] < 0.1
    assert errors[False] > 0.5


def test_a_critic_without_a_scale_cannot_be_normalised() -> None:
    _, policy, value, _ = material()
    del value.scale
    with pytest.raises(ConfigError, match="only false is allowed"):
        PPO(policy, value, replace(CONFIG, normalise_values=True))
