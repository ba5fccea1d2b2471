"""Random graph search: designs drawn at random, each trained by itself; nobody is selected, nobody has children."""

from dataclasses import dataclass

from codesign_bench.experiment.method import Context, Iteration
from codesign_bench.structured import Natural
from methods.evolution.config import PopulationConfig
from methods.evolution.method import PopulationMethod
from methods.evolution.training import train_generation


@dataclass(frozen=True)
class RGSConfig(PopulationConfig):
    """redraw_every: generations after which all designs are drawn anew; 0: never."""

    redraw_every: Natural


class RGS(PopulationMethod):
    config_class = RGSConfig

    def __init__(self, config: RGSConfig, context: Context) -> None:
        super().__init__(config, context)
        self.config = config

    def iterate(self) -> Iteration:
        """One generation, or what is left of one that was stopped between two cohorts."""
        population, task, every = self.population, self.context.task, self.config.redraw_every
        redraw = not population.species or (every > 0 and population.generation % every == 0)
        if population.trained == 0 and redraw:
            population.species = population.founders(0, task.space.max_nodes - task.initial_design.num_nodes, "designs")
        train_generation(population, self.sampler)
        return population.rank()
