"""Random graph search: designs drawn at random, each trained by itself; nobody is selected, nobody has children."""

from dataclasses import dataclass
from typing import Any

from codesign_bench.experiment.method import Agent, Budget, Context, Iteration, Method
from codesign_bench.structured import Natural
from methods.evolution.config import PopulationConfig
from methods.evolution.population import Population
from methods.evolution.training import CohortSampler, generation_steps, train_generation


@dataclass(frozen=True)
class RGSConfig(PopulationConfig):
    """redraw_every: generations after which all designs are drawn anew; 0: never."""

    redraw_every: Natural


class RGS(Method):
    config_class = RGSConfig
    evaluate_each_iteration = True

    def __init__(self, config: RGSConfig, context: Context) -> None:
        self.config, self.context = config, context
        self.population = Population(config, context)
        self.sampler = CohortSampler(config, context)

    def iterate(self) -> Iteration:
        """One generation, or what is left of one that was stopped between two cohorts."""
        population, task, every = self.population, self.context.task, self.config.redraw_every
        redraw = not population.species or (every > 0 and population.generation % every == 0)
        if population.trained == 0 and redraw:
            population.species = population.founders(0, task.space.max_nodes - task.initial_design.num_nodes, "designs")
        train_generation(population, self.sampler)
        return population.rank()

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return generation_steps(budget)

    def champion(self) -> Agent:
        return self.population.champion()

    def incumbent(self) -> Agent | None:
        return self.population.incumbent()

    def state_dict(self) -> dict[str, Any]:
        return self.population.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.population.load_state_dict(state)

    def close(self) -> None:
        self.sampler.pool.close()
