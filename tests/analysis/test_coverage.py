"""How often the intervals hold what they are about: they claim 95 %, and a simulation with a fixed seed counts.

Distributions stand for returns over seeds: bounded, skewed (some seeds take off), in two groups (stuck or not). `python -m
tests.analysis.test_coverage` prints the table of docs/numbers.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from codesign_bench.analysis import statistics as st
from codesign_bench.arrays import Array

SEEDS = (3, 5, 6, 10)
REPETITIONS = 20_000
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]
USUAL: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, size: rng.normal(size=size), 0.0),
    "uniform": (lambda rng, size: rng.uniform(size=size), 0.5),
    "gamma, shape 4 (skewness 1)": (lambda rng, size: rng.gamma(4.0, size=size), 4.0),
    "gamma, shape 2 (skewness 1.4)": (lambda rng, size: rng.gamma(2.0, size=size), 2.0),
    "lognormal, sigma 0.5 (skewness 1.8)": (lambda rng, size: rng.lognormal(0, 0.5, size), np.exp(0.125)),
    "two groups, 3 deviations apart": (lambda rng, size: rng.normal(size=size) + 3 * (rng.random(size) < 0.5), 1.5),
}
HARD: dict[str, tuple[Draw, float]] = {
    "two groups, 6 deviations apart": (lambda rng, size: rng.normal(size=size) + 6 * (rng.random(size) < 0.5), 3.0),
    "one seed in five 6 deviations above": (lambda rng, size: rng.normal(size=size) + 6 * (rng.random(size) < 0.2), 1.2),
    "lognormal, sigma 1 (skewness 6.2)": (lambda rng, size: rng.lognormal(0, 1, size), np.exp(0.5)),
}
ALL = USUAL | HARD
Interval = Callable[[Array], tuple[Array, Array]]
"""Of samples [seeds, repetitions]: lower and upper edges [repetitions]."""


def t_interval(samples: Array) -> tuple[Array, Array]:
    _, low, high = st.band(samples, "interval")
    return low, high


def percentile_bootstrap(samples: Array, cut: float = 0.0) -> tuple[Array, Array]:
    """What stood here before: quantiles of the mean, or of the interquartile mean, over seeds that are drawn anew."""
    draws = np.random.default_rng(0).integers(0, len(samples), (500, len(samples)))
    means = stats.trim_mean(samples[draws], cut, axis=1)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return low, high


def coverage(interval: Interval, name: str, seeds: int, repetitions: int = REPETITIONS) -> float:
    """How often the interval holds the true mean."""
    draw, truth = ALL[name]
    low, high = interval(draw(np.random.default_rng([seeds, *name.encode()]), (seeds, repetitions)))
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("name", USUAL)
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_interval_of_a_mean_covers_within_two_points_of_what_it_claims(name: str, seeds: int) -> None:
    assert abs(coverage(t_interval, name, seeds) - st.LEVEL) <= 0.02


@pytest.mark.parametrize("name", USUAL)
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_percentile_bootstrap_does_not(name: str, seeds: int) -> None:
    assert coverage(percentile_bootstrap, name, seeds, 2000) < st.LEVEL - 0.02


# ---- differences, probabilities, shares ------------------------------------------------------------------------------


def samples(name: str, seeds: int, shift: float, stream: int) -> Array:
    """[seeds, repetitions]: with this mean, and a standard deviation of 1."""
    draw, truth = ALL[name]
    deviation = draw(np.random.default_rng(0), (1, 200_000)).std()
    return np.asarray((draw(np.random.default_rng([stream, seeds, *name.encode()]), (seeds, REPETITIONS)) - truth) / deviation + shift)


def difference_coverage(name: str, seeds: int) -> float:
    """Of two methods that spread alike."""
    a, b = samples(name, seeds, 1.0, 1), samples(name, seeds, 0.0, 2)
    return float(np.mean(np.abs(a.mean(axis=0) - b.mean(axis=0) - 1.0) <= st._reach([a, b], [1, -1])))


@pytest.mark.parametrize("name", [name for name in USUAL if not name.startswith("lognormal")])
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_interval_of_a_difference(name: str, seeds: int) -> None:
    assert abs(difference_coverage(name, seeds) - st.LEVEL) <= 0.02


SHIFTS = {1: [(0.0,), (0.5,), (1.0,), (2.0,)], 4: [(0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0), (-1.0, 0.0, 1.0, 2.0), (0.0, 0.0, 2.0, 2.0)]}
"""By the number of environments: how far the means of two methods are apart in each."""


def chance_coverage(names: Iterable[str], seeds: int, envs: int) -> float:
    """On average over distributions and shifts: few seeds can win few different numbers of times, so that it leaps with the truth."""
    shares = []
    for name, shifts in product(names, SHIFTS[envs]):
        both = [(samples(name, seeds, shift, 3 + i), samples(name, seeds, 0.0, 13 + i)) for i, shift in enumerate(shifts)]
        truth = np.mean([np.mean(np.roll(a, 1, axis=1) > b) for a, b in both])
        chances = np.array([(a[:, None] > b[None]).mean(axis=(0, 1)) for a, b in both])
        low, high = st._chance_interval(chances, np.full((envs, 2), seeds))
        shares.append(np.mean((low <= truth) & (truth <= high)))
    return float(np.mean(shares))


@pytest.mark.parametrize("envs", SHIFTS)
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_interval_of_a_probability(envs: int, seeds: int) -> None:
    assert abs(chance_coverage(["normal", "gamma, shape 2 (skewness 1.4)"], seeds, envs) - st.LEVEL) <= 0.02


@pytest.mark.parametrize("envs", [1, 4])
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_interval_of_a_share(envs: int, seeds: int) -> None:
    """Of runs above a level, on average over true shares from 0 to 1 in every environment."""
    rng = np.random.default_rng([envs, seeds])
    truth = rng.uniform(size=(envs, REPETITIONS))
    shares = rng.binomial(seeds, truth) / seeds
    low, high = st._score_interval(shares, lambda share: share * (1 - share), np.full(envs, seeds), np.full(envs, seeds))
    assert abs(np.mean((low <= truth.mean(axis=0)) & (truth.mean(axis=0) <= high)) - st.LEVEL) <= 0.02


# ---- the table in docs/numbers.md ------------------------------------------------------------------------------------


def table() -> list[list[str]]:
    """Percent covered: a row for each distribution; of the mean with 3, 5, 6 and 10 seeds, of a difference of means, and of the mean by
    the percentile bootstrap."""
    kinds: list[Callable[[str, int], float]] = [
        lambda name, seeds: coverage(t_interval, name, seeds),
        difference_coverage,
        lambda name, seeds: coverage(percentile_bootstrap, name, seeds, 4000),
    ]
    return [[name, *(f"{100 * kind(name, seeds):.0f}" for kind in kinds for seeds in SEEDS)] for name in ALL]


def test_the_documented_coverage_is_the_simulated_one() -> None:
    page = (Path(__file__).parents[2] / "docs/numbers.md").read_text(encoding="utf-8")
    rows = {cells[0]: cells[1:] for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines())}
    for name, *values in table():
        assert np.allclose([int(value) for value in rows[name]], [int(value) for value in values], atol=1), name


if __name__ == "__main__":
    print("\n".join(f"| {' | '.join(row)} |" for row in table()))
    for envs in SHIFTS:
        print("probability", envs, [f"{100 * chance_coverage(ALL, seeds, envs):.0f}" for seeds in SEEDS])
