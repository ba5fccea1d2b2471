"""DERL: equal lifetimes, aging, tournaments, learning from scratch, and who is champion and incumbent."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from codesign_bench.configuration import load_config
from codesign_bench.design.graph import Design
from codesign_bench.errors import BudgetError, ConfigError
from codesign_bench.experiment import runner
from codesign_bench.experiment.equality import must_equal, outcome
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.experiment.seeds import Streams
from codesign_bench.structured import merged
from codesign_bench.tasks import make_task
from methods.derl import method as derl
from methods.evolution.random_design import distinct_designs, random_design, skeleton
from methods.evolution.selection import DEAD, tournament
from methods.evolution.species import Species
from tests.methods.population import Begun, equal, is_fresh, make, small, stop_after, tables, untrained, weights

SMALL = ("method.controller.gnn=[8]", "method.controller.mlp=[8]", "method.value.gnn=[8]", "method.value.mlp=[8]")
Returns = Callable[[Species, int], float]


def without_simulator(monkeypatch: pytest.MonkeyPatch, returns: Returns) -> None:
    """Batches that are charged, and earn what `returns` says of a species and the number of the batch in its life."""

    def train(population: Any, cohort: list[Species], sampler: Any, moment: int) -> None:
        population.context.ledger.charge(sampler.size * population.context.budget.agent_batch)
        for species in cohort:
            species.steps += population.context.budget.agent_batch
            species.episodes, species.fitness = 1, returns(species, moment)
        population.trained += len(cohort)

    monkeypatch.setattr(derl, "train_cohort", train)


# ---- lifetimes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "lifetime", "agents", "window"), [("paper", 500_000, 100, 25), ("pilot", 20_000, 100, 25), ("smoke", 2_000, 20, 5)]
)
def test_equal_lifetimes_spend_a_preset_exactly(
    budget: str, lifetime: int, agents: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole of it, and whoever was fit for ever and ever leaves with its time: the first are the best here."""
    without_simulator(monkeypatch, lambda species, _: -float(species.number))
    method = make(load_config("config", ["method=derl", "env=swimmer", f"budget={budget}", *SMALL]))
    ledger, lived, done = method.context.ledger, {}, 0
    while ledger.left:
        before = ledger.charged
        iteration = method.iterate()
        assert ledger.charged - before == method.iteration_steps(method.context.budget)
        finished = ledger.charged // (5 * lifetime) * 5
        assert [species.number for species in method.population.species] == list(range(max(finished - window, 0), finished))
        lived |= {species.number: (species.steps, species.parent) for species in method.population.species}
        done += iteration.new_designs
    assert done == agents
    assert lived.keys() == set(range(agents))
    assert {steps for steps, _ in lived.values()} == {lifetime}
    assert agents * lifetime == method.context.budget.steps
    for number, (_, parent) in lived.items():
        if number < window:
            assert parent is None
        else:
            earlier = number // 5 * 5
            assert earlier - window <= parent < earlier, "of those that finished before the cohort, the latest"
    with pytest.raises(BudgetError):
        method.iterate()


