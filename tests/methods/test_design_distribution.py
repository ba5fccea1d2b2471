"""The population-based policy gradient and the design parameters of continuous design, without a simulator."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.structured import build
from codesign_bench.tasks import make_task
from codesign_bench.tasks.base import Task
from methods.continuous.distribution import DesignConfig, DesignDistribution, centred_ranks, mean_gradient, z_scores
from methods.continuous.parameters import DesignParameters, scale
from tests.reference.specification import TASKS

Array = NDArray[Any]
PAIRS = 25


@cache
def expert_task(name: str) -> Task:
    return make_task(name).with_expert()


def config_of(**changes: Any) -> DesignConfig:
    design = load_config("config", ["method=continuous"])["method"]["design"]
    return build(DesignConfig, {**design, **changes}, "method.design")


CONFIG = config_of()


def noise_of(seed: int, size: int, pairs: int = PAIRS) -> Array:
    return np.random.default_rng(seed).standard_normal((pairs, size))


def optimised(reward: Callable[[Array], Array], size: int, iterations: int, config: DesignConfig = CONFIG) -> list[DesignDistribution]:
    """The distribution after each iteration."""
    history, rng = [DesignDistribution(size, config)], np.random.default_rng(0)
    for _ in range(iterations):
        now = DesignDistribution(size, config)
        now.load_state_dict(history[-1].state_dict())
        noise = rng.standard_normal((PAIRS, size))
        now.update(noise, reward(now.members(noise)))
        history.append(now)
    return history


# ---- the map from w to designs (H1) ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["additive", "scale75"])
@pytest.mark.parametrize("name", TASKS)
def test_zero_is_the_expert_exactly(name: str, way: Any) -> None:
    task = expert_task(name)
    parameters = DesignParameters(task, way)
    design = parameters.design(np.zeros(parameters.size))
    assert design == task.initial_design
    assert parameters.size == {"locomotion2d": 19, "gap": 19, "locomotion3d": 40, "swimmer": 10}[name]


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(list(TASKS)), st.sampled_from(["additive", "scale75"]), st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 30.0]))
def test_designs_are_legal_and_keep_the_skeleton(name: str, way: Any, seed: int, spread: float) -> None:
    task = expert_task(name)
    parameters = DesignParameters(task, way)
    w = np.random.default_rng(seed).normal(0, spread, parameters.size)
    design, expert = parameters.design(w), task.initial_design
    task.space.check(design)
    for constant in ("parents", "axis", "range", "friction", "joint_offset"):
        assert np.array_equal(getattr(design, constant), getattr(expert, constant))
    assert np.array_equal(design.attributes[~parameters.tunable], expert.attributes[~parameters.tunable])
    values = task.space.physical(design.attributes)[parameters.tunable]
    assert np.array_equal(values, parameters.physical(w))
    original = task.space.physical(expert.attributes)
    rows = iter(w.tolist())
    for node, k in np.argwhere(parameters.tunable).tolist():
        x, p0, p = next(rows), expert.attributes[node, k], design.attributes[node, k]
        if way == "additive":
            assert p == min(1.0, max(-1.0, p0 + x))
        else:
            wanted = original[node, k] * (1 + 0.75 * np.tanh(x))
            wanted = min(task.space.upper[k], max(task.space.lower[k], wanted))
            found = task.space.lower[k] + (np.sin(np.pi / 2 * p) + 1) / 2 * (task.space.upper[k] - task.space.lower[k])
            assert found == pytest.approx(wanted, abs=1e-9)


@given(st.floats(-1e300, 1e300))
def test_scale_factors_stay_inside_their_open_interval(w: float) -> None:
    assert 0.25 < scale(np.array([w]))[0] < 1.75


def test_the_share_of_clipped_parameters() -> None:
    parameters = DesignParameters(expert_task("swimmer"), "additive")
    w = np.zeros((4, parameters.size))
    assert parameters.clipped(w) == 0
    extensions = [i for i, (_, attribute) in enumerate(parameters.names) if attribute == "start extension"]
    w[0, extensions] = -0.1  # the expert's are at their lower bound, 0
    w[1, extensions] = 0.1
    assert parameters.clipped(w) == len(extensions) / w.size
    scaled = DesignParameters(expert_task("locomotion2d"), "scale75")
    w = np.zeros((1, scaled.size))
    w[0, scaled.names.index(("shin", "length"))] = 0.1  # half a metre already
    assert scaled.clipped(w) == 1 / scaled.size


# ---- the gradient (H2 to H8) -----------------------------------------------------------------------------------------


def test_members_are_antithetic_pairs() -> None:
    distribution = DesignDistribution(7, CONFIG)
    distribution.mu, distribution.sigma = np.linspace(-0.3, 0.3, 7), np.linspace(0, 0.5, 7)
    noise = noise_of(0, 7)
    members = distribution.members(noise)
    assert members.shape == (50, 7)
    np.testing.assert_allclose(members.mean(axis=0), distribution.mu, atol=1e-15)
    np.testing.assert_allclose(members[0::2] - distribution.mu, distribution.sigma * noise, atol=1e-15)
    np.testing.assert_allclose(members[0::2] + members[1::2], np.tile(2 * distribution.mu, (PAIRS, 1)), atol=1e-15)


@pytest.mark.parametrize("shaping", ["zscore", "ranks"])
@pytest.mark.parametrize("value", [0.0, 0.1, -1234.5678])
def test_equal_returns_change_nothing_but_the_decay(shaping: Any, value: float) -> None:
    distribution = DesignDistribution(5, config_of(shaping=shaping))
    distribution.sigma = np.array([0.0, 0.005, 0.015, 0.02, 0.3])
    distribution.update(noise_of(1, 5), np.full(50, value))
    assert np.array_equal(distribution.mu, np.zeros(5))
    np.testing.assert_allclose(distribution.sigma, [0.0, 0.005, 0.015, 0.02, 0.3 * 0.9995], rtol=1e-12)


def test_the_update_is_the_written_formula() -> None:
    """Loops over pairs and coordinates instead of products of matrices."""
    distribution, noise = DesignDistribution(3, config_of(penalty=0.3)), noise_of(2, 3)
    distribution.mu, distribution.sigma = np.array([0.2, -0.1, 0.0]), np.array([0.1, 0.015, 0.49])
    rng = np.random.default_rng(3)
    first, second, mu, sigma = np.zeros(3), np.zeros(3), distribution.mu.copy(), distribution.sigma.copy()
    for step in range(1, 6):
        returns = rng.normal(100, 20, 50)
        members = distribution.members(noise)
        fitness = [
            (returns[i] - returns.mean()) / (returns.std() + 1e-8) - 0.3 * sum(members[i, j] ** 2 for j in range(3)) / 3 for i in range(50)
        ]
        mean = sum(fitness) / 50
        for j in range(3):
            g = sum((fitness[2 * i] - fitness[2 * i + 1]) * noise[i, j] for i in range(PAIRS)) / 50
            h = sum((0.5 * (fitness[2 * i] + fitness[2 * i + 1]) - mean) * (noise[i, j] ** 2 - 1) for i in range(PAIRS)) / 25
            first[j], second[j] = 0.99 * first[j] + 0.01 * g, 0.999 * second[j] + 0.001 * g * g
            mu[j] += 0.01 * (first[j] / (1 - 0.99**step)) / (np.sqrt(second[j] / (1 - 0.999**step)) + 1e-8)
            changed = sigma[j] * (1 + min(0.2, max(-0.2, 0.1 * h)))
            changed = changed * 0.9995 if changed > 0.02 else changed
            sigma[j] = min(0.5, max(min(0.01, sigma[j]), changed))
        distribution.update(noise, returns)
        np.testing.assert_allclose(distribution.mu, mu, rtol=1e-9)
        np.testing.assert_allclose(distribution.sigma, sigma, rtol=1e-9)


def test_the_gradient_is_unbiased_and_pairs_make_it_quieter() -> None:
    """For R = a w: E[g] = a sigma, whatever mu is; independent samples of the same number are noisier."""
    slope, sigma, mu = np.array([3.0, -1.0, 0.5]), np.array([0.1, 0.2, 0.05]), np.array([1.0, -2.0, 0.5])
    distribution = DesignDistribution(3, CONFIG)
    distribution.mu, distribution.sigma = mu, sigma
    paired, independent = [], []
    for seed in range(2000):
        noise = noise_of(seed, 3)
        paired.append(mean_gradient(noise, distribution.members(noise) @ slope))
        alone = np.random.default_rng(10_000 + seed).standard_normal((2 * PAIRS, 3))
        returns = (mu + sigma * alone) @ slope
        independent.append((returns - returns.mean()) @ alone / len(alone))
    error = np.std(paired, axis=0) / np.sqrt(2000)
    assert np.all(np.abs(np.mean(paired, axis=0) - slope * sigma) < 4 * error)
    plain = [  # without a baseline
        ((mu + sigma * n) @ slope) @ n / len(n) for n in (np.random.default_rng(s).standard_normal((2 * PAIRS, 3)) for s in range(2000))
    ]
    assert np.all(np.std(paired, axis=0) < np.std(plain, axis=0) / 3)
    assert np.all(np.std(paired, axis=0) < 1.5 * np.std(independent, axis=0))


@pytest.mark.parametrize("shaping", ["zscore", "ranks"])
def test_the_optimum_of_a_quadratic_is_found(shaping: Any) -> None:
    optimum = np.random.default_rng(7).uniform(-0.5, 0.5, 20)
    history = optimised(lambda w: -((w - optimum) ** 2).sum(axis=1), 20, 1000, config_of(shaping=shaping))
    assert np.abs(history[-1].mu - optimum).max() < 0.01
    assert history[-1].sigma.max() < 0.03
    assert history[-1].sigma.min() >= 0.01


def test_a_reward_for_spread_takes_sigma_to_its_cap() -> None:
    history = optimised(lambda w: (w**2).sum(axis=1), 4, 1500, config_of(learning_rate=0.0))
    assert history[-1].sigma.max() == 0.5
    assert history[-1].sigma.min() > 0.4
    for before, after in itertools.pairwise(history):
        change = after.sigma / before.sigma
        assert change.max() <= 1.2
        assert change.min() >= 0.8 * 0.9995


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_z_scores_forget_scale_and_shift_and_ranks_any_increasing_map(seed: int, factor: float, shift: float) -> None:
    returns = np.random.default_rng(seed).normal(0, 10, 50)
    np.testing.assert_allclose(z_scores(factor * returns + shift), z_scores(returns), atol=1e-4)
    assert np.array_equal(centred_ranks(np.arctan(returns / 10) ** 3 * factor + shift), centred_ranks(returns))
    assert (centred_ranks(returns).min(), centred_ranks(returns).max()) == (-0.5, 0.5)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e6]))
def test_sigma_stays_inside_its_bounds(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    distribution = DesignDistribution(6, CONFIG)
    distribution.sigma = np.array([0.0, 0.004, 0.01, 0.021, 0.1, 0.5])
    before = distribution.sigma
    distribution.update(rng.standard_normal((2, 6)), rng.normal(0, spread, 4) ** 3)
    after = distribution.sigma
    assert np.all(after <= 0.5)
    assert np.all(after >= np.minimum(0.01, before))
    assert np.all(after <= before * 1.2 * (1 + 1e-12))
    assert np.all(after >= np.maximum(before * 0.8 * 0.9995 * (1 - 1e-12), np.minimum(0.01, before)))
    assert after[0] == 0


def test_equal_returns_share_a_rank() -> None:
    assert centred_ranks(np.array([3.0, 1.0, 3.0, 7.0])).tolist() == [0.0, -0.5, 0.0, 0.5]


# ---- configuration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sigma": -0.1}, "method.design.sigma is -0.1; allowed are numbers from 0 up."),
        ({"sigma": 0.6}, "method.design.sigma is 0.6; allowed is at most sigma_max, 0.5."),
        ({"sigma_min": 1.0}, "method.design.sigma_min is 1.0; allowed is at most sigma_max, 0.5."),
        ({"sigma_step": 1.0}, "method.design.sigma_step is 1.0; allowed are numbers from 0 up, below 1."),
        ({"betas": (0.9, 1.0)}, "method.design.betas[1] is 1.0; allowed are numbers from 0 up, below 1."),
        ({"sigma_decay": 0.0}, "method.design.sigma_decay is 0.0; allowed are numbers above 0, up to 1."),
        ({"warmup_steps": -1}, "method.design.warmup_steps is -1; allowed are whole numbers from 0 up."),
        ({"learning_rate": -1.0}, "method.design.learning_rate is -1.0; allowed are numbers from 0 up."),
    ],
)
def test_impossible_values_are_refused_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        config_of(**changes)
    assert str(error.value) == sentence
