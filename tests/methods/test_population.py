"""Populations through generations: budget, survival, inheritance, and that a species is a PPO run like any other."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from codesign_bench.design.graph import Design
from codesign_bench.errors import BudgetError, ConfigError
from codesign_bench.experiment import checkpoint, runner
from codesign_bench.experiment.equality import difference, must_equal, outcome
from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.runner import Plan
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.ppo import PPO
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.structured import merged
from methods.evolution import population as population_module
from methods.evolution import reproduction
from methods.evolution.cohort import select_slots
from methods.evolution.selection import DEAD
from methods.evolution.species import Species, copied
from tests.methods.population import make, small

METHODS = ("nge", "ess", "rgs")


def weights(species: Species) -> dict[str, Any]:
    return copied(species.controller.state_dict())


def equal(a: Any, b: Any) -> bool:
    return difference(a, b) is None


def generations(method: Any, number: int) -> list[list[tuple[int, float]]]:
    """Numbers and fitness of the population after each of some generations."""
    history = []
    for _ in range(number):
        method.iterate()
        history.append([(species.number, species.fitness) for species in method.population])
    return history


# ---- budget and bookkeeping ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_steps_add_up(method: str) -> None:
    found = make(small(method))
    ledger = found.context.ledger
    for generation in (1, 2, 3):
        found.iterate()
        assert ledger.charged == 4 * 80 * generation
        for species in found.population:
            assert species.steps == 80 * (generation - species.born)
    with pytest.raises(BudgetError):
        found.iterate()
    assert ledger.charged == 960


@pytest.mark.parametrize(("budget", "steps"), [("paper", 50_000_000), ("pilot", 2_000_000), ("smoke", 40_000)])
@pytest.mark.parametrize("method", METHODS)
def test_presets_come_out_exactly(method: str, budget: str, steps: int) -> None:
    from codesign_bench.command_line import load_config

    plan = Plan.of(load_config("config", [f"method={method}", f"budget={budget}"]))
    assert plan.budget.steps == steps
    assert steps % plan.iteration_steps == 0
    if budget == "paper":
        assert (plan.budget.population, plan.budget.agent_batch, steps // plan.iteration_steps) == (20, 20_000, 125)


def test_a_budget_that_is_no_whole_number_of_generations_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"budget.steps is 1000; .* iterations of 320 steps, nearest 960 and 1280"):
        Plan.of(small("nge", "budget.steps=1000"))


def test_reproduction_charges_nothing() -> None:
    method = make(small("nge", "method.gm_uc.enabled=true"))
    method.iterate()
    method.iterate()
    charged = method.context.ledger.charged
    method.renew()
    assert method.context.ledger.charged == charged


@pytest.mark.parametrize("method", METHODS)
def test_evaluation_leaves_training_alone(method: str) -> None:
    plain, watched = make(small(method)), make(small(method))
    for _ in range(3):
        plain.iterate()
        watched.iterate()
        evaluate(watched.champion(), 2, np.random.SeedSequence(0))
    must_equal(plain.state_dict(), watched.state_dict(), "a population whose champions were evaluated")


def test_a_species_does_not_depend_on_who_is_trained_with_it() -> None:
    """Other cohorts, another order: the same history to rounding, bit for bit where stacks have the same shape."""
    config = small("nge", "method.elimination=0", "method.cohort=4")
    together, alone = make(config), make(merged(config, {"method": {"cohort": 1}}))
    turned = make(config)
    turned.population = turned.found()[::-1]
    turned.found = lambda: turned.population
    for method in (together, alone, turned):
        method.iterate()
    for species in together.population:
        other = next(s for s in turned.population if s.number == species.number)
        must_equal(species.state_dict(), other.state_dict(), "a species in a population in reverse order")
        other = next(s for s in alone.population if s.number == species.number)
        assert other.fitness == pytest.approx(species.fitness, rel=1e-4)
        a, b = weights(species)["actor"], weights(other)["actor"]
        assert all(torch.allclose(a[key], b[key], atol=1e-5) for key in a)


# ---- checkpoints --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["nge", "ess", "rgs", "gm_uc"])
def test_resume_in_the_middle_of_a_generation(method: str, tmp_path: Path) -> None:
    """Every checkpoint, between cohorts too, goes on to the same end."""
    options = {"gm_uc": ("method.gm_uc.enabled=true", "method.gm_uc.steps=3", "budget.steps=1280"), "rgs": ("method.redraw_every=2",)}
    config = small("nge" if method == "gm_uc" else method, *options.get(method, ()))
    saved: list[tuple[int, dict[str, Any]]] = []
    found = make(config, lambda: saved.append((found.context.ledger.charged, json_free(found.state_dict(), tmp_path))))
    episodes = []
    while found.context.ledger.left:
        episodes.append(found.iterate().episodes)
    assert [charged for charged, _ in saved] == [160 + 320 * i for i in range(len(episodes))]
    for charged, state in saved:
        again = make(config)
        again.load_state_dict(state)
        again.context.ledger.charged = charged
        iteration = again.iterate()
        assert iteration.episodes == episodes[charged // 320]
        while again.context.ledger.left:
            again.iterate()
        must_equal(found.state_dict(), again.state_dict(), f"a population resumed at {charged} steps")


def json_free(state: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A state as a checkpoint gives it back."""
    checkpoint.save(folder, 1, state, "hash")
    loaded, _ = checkpoint.load_latest(folder, "hash")
    assert loaded is not None
    return loaded


