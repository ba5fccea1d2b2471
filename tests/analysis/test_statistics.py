"""Statistics against values worked by hand, and against slow computations that share no code with them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from codesign_bench.analysis import statistics as st


def test_mean_and_standard_deviation_by_hand() -> None:
    assert st.mean_and_std([2, 4, 4, 4, 5, 5, 7, 9]) == (5.0, pytest.approx(np.sqrt(32 / 7)))
    mean, std = st.mean_and_std([3.0])
    assert mean == 3.0
    assert np.isnan(std)
    assert np.isnan(st.mean_and_std([])).all()
    assert st.mean_and_std([1.0, np.nan, 3.0])[0] == 2.0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3, 4], 2.5),  # one of four goes at each end
        ([100, 2, 3, -50, 4, 5], 3.5),  # of six, one at each end
        ([1, 2, 9], 4.0),  # a quarter of three is nobody
        ([0, 0, 1, 2, 3, 4, 100, 100], 2.5),
    ],
)
def test_interquartile_mean_by_hand(values: list[float], expected: float) -> None:
    assert st.interquartile_mean([values]).value == pytest.approx(expected)
    assert st.interquartile_mean([values[:2], values[2:]]).value == pytest.approx(expected)  # environments are pooled


def test_probability_of_improvement_by_hand() -> None:
    assert st.probability_of_improvement([[1, 3]], [[2, 3]]).value == (0 + 0 + 1 + 0.5) / 4
    both = st.probability_of_improvement([[1, 3], [5, 5, 5]], [[2, 3], [4]])
    assert both.value == pytest.approx((0.375 + 1) / 2)  # environments count alike, however many seeds they have


def test_hedges_g_by_hand() -> None:
    # means 3 and 2, variances 1 and 1, four degrees of freedom: 1 * (1 - 3 / 15)
    assert st.hedges_g([2, 3, 4], [1, 2, 3]) == pytest.approx(0.8)
    assert np.isnan(st.hedges_g([1], [1, 2]))
    assert np.isnan(st.hedges_g([1, 1], [1, 1]))


def test_performance_profile_by_hand() -> None:
    share, low, high = st.performance_profile([[0.2, 0.6], [0.6, 0.8, 1.0, 0.1]], [0.0, 0.5, 0.6, 2.0])
    assert share.tolist() == [1.0, (0.5 + 0.75) / 2, (0.0 + 0.5) / 2, 0.0]
    assert np.all(low <= share)
    assert np.all(share <= high)


def test_the_interval_of_a_profile_against_a_slow_computation() -> None:
    strata, levels, repetitions = [np.array([0.2, 0.6, 0.9]), np.array([0.6, 0.8, 1.0, 0.1])], [0.0, 0.5, 0.7], 200
    _, low, high = st.performance_profile(strata, levels, repetitions)
    rng = np.random.default_rng(0)
    draws = [rng.integers(0, len(x), (repetitions, len(x))) for x in strata]
    for i, level in enumerate(levels):
        shares = []
        for k in range(repetitions):
            per_env = [sum(x[j] > level for j in draw[k]) / len(x) for x, draw in zip(strata, draws, strict=True)]
            shares.append(sum(per_env) / len(per_env))
        assert (low[i], high[i]) == (pytest.approx(np.quantile(shares, 0.025)), pytest.approx(np.quantile(shares, 0.975)))


def test_area_under_the_curve_by_hand() -> None:
    assert st.area_under_curve([10, 20, 40], [0, 10, 10], 10, 40) == pytest.approx((50 + 200) / 30)
    assert st.area_under_curve([10, 20, 40], [0, 10, 30], 10, 30) == pytest.approx((50 + 150) / 20)  # 20 at step 30
    assert st.area_under_curve([10, 20, 40], [0, 10, 30], 15, 40) == pytest.approx((37.5 + 400) / 25)  # 5 at step 15
    assert np.isnan(st.area_under_curve([10, 20], [0, 10], 10, 40))
    assert np.isnan(st.area_under_curve([10, 20], [0, 10], 5, 20))
    assert np.isnan(st.area_under_curve([10], [0], 10, 10))


@pytest.mark.parametrize(("level", "expected"), [(-1, 10), (0, 10), (5, 15), (10, 20), (15, 35), (20, 40), (21, np.inf), (np.nan, np.inf)])
def test_steps_to_reach_a_level_by_hand(level: float, expected: float) -> None:
    assert st.steps_to_reach([10, 20, 30, 40], [0, 10, 10, 20], level) == expected


def test_curves_are_not_extrapolated() -> None:
    found = st.on_grid([10, 20], [1, 3], [5, 10, 15, 20, 25])
    np.testing.assert_array_equal(found, [np.nan, 1, 2, 3, np.nan])
    assert np.isnan(st.on_grid([], [], [1, 2])).all()


# ---- intervals -------------------------------------------------------------------------------------------------------


def slow_interval(strata: list[list[float]], statistic: Any, repetitions: int = 4000) -> tuple[float, float]:
    """A stratified bootstrap, one draw after another, with the standard library's random numbers."""
    import random

    rng = random.Random(1)
    drawn = sorted(statistic([[rng.choice(values) for _ in values] for values in strata]) for _ in range(repetitions))
    return drawn[int(0.025 * repetitions)], drawn[int(0.975 * repetitions)]


