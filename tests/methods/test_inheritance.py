"""Controllers through generations: a species is a PPO run like any other, and what children get from their parents."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from codesign_bench.design.graph import Design
from codesign_bench.experiment.equality import must_equal
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.simulation.graphs import Rollout
from methods.evolution.controller import FlatView
from methods.evolution.species import Species
from methods.evolution.training import train
from tests.methods.population import begin, equal, generations, is_fresh, make, small, untrained, weights

# ---- a species is a PPO run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nge", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ess", "rgs"))])
def test_without_selection_a_population_is_that_many_ppo_runs(name: str) -> None:
    """Bit for bit where the stack has the same shape, one species at a time; to rounding where they act side by side."""
    off = () if name == "rgs" else ("method.elimination=0",)
    one_by_one, together = (make(small(name, *off, f"method.cohort={cohort}")) for cohort in (1, 4))
    generations(one_by_one, 3)
    generations(together, 3)
    first = begin(make(small(name, *off)))
    for i in range(4):
        alone = make(small(name, *off, "budget.population=1", "budget.batch=80", "budget.steps=240"))
        alone.population.species = [first[i]]
        generations(alone, 3)
        (mine,) = alone.population.species
        must_equal(mine.state_dict(), one_by_one.population.species[i].state_dict(), "a species that was trained alone")
        species = together.population.species[i]
        a, b = weights(species), weights(mine)
        for part in ("actor", "critic"):
            assert all(torch.allclose(value, b[part][key], atol=1e-5) for key, value in a[part].items() if isinstance(value, torch.Tensor))
        assert species.fitness == pytest.approx(mine.fitness, rel=1e-4)


@pytest.mark.parametrize("name", ["nge", "ess"])
def test_a_survivor_is_an_uninterrupted_ppo_run(name: str) -> None:
    """Weights, Adam, normaliser: bit for bit what PPO makes of the same batches one after the other."""
    method = make(small(name, "method.elimination=0.5"))
    first = begin(make(small(name)))
    rollouts: dict[int, list[Rollout]] = {}
    collect = method.sampler.collect

    def noted(members: Any, *moment: int) -> Any:
        found = collect(members, *moment)
        for species, rollout in zip(members, found, strict=True):
            rollouts.setdefault(species.number, []).append(rollout)
        return found

    method.sampler.collect = noted
    generations(method, 3)
    old = [species for species in method.population.species if species.born == 0]
    assert old
    for species in old:
        twin = next(s for s in first if s.number == species.number)
        assert len(rollouts[species.number]) == 3
        for rollout in rollouts[species.number]:
            steps, bootstrap = steps_of_rollout(rollout, method.context.task.space)
            twin.learner.ppo.learn(rollout, steps, bootstrap, twin.learner.shuffle)
            twin.controller.update_normaliser(steps)
        must_equal(weights(species), weights(twin), "a survivor")
        must_equal(species.learner.ppo.state_dict(), twin.learner.ppo.state_dict(), "a survivor's optimisers")
        assert species.learner.ppo.updates == 3 * 2 * 1


@pytest.mark.parametrize("slots", [2, 3])  # three do not divide evenly over the two groups
def test_selected_slots_are_the_rollout_of_those_slots(slots: int) -> None:
    method = make(small("nge", "method.cohort=2", f"budget.agent_batch={40 * slots}", "env.time_limit=truncate"))
    members = begin(method)[:2]
    whole: list[Rollout] = []
    collect = method.sampler.pool.collect
    method.sampler.pool.collect = lambda *arguments: whole.append(found := collect(*arguments)) or found
    parts = method.sampler.collect(members, 0, 0)
    (rollout,) = whole
    order = [place for places in method.sampler._places for place in places]
    for member, part in enumerate(parts):
        columns = [order.index((member, slot)) for slot in range(slots)]
        assert part.reward.shape[1] == slots
        assert [episode.slot for episode in part.episodes] == list(range(slots)), "one episode each, slot by slot"
        assert [e.total_return for e in part.episodes] == [e.total_return for c in columns for e in rollout.episodes if e.slot == c]
        assert [cut.slot for cut in part.truncations] == list(range(slots))
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


# ---- inheritance --------------------------------------------------------------------------------------------------------


ADD = ("method.mutation.add=1", "method.mutation.delete=0", "method.mutation.perturb=0")
OPERATORS = {
    "add node": ADD,
    "add graph": (*ADD, "method.mutation.add_graph=1"),
    "delete graph": ("method.mutation.add=0", "method.mutation.delete=1", "method.mutation.perturb=0", "method.initial.least=4"),
    "perturb": ("method.mutation.add=0", "method.mutation.delete=0", "method.mutation.perturb=1"),
}


def with_child(name: str, *overrides: str) -> tuple[Any, Species, Species, dict[str, Any]]:
    """A population in its second generation before training, its child, the parent, and the parent's weights then."""
    method = make(small(name, *overrides))
    method.iterate()
    (child,) = [species for species in begin(method) if species.born == 1]
    parent = next(species for species in method.population.species if species.number == child.parent)
    return method, child, parent, weights(parent)


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_child_of_nge_has_its_parents_networks_and_fresh_optimisers(operator: str) -> None:
    _, child, parent, before = with_child("nge", *OPERATORS[operator])
    assert child.mutation == operator
    must_equal(weights(child), before, "a child's networks")
    assert child.controller.normaliser.count == parent.controller.normaliser.count > 0
    assert is_fresh(child.learner.ppo)
    assert parent.learner.ppo.updates == 2
    assert not is_fresh(parent.learner.ppo)


