"""Statistics against values worked by hand, and against slow computations that share no code with them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

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
    assert st.interquartile_mean([values]) == pytest.approx(expected)
    assert st.interquartile_mean([values[:2], values[2:]]) == pytest.approx(expected)  # environments are pooled


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
    share, low, high = st.performance_profile([[0.2, 0.6, 0.6], [0.6, 0.8, 1.0, 0.1]], [0.0, 0.5, 0.6, 2.0])
    assert share.tolist() == [1.0, (2 / 3 + 0.75) / 2, (0.0 + 0.5) / 2, 0.0]
    assert np.all(low <= share)
    assert np.all(share <= high)


def test_the_interval_of_a_profile_is_wilsons_in_one_environment() -> None:
    sample, n, z = [0.1, 0.4, 0.6, 0.8, 0.9, 1.0], 6, 1.959964
    _, low, high = st.performance_profile([sample], [0.0, 0.5, 0.95])
    for i, share in enumerate((1.0, 4 / 6, 1 / 6)):
        centre, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        assert (low[i], high[i]) == pytest.approx(((centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)), abs=1e-6)


def test_final_reads_every_method_on_the_same_grid_by_one_evaluation_each() -> None:
    often, seldom = 50_000.0 * np.arange(1, 1001), 400_000.0 * np.arange(1, 126)
    assert st.final(often, often) == pytest.approx(np.mean([48, 48.5, 49, 49.5, 50]) * 1e6)
    assert st.final(seldom, seldom) == pytest.approx(np.mean([48, 48.4, 48.8, 49.2, 50]) * 1e6)
    early = np.where(often < 47.5e6, 1e9, often)
    early[-2] = 1e9  # 49.95 million: not the last of its part
    assert st.final(often, early) == st.final(often, often)


def test_final_takes_what_evaluations_there_are() -> None:
    assert st.final(np.array([10.0, 20, 30, 40]), np.array([1.0, 2, 3, 4])) == 4.0
    assert st.final(np.array([95.0, 96, 100]), np.array([7.0, 1, 3])) == 2.0, "the last 5 % begin after 95"
    assert st.final(np.array([95.5, 96.5, 97.5, 97.9, 100]), np.array([1.0, 2, 50, 3, 6])) == 3.0
    assert np.isnan(st.final(np.zeros(0), np.zeros(0)))


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


@pytest.fixture(scope="module")
def strata() -> list[list[float]]:
    rng = np.random.default_rng(7)
    return [rng.normal(m, 1, n).round(2).tolist() for m, n in ((0, 6), (2, 6), (5, 5), (3, 8))]


def test_interval_of_a_mean_by_hand() -> None:
    found = st.mean([[1.0, 2.0, 3.0, 6.0]])
    # deviation sqrt(14 / 3), three degrees of freedom
    reach = stats.t.ppf((1 + st.SKEWED) / 2, 3) * math.sqrt(14 / 3) / 2
    assert (found.value, found.low, found.high, found.runs) == (3.0, pytest.approx(3 - reach), pytest.approx(3 + reach), 4)


def test_interval_of_a_difference_is_welchs(strata: list[list[float]]) -> None:
    a, b = strata[2], strata[3]
    found, theirs = st.difference_of_means(a, b), stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


def test_a_mean_over_environments_counts_them_alike(strata: list[list[float]]) -> None:
    found = st.mean(strata)
    means, squares = zip(*((np.mean(x), np.var(x, ddof=1) / len(x)) for x in strata), strict=True)
    freedom = sum(squares) ** 2 / sum(v**2 / (len(x) - 1) for v, x in zip(squares, strata, strict=True))
    reach = stats.t.ppf(0.975, freedom) * math.sqrt(sum(squares)) / 4
    assert found.value == pytest.approx(np.mean(means))
    assert (found.low, found.high) == pytest.approx((found.value - reach, found.value + reach))
    assert found.runs == 25


def slow_improvement(a: list[float], b: list[float]) -> tuple[float, float, float]:
    """The chance, and the least and largest true chance that is not further from it than 1.96 of Newcombe's standard deviations."""
    m, n = len(a), len(b)
    chance = sum(1.0 if p > q else 0.5 if p == q else 0.0 for p in a for q in b) / (m * n)

    def possible(true: float) -> bool:
        variance = true * (1 - true) * (1 + ((m + n) / 2 - 1) * ((1 - true) / (2 - true) + true / (1 + true))) / (m * n)
        return abs(true - chance) <= 1.959964 * math.sqrt(variance)

    found = [k / 20_000 for k in range(20_001) if possible(k / 20_000)]
    return chance, min(found), max(found)


