"""Populations through generations: budget, survival, inheritance, and that a species is a PPO run like any other."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from scipy import stats

from codesign_bench.design.graph import Design
from codesign_bench.errors import BudgetError
from codesign_bench.experiment import runner
from codesign_bench.experiment.equality import must_equal
from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.seeds import Streams
from codesign_bench.learning.ppo import PPO, LearningError
from codesign_bench.structured import merged
from methods.evolution import reproduction, training
from methods.evolution.selection import DEAD, select
from methods.evolution.species import Species
from tests.methods.population import begin, equal, generations, is_fresh, make, small, tables, untrained, weights

METHODS = ("nge", "ess", "rgs")


# ---- budget and bookkeeping ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_steps_add_up(method: str) -> None:
    found = make(small(method))
    ledger = found.context.ledger
    for generation in (1, 2, 3):
        found.iterate()
        assert ledger.charged == 4 * 80 * generation
        for species in found.population.species:
            assert species.steps == 80 * (generation - species.born)
    with pytest.raises(BudgetError):
        found.iterate()
    assert ledger.charged == 960


def test_reproduction_charges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutations, the surrogate's training and its choice."""
    method = make(small("nge", "method.gm_uc.enabled=true", "method.gm_uc.steps=3", "method.elimination=0.5", "budget.steps=1280"))
    generations(method, 3)
    made: list[Design] = []
    mutate = reproduction.mutate
    monkeypatch.setattr(reproduction, "mutate", lambda design, *rest: made.append(design) or mutate(design, *rest))
    before = copy.deepcopy(method.surrogate.network.state_dict())
    begin(method)
    assert len(made) == 20, "ten candidates for each of two children"
    assert not equal(method.surrogate.network.state_dict(), before)
    assert method.context.ledger.charged == 960


@pytest.mark.parametrize("method", ["nge", "ess"])
def test_evaluation_leaves_training_alone(method: str) -> None:
    plain, watched = make(small(method)), make(small(method))
    for _ in range(3):
        plain.iterate()
        watched.iterate()
        evaluate(watched.champion(), 2, np.random.SeedSequence(0))
    must_equal(plain.state_dict(), watched.state_dict(), "a population whose champions were evaluated")


@pytest.mark.parametrize("name", ["nge", "ess"])
@pytest.mark.parametrize("slots", [2, 3])  # three do not divide evenly over the two groups
def test_a_species_does_not_depend_on_who_is_trained_with_it(name: str, slots: int) -> None:
    """Other cohorts, another order: the same history to rounding, bit for bit where stacks have the same shape."""
    config = small(name, "method.elimination=0", "method.cohort=4", f"budget.agent_batch={40 * slots}")
    together, alone = make(config), make(merged(config, {"method": {"cohort": 1}}))
    turned = make(config)
    turned.population.species = begin(turned)[::-1]
    for method in (together, alone, turned):
        assert method.sampler.slots == slots
        method.iterate()
    for species in together.population.species:
        for method in (turned, alone):
            (other,) = [s for s in method.population.species if s.number == species.number]
            if method is turned and slots == 2:  # with three, a group has other shares of them
                must_equal(species.state_dict(), other.state_dict(), "a species in a population in reverse order")
            assert other.fitness == pytest.approx(species.fitness, rel=1e-4)
            a, b = weights(species), weights(other)
            parts = [
                (a[part][key], b[part][key]) for part in ("actor", "critic") for key in a[part] if isinstance(a[part][key], torch.Tensor)
            ]
            assert all(torch.allclose(mine, theirs, atol=1e-5) for mine, theirs in parts)


# ---- population and selection -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def genealogy(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """A run of ten generations with 6 species, two of which go each time."""
    options = ("budget.population=6", "budget.agent_batch=20", "env.max_steps=10", "budget.batch=60", "budget.steps=1200")
    config = small("nge", *options, "method.elimination=0.34", results=tmp_path_factory.mktemp("genealogy"))
    assert runner.run(config, []) == "done"
    return tables(config)["genealogy"]