def slow_iqm(strata: list[list[float]]) -> float:
    pooled = sorted(itertools.chain(*strata))
    cut = len(pooled) // 4
    kept = pooled[cut : len(pooled) - cut]
    return sum(kept) / len(kept)


def slow_improvement(a: list[list[float]], b: list[list[float]]) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        wins = sum(1.0 if p > q else 0.5 if p == q else 0.0 for p in x for q in y)
        total += wins / (len(x) * len(y))
    return total / len(a)


@pytest.fixture(scope="module")
def strata() -> list[list[float]]:
    rng = np.random.default_rng(7)
    return [rng.normal(m, 1, n).round(2).tolist() for m, n in ((0, 6), (2, 6), (5, 5), (3, 8))]


def test_interval_of_the_interquartile_mean_against_a_slow_one(strata: list[list[float]]) -> None:
    found = st.interquartile_mean(strata, repetitions=4000)
    assert found.value == pytest.approx(slow_iqm(strata))
    assert (found.low, found.high) == pytest.approx(slow_interval(strata, slow_iqm), abs=0.06)
    assert found.runs == 25


def test_interval_of_the_improvement_against_a_slow_one(strata: list[list[float]]) -> None:
    other = [[v + 0.7 for v in values] for values in strata]
    found = st.probability_of_improvement(other, strata, repetitions=4000)
    slow = slow_interval([*other, *strata], lambda drawn: slow_improvement(drawn[:4], drawn[4:]))
    assert found.value == pytest.approx(slow_improvement(other, strata))
    assert (found.low, found.high) == pytest.approx(slow, abs=0.03)


def test_interval_of_a_difference_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = [
        found.low <= 1.0 <= found.high
        for found in (st.difference_of_means(rng.normal(3, 1, 20), rng.normal(2, 1, 20), 400) for _ in range(200))
    ]
    assert 0.88 <= np.mean(covered) <= 0.99


def test_intervals_are_the_same_every_time_and_never_from_one_seed(strata: list[list[float]]) -> None:
    assert st.interquartile_mean(strata) == st.interquartile_mean(strata)
    single = st.interquartile_mean([[3.0]])
    assert single.value == 3.0
    assert np.isnan([single.low, single.high]).all()
    assert np.isnan(st.difference_of_means([1.0], [2.0, 3.0]).low)
    assert np.isnan(st.interquartile_mean([]).value)


# ---- bands -----------------------------------------------------------------------------------------------------------


def test_band_by_hand() -> None:
    centre, low, high = st.band(np.array([[1.0, 2.0, 3.0], [3.0, 4.0, np.nan]]), "std")
    np.testing.assert_allclose(centre, [2, 3, 3])
    np.testing.assert_allclose(low[:2], [2 - np.sqrt(2), 3 - np.sqrt(2)])
    np.testing.assert_allclose(high[:2], [2 + np.sqrt(2), 3 + np.sqrt(2)])
    assert np.isnan([low[2], high[2]]).all()  # one run is left there


@pytest.mark.parametrize("kind", ["std", "iqm"])
def test_one_seed_has_no_band(kind: str) -> None:
    centre, low, high = st.band(np.array([[1.0, 2.0]]), kind)
    assert centre.tolist() == [1, 2]
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    assert np.isnan(st.band(np.zeros((0, 3)), kind)[0]).all()


def test_band_of_interquartile_means_against_point_by_point() -> None:
    curves = np.random.default_rng(3).normal(size=(6, 200)).cumsum(axis=1)
    curves[5, 150:] = np.nan
    centre, low, high = st.band(curves, "iqm", repetitions=2000)
    for point in (0, 70, 149, 160, 199):
        alone = st.interquartile_mean([curves[:, point]], repetitions=2000)
        assert centre[point] == pytest.approx(alone.value)
        spread = alone.high - alone.low
        assert (low[point], high[point]) == pytest.approx((alone.low, alone.high), abs=0.1 * spread)
