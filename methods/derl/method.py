"""DERL (Gupta, Savarese, Ganguli, Fei-Fei; Nature Communications 2021): an aging tournament of agents that learn from scratch.

Agents live in cohorts, equally long. The first ones are random designs. Afterwards each member of a cohort is a mutant of the fittest of a
few agents that are drawn among the latest that finished; older ones are no parents any more, however fit. Nobody inherits what was learned.
"""

from functools import cached_property
from typing import Any

from codesign_bench.design.graph import Design
from codesign_bench.experiment.method import Agent, Budget, Context, Iteration
from codesign_bench.tasks.base import Task
from methods.derl.config import DERLConfig
from methods.evolution.method import PopulationMethod
from methods.evolution.population import Row, birth
from methods.evolution.random_design import distinct_designs
from methods.evolution.reproduction import offspring
from methods.evolution.selection import mean_fitness, ranked, tournament
from methods.evolution.species import Species, agent_of
from methods.evolution.training import train_cohort

COUNTED = 5
"""The last fifth of a lifetime, at least one batch, is what fitness counts."""


class DERL(PopulationMethod):
    """A generation is a cohort.

    - population: its species are the window, the latest agents that finished, oldest first
    - cohort: agents that are alive
    - fitness: of each of their batches so far, [batches][members]
    - finished, born: rows of the tables, of this iteration so far
    """

    config_class = DERLConfig

    @classmethod
    def check(cls, config: DERLConfig, budget: Budget, task: Task) -> None:
        config.lives(budget)
        config.steps_per_slot(budget, task.config.max_steps)

    def __init__(self, config: DERLConfig, context: Context) -> None:
        super().__init__(config, context)
        self.config, self.lives = config, config.lives(context.budget)
        self.cohort: list[Species] = []
        self.fitness: list[list[float]] = []
        self.finished: list[Row] = []
        self.born: list[Row] = []

    def iterate(self) -> Iteration:
        """As many steps as a generation of NGE, or what is left of them after a stop: batches of the cohort that is alive, and of the
        next one where its lifetime is over."""
        population, lives = self.population, self.lives
        while population.trained < population.size:
            if population.trained > 0:
                self.context.checkpoint()
            if not self.cohort:
                self.cohort = self._random() if population.next_number < lives.window else self._children()
                self.born += [birth(species) for species in self.cohort]
            ended = [species.episodes for species in self.cohort]
            train_cohort(population, self.cohort, self.sampler, len(self.fitness))
            for species, before in zip(self.cohort, ended, strict=True):
                species.episodes += before
            self.fitness.append([species.fitness for species in self.cohort])
            if len(self.fitness) == lives.batches:
                counted = self.fitness[-max(lives.batches // COUNTED, 1) :]
                for species, returns in zip(self.cohort, zip(*counted, strict=True), strict=True):
                    species.fitness = mean_fitness(returns)
                population.species = [*population.species, *self.cohort][-lives.window :]
                population.note_fittest()
                self.finished += population.genealogy()
                population.generation += 1
                self.cohort, self.fitness = [], []
        iteration = population.iteration(self._candidates(), self.finished, self.born)
        self.finished, self.born = [], []
        return iteration

    def _random(self) -> list[Species]:
        """The next ones of the first designs."""
        first = self.population.next_number
        return [self.population.newborn(design, "random") for design in self._first_designs[first : first + self.lives.cohort]]

    @cached_property
    def _first_designs(self) -> list[Design]:
        return distinct_designs(self.context.task, self.lives.window, self.context.streams)

    def _children(self) -> list[Species]:
        """Mutants of the winners of tournaments, with networks of their own."""
        population, context = self.population, self.context
        rng = context.streams.generator("parents", population.generation)
        parents = [tournament(population.species, self.config.tournament, rng) for _ in range(self.lives.cohort)]
        mutants = offspring(parents, context.task, self.config.mutation, context.streams, population.generation)
        return [population.newborn(mutant.design, mutant.mutation, mutant.parent) for mutant in mutants]

    def _candidates(self) -> list[Species]:
        """For the champion: those of the window; before any has finished, the first cohort, by its latest batch."""
        return self.population.species or self.cohort

    def champion(self) -> Agent:
        best = ranked(self._candidates())[0]
        return agent_of(best.design, best.controller, self.context.task)

    def state_dict(self) -> dict[str, Any]:
        own = {"fitness": self.fitness, "finished": self.finished, "born": self.born}
        return {**super().state_dict(), "cohort": [species.state_dict() for species in self.cohort], **own}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.cohort = [Species.from_state(self.config, self.context, species) for species in state["cohort"]]
        self.fitness, self.finished, self.born = ([*state[name]] for name in ("fitness", "finished", "born"))