def test_generations(genealogy: list[dict[str, str]]) -> None:
    for generation in range(10):
        now = {int(row["species"]): row for row in genealogy if int(row["generation"]) == generation}
        assert len(now) == 6
        assert sum(int(row["champion"]) for row in now.values()) == 1
        best = max(now.values(), key=lambda row: float(row["fitness"]))
        assert best["champion"] == "1"
        later = {int(row["species"]): row for row in genealogy if int(row["generation"]) == generation + 1}
        if later:
            staying = now.keys() & later.keys()
            assert len(staying) == 4
            assert int(best["species"]) in staying
            gone = [float(now[n]["fitness"]) for n in now.keys() - staying]
            assert min(float(now[n]["fitness"]) for n in staying) >= max(gone)
            for number in later.keys() - staying:
                assert int(later[number]["parent"]) in staying
                assert int(later[number]["born"]) == generation + 1
    numbers = {int(row["species"]) for row in genealogy}
    assert numbers == set(range(6 + 2 * 9))
    for row in genealogy:
        assert (row["parent"] == "") == (int(row["born"]) == 0)
        assert row["parent"] == "" or int(row["parent"]) < int(row["species"])
        assert int(row["steps"]) == 20 * (int(row["generation"]) - int(row["born"]) + 1)


class Candidate(NamedTuple):
    number: int
    born: int
    fitness: float


def test_the_comparison_trains_392_designs() -> None:
    """Three children in each of 124 reproductions, by the arithmetic of selection alone."""
    rng, population, next_number = np.random.default_rng(0), list(range(20)), 20
    for generation in range(1, 125):
        staying = select([Candidate(n, 0, rng.normal()) for n in population], 0.15)
        assert len(staying) == 17, generation
        population = [*(candidate.number for candidate in staying), *range(next_number, next_number + 3)]
        next_number += 3
    assert next_number == 392


def test_parents_are_drawn_uniformly_whatever_their_fitness(monkeypatch: pytest.MonkeyPatch) -> None:
    parents: Any = [Candidate(i, 0, 1000.0 * i) for i in range(17)]
    monkeypatch.setattr(Candidate, "design", None, raising=False)
    monkeypatch.setattr(reproduction, "mutate", lambda *_: (None, "perturb"))
    anything: Any = SimpleNamespace(space=None)
    drawn: Counter[Any] = Counter()
    for generation in range(30):
        drawn.update(mutant.parent.number for mutant in reproduction.mutants(parents, 500, anything, anything, Streams(0), generation))
    assert stats.chisquare([drawn[i] for i in range(17)]).pvalue > 6e-5


def test_a_population_that_died_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(small("nge"))
    monkeypatch.setattr(training, "fitness_of", lambda *_: DEAD)
    first = [number for number, _ in generations(method, 1)[0]]
    monkeypatch.undo()
    second = [number for number, _ in generations(method, 1)[0]]
    assert first == [0, 1, 2, 3]
    assert second == [4, 5, 6, 7]
    assert all(species.parent is None and species.mutation == "random" for species in method.population.species)


def test_a_dead_species_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(small("nge"))
    method.iterate()
    method.population.species[2].fitness = float("nan")
    method.population.species[3].fitness = DEAD
    worst = min(method.population.species[:2], key=lambda s: s.fitness).number
    method.iterate()
    assert {s.number for s in method.population.species} == ({0, 1} - {worst}) | {4, 5, 6}


def test_without_elimination_nobody_is_born() -> None:
    method = make(small("nge", "method.elimination=0"))
    for history in generations(method, 3):
        assert [number for number, _ in history] == [0, 1, 2, 3]


# ---- grace --------------------------------------------------------------------------------------------------------------


def lives(grace: int, generations_: int = 8) -> dict[int, tuple[int | None, int, int]]:
    """(parent, born, generation in which it was last seen) of all species of a run of ESS in which the younger ones are always worse."""
    method = make(small("ess", f"method.grace={grace}", f"budget.steps={320 * generations_}", "method.elimination=0.5"))
    seen: dict[int, tuple[int | None, int, int]] = {}
    for generation in range(generations_):
        method.iterate()
        assert len(method.population.species) == 4
        for species in method.population.species:
            seen[species.number] = species.parent, species.born, generation
            species.fitness = -float(species.number)
    return seen