def test_a_child_and_its_parent_share_nothing() -> None:
    method, child, parent, before = with_child("nge")
    optimisers = copy.deepcopy(parent.learner.ppo.state_dict())
    assert optimisers["policy"]["mean"].any()
    other = next(species for species in method.population.species if species not in (child, parent))
    train([child, other], method.sampler, 1, 1)
    must_equal(weights(parent), before, "a parent whose child was trained")
    must_equal(parent.learner.ppo.state_dict(), optimisers, "the optimisers of a parent")
    assert not equal(weights(child)["actor"], before["actor"])
    after, optimisers = weights(child), copy.deepcopy(child.learner.ppo.state_dict())
    train([parent, other], method.sampler, 1, 1)
    must_equal(weights(child), after, "a child whose parent was trained")
    must_equal(child.learner.ppo.state_dict(), optimisers, "the optimisers of a child")


def test_first_actions_come_from_the_inherited_policy() -> None:
    """Log-probabilities as stored while acting equal those of the inherited weights, for survivors and children."""
    method, child, _, _ = with_child("nge", *ADD)
    for start in (0, 2):
        members = method.population.species[start : start + 2]
        expected = [weights(species) for species in members]
        for species, rollout, state in zip(members, method.sampler.collect(members, 1, 0), expected, strict=True):
            must_equal(weights(species), state, "a species that acts")
            steps, _ = steps_of_rollout(rollout, method.context.task.space)
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
    cohort = begin(method)[:2]
    for species, rollout in zip(cohort, method.sampler.collect(cohort, 0, 0), strict=True):
        nodes = species.design.num_nodes
        control = rollout.actions[:, 0].reshape(-1, nodes)
        assert np.all(control[:, 0] == 0)
        assert np.all(control[:, 1:] != 0)


def test_on_its_parents_graphs_a_child_answers_as_its_parent() -> None:
    """Means, log standard deviations and values, bit for bit."""
    method, child, parent, _ = with_child("nge")
    rollout = method.sampler.collect([parent, child], 1, 0)[0]
    steps, _ = steps_of_rollout(rollout, method.context.task.space)
    forest, rows = steps.forest(np.arange(steps.num_steps))
    at = torch.from_numpy(rows)
    answers = []
    for species in (parent, child):
        actor, critic = species.controller.actor, species.controller.critic
        with torch.no_grad():
            answers.append((actor(actor.prepare(steps)[0][at], forest), actor.log_std, critic.values(critic.prepare(steps), forest, at)))
    for mine, theirs in zip(*answers, strict=True):
        assert torch.equal(mine, theirs)


# ---- ESS ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_child_of_ess_starts_from_nothing(operator: str) -> None:
    _, child, _, before = with_child("ess", *OPERATORS[operator])
    assert child.mutation == operator
    must_equal(weights(child), untrained(child), "a child's networks")
    assert not equal(weights(child), before)
    assert child.controller.normaliser.count == 0


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_child_of_ess_can_inherit_if_its_skeleton_is_its_parents(operator: str) -> None:
    _, child, _, before = with_child("ess", "method.inherit_if_same_topology=true", *OPERATORS[operator])
    assert equal(weights(child), before) == (operator == "perturb")
    assert is_fresh(child.learner.ppo)


def test_strict_ess_restarts_everyone() -> None:
    method = make(small("ess", "method.amortized=false"))
    method.iterate()
    first = {species.number: untrained(species) for species in method.population.species}
    for species in begin(method):
        must_equal(weights(species), untrained(species), "a controller that starts from scratch")
        assert is_fresh(species.learner.ppo)
        if species.born == 0:
            assert species.restarts == 1
            assert not equal(weights(species), first[species.number]), "a seed of its own each time"
            assert all(slot.episode is None for slot in species.slots)
    amortized = make(small("ess"))
    amortized.iterate()
    trained = {species.number: weights(species) for species in amortized.population.species}
    for species in begin(amortized):
        if species.born == 0:
            must_equal(weights(species), trained[species.number], "an amortised survivor")


def test_sizes_and_order_of_a_flat_view() -> None:
    method = make(small("ess"))
    for species in begin(method):
        nodes, actor = species.design.num_nodes, species.controller.actor
        assert actor.view.size == nodes * method.context.task.feature_size
        assert tuple(actor.network.weights[0].shape) == (1, actor.view.size, 8)
        assert actor.network.weights[-1].shape[2] == len(actor.log_std) == nodes - 1
        assert actor.view.order.tolist() == depth_first(species.design, 0)
        again = method.population.newborn(Design.from_json(species.design.to_json()), "random")
        assert again.controller.actor.view.order.tolist() == actor.view.order.tolist()


def test_a_flat_view_does_not_depend_on_the_order_in_which_a_design_grew() -> None:
    """The same tree, whose last two nodes came to be one before the other or the other way round."""
    method = make(small("ess"))
    limb, rng = method.context.task.initial_design, np.random.default_rng(0)
    constants = {name: getattr(limb, name)[[0, 1, 1, 1, 1]] for name in ("axis", "range", "friction", "joint_offset")}
    attributes = rng.uniform(-1, 1, (5, 5))
    features = rng.normal(size=(2, 5, method.context.task.feature_size))
    flat, order = [], []
    for parents, rows in (([-1, 0, 1, 1, 2], [0, 1, 2, 3, 4]), ([-1, 0, 1, 2, 1], [0, 1, 2, 4, 3])):
        design = limb.derived(parents=np.array(parents), attributes=attributes[rows], **constants)
        view = FlatView(design, method.context.task)
        flat.append(view.flat(features[:, rows].reshape(10, -1)))
        order.append(np.array(rows)[view.order].tolist())  # in the numbers of the first
    assert np.array_equal(*flat)
    assert order == [[0, 1, 2, 4, 3]] * 2


def depth_first(design: Design, node: int) -> list[int]:
    return [node, *(n for child in np.flatnonzero(design.parents == node) for n in depth_first(design, int(child)))]
