"""Who stays and who has children: fitness, its rank, elimination, tournaments. Only ranks matter; nothing else decides."""

import math
from collections.abc import Sequence, Set
from typing import Protocol, TypeVar

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.simulation.graphs import Rollout

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


def fitness_of(rollout: Rollout, ages: Sequence[int], longest: int) -> float:
    """What an episode is expected to return, from all steps of a batch (see `expected_return`); dead if more than half of those that
    ended did so because the simulation diverged."""
    if sum(episode.unstable for episode in rollout.episodes) > len(rollout.episodes) / 2:
        return DEAD
    return expected_return(rollout.reward, rollout.terminated | rollout.truncated, np.asarray(ages), longest)


def expected_return(reward: Array, ended: Array, ages: Array, longest: int) -> float:
    """Undiscounted return that an episode of at most `longest` steps is expected to have, from a batch [time, slots] whose first episodes
    had begun `ages` [slots] steps before and whose last ones are not over yet.

    It is the sum over ages of (the chance to get that old) x (the mean reward of a step at that age). The chance is Kaplan and Meier's: the
    product over younger ages of the share of steps at that age that were not the last one. Steps of open episodes count as any others,
    and nobody is asked how an open episode will end, so episodes are neither punished for being long (the mean over ended ones
    leaves out what the end of a batch cuts, which are the long ones) nor rewarded (all rewards over the number of ends counts what is
    open without its end). Where nothing is cut it is the mean return. At ages that no step has, rewards and ends are the batch's average.
    A few episodes that are short or very long leave it optimistic: by 4 % in 20 slots, by 13 % in 4.
    """
    time = np.arange(len(reward))[:, None]
    begins = np.concatenate([np.zeros((1, len(ages)), dtype=bool), ended[:-1]])
    age = time - np.maximum.accumulate(np.where(begins, time, -ages), axis=0)
    failed = ended & (age < longest - 1)  # the time limit is no chance
    steps = np.bincount(age.ravel(), minlength=longest)
    seen = np.maximum(steps, 1)
    mean_reward = np.where(steps, np.bincount(age.ravel(), reward.ravel(), longest) / seen, reward.mean())
    hazard = np.where(steps, np.bincount(age[failed], minlength=longest) / seen, failed.mean())
    chance = np.concatenate([[1.0], np.cumprod(1 - hazard[:-1])])
    return float(chance @ mean_reward)


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


def tournament(candidates: Sequence[C], size: int, rng: np.random.Generator) -> C:
    """The fittest of `size` that are drawn uniformly, with replacement; among equals the one that was drawn first."""
    drawn: list[C] = [candidates[i] for i in rng.integers(len(candidates), size=size).tolist()]
    return max(drawn, key=lambda candidate: candidate.fitness)


def select(candidates: Sequence[C], elimination: float, spared: Set[int] = frozenset()) -> list[C]:
    """Those that stay, in the order in which they were: the dead go, then the worst of the living, except those whose numbers are `spared`
    and the best one. Empty if all died."""
    if elimination == 0:
        return list(candidates)
    living = [c for c in ranked(candidates) if c.fitness > DEAD]  # NaN compares false
    worst_first = [c.number for c in reversed(living[1:]) if c.number not in spared]
    going = worst_first[: num_eliminated(len(living), elimination)]
    staying = {c.number for c in living}.difference(going)
    return [c for c in candidates if c.number in staying]
