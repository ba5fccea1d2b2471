"""Statistics of returns over seeds: small, pure, on arrays. Definitions shared with rliable (Agarwal et al. 2021) are its.

Scores come as strata: one array of final returns per environment, one value per seed. Intervals are 95 % percentile intervals
of a stratified bootstrap (seeds are drawn anew within each environment), from a fixed random stream: the same table gives the
same interval. From one seed there is no spread: it is NaN, never 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from codesign_bench.arrays import Array

Strata = Sequence[ArrayLike]
REPETITIONS = 2000
LEVEL = 0.95


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


# ---- intervals -------------------------------------------------------------------------------------------------------


def interquartile_mean(strata: Strata, repetitions: int = REPETITIONS) -> Estimate:
    """Over all runs of all environments together; normalise scores of different environments first."""
    return _estimate(strata, lambda drawn: stats.trim_mean(np.concatenate(drawn, axis=-1), 0.25, axis=-1), repetitions)


def difference_of_means(a: ArrayLike, b: ArrayLike, repetitions: int = REPETITIONS) -> Estimate:
    """mean(a) - mean(b); both sides are drawn anew."""
    return _estimate([a, b], lambda drawn: drawn[0].mean(axis=-1) - drawn[1].mean(axis=-1), repetitions)


def probability_of_improvement(a: Strata, b: Strata, repetitions: int = REPETITIONS) -> Estimate:
    """The mean over environments of the chance that a run of `a` beats a run of `b` (stratum i of both is one environment)."""
    count = len(a)

    def chance(drawn: list[Array]) -> Array:
        per_env = []
        for x, y in zip(drawn[:count], drawn[count:], strict=True):
            difference = x[..., :, None] - y[..., None, :]
            per_env.append(np.mean((difference > 0) + 0.5 * (difference == 0), axis=(-1, -2)))
        return np.asarray(np.mean(per_env, axis=0))

    return _estimate([*a, *b], chance, repetitions)


def performance_profile(strata: Strata, levels: ArrayLike, repetitions: int = REPETITIONS) -> tuple[Array, Array, Array]:
    """[levels]: the share of runs with a score above each level, every environment counted alike, and its interval."""
    at = np.asarray(levels, dtype=np.float64)

    def shares(drawn: list[Array]) -> Array:
        return np.asarray(np.mean([(x[..., None] > at).mean(axis=-2) for x in drawn], axis=0))

    samples = [_finite(x) for x in strata]
    if not samples:
        return (np.full(at.shape, np.nan),) * 3
    low, high = _interval(samples, shares, min(repetitions, 1000))
    return shares(samples), low + np.zeros(at.shape), high + np.zeros(at.shape)


def band(curves: Array, kind: str, repetitions: int = 1000) -> tuple[Array, Array, Array]:
    """Centre, lower and upper edge over runs of curves [runs, points]; a point that fewer than two runs reach has no edges.

    kind: "std" (mean, plus and minus the standard deviation, as the paper) or "iqm" (interquartile mean, 95 % bootstrap).
    """
    centre, low, high = np.full((3, curves.shape[1]), np.nan)
    reached = np.isfinite(curves)
    for runs in filter(np.any, np.unique(reached, axis=1).T):
        at = (reached == runs[:, None]).all(axis=0)
        values = curves[np.ix_(runs, at)]
        if kind == "iqm":
            centre[at] = stats.trim_mean(values, 0.25, axis=0)
            low[at], high[at] = _interval([values], lambda drawn: stats.trim_mean(drawn[0], 0.25, axis=1), repetitions)
        else:
            centre[at] = values.mean(axis=0)
            spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.nan
            low[at], high[at] = centre[at] - spread, centre[at] + spread
    return centre, low, high


def _estimate(strata: Strata, statistic: Callable[[list[Array]], Array], repetitions: int) -> Estimate:
    samples = [_finite(x) for x in strata]
    runs = sum(map(len, samples))
    if not runs or not all(map(len, samples)):
        return Estimate(np.nan, np.nan, np.nan, runs)
    low, high = _interval(samples, statistic, repetitions)
    return Estimate(float(statistic(samples)), float(low), float(high), runs)


def _interval(samples: list[Array], statistic: Callable[[list[Array]], Array], repetitions: int) -> tuple[Array, Array]:
    if any(len(x) < 2 for x in samples):
        return np.asarray(np.nan), np.asarray(np.nan)
    rng = np.random.default_rng(0)
    drawn = [x[rng.integers(0, len(x), (repetitions, len(x)))] for x in samples]
    low, high = np.quantile(statistic(drawn), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def _finite(values: ArrayLike) -> Array:
    x = np.asarray(values, dtype=np.float64).ravel()
    return x[np.isfinite(x)]


# ---- curves ----------------------------------------------------------------------------------------------------------


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
