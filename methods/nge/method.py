"""Neural Graph Evolution (Wang et al., ICLR 2019): graph networks as controllers, which children inherit whole.

A generation: the worst are removed, mutants of the others take their places with their parents' networks, everyone is
trained for one batch and ranked by what it earned meanwhile (training is amortised over the generations of a lineage).
"""

from dataclasses import dataclass
from typing import Any

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Budget, Context, Iteration
from codesign_bench.tasks.base import Task
from methods.evolution.config import EvolutionConfig
from methods.evolution.method import PopulationMethod
from methods.evolution.reproduction import Mutant, mutants
from methods.evolution.selection import select
from methods.evolution.species import Species
from methods.evolution.training import train_generation
from methods.nge.surrogate import GMUCConfig, Surrogate, half_masks, top


@dataclass(frozen=True)
class NGEConfig(EvolutionConfig):
    gm_uc: GMUCConfig

    def __post_init__(self) -> None:
        if self.controller.gnn is None:
            raise ConfigError("method.controller.gnn is null; NGE needs graph networks, which fit every design (method=ess has MLPs).")


class NGE(PopulationMethod):
    config_class = NGEConfig

    @classmethod
    def check(cls, config: NGEConfig, budget: Budget, task: Task) -> None:
        config.check_population(budget.population)

    def __init__(self, config: NGEConfig, context: Context) -> None:
        super().__init__(config, context)
        self.config = config
        seed = context.streams.integer("surrogate")
        self.surrogate = Surrogate(context.task.space, config.gm_uc, seed) if config.gm_uc.enabled else None

    def iterate(self) -> Iteration:
        """One generation, or what is left of one that was stopped between two cohorts."""
        population, config = self.population, self.config
        if population.trained == 0:
            survivors = select(population.species, config.elimination)
            if survivors:
                chosen = self._mutants(survivors, population.size - len(survivors))
                children = [population.newborn(mutant.design, mutant.mutation, mutant.parent) for mutant in chosen]
                for child, mutant in zip(children, chosen, strict=True):
                    child.inherit(mutant.parent)
                population.species = [*survivors, *children]
            else:  # the first generation, or everyone died
                population.species = population.founders(config.initial.least, config.initial.most, "first designs")
        train_generation(population, self.sampler)
        if self.surrogate is not None:
            self.surrogate.note([(species.number, species.design, species.fitness) for species in population.species])
        return population.rank()

    def _mutants(self, parents: list[Species], number: int) -> list[Mutant]:
        """Of uniformly drawn parents; with GM-UC the most promising of many, as soon as enough is known."""
        context, config, surrogate, generation = self.context, self.config.gm_uc, self.surrogate, self.population.generation
        arguments = context.task, self.config.mutation, context.streams, generation
        if surrogate is None or number == 0 or len(surrogate.records) < 2 * self.population.size:
            return mutants(parents, number, *arguments)
        rng = context.streams.generator("surrogate", generation)
        surrogate.train(rng)
        pool = mutants(parents, config.pool * number, *arguments)
        predictions = surrogate.predict([mutant.design for mutant in pool], half_masks(rng))
        return [pool[i] for i in top(predictions, number, config.temperature, rng)]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "surrogate": self.surrogate and self.surrogate.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        if self.surrogate is not None:
            self.surrogate.load_state_dict(state["surrogate"])