def tables(config: dict[str, Any]) -> dict[str, list[dict[str, str]]]:
    folder = runner.RunFolder.of(config).path
    found = {}
    for name in ("genealogy", "species"):
        with open(folder / f"{name}.csv", newline="") as file:
            found[name] = list(csv.DictReader(file))
    return found


class Stopped(Exception):
    pass


def test_a_run_stopped_between_cohorts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables too: what a stopped session wrote after its last checkpoint is cut away."""
    config = small("nge", results=tmp_path / "one")
    assert runner.run(config, []) == "done"
    expected = tables(config)
    stopped = merged(config, {"results": str(tmp_path / "two")})
    save, record = runner.Run.save, runner.Run.record
    for steps in (160, 480, 640, 800):

        def stop(job: Any, steps: int = steps) -> None:
            save(job)
            if job.ledger.charged == steps:
                raise Stopped

        monkeypatch.setattr(runner.Run, "save", stop)
        with pytest.raises(Stopped):
            runner.run(stopped, [])

    def lost(job: Any, evaluation: Any) -> None:  # after the tables were written, before the checkpoint
        record(job, evaluation)
        raise Stopped

    monkeypatch.setattr(runner.Run, "save", save)
    monkeypatch.setattr(runner.Run, "record", lost)
    with pytest.raises(Stopped):
        runner.run(stopped, [])
    monkeypatch.undo()
    assert len(tables(stopped)["genealogy"]) == 12
    assert runner.run(stopped, []) == "done"
    assert tables(stopped) == expected
    outcome(config).must_equal(outcome(stopped), "a run that was stopped five times")


def test_a_round_boundary_is_an_exact_prefix(tmp_path: Path) -> None:
    config = small("nge", results=tmp_path / "short")
    short = merged(config, {"budget": {"until": 640}})
    long = merged(config, {"results": str(tmp_path / "long")})
    runner.run(short, [])
    runner.run(long, [])
    rows, more = tables(short), tables(long)
    for name in rows:
        assert rows[name] == more[name][: len(rows[name])]
        assert len(more[name]) > len(rows[name])


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


def test_the_comparison_trains_392_designs() -> None:
    """Three children in each of 124 reproductions, by the arithmetic of selection alone."""
    from methods.evolution.selection import Candidate, survivors

    rng, population, next_number = np.random.default_rng(0), list(range(20)), 20
    for generation in range(1, 125):
        staying = survivors([Candidate(n, 0, rng.normal()) for n in population], 0.15)
        assert len(staying) == 17, generation
        population = [*staying, *range(next_number, next_number + 3)]
        next_number += 3
    assert next_number == 392


def test_parents_are_drawn_uniformly_whatever_their_fitness() -> None:
    method = make(small("nge"))
    parents = [type("Parent", (), {"number": i, "fitness": 1000.0 * i})() for i in range(17)]
    method._offspring = lambda parent, i: parent.number
    drawn: Counter[int] = Counter()
    for generation in range(30):
        method.generation = generation
        drawn.update(method.draw(parents, 500))
    assert stats.chisquare([drawn[i] for i in range(17)]).pvalue > 6e-5


def test_a_population_that_died_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(small("nge"))
    monkeypatch.setattr(population_module, "fitness_of", lambda *_: DEAD)
    first = [number for number, _ in generations(method, 1)[0]]
    monkeypatch.undo()
    second = [number for number, _ in generations(method, 1)[0]]
    assert first == [0, 1, 2, 3]
    assert second == [4, 5, 6, 7]
    assert all(species.parent is None and species.mutation == "random" for species in method.population)


def test_a_dead_species_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(small("nge"))
    method.iterate()
    method.population[2].fitness = float("nan")
    method.population[3].fitness = DEAD
    worst = min(method.population[:2], key=lambda s: s.fitness).number
    method.iterate()
    assert {s.number for s in method.population} == ({0, 1} - {worst}) | {4, 5, 6}


def test_without_elimination_nobody_is_born() -> None:
    method = make(small("nge", "method.elimination=0"))
    for history in generations(method, 3):
        assert [number for number, _ in history] == [0, 1, 2, 3]


@pytest.mark.parametrize(("name", "fresh_weights"), [("nge", False), ("ess", True)])
def test_fitness_and_parents_decide_and_mutations_are_redrawn(name: str, fresh_weights: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that mutates can be simulated: after its tries a child is a copy of its parent, and the budget goes on."""
    method = make(small(name))
    method.iterate()
    monkeypatch.setattr(reproduction, "viable", lambda *_: False)
    before = {species.number: weights(species) for species in method.population}
    method.population = method.renew()
    (child,) = [species for species in method.population if species.born == 1]
    assert child.mutation == "copy"
    parent = next(species for species in method.population if species.number == child.parent)
    assert child.design == parent.design
    assert equal(weights(child)["actor"], before[parent.number]["actor"]) is not fresh_weights