@pytest.mark.parametrize("shift", [0.0, 1.0, 20.0])
def test_interval_of_an_improvement_against_a_slow_search(strata: list[list[float]], shift: float) -> None:
    mine, theirs = [value + shift for value in strata[0]], strata[2]
    found = st.probability_of_improvement([mine], [theirs])
    assert (found.value, found.low, found.high) == pytest.approx(slow_improvement(mine, theirs), abs=1e-4)
    if shift == 20.0:
        assert found.high == 1.0
        assert found.low < 0.8, "that all of five seeds won is not certainty"


def test_what_has_no_spread_has_an_interval_without_width() -> None:
    assert st.mean([[2.0, 2.0, 2.0]]) == st.Estimate(2.0, 2.0, 2.0, 3)
    assert st.difference_of_means([2.0] * 3, [1.0] * 3) == st.Estimate(1.0, 1.0, 1.0, 6)


def test_fewer_than_three_seeds_have_no_interval() -> None:
    for found in (
        st.mean([[3.0, 4.0]]),
        st.mean([[3.0, 4.0], [1.0, 2.0, 3.0]]),
        st.difference_of_means([1.0, 2.0], [2.0, 3.0, 4.0]),
        st.probability_of_improvement([[1.0, 2.0]], [[2.0, 3.0, 4.0]]),
    ):
        assert np.isfinite(found.value)
        assert np.isnan([found.low, found.high]).all()
    assert np.isnan(st.performance_profile([[1.0, 2.0]], [0.0, 1.5])[1:]).all()
    assert np.isfinite(st.mean([[3.0, 4.0, 5.0]]).low)
    for nothing in (st.mean([]), st.mean([[]]), st.probability_of_improvement([], []), st.difference_of_means([], [1.0])):
        assert np.isnan([nothing.value, nothing.low, nothing.high]).all()


# ---- bands -----------------------------------------------------------------------------------------------------------


def test_band_by_hand() -> None:
    centre, low, high = st.band(np.array([[1.0, 2.0, 3.0], [3.0, 4.0, np.nan]]), "std")
    np.testing.assert_allclose(centre, [2, 3, 3])
    np.testing.assert_allclose(low[:2], [2 - np.sqrt(2), 3 - np.sqrt(2)])
    np.testing.assert_allclose(high[:2], [2 + np.sqrt(2), 3 + np.sqrt(2)])
    assert np.isnan([low[2], high[2]]).all()  # one run is left there


@pytest.mark.parametrize(("kind", "fewest"), [("std", 2), ("interval", 3)])
def test_too_few_seeds_have_no_band(kind: str, fewest: int) -> None:
    for seeds in range(1, fewest + 1):
        centre, low, high = st.band(np.arange(seeds)[:, None] + np.array([[1.0, 2.0]]), kind)
        assert np.isfinite(centre).all()
        assert np.isfinite(low).all() == np.isfinite(high).all() == (seeds == fewest)
    assert np.isnan(st.band(np.zeros((0, 3)), kind)[0]).all()


def test_a_band_of_intervals_is_that_of_each_point() -> None:
    curves = np.random.default_rng(3).normal(size=(6, 200)).cumsum(axis=1)
    curves[5, 150:] = np.nan
    curves[2:, 190:] = np.nan
    centre, low, high = st.band(curves, "interval")
    for point in (0, 70, 149, 160, 199):
        alone = st.mean([curves[:, point]])
        np.testing.assert_allclose((centre[point], low[point], high[point]), (alone.value, alone.low, alone.high))
