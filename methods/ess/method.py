"""Evolutionary structure search with MLP controllers (ESS-Sims of Wang et al. 2019): designs are inherited, controllers not.

A generation: the worst are removed, mutants of the others take their places and learn from scratch, everyone is trained
for one batch and ranked by what it earned meanwhile. Survivors go on learning (amortised) or start anew as well (strict).
"""

from dataclasses import dataclass

import numpy as np

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Context, Iteration
from methods.evolution.config import EvolutionConfig
from methods.evolution.method import PopulationMethod
from methods.evolution.reproduction import mutants
from methods.evolution.selection import select
from methods.evolution.training import train_generation


@dataclass(frozen=True)
class ESSConfig(EvolutionConfig):
    amortized: bool
    inherit_if_same_topology: bool

    def __post_init__(self) -> None:
        if self.inherit_if_same_topology and not self.amortized:
            raise ConfigError("method.inherit_if_same_topology is true; allowed is false where method.amortized is false.")


class ESS(PopulationMethod):
    config_class = ESSConfig

    def __init__(self, config: ESSConfig, context: Context) -> None:
        config.check_population(context.budget.population)
        super().__init__(config, context)
        self.config = config

    def iterate(self) -> Iteration:
        """One generation, or what is left of one that was stopped between two cohorts."""
        population, config, context = self.population, self.config, self.context
        if population.trained == 0:
            survivors = select(population.species, config.elimination)
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
