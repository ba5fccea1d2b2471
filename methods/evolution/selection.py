"""Who stays: fitness, its rank, elimination. Only ranks matter; nothing else decides survival."""

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np

from codesign_bench.simulation.episode import EpisodeRecord

DEAD = -math.inf
"""Fitness of a species whose simulation diverges in more than half of its episodes, or whose learning or return does."""


class Candidate(Protocol):
    """What selection sees of a species. born: generation; fitness: the latest that is known, NaN for none."""

    @property
    def number(self) -> int: ...
    @property
    def born(self) -> int: ...
    @property
    def fitness(self) -> float: ...


C = TypeVar("C", bound=Candidate)


def fitness_of(episodes: Sequence[EpisodeRecord], open_return: float) -> float:
    """Mean undiscounted return of the episodes that ended; without any, the return so far of the longest open one."""
    if not episodes:
        return open_return
    if sum(episode.unstable for episode in episodes) > len(episodes) / 2:
        return DEAD
    return float(np.mean([episode.total_return for episode in episodes]))


def mean_fitness(values: Sequence[float]) -> float:
    """Of several iterations: one of them that died kills. Nothing is above NaN, it would stay the best for ever: dead, too."""
    mean = float(np.mean(values))
    return DEAD if math.isnan(mean) else mean


def counted_iterations(inner_iterations: int, share: float = 0.7) -> range:
    """Inner iterations whose returns count: those after the first 30 %, as in NGE; a single one counts itself."""
    first = math.floor(inner_iterations * (1 - share) + 1e-9) + 1
    return range(min(first, inner_iterations - 1), inner_iterations)


def num_eliminated(alive: int, rate: float) -> int:
    """max(1, floor(rate x alive)) for a positive rate, but never the last one."""
    return min(max(1, math.floor(rate * alive + 1e-9)), max(alive - 1, 0)) if rate > 0 else 0


def ranked(candidates: Sequence[C]) -> list[C]:
    """Best first; among equals the older one, then the lower number. What is not a number ranks last."""
    return sorted(candidates, key=lambda c: (-(DEAD if math.isnan(c.fitness) else c.fitness), c.born, c.number))


def select(candidates: Sequence[C], elimination: float) -> list[C]:
    """Those that stay, in the order in which they were: the dead go, then the worst of the living. Empty if all died."""
    if elimination == 0:
        return list(candidates)
    living = [c for c in ranked(candidates) if c.fitness > DEAD]  # NaN compares false
    staying = {c.number for c in living[: len(living) - num_eliminated(len(living), elimination)]}
    return [c for c in candidates if c.number in staying]
