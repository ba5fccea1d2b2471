"""Who stays, by hand-worked cases and properties."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.evolution.selection import DEAD, counted_iterations, mean_fitness, num_eliminated, ranked, select


class Candidate(NamedTuple):
    number: int
    born: int
    fitness: float


FITNESS = st.floats(-1e3, 1e3).map(lambda value: round(value, 3))


def candidates(*fitness: float) -> list[Candidate]:
    return [Candidate(i, 0, value) for i, value in enumerate(fitness)]


def survivors(population: list[Candidate], rate: float) -> list[int]:
    return [candidate.number for candidate in select(population, rate)]


def test_numbers_of_the_comparison() -> None:
    assert num_eliminated(20, 0.15) == 3
    assert num_eliminated(64, 0.3) == 19
    assert num_eliminated(10, 0.3) == 3  # 0.3 * 10 is below 3 in floating point
    assert num_eliminated(5, 0.15) == 1  # at least one
    assert num_eliminated(20, 0.0) == 0
    assert num_eliminated(1, 0.9) == 0  # never the last one
    assert num_eliminated(0, 0.5) == 0


@given(st.lists(FITNESS, min_size=1, max_size=30), st.floats(0, 0.99))
def test_survivors_are_the_fitter_ones(fitness: list[float], rate: float) -> None:
    all_of_them = candidates(*fitness)
    staying = survivors(all_of_them, rate)
    assert staying == sorted(staying)
    gone = [c.fitness for c in all_of_them if c.number not in staying]
    assert len(gone) == num_eliminated(len(fitness), rate)
    assert min(fitness[i] for i in staying) >= max(gone, default=-math.inf)
    assert ranked(all_of_them)[0].number in staying


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=20), st.integers(-1000, 1000), st.sampled_from([0.25, 0.5, 2.0, 1024.0]))
def test_only_ranks_matter(fitness: list[int], shift: int, scale: float) -> None:
    original, moved = candidates(*map(float, fitness)), candidates(*((value + shift) * scale for value in fitness))
    assert survivors(original, 0.3) == survivors(moved, 0.3)
    assert [c.number for c in ranked(original)] == [c.number for c in ranked(moved)]


def test_ties_go_to_the_older_then_to_the_lower_number() -> None:
    tied = [Candidate(7, 3, 1.0), Candidate(5, 3, 1.0), Candidate(9, 1, 1.0), Candidate(1, 4, 2.0)]
    assert [c.number for c in ranked(tied)] == [1, 9, 5, 7]
    assert survivors(tied, 0.25) == [5, 9, 1], "in the order in which they were"


@given(st.lists(FITNESS, min_size=1, max_size=30), st.floats(0, 0.99), st.sets(st.integers(0, 29)))
def test_the_spared_stay(fitness: list[float], rate: float, spared: set[int]) -> None:
    all_of_them = candidates(*fitness)
    staying = [candidate.number for candidate in select(all_of_them, rate, spared)]
    gone = {c.number for c in all_of_them}.difference(staying)
    best, others = ranked(all_of_them)[0], [c for c in ranked(all_of_them)[1:] if c.number not in spared]
    assert best.number in staying
    assert not gone & spared
    assert len(gone) == min(num_eliminated(len(fitness), rate), len(others))
    assert gone == {c.number for c in others[len(others) - len(gone) :]}


def test_who_is_spared_and_dead_goes() -> None:
    assert [c.number for c in select(candidates(5, DEAD, 1, math.nan, 3, 2), 0.15, {1, 2, 3})] == [0, 2, 4]


def test_the_dead_go_besides_the_worst() -> None:
    assert survivors(candidates(5, DEAD, 1, math.nan, 3, 2), 0.15) == [0, 4, 5]
    assert survivors(candidates(DEAD, 1.0), 0.15) == [1]
    assert survivors(candidates(DEAD, math.nan), 0.15) == []
    assert survivors(candidates(DEAD, 1.0, math.nan), 0.0) == [0, 1, 2]  # nobody goes at all
    assert [c.number for c in ranked(candidates(math.nan, DEAD, 0.0))] == [2, 0, 1]


@pytest.mark.parametrize(("iterations", "counted"), [(20, range(7, 20)), (10, range(4, 10)), (1, range(1)), (2, range(1, 2))])
def test_inner_iterations_that_count(iterations: int, counted: range) -> None:
    assert counted_iterations(iterations) == counted


def test_a_mean_with_a_dead_iteration_or_without_a_number_is_dead() -> None:
    assert mean_fitness([3.0, DEAD]) == DEAD
    assert mean_fitness([3.0, math.nan]) == DEAD
    assert mean_fitness([3.0, 5.0]) == 4.0