def test_fitness_is_recomputed_from_rewards() -> None:
    """Added up reward by reward, over generations, slot by slot; whatever the discount."""
    config = small("nge", "method.elimination=0", "env.max_steps=27")
    method, other = make(config), make(merged(config, {"method": {"ppo": {"gamma": 0.5}}}))
    rollouts: list[Rollout] = []
    collect = method.cohorts.collect
    method.cohorts.collect = lambda *arguments: rollouts.extend(found := collect(*arguments)) or found
    running: dict[tuple[int, int], float] = {}
    for generation in range(3):
        rollouts.clear()
        method.iterate()
        for species, rollout in zip(method.population, rollouts, strict=True):
            ended = []
            for slot in range(rollout.reward.shape[1]):
                for reward, over in zip(rollout.reward[:, slot], rollout.terminated[:, slot], strict=True):
                    running[species.number, slot] = running.get((species.number, slot), 0.0) + reward
                    if over:
                        ended.append(running.pop((species.number, slot)))
            assert species.fitness == pytest.approx(np.mean(ended), rel=1e-9), generation
            assert species.episodes == len(ended)
        if generation == 0:
            other.iterate()
            assert [s.fitness for s in other.population] == [s.fitness for s in method.population]


def test_without_an_end_the_longest_open_episode_counts() -> None:
    method = make(small("nge", "env.max_steps=70", "budget.agent_batch=40", "budget.batch=80", "budget.steps=480", "sampler.groups=1"))
    assert method.cohorts.slots == 1
    method.iterate()
    for species in method.population:
        assert species.episodes == 0
        assert species.fitness == species.slots[0]["episode"]["total_return"] != 0


# ---- a species is a PPO run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_without_selection_a_population_is_that_many_ppo_runs(name: str) -> None:
    """Bit for bit where the stack has the same shape, one species at a time; to rounding where they act side by side."""
    off = () if name == "rgs" else ("method.elimination=0",)
    one_by_one, together = (make(small(name, *off, f"method.cohort={cohort}")) for cohort in (1, 4))
    generations(one_by_one, 3)
    generations(together, 3)
    first = make(small(name, *off)).found()
    for i in range(4):
        alone = make(small(name, *off, "budget.population=1", "budget.batch=80", "budget.steps=240"))
        alone.found = lambda i=i: [first[i]]
        generations(alone, 3)
        (mine,) = alone.population
        must_equal(mine.state_dict(), one_by_one.population[i].state_dict(), "a species that was trained alone")
        species = together.population[i]
        a, b = weights(species), weights(mine)
        for part in ("actor", "critic"):
            assert all(torch.allclose(value, b[part][key], atol=1e-5) for key, value in a[part].items())
        assert species.fitness == pytest.approx(mine.fitness, rel=1e-4)


