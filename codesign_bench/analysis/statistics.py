"""Statistics of returns over seeds: small, pure, on arrays. Definitions shared with rliable (Agarwal et al. 2021) are its.

Scores come as strata: one array of final returns per environment, one value per seed.

Intervals claim 95 % and were chosen by simulation (tests/analysis/test_coverage.py, docs/numbers.md): of bootstraps, t and score
intervals these cover within two points of it from 3 to 10 seeds, as long as returns are not strongly skewed.

- means and their differences: Student's t, with Welch and Satterthwaite's degrees of freedom over several samples
- probabilities and shares: score intervals (Wilson's; Newcombe's for the probability that one method beats another)

From fewer than three seeds there is no interval: it is NaN, never 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from codesign_bench.arrays import Array

Strata = Sequence[ArrayLike]
LEVEL = 0.95
SKEWED = 0.966
"""Level of Student's quantile for the mean of a single sample. Returns are rarely symmetric: at 0.95 it would cover 91 % of gamma-shaped
ones. In differences, and over environments, skewness cancels."""
FEWEST = 3
"""Seeds of an interval."""
T_INTERVAL, SCORE_INTERVAL = "95 % t interval", "95 % score interval"
INTERVALS = "Intervals: 95 %, Student's t for means and their differences, score intervals for probabilities and shares."
"""What captions call them."""


@dataclass(frozen=True)
class Estimate:
    """A value and its interval; `runs` counts what it was made from."""

    value: float
    low: float
    high: float
    runs: int


# ---- points ----------------------------------------------------------------------------------------------------------


def mean_and_std(values: ArrayLike) -> tuple[float, float]:
    """Mean and sample standard deviation (n - 1) over seeds."""
    x = _finite(values)
    return (float(x.mean()) if len(x) else np.nan, float(x.std(ddof=1)) if len(x) > 1 else np.nan)


def hedges_g(a: ArrayLike, b: ArrayLike) -> float:
    """Difference of the means in pooled standard deviations, corrected for few seeds."""
    x, y = _finite(a), _finite(b)
    freedom = len(x) + len(y) - 2
    if len(x) < 2 or len(y) < 2:
        return np.nan
    pooled = np.sqrt(((len(x) - 1) * x.var(ddof=1) + (len(y) - 1) * y.var(ddof=1)) / freedom)
    return float((x.mean() - y.mean()) / pooled * (1 - 3 / (4 * freedom - 1))) if pooled > 0 else np.nan


def interquartile_mean(strata: Strata) -> float:
    """Over all runs of all environments together. A point without an interval: of few seeds none covers what it claims."""
    pooled = np.concatenate([np.zeros(0), *map(_finite, strata)])
    return float(stats.trim_mean(pooled, 0.25)) if len(pooled) else np.nan


# ---- means and their differences -------------------------------------------------------------------------------------


def mean(strata: Strata) -> Estimate:
    """The mean over seeds, every environment counted alike."""
    return _contrast(strata, [1 / max(1, len(strata))] * len(strata))


def difference_of_means(a: ArrayLike, b: ArrayLike) -> Estimate:
    """mean(a) - mean(b)."""
    return _contrast([a, b], [1, -1])


def _contrast(strata: Strata, weights: Sequence[float]) -> Estimate:
    """The weighted sum of the samples' means."""
    samples = [_finite(x) for x in strata]
    runs = sum(map(len, samples))
    if not runs or not all(map(len, samples)):
        return Estimate(np.nan, np.nan, np.nan, runs)
    value = float(sum(weight * x.mean() for weight, x in zip(weights, samples, strict=True)))
    reach = float(_reach([x[:, None] for x in samples], weights)[0])
    return Estimate(value, value - reach, value + reach, runs)


def _reach(samples: Sequence[Array], weights: Sequence[float]) -> Array:
    """[points]: half the width of the interval of a weighted sum of means, of samples [runs, points]."""
    if min(map(len, samples)) < FEWEST:
        return np.full(samples[0].shape[1], np.nan)
    parts = np.array([weight**2 * x.var(axis=0, ddof=1) / len(x) for weight, x in zip(weights, samples, strict=True)])
    variance, freedom = parts.sum(axis=0), np.array([[len(x) - 1] for x in samples])
    with np.errstate(invalid="ignore"):  # no spread at all
        satterthwaite = variance**2 / (parts**2 / freedom).sum(axis=0)
    quantile = stats.t.ppf((1 + (SKEWED if len(samples) == 1 else LEVEL)) / 2, satterthwaite)
    return np.asarray(np.where(variance > 0, quantile * np.sqrt(variance), 0.0))


def band(curves: Array, kind: str) -> tuple[Array, Array, Array]:
    """Centre, lower and upper edge over runs of curves [runs, points]; a point that too few runs reach has no edges.

    kind: "std" (plus and minus the standard deviation, as the paper; two runs) or "interval" (of the mean, see above; three runs).
    """
    centre, low, high = np.full((3, curves.shape[1]), np.nan)
    reached = np.isfinite(curves)
    for runs in filter(np.any, np.unique(reached, axis=1).T):
        at = (reached == runs[:, None]).all(axis=0)
        values = curves[np.ix_(runs, at)]
        centre[at] = values.mean(axis=0)
        if kind == "interval":
            spread = _reach([values], [1])
        else:
            spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1], np.nan)
        low[at], high[at] = centre[at] - spread, centre[at] + spread
    return centre, low, high


# ---- probabilities and shares ----------------------------------------------------------------------------------------