@pytest.mark.parametrize(
    ("overrides", "lives"),
    [
        ("method.lifetime=200000", (5, 10, 60)),
        ("method.lifetime=1000000 method.window=10", (5, 50, 10)),
        ("method.cohort=4", (4, 25, 24)),
        ("method.cohort=null", (4, 25, 24)),
        ("method.lifetime=10000000", (5, 500, 5)),
        ("budget.steps=400000", (5, 1, 5)),
        ("budget.steps=4000000007600000", (5, 10_000_000_019, 5)),  # a prime number of batches, found at once
    ],
)
def test_other_lifetimes(overrides: str, lives: tuple[int, int, int]) -> None:
    """Cohort, batches of a lifetime and window of the paper's budget, or of another."""
    plan = RunSetup.of(load_config("config", ["method=derl", *overrides.split()]))
    found = plan.method_config.lives(plan.budget)
    assert (found.cohort, found.batches, found.window) == lives


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            "method.lifetime=300000",
            "method.lifetime is 300000; allowed are multiples of budget.agent_batch, 20000, that divide 10000000, the steps of each "
            "member of a cohort, for at most 10,000 agents, nearest 200000 and 400000.",
        ),
        ("method.lifetime=10000", "nearest 20000."),
        ("method.lifetime=20000000", "nearest 10000000."),
        ("method.lifetime=20000 budget.steps=4000000007600000", "nearest 200000000380000."),
        ("method.cohort=null budget.population=1000000007 budget.steps=20000000140000", "budget.population is 1000000007; allowed are"),
        ("method.lifetime=0", "method.lifetime is 0; allowed are whole numbers from 1 up."),
        ("method.lifetime=1.5", "method.lifetime is 1.5; allowed is a whole number."),
        ("method.window=26", "method.window is 26; allowed are multiples of the cohort, 5, up to 100, the agents of budget.steps."),
        ("method.window=105", "method.window is 105; allowed are"),
        ("method.window=0", "method.window is 0; allowed are whole numbers from 1 up."),
        ("method.tournament=0", "method.tournament is 0; allowed are whole numbers from 1 to 10,000."),
        ("method.cohort=3", "method.cohort is 3; allowed are divisors of the population, 20, or null."),
        ("method.inner_iterations=3", "budget.agent_batch is 20000; allowed are multiples of 18"),
        ("method.mutation.redraw=0.5", "method.mutation.add, delete, redraw and perturb sum to 1.25; allowed is a sum of 1."),
    ],
)
def test_what_does_not_fit_is_refused_before_a_run_has_a_folder(overrides: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        runner.run(load_config("config", ["method=derl", f"results={tmp_path}", *overrides.split()]), [])
    assert sentence in str(error.value)
    assert not list(tmp_path.iterdir())


# ---- the first designs --------------------------------------------------------------------------------------------------


def same_skeleton(one: Design, other: Design, a: int = 0, b: int = 0) -> bool:
    """The slow twin of `skeleton`: the children of one fit those of the other in some order."""
    below = [[int(child) for child in np.flatnonzero(design.parents == node)] for design, node in ((one, a), (other, b))]
    if len(below[0]) != len(below[1]):
        return False
    orders = itertools.permutations(below[1])
    return any(all(same_skeleton(one, other, *pair) for pair in zip(below[0], order, strict=True)) for order in orders)


@pytest.mark.parametrize("env", ["swimmer", "locomotion3d"])
def test_equal_skeletons_are_known_whatever_the_order_of_their_nodes(env: str) -> None:
    task, rng = make_task(env), np.random.default_rng(0)
    designs = [random_design(task, int(rng.integers(1, 5)), rng) for _ in range(40)]
    pairs = [(same_skeleton(a, b), skeleton(a) == skeleton(b)) for a, b in itertools.combinations(designs, 2)]
    assert all(slow == fast for slow, fast in pairs)
    assert {slow for slow, _ in pairs} == {True, False}


@pytest.mark.parametrize(("env", "distinct"), [("swimmer", 25), ("gap", 25), ("crawler", 25), ("walker_regular", 6)])
def test_first_designs_have_skeletons_of_their_own(env: str, distinct: int) -> None:
    """As far as there are so many: two limbs of a walker_regular have one to three parts each, which makes six."""
    task = make_task(env)
    designs = distinct_designs(task, 25, Streams(0))
    assert len(designs) == 25
    assert len({skeleton(design) for design in designs}) == distinct
    assert len({skeleton(design) for design in designs[:distinct]}) == distinct, "those come first"
    assert len({design.to_json() for design in designs}) == 25
    for design in designs:
        task.space.check(design)


# ---- parents and children -----------------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    number: int
    fitness: float
    born: int = 0


@pytest.mark.parametrize("window", [2, 20])
def test_a_tournament_is_drawn_with_replacement(window: int) -> None:
    """How often the one of each rank wins; among two, the worse one wins where it is drawn four times."""
    rng, trials = np.random.default_rng(window), 20_000
    candidates = [Candidate(number, float(number)) for number in range(window)]
    won = Counter(tournament(candidates, 4, rng).number for _ in range(trials))
    for number in range(window):
        chance = ((number + 1) / window) ** 4 - (number / window) ** 4
        assert abs(won[number] - trials * chance) < 4 * math.sqrt(trials * chance * (1 - chance)) + 1e-6
    if window == 20:
        assert abs(won[19] / trials - 0.1855) < 0.012


def test_a_tournament_of_the_dead_has_a_winner_all_the_same() -> None:
    rng = np.random.default_rng(0)
    assert {tournament([Candidate(i, DEAD) for i in range(3)], 4, rng).number for _ in range(50)} == {0, 1, 2}


def second_cohort(method: Any) -> list[Species]:
    """Of a method whose first one has finished, before anyone acts."""

    def stop(*_: Any) -> None:
        raise Begun

    method.sampler.collect = stop
    with pytest.raises(Begun):
        method.iterate()
    found: list[Species] = method.cohort
    return found


@pytest.mark.parametrize("controller", ["[8,8]", "null"])
def test_children_inherit_designs_but_nothing_that_was_learned(controller: str) -> None:
    """Where a mutation leaves the skeleton alone, too: every child starts as a fresh species with its number would."""
    nobody = ("method.mutation.add=0", "method.mutation.delete=0", "method.mutation.perturb=0.5", "method.mutation.redraw=0.5")
    method = make(small("derl", "method.lifetime=160", f"method.controller.gnn={controller}", *nobody))
    method.iterate()
    parents = {species.number: species for species in method.population.species}
    assert list(parents) == [0, 1]
    assert not equal(weights(parents[0]), untrained(parents[0])), "the parents have learned"
    children = second_cohort(method)
    assert [child.number for child in children] == [2, 3]
    for child in children:
        parent = parents[child.parent]  # type: ignore[index]
        assert child.mutation in ("perturb", "redraw")
        assert child.design.parents.tolist() == parent.design.parents.tolist()
        assert child.design != parent.design
        assert equal(weights(child), untrained(child))
        assert is_fresh(child.learner.ppo)
        assert (child.steps, child.episodes) == (0, 0)
        assert math.isnan(child.fitness)


def test_parents_come_from_the_window_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tournament as large as can be finds the fittest of the window, which is never the fittest of all once that one is old."""
    without_simulator(monkeypatch, lambda species, _: -float(species.number))
    method = make(small("derl", "method.lifetime=80", "method.window=4", "method.tournament=200", "budget.steps=1920"))
    parents = {}
    for _ in range(6):
        method.iterate()
        parents |= {species.number: species.parent for species in method.population.species}
    assert {child: parent for child, parent in parents.items() if parent is not None} == {
        child: child // 2 * 2 - 4 for child in range(4, 24)
    }


# ---- fitness, champion, incumbent ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batches", "counted"), [(1, [0]), (4, [3]), (10, [8, 9]), (12, [10, 11])])
def test_fitness_is_that_of_the_last_fifth_of_a_lifetime(batches: int, counted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def returns(species: Species, batch: int) -> float:
        if batch == 0 and batches > 1:
            return DEAD  # what happened before is forgiven
        return DEAD if species.number == 1 and batch == batches - 1 else species.number + batch**2

    without_simulator(monkeypatch, returns)
    method = make(small("derl", f"method.lifetime={80 * batches}", "method.window=4", f"budget.steps={320 * batches}"))
    while not method.population.species:
        method.iterate()
    first, second = method.population.species[:2]
    assert (first.number, second.number) == (0, 1)
    assert first.fitness == np.mean([batch**2 for batch in counted])
    assert second.fitness == DEAD
    assert (first.steps, first.episodes) == (80 * batches, batches), "of all its life"


def test_champion_and_incumbent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Species 1 is the best of all; whoever is alive looks even better in the middle of its life."""
    without_simulator(monkeypatch, lambda species, batch: (100.0 if batch < 2 else 0.0) + (50.0 if species.number == 1 else species.number))
    method = make(small("derl", "budget.steps=1920"))  # four cohorts of two with three batches each, two batches in an iteration
    found = []
    for _ in range(6):
        iteration = method.iterate()
        design = method.champion().task.initial_design
        (champion,) = [species.number for species in (*method.population.species, *method.cohort) if species.design == design]
        fittest = method.population.fittest
        found.append((champion, fittest and fittest.species, iteration.metrics["fitness_best"], len(iteration.tables["genealogy"])))
        assert (method.incumbent() is None) == (fittest is None)
    assert [(champion, incumbent, rows) for champion, incumbent, _, rows in found] == [
        (1, None, 0),  # nobody has finished: the best of the first cohort so far
        (1, 1, 2),  # the first two have, the next two are alive
        (3, 1, 2),  # species 1 has left the window
        (3, 1, 0),
        (5, 1, 2),
        (7, 1, 2),
    ]
    assert [best for *_, best, _ in found] == [150.0, 50.0, 3.0, 3.0, 5.0, 7.0]


# ---- runs ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def aged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of six cohorts of two that live for two batches; four cohorts' batches are an iteration. The window holds two cohorts."""
    options = ("method.lifetime=40", "method.window=4", "budget.population=8", "budget.agent_batch=20", "env.max_steps=10")
    config = small("derl", *options, "budget.batch=40", "budget.steps=480", results=tmp_path_factory.mktemp("derl"))
    assert runner.run(config, []) == "done"
    return config


def test_tables(aged: dict[str, Any]) -> None:
    found = tables(aged)
    for generation in range(6):
        now = [row for row in found["genealogy"] if int(row["generation"]) == generation]
        latest = range(max(2 * generation - 2, 0), 2 * generation + 2)
        assert [int(row["species"]) for row in now] == list(latest), "the window after the cohort"
        assert sum(int(row["champion"]) for row in now) == 1
        assert all(int(row["born"]) == int(row["species"]) // 2 and row["steps"] == "40" and int(row["episodes"]) >= 4 for row in now)
        for row in now:
            assert (row["parent"] == "") == (int(row["species"]) < 4)
    assert len({(row["species"], row["fitness"]) for row in found["genealogy"]}) == 12, "fitness stays as it was"
    assert [int(row["species"]) for row in found["species"]] == list(range(12))
    assert {row["mutation"] for row in found["species"][:4]} == {"random"}


def test_a_run_stopped_after_every_batch(aged: dict[str, Any], tmp_path: Path) -> None:
    """In the middle of lifetimes and of iterations: also the rows of cohorts that finished before the iteration has."""
    stopped = merged(aged, {"results": str(tmp_path)})
    for steps in range(40, 480, 40):
        stop_after(stopped, steps)
    assert runner.run(stopped, []) == "done"
    assert tables(stopped) == tables(aged)
    outcome(aged).must_equal(outcome(stopped), "a run that was stopped after every batch")


def test_no_two_batches_of_an_agent_have_the_same_noise() -> None:
    method = make(small("derl", "method.inner_iterations=2"))
    collect, moments = method.sampler.collect, []

    def noted(cohort: list[Species], *moment: int) -> Any:
        moments.extend((species.number, *moment) for species in cohort)
        return collect(cohort, *moment)

    method.sampler.collect = noted
    for _ in range(3):
        method.iterate()
    assert len(moments) == 4 * 3 * 2
    assert len(set(moments)) == len(moments)


def test_cohorts_of_one_process_and_of_two_are_equal() -> None:
    """Lives that begin and end in the middle of iterations."""
    one, two = make(small("derl")), make(small("derl"), workers=2)
    try:
        for _ in range(3):
            assert one.iterate().episodes == two.iterate().episodes
        must_equal(one.state_dict(), two.state_dict(), "a population in two processes")
    finally:
        two.close()
