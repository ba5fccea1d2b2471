"""Training of species: the members of a cohort sample side by side in the groups of one pool, then each learns by itself.

Nothing here knows who selects: a cohort is a list of species.
"""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from codesign_bench.experiment.method import Budget, Context
from codesign_bench.simulation.episode import NO_TRANSFORM, EpisodeRecord
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.workers import Group
from methods.evolution.acting import StackedPolicy, stacked_policy
from methods.evolution.config import PopulationConfig
from methods.evolution.learner import learn_side_by_side
from methods.evolution.population import Population
from methods.evolution.selection import DEAD, counted_iterations, fitness_of, mean_fitness
from methods.evolution.species import Species


def generation_steps(budget: Budget) -> int:
    """That one generation charges."""
    return budget.population * budget.agent_batch


class CohortSampler:
    """Samples cohorts of equal size, one at a time: bounded memory, and a moment to save the run after each.

    A species has a slot for each longest episode in its batch (PopulationConfig.slots); the pool charges its steps. Its slots are dealt out
    to the groups in turn, so that groups have equal work whatever the designs.
    """

    def __init__(self, config: PopulationConfig, context: Context) -> None:
        budget, longest = context.budget, context.task.config.max_steps
        self.slots, self.steps_per_slot = config.slots(budget, longest), config.steps_per_slot(budget, longest)
        self.size = config.cohort_size(budget)
        places = [(member, slot) for member in range(self.size) for slot in range(self.slots)]
        groups = min(context.groups, len(places))
        self._places = [places[group::groups] for group in range(groups)]
        self._streams = context.streams
        seeds = [context.streams.sequence("sampler", group) for group in range(groups)]
        self.pool = context.pool([Group(context.task, len(p), seed, NO_TRANSFORM) for p, seed in zip(self._places, seeds, strict=True)])

    def collect(self, cohort: Sequence[Species], *moment: int) -> list[Rollout]:
        """One batch of each member. `moment` (generation or batch of a lifetime, inner iteration) names the streams of action noise,
        which depend on nothing else besides the species and its slots."""
        for species in cohort:
            species.controller.renew_normaliser()
        self.pool.lend([[cohort[member].slots[slot] for member, slot in places] for places in self._places])
        rollout = self.pool.collect([self._policy(cohort, group, moment) for group in range(len(self._places))], self.steps_per_slot)
        columns = np.empty((len(cohort), self.slots), dtype=np.int64)  # by slot, whichever group had it
        order = [place for places in self._places for place in places]
        states = [state for group in self.pool.take_back() for state in group]
        for column, ((member, slot), state) in enumerate(zip(order, states, strict=True)):
            columns[member, slot] = column
            cohort[member].slots[slot] = state
        return [rollout.of_slots(mine) for mine in columns]

    def _policy(self, cohort: Sequence[Species], group: int, moment: tuple[int, ...]) -> StackedPolicy:
        mine = [member for member, _ in self._places[group]]
        first = dict(reversed(self._places[group]))  # of each member's slots in this group
        present = sorted(first)
        seeds = [self._streams.sequence("actions", cohort[m].number, *moment, first[m]) for m in present]
        return stacked_policy([cohort[m].controller for m in present], [mine.count(m) for m in present], seeds)


def train_generation(population: Population, sampler: CohortSampler) -> None:
    """One batch of PPO for every species, cohort by cohort; between two of them the run is saved, so this may go on where
    another process stopped."""
    while population.trained < len(population.species):
        if population.trained > 0:
            population.context.checkpoint()
        cohort = population.species[population.trained : population.trained + sampler.size]
        train_cohort(population, cohort, sampler, population.generation)


def train_cohort(population: Population, cohort: Sequence[Species], sampler: CohortSampler, moment: int) -> None:
    """One batch of PPO for every member, noted in the population's records."""
    episodes, losses = train(cohort, sampler, moment, population.config.inner_iterations)
    population.episodes += episodes
    population.losses += losses
    population.trained += len(cohort)


def train(
    cohort: Sequence[Species], sampler: CohortSampler, moment: int, inner_iterations: int
) -> tuple[list[EpisodeRecord], list[dict[str, float]]]:
    """One batch of PPO for every member, or several that share its steps; its fitness is what it earned meanwhile. Returns
    the episodes that ended and the losses of all updates."""
    counted = counted_iterations(inner_iterations)
    earned: list[list[float]] = [[] for _ in cohort]
    episodes: list[EpisodeRecord] = []
    losses: list[dict[str, float]] = []
    for species in cohort:
        species.episodes = 0
    for inner in range(inner_iterations):
        ages = [[slot.time for slot in species.slots] for species in cohort]
        rollouts = sampler.collect(cohort, moment, inner)
        updates = learn_side_by_side([species.learner for species in cohort], rollouts, sampler.pool.processes)
        for species, began, rollout, update, mine in zip(cohort, ages, rollouts, updates, earned, strict=True):
            species.steps += rollout.num_steps
            species.episodes += len(rollout.episodes)
            episodes += rollout.episodes
            if update is None:  # one species that cannot learn must not end the run of all
                mine.append(DEAD)
                continue
            if inner in counted:
                mine.append(fitness_of(rollout, began, species.context.task.config.max_steps))
            losses.append(asdict(update))
    for species, mine in zip(cohort, earned, strict=True):
        species.fitness = mean_fitness(mine)
    return episodes, losses