def probability_of_improvement(a: Strata, b: Strata) -> Estimate:
    """The mean over environments of the chance that a run of `a` beats a run of `b` (stratum i of both is one environment; a tie counts
    half)."""
    pairs = [(_finite(x), _finite(y)) for x, y in zip(a, b, strict=True)]
    sizes = np.array([(len(x), len(y)) for x, y in pairs]).reshape(-1, 2)
    runs = int(sizes.sum())
    if not runs or not sizes.all():
        return Estimate(np.nan, np.nan, np.nan, runs)
    chances = np.array([[np.mean((x[:, None] > y) + 0.5 * (x[:, None] == y))] for x, y in pairs])
    low, high = _chance_interval(chances, sizes)
    return Estimate(float(chances.mean()), float(low[0]), float(high[0]), runs)


def _chance_interval(chances: Array, sizes: Array) -> tuple[Array, Array]:
    """Of the mean of chances [environments, points], each from so many seeds of both sides (sizes [environments, 2]). The variance at a
    true chance is Newcombe's (2006, method 5)."""
    neighbours = sizes.mean() - 1

    def variance(chance: Array) -> Array:
        return np.asarray(chance * (1 - chance) * (1 + neighbours * ((1 - chance) / (2 - chance) + chance / (1 + chance))))

    return _score_interval(chances, variance, sizes.prod(axis=1), sizes.min(axis=1))


def performance_profile(strata: Strata, levels: ArrayLike) -> tuple[Array, Array, Array]:
    """[levels]: the share of runs with a score above each level, every environment counted alike, and its interval."""
    at = np.asarray(levels, dtype=np.float64)
    samples = [_finite(x) for x in strata]
    if not samples or not all(map(len, samples)):
        return (np.full(at.shape, np.nan),) * 3
    shares, sizes = np.array([(x[:, None] > at).mean(axis=0) for x in samples]), np.array([len(x) for x in samples])
    return (np.asarray(shares.mean(axis=0)), *_score_interval(shares, lambda share: share * (1 - share), sizes, sizes))


def _score_interval(shares: Array, variance: Callable[[Array], Array], trials: Array, seeds: Array) -> tuple[Array, Array]:
    """[points] each: the true means of shares [environments, points] from which the observed mean is no further than 1.96 standard
    deviations. `variance` is of one trial. Environments that differ vary less together than alike ones would: by how much is estimated
    from their shares, half a success and half a failure added to each."""
    if seeds.min() < FEWEST:
        return (np.full(shares.shape[1], np.nan),) * 2
    observed, within = shares.mean(axis=0), (shares * seeds[:, None] + 0.5) / (seeds[:, None] + 1)
    scale = (variance(within) / trials[:, None]).sum(axis=0) / len(shares) ** 2 / variance(within.mean(axis=0))
    quantile = stats.norm.ppf((1 + LEVEL) / 2)

    def furthest(end: float) -> Array:
        near, far = observed, np.full(observed.shape, end)
        for _ in range(50):
            middle = (near + far) / 2
            possible = np.abs(observed - middle) <= quantile * np.sqrt(scale * variance(middle))
            near, far = np.where(possible, middle, near), np.where(possible, far, middle)
        return np.asarray(near)

    return furthest(0.0), furthest(1.0)


def _finite(values: ArrayLike) -> Array:
    x = np.asarray(values, dtype=np.float64).ravel()
    return x[np.isfinite(x)]


# ---- curves ----------------------------------------------------------------------------------------------------------

PARTS = np.arange(95, 101)
"""Percent of the steps: edges of the parts of `final`."""


def final(steps: Array, values: Array) -> float:
    """The final number of a run: the last 5 % of its steps in five equal parts, the last evaluation of each part, their mean.

    So every method is read on the same grid of steps, at 96, 97, 98, 99 and 100 % of the budget, by one evaluation each, however often it
    was evaluated. A part without an evaluation says nothing; the last evaluation always counts. `steps` grow; NaN of none.
    """
    if not len(steps):
        return np.nan
    ends = steps[-1] * PARTS / 100
    part = np.searchsorted(ends, steps, side="left")  # 0: before; i: behind the end of part i - 1, up to that of part i
    last = np.flatnonzero((part > 0) & (np.diff(part, append=len(ends)) > 0))
    return float(values[last].mean())


def on_grid(steps: Array, values: Array, grid: Array) -> Array:
    """A curve interpolated linearly on a common grid; NaN before its first and after its last evaluation, and between its
    neighbours where an evaluation is NaN."""
    if not len(steps):
        return np.full(len(grid), np.nan)
    return np.interp(grid, steps, values, left=np.nan, right=np.nan)


def area_under_curve(steps: ArrayLike, values: ArrayLike, since: float, until: float) -> float:
    """The mean return over the steps between the two (trapezia); NaN if the run begins later or ends earlier."""
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if not len(x) or x[0] > since or x[-1] < until or since >= until:
        return np.nan
    at = np.concatenate([[since], x[(x > since) & (x < until)], [until]])
    return float(np.trapezoid(np.interp(at, x, y), at) / (until - since))


def steps_to_reach(steps: ArrayLike, values: ArrayLike, level: float) -> float:
    """The step at which the interpolated curve first reaches `level`; infinite if it never does."""
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    above = np.flatnonzero(y >= level)
    if not len(above) or not np.isfinite(level):
        return np.inf
    i = int(above[0])
    if i == 0:
        return float(x[0])
    return float(x[i - 1] + (level - y[i - 1]) / (y[i] - y[i - 1]) * (x[i] - x[i - 1]))