@pytest.mark.parametrize("name", ["nge", "ess"])
def test_a_survivor_is_an_uninterrupted_ppo_run(name: str) -> None:
    """Weights, Adam, normaliser: bit for bit what PPO makes of the same batches one after the other."""
    method = make(small(name, "method.elimination=0.5"))
    first = make(small(name)).found()
    rollouts: dict[int, list[Rollout]] = {}
    collect = method.cohorts.collect

    def noted(members: Any, *moment: int) -> Any:
        found = collect(members, *moment)
        for species, rollout in zip(members, found, strict=True):
            rollouts.setdefault(species.number, []).append(rollout)
        return found

    method.cohorts.collect = noted
    generations(method, 3)
    old = [species for species in method.population if species.born == 0]
    assert old
    for species in old:
        twin = next(s for s in first if s.number == species.number)
        assert len(rollouts[species.number]) == 3
        for rollout in rollouts[species.number]:
            steps, bootstrap = steps_of_rollout(rollout, method.task.space)
            twin.ppo.learn(rollout, steps, bootstrap, twin.shuffle)
            twin.controller.merge(steps)
        must_equal(weights(species), weights(twin), "a survivor")
        must_equal(species.ppo.state_dict(), twin.ppo.state_dict(), "a survivor's optimisers")
        assert species.ppo.policy_optimiser.state_dict()["state"][0]["step"] == 3 * 2 * 1


def test_selected_slots_are_the_rollout_of_those_slots() -> None:
    method = make(small("nge", "method.cohort=2"))
    method.population = method.found()
    members = method.population[:2]
    whole: list[Rollout] = []
    collect = method.cohorts.pool.collect
    method.cohorts.pool.collect = lambda *arguments: whole.append(found := collect(*arguments)) or found
    parts = method.cohorts.collect(members, 0, 0)
    (rollout,) = whole
    order = [place for places in method.cohorts._places for place in places]
    for member, part in enumerate(parts):
        columns = [column for column, (who, _) in enumerate(order) if who == member]
        assert [slot for who, slot in order if who == member] == list(range(len(columns)))
        for t in range(len(rollout.reward)):
            for slot, column in enumerate(columns):
                assert part.reward[t, slot] == rollout.reward[t, column]
                nodes = members[member].design.num_nodes
                mine, theirs = part.node_offset[t, slot], rollout.node_offset[t, column]
                assert np.array_equal(part.state[mine : mine + nodes], rollout.state[theirs : theirs + nodes])
                assert np.array_equal(part.actions[mine : mine + nodes], rollout.actions[theirs : theirs + nodes])
                assert np.array_equal(
                    part.designs.attributes[part.designs.offsets[part.design[t, slot]] :][:nodes], members[member].design.attributes
                )
    both = select_slots(rollout, np.arange(rollout.reward.shape[1]))
    assert np.array_equal(both.state, rollout.state)
    assert np.array_equal(both.last_state, rollout.last_state)
    assert both.episodes == rollout.episodes


# ---- inheritance --------------------------------------------------------------------------------------------------------


def with_child(name: str, *overrides: str) -> tuple[Any, Species, Species, dict[str, Any]]:
    """A population in its second generation before training, its child, the parent, and the parent's weights then."""
    method = make(small(name, *overrides))
    method.iterate()
    method.population = method.renew()
    (child,) = [species for species in method.population if species.born == 1]
    parent = next(species for species in method.population if species.number == child.parent)
    return method, child, parent, weights(parent)


def test_a_child_of_nge_has_its_parents_networks_and_fresh_optimisers() -> None:
    _, child, parent, before = with_child("nge")
    must_equal(weights(child), before, "a child's networks")
    assert child.controller.normaliser.count == parent.controller.normaliser.count > 0
    for optimiser in (child.ppo.policy_optimiser, child.ppo.value_optimiser):
        assert not optimiser.state_dict()["state"]  # no step, no moments
    assert parent.ppo.policy_optimiser.state_dict()["state"][0]["step"] == 2


