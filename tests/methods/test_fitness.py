"""Fitness from batches that cut episodes: against a slow obvious twin, and against returns that are known."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign_bench.simulation.episode import EpisodeRecord
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.structured import merged
from methods.evolution.selection import DEAD, expected_return, fitness_of
from tests.methods.population import make, small

LONGEST = 100


def slow_expected_return(reward: Any, ended: Any, ages: Any, longest: int) -> float:
    """Step by step: who got how old, and what each age earned."""
    rewards: dict[int, list[float]] = {age: [] for age in range(longest)}
    ends: dict[int, list[bool]] = {age: [] for age in range(longest)}
    for slot, begun in enumerate(ages):
        age = int(begun)
        for value, over in zip(reward[:, slot].tolist(), ended[:, slot].tolist(), strict=True):
            rewards[age].append(value)
            ends[age].append(over and age < longest - 1)
            age = 0 if over else age + 1
    every_reward = [value for values in rewards.values() for value in values]
    every_end = [over for values in ends.values() for over in values]
    total, alive = 0.0, 1.0
    for age in range(longest):
        total += alive * float(np.mean(rewards[age] or every_reward))
        alive *= 1 - float(np.mean(ends[age] or every_end))
    return total


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 40), st.integers(1, 15))
def test_it_equals_its_slow_twin(seed: int, slots: int, time: int, longest: int) -> None:
    rng = np.random.default_rng(seed)
    ages = rng.integers(0, longest, slots)
    reward, ended = rng.normal(size=(time, slots)), np.zeros((time, slots), dtype=bool)
    for slot in range(slots):
        age = int(ages[slot])
        for t in range(time):
            ended[t, slot] = age == longest - 1 or rng.random() < 0.2
            age = 0 if ended[t, slot] else age + 1
    assert expected_return(reward, ended, ages, longest) == pytest.approx(slow_expected_return(reward, ended, ages, longest), abs=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_where_nothing_is_cut_it_is_the_mean_return(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = [3, 7, 10, 20]  # one episode after the other in each slot
    reward, ended, returns = rng.normal(size=(20, 4)), np.zeros((20, 4), dtype=bool), []
    for slot, length in enumerate(lengths):
        cuts = [*range(length, 20, length), 20]
        for first, last in zip([0, *cuts], cuts, strict=False):
            ended[last - 1, slot] = True
            returns.append(reward[first:last, slot].sum())
    assert expected_return(reward, ended, np.zeros(4, dtype=int), 50) == pytest.approx(np.mean(returns), abs=1e-9)


# ---- returns that are known ---------------------------------------------------------------------------------------------------

Draw = Callable[[np.random.Generator], tuple[int, float]]
"""Length and reward per step of an episode."""


def batches(draw: Draw, slots: int, number: int, seed: int) -> list[tuple[Any, Any, Any, list[float]]]:
    """Reward, ends and ages of some batches of LONGEST steps one after the other, and the returns of the episodes that ended in each."""
    rng = np.random.default_rng(seed)
    ages, now = np.zeros(slots, dtype=int), [draw(rng) for _ in range(slots)]
    found = []
    for _ in range(number):
        reward, ended, began, returns = np.zeros((LONGEST, slots)), np.zeros((LONGEST, slots), dtype=bool), ages.copy(), []
        for slot in range(slots):
            for t in range(LONGEST):
                length, rate = now[slot]
                reward[t, slot] = rate
                ages[slot] += 1
                if ages[slot] == length:
                    ended[t, slot] = True
                    returns.append(length * rate)
                    ages[slot], now[slot] = 0, draw(rng)
        found.append((reward, ended, began, returns))
    return found


CASES: dict[str, tuple[Draw, float]] = {
    "all short": (lambda rng: (5, 1.0), 5.0),
    "all of more than half a batch": (lambda rng: (60, 1.0), 60.0),
    "all as long as can be": (lambda rng: (LONGEST, 1.0), 100.0),
    "short or as long as can be": (lambda rng: (5 if rng.random() < 0.5 else LONGEST, 1.0), 52.5),
    "uniform": (lambda rng: (int(rng.integers(1, LONGEST + 1)), 1.0), 50.5),
    "no memory": (lambda rng: (min(int(rng.geometric(1 / 30)), LONGEST), 1.0), sum((29 / 30) ** age for age in range(LONGEST))),
    "fast and short or slow and long": (lambda rng: (5, 8.0) if rng.random() < 0.5 else (LONGEST, 1.0), 70.0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch", [0, 3])  # of a newborn, and of a species whose episodes go on from batch to batch
def test_long_episodes_are_neither_punished_nor_rewarded(case: str, batch: int) -> None:
    draw, truth = CASES[case]
    estimates = [expected_return(*batches(draw, 20, batch + 1, seed)[batch][:3], LONGEST) for seed in range(60)]
    assert np.mean(estimates) == pytest.approx(truth, rel=0.06)


def test_other_estimates_favour_one_extreme() -> None:
    """What the above would catch: the mean of the ended punishes, all rewards over the number of ends rewards."""
    draw, truth = CASES["short or as long as can be"]
    first = [batches(draw, 20, 1, seed)[0] for seed in range(60)]
    assert np.mean([np.mean(returns) for *_, returns in first]) < 0.85 * truth
    assert np.mean([reward.sum() / ended.sum() for reward, ended, *_ in first]) > 1.15 * truth


def test_designs_of_the_same_worth_share_the_ranks() -> None:
    """Newborns: one whose episodes are all of length 52 or 53, and one whose episodes are short or as long as can be. Each is ahead in
    about half of the cases; the mean of ended episodes prefers the first nearly always."""
    even, (mixed, _) = (lambda rng: (52 + int(rng.random() < 0.5), 1.0)), CASES["short or as long as can be"]
    pairs = [(batches(even, 20, 1, seed)[0], batches(mixed, 20, 1, 1000 + seed)[0]) for seed in range(100)]
    wins = sum(expected_return(*one[:3], LONGEST) > expected_return(*other[:3], LONGEST) for one, other in pairs)
    assert 30 <= wins <= 70
    assert sum(np.mean(one[3]) > np.mean(other[3]) for one, other in pairs) > 80


def test_ages_that_no_step_has_are_as_the_batchs_average() -> None:
    nobody_falls = np.zeros((40, 2), dtype=bool)
    assert expected_return(np.full((40, 2), 0.5), nobody_falls, np.array([0, 60]), 100) == pytest.approx(50.0)
    assert expected_return(np.full((40, 2), 0.5), nobody_falls, np.array([0, 0]), 70) == pytest.approx(35.0)


# ---- species ------------------------------------------------------------------------------------------------------------------


def episode(unstable: bool = False) -> EpisodeRecord:
    return EpisodeRecord(0, 1.0, 10, 10, 0.0, 0.0, 3, "unstable" if unstable else "", {})


def test_a_species_that_diverges_in_more_than_half_of_its_episodes_is_dead() -> None:
    ended = np.zeros((10, 1), dtype=bool)
    ended[[4, 9]] = True

    def fitness(*episodes: EpisodeRecord) -> float:
        rollout: Any = SimpleNamespace(episodes=episodes, reward=np.ones((10, 1)), terminated=ended, truncated=np.zeros_like(ended))
        return fitness_of(rollout, [0], 10)

    assert fitness(episode(), episode(unstable=True)) == fitness(episode(), episode()) == 5.0
    assert fitness(episode(), episode(unstable=True), episode(unstable=True)) == DEAD
    assert fitness() == 5.0


def test_fitness_is_recomputed_from_rewards() -> None:
    """Over generations, slot by slot, by the slow twin; whatever the discount."""
    config = small("nge", "method.elimination=0", "env.max_steps=27", "env.end.min_height=1.24", env="locomotion2d")
    method, other = make(config), make(merged(config, {"method": {"ppo": {"gamma": 0.5}}}))
    rollouts: list[Rollout] = []
    collect = method.sampler.collect
    method.sampler.collect = lambda *arguments: rollouts.extend(found := collect(*arguments)) or found
    ages: dict[tuple[int, int], int] = {}
    lengths = set()
    for generation in range(3):
        rollouts.clear()
        method.iterate()
        for species, rollout in zip(method.population.species, rollouts, strict=True):
            slots = range(rollout.reward.shape[1])
            began = [ages.get((species.number, slot), 0) for slot in slots]
            assert species.fitness == pytest.approx(slow_expected_return(rollout.reward, rollout.terminated, began, 27), rel=1e-9), (
                generation
            )
            for slot in slots:
                age = began[slot]
                for over in rollout.terminated[:, slot]:
                    lengths.update([age + 1] * bool(over))
                    age = 0 if over else age + 1
                ages[species.number, slot] = age
            assert species.episodes == rollout.terminated.sum()
        if generation == 0:
            other.iterate()
            assert [s.fitness for s in other.population.species] == [s.fitness for s in method.population.species]
    assert len(lengths) > 2, "some fall"
    assert any(ages.values()), "some are open"


def test_the_last_inner_iterations_count() -> None:
    """Of two inner iterations the second one: the mean of its episodes alone."""
    method = make(small("nge", "method.inner_iterations=2", "env.max_steps=20"))
    rollouts: list[tuple[int, list[Rollout]]] = []
    collect = method.sampler.collect
    method.sampler.collect = lambda members, *moment: rollouts.append((moment[1], found := collect(members, *moment))) or found
    method.iterate()
    assert [inner for inner, _ in rollouts] == [0, 1, 0, 1]
    second = [rollout for inner, found in rollouts if inner == 1 for rollout in found]
    for species, rollout in zip(method.population.species, second, strict=True):
        assert species.fitness == pytest.approx(np.mean([episode.total_return for episode in rollout.episodes]), rel=1e-9)
        assert species.steps == 80 == 2 * rollout.num_steps


def test_without_an_end_the_open_episode_counts() -> None:
    method = make(small("nge", "env.max_steps=70", "budget.agent_batch=40", "budget.batch=80", "budget.steps=480", "sampler.groups=1"))
    assert method.sampler.slots == 1
    method.iterate()
    for species in method.population.species:
        assert species.episodes == 0
        assert species.fitness == pytest.approx(species.slots[0].episode["total_return"] * 70 / 40) != 0