@pytest.mark.parametrize("grace", [0, 1, 3])
def test_a_child_is_spared_for_its_first_generations(grace: int) -> None:
    """A child that is always among the worst goes as soon as it may: after `grace` + 1 generations. The best never goes."""
    found = lives(grace)
    children = [(born, last) for parent, born, last in found.values() if parent is not None and last < 7]
    assert children
    assert {last - born for born, last in children} == {grace}
    assert found[0][2] == 7, "the best of all"
    assert found[3][2] == 0, "the worst of the first designs, which are not spared"


def test_who_is_young_and_dead_goes() -> None:
    method = make(small("ess", "method.grace=3"))
    method.iterate()
    method.iterate()
    (child,) = [species for species in method.population.species if species.born == 1]
    child.fitness = DEAD
    begin(method)
    assert child not in method.population.species


# ---- RGS ----------------------------------------------------------------------------------------------------------------


def test_random_graph_search_keeps_its_designs() -> None:
    method = make(small("rgs"))
    method.iterate()
    designs = [species.design for species in method.population.species]
    assert len(set(designs)) == 4
    generations(method, 2)
    assert [species.design for species in method.population.species] == designs
    assert [species.number for species in method.population.species] == [0, 1, 2, 3]


@pytest.mark.parametrize(("every", "designs"), [(1, 12), (2, 8), (3, 4)])
def test_random_graph_search_can_redraw(every: int, designs: int) -> None:
    method = make(small("rgs", f"method.redraw_every={every}"))
    seen: dict[int, Design] = {}
    collect = method.sampler.collect

    def collected(cohort: list[Species], *moment: int) -> Any:
        for species in cohort:
            redrawn = species.number not in seen
            assert equal(weights(species), untrained(species)) == redrawn
            assert is_fresh(species.learner.ppo) == redrawn
        return collect(cohort, *moment)

    method.sampler.collect = collected
    for _ in range(3):
        iteration = method.iterate()
        for species in method.population.species:
            assert seen.setdefault(species.number, species.design) == species.design
        assert iteration.new_designs in (0, 4)
    assert len(seen) == designs
    assert len(set(seen.values())) == designs


def test_the_incumbent_only_gets_better_and_can_be_played_again() -> None:
    method = make(small("rgs", "method.redraw_every=1"))
    assert method.incumbent() is None
    best = -np.inf
    for _ in range(3):
        method.iterate()
        fittest = max(species.fitness for species in method.population.species)
        if fittest > best:
            best, champion = fittest, evaluate(method.champion(), 3, np.random.SeedSequence(1))
        assert method.population.fittest.fitness == best
        again = evaluate(method.incumbent(), 3, np.random.SeedSequence(1))
        assert again.returns == champion.returns
        assert again.design == champion.design


def test_a_first_fitness_that_is_not_a_number_can_be_beaten(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(small("rgs"))
    monkeypatch.setattr(training, "fitness_of", lambda *_: float("nan"))
    assert {fitness for _, fitness in generations(method, 1)[0]} == {DEAD}
    monkeypatch.undo()
    method.iterate()
    assert method.population.fittest.fitness == max(species.fitness for species in method.population.species) > DEAD
    assert method.population.fittest.generation == 1


def test_optimisers_are_of_their_own() -> None:
    method = make(small("nge"))
    begin(method)
    assert len({id(species.learner.ppo) for species in method.population.species}) == 4
    assert all(isinstance(species.learner.ppo, PPO) for species in method.population.species)
    actors = [weights(species)["actor"] for species in method.population.species]
    assert not any(equal(actors[0], other) for other in actors[1:])  # independent seeds


def test_a_species_that_cannot_learn_dies_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = PPO.learn
    calls = iter(range(1000))

    def sometimes(self: PPO, *arguments: Any) -> Any:
        if next(calls) == 1:
            raise LearningError("not finite", {})
        return learn(self, *arguments)

    monkeypatch.setattr(PPO, "learn", sometimes)
    config = small("nge", results=tmp_path)
    assert runner.run(config, []) == "done"
    rows = tables(config)["genealogy"]
    dead = [row for row in rows if row["fitness"] == "-inf"]
    assert [(row["generation"], row["species"]) for row in dead] == [("0", "1")]
    assert not [row for row in rows if row["species"] == "1" and row["generation"] != "0"]