def test_a_child_and_its_parent_share_nothing() -> None:
    method, child, parent, before = with_child("nge")
    optimiser = copied(parent.ppo.state_dict()["policy_optimiser"]["state"][0])
    method._train([child, next(s for s in method.population if s not in (child, parent))])
    must_equal(weights(parent), before, "a parent whose child was trained")
    must_equal(parent.ppo.state_dict()["policy_optimiser"]["state"][0], optimiser, "the optimiser of a parent")
    assert not equal(weights(child)["actor"], before["actor"])
    after = weights(child)
    method._train([parent, next(s for s in method.population if s not in (child, parent))])
    must_equal(weights(child), after, "a child whose parent was trained")


def test_first_actions_come_from_the_inherited_policy() -> None:
    """Log-probabilities as stored while acting equal those of the inherited weights, for survivors and children."""
    method, child, _, _ = with_child("nge", "method.mutation.add=1", "method.mutation.delete=0", "method.mutation.perturb=0")
    for start in (0, 2):
        members = method.population[start : start + 2]
        expected = [weights(species) for species in members]
        for species, rollout, state in zip(members, method.cohorts.collect(members, 1, 0), expected, strict=True):
            must_equal(weights(species), state, "a species that acts")
            steps, _ = steps_of_rollout(rollout, method.task.space)
            chosen = np.arange(steps.num_steps)
            forest, rows = steps.forest(chosen)
            actor = species.controller.actor
            with torch.no_grad():
                actions = torch.from_numpy(rollout.actions)
                again = actor.log_prob(actor.prepare(steps), steps, actions, chosen, forest, torch.from_numpy(rows))
            assert np.allclose(again.numpy(), rollout.log_prob.ravel(), atol=2e-5)
            assert species is not child or np.ptp(again.numpy()) > 0


@pytest.mark.parametrize("name", ["ess", "nge"])
def test_the_root_has_no_action(name: str) -> None:
    method = make(small(name))
    method.population = method.found()
    for species, rollout in zip(method.population[:2], method.cohorts.collect(method.population[:2], 0, 0), strict=True):
        nodes = species.design.num_nodes
        control = rollout.actions[:, 0].reshape(-1, nodes)
        assert np.all(control[:, 0] == 0)
        assert np.all(control[:, 1:] != 0)


# ---- ESS ----------------------------------------------------------------------------------------------------------------

