"""The transform policies learn from execution rewards alone: no physics, and a return that the design decides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from codesign_bench.design.graph import BONE, Design
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.ppo import PPO, PPOConfig
from codesign_bench.simulation.episode import Episode, Outcome, TransformSteps
from codesign_bench.simulation.sampler import Sampler
from tests.learning.material import policy_of, task_of, value_of

TASK = task_of("locomotion2d")
MOST_BODIES = 13
"""That five skeleton steps can make of the initial two."""
MOST_EPISODES = 5000
LONGEST_BONE = float(np.hypot(0.5, 0.5))
CONFIG = PPOConfig(
    minibatch=512, passes=10, clip=0.2, gamma=0.995, gae_lambda=0.95, policy_lr=1e-3, value_lr=1e-3, policy_gradient_clip=40.0, shards=1
)


def bodies(design: Design) -> float:
    return float(design.num_nodes)


def bone_length(design: Design) -> float:
    """Mean, metres."""
    return float(np.linalg.norm(TASK.space.physical(design.attributes)[:, BONE], axis=1).mean())


def solve(
    reward: Callable[[Design], float], enough: float, transforms: TransformSteps, seed: int, monkeypatch: pytest.MonkeyPatch
) -> list[float]:
    """The reward of the deterministic design after each batch of 200 episodes, until it is enough."""

    def execute(episode: Episode, control: np.ndarray) -> Outcome:
        episode.time += 1
        value = reward(episode.design)
        episode.total_return += value
        return Outcome(value, True, False)

    monkeypatch.setattr(Episode, "_execute", execute)
    monkeypatch.setattr(Episode, "_enter_execution_if_due", lambda episode: None)
    policy, value = policy_of(TASK, seed=seed), value_of(TASK, seed=seed)
    ppo, rng = PPO(policy, value, CONFIG), np.random.default_rng(seed)
    sampler = Sampler(TASK, 40, np.random.SeedSequence(seed), transforms)
    judge = Sampler(TASK, 1, np.random.SeedSequence(seed), transforms)
    history: list[float] = []
    while len(history) < MOST_EPISODES // 200 and (not history or history[-1] < enough):
        rollout = sampler.collect(policy.acting(), 5 * (transforms.skeleton + transforms.attribute + 1))
        steps, bootstrap = steps_of_rollout(rollout, TASK.space)
        ppo.learn(rollout, steps, bootstrap, rng)
        policy.update_normalisers(steps)
        value.update_normaliser(steps)
        history.append(judge.play(policy.acting(deterministic=True))[0][0].total_return)
    return history


def test_more_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    history = solve(bodies, MOST_BODIES, TransformSteps(5, 1), 0, monkeypatch)
    assert history[-1] == MOST_BODIES, history


def test_longer_bones(monkeypatch: pytest.MonkeyPatch) -> None:
    history = solve(bone_length, 0.95 * LONGEST_BONE, TransformSteps(0, 1), 0, monkeypatch)
    assert history[0] < 0.7 * LONGEST_BONE
    assert history[-1] >= 0.95 * LONGEST_BONE, history


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_stages_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every skeleton that is tried needs bones of its own, so that this takes longer than either stage alone."""
    history = solve(bone_length, 0.85 * LONGEST_BONE, TransformSteps(5, 1), seed, monkeypatch)
    assert history[-1] >= 0.85 * LONGEST_BONE, history
