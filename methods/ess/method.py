"""Evolutionary structure search with MLP controllers (ESS-Sims of Wang et al. 2019): designs are inherited, controllers not.

A generation: the worst are removed, young children spared (`grace`), mutants of the others take their places and learn from
scratch, everyone is trained for one batch and ranked by what it earned meanwhile. Survivors go on learning (amortised) or start
anew as well (strict).
"""

from dataclasses import dataclass

import numpy as np

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Budget, Context, Iteration
from codesign_bench.structured import Natural
from codesign_bench.tasks.base import Task
from methods.evolution.config import EvolutionConfig
from methods.evolution.method import PopulationMethod
from methods.evolution.reproduction import mutants
from methods.evolution.selection import select
from methods.evolution.training import train_generation


@dataclass(frozen=True)
class ESSConfig(EvolutionConfig):
    """
    - amortized: survivors go on learning; otherwise everyone starts anew in each generation
    - inherit_if_same_topology: a child whose skeleton is its parent's gets its networks
    - grace: a child cannot be eliminated after its first so many generations, unless it died
    """

    amortized: bool
    inherit_if_same_topology: bool
    grace: Natural

    def __post_init__(self) -> None:
        if self.inherit_if_same_topology and not self.amortized:
            raise ConfigError("method.inherit_if_same_topology is true; allowed is false where method.amortized is false.")


class ESS(PopulationMethod):
    config_class = ESSConfig

    @classmethod
    def check(cls, config: ESSConfig, budget: Budget, task: Task) -> None:
        config.check_population(budget.population)
        generations = budget.steps // cls.iteration_steps(budget)
        if config.grace > generations:
            raise ConfigError(f"method.grace is {config.grace}; allowed are 0 to {generations}, the generations of budget.steps.")

    def __init__(self, config: ESSConfig, context: Context) -> None:
        super().__init__(config, context)
        self.config = config

    def iterate(self) -> Iteration:
        """One generation, or what is left of one that was stopped between two cohorts."""
        population, config, context = self.population, self.config, self.context
        if population.trained == 0:
            survivors = select(population.species, config.elimination, self._young())
            if survivors:
                if not config.amortized:
                    for species in survivors:
                        species.restart()
                places = population.size - len(survivors)
                chosen = mutants(survivors, places, context.task, config.mutation, context.streams, population.generation)
                children = [population.newborn(mutant.design, mutant.mutation, mutant.parent) for mutant in chosen]
                for child, mutant in zip(children, chosen, strict=True):
                    if config.inherit_if_same_topology and np.array_equal(child.design.parents, mutant.parent.design.parents):
                        child.inherit(mutant.parent)
                population.species = [*survivors, *children]
            else:  # the first generation, or everyone died
                population.species = population.founders(config.initial.least, config.initial.most, "first designs")
        train_generation(population, self.sampler)
        return population.rank()

    def _young(self) -> set[int]:
        """Numbers of the children that were trained in at most `grace` generations. The first designs compete with their equals."""
        generation, grace = self.population.generation, self.config.grace
        return {s.number for s in self.population.species if s.parent is not None and generation - s.born <= grace}