OPERATORS = {
    "add": ("method.mutation.add=1", "method.mutation.delete=0", "method.mutation.perturb=0"),
    "delete": ("method.mutation.add=0", "method.mutation.delete=1", "method.mutation.perturb=0", "method.initial.least=4"),
    "perturb": ("method.mutation.add=0", "method.mutation.delete=0", "method.mutation.perturb=1"),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_child_of_ess_starts_from_nothing(operator: str) -> None:
    method, child, parent, before = with_child("ess", *OPERATORS[operator])
    assert operator in child.mutation
    fresh = method.nursery.make(child.number, child.design, 1, child.mutation, parent.number)
    must_equal(weights(child), weights(fresh), "a child's networks")
    assert not equal(weights(child), before)
    assert child.controller.normaliser.count == 0


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_child_of_ess_can_inherit_if_its_skeleton_is_its_parents(operator: str) -> None:
    _, child, _, before = with_child("ess", "method.inherit_if_same_topology=true", *OPERATORS[operator])
    assert equal(weights(child), before) == (operator == "perturb")
    assert not child.ppo.policy_optimiser.state_dict()["state"]


def test_strict_ess_restarts_everyone() -> None:
    method = make(small("ess", "method.amortized=false"))
    method.iterate()
    trained = {species.number: weights(species) for species in method.population}
    method.population = method.renew()
    for species in method.population:
        assert species.controller.normaliser.count == 0
        assert not species.ppo.policy_optimiser.state_dict()["state"]
        if species.born == 0:
            assert species.restarts == 1
            assert not equal(weights(species), trained[species.number])
            assert all(slot["episode"]["time"] == 0 for slot in species.slots)
    amortized = make(small("ess"))
    amortized.iterate()
    trained = {species.number: weights(species) for species in amortized.population}
    for species in amortized.renew():
        if species.born == 0:
            must_equal(weights(species), trained[species.number], "an amortised survivor")


def test_sizes_and_order_of_a_flat_view() -> None:
    method = make(small("ess"))
    for species in method.found():
        nodes, actor = species.design.num_nodes, species.controller.actor
        assert actor.view.size == nodes * method.task.feature_size
        assert tuple(actor.network.weights[0].shape) == (1, actor.view.size, 8)
        assert actor.network.weights[-1].shape[2] == len(actor.log_std) == nodes - 1
        assert actor.view.order.tolist() == depth_first(species.design, 0)
        again = method.nursery.make(99, Design.from_json(species.design.to_json()), 0, "random")
        assert again.controller.actor.view.order.tolist() == actor.view.order.tolist()


def depth_first(design: Design, node: int) -> list[int]:
    return [node, *(n for child in np.flatnonzero(design.parents == node) for n in depth_first(design, int(child)))]


# ---- RGS ----------------------------------------------------------------------------------------------------------------


def test_random_graph_search_keeps_its_designs() -> None:
    method = make(small("rgs"))
    method.iterate()
    designs = [species.design for species in method.population]
    assert len(set(designs)) == 4
    generations(method, 2)
    assert [species.design for species in method.population] == designs
    assert [species.number for species in method.population] == [0, 1, 2, 3]


@pytest.mark.parametrize(("every", "designs"), [(1, 12), (2, 8), (3, 4)])
def test_random_graph_search_can_redraw(every: int, designs: int) -> None:
    method = make(small("rgs", f"method.redraw_every={every}"))
    seen: dict[int, Design] = {}
    for _ in range(3):
        before = {species.number: species for species in method.population}
        iteration = method.iterate()
        for species in method.population:
            assert seen.setdefault(species.number, species.design) == species.design
            assert species.number in before or species.steps == 80
        assert iteration.new_designs in (0, 4)
    assert len(seen) == designs
    assert len(set(seen.values())) == designs


def test_the_incumbent_only_gets_better_and_can_be_played_again() -> None:
    method = make(small("rgs", "method.redraw_every=1"))
    best = -np.inf
    for _ in range(3):
        method.iterate()
        fittest = max(species.fitness for species in method.population)
        if fittest > best:
            best, champion = fittest, evaluate(method.champion(), 3, np.random.SeedSequence(1))
        assert method.incumbent.fitness == best
        again = evaluate(method.incumbent_agent(), 3, np.random.SeedSequence(1))
        assert again.returns == champion.returns
        assert again.design == champion.design


# ---- configuration ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "override", "sentence"),
    [
        ("nge", "method.elimination=1", "method.elimination is 1.0; allowed are numbers from 0 up, below 1"),
        ("nge", "method.controller.gnn=null", "NGE needs graph networks"),
        ("nge", "method.cohort=3", "method.cohort is 3; allowed are divisors of the population, 4"),
        ("nge", "method.cohort=0", "method.cohort is 0; allowed"),
        ("nge", "method.inner_iterations=0", "method.inner_iterations is 0; allowed"),
        ("nge", "method.gm_uc.pool=0", "method.gm_uc.pool is 0; allowed"),
        ("nge", "method.initial.least=5", "method.initial is 5 to 4; allowed"),
        ("ess", "budget.population=1", "budget.population is 1; allowed are 2 and more"),
        ("rgs", "method.redraw_every=-1", "method.redraw_every is -1; allowed"),
        ("rgs", "budget.agent_batch=81", "budget.agent_batch is 81; allowed are multiples of 2"),
    ],
)
def test_impossible_values_are_refused_in_a_sentence(method: str, override: str, sentence: str) -> None:
    whole = ("budget.steps=12960",) if "budget" in override else ()
    with pytest.raises(ConfigError) as error:
        make(small(method, override, *whole))
    assert sentence in str(error.value)


def test_optimisers_are_of_their_own() -> None:
    method = make(small("nge"))
    method.population = method.found()
    assert len({id(species.ppo) for species in method.population}) == 4
    assert all(isinstance(species.ppo, PPO) for species in method.population)
    actors = [weights(species)["actor"] for species in method.population]
    assert not any(equal(actors[0], other) for other in actors[1:])  # independent seeds
