"""Random graph search: designs drawn at random, each trained by itself; nobody is selected, nobody has children."""

from __future__ import annotations

from dataclasses import dataclass

from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError
from methods.evolution.population import PopulationConfig, PopulationMethod
from methods.evolution.random_design import viable_design
from methods.evolution.species import Species


@dataclass(frozen=True)
class RGSConfig(PopulationConfig):
    """redraw_every: generations after which all designs are drawn anew; 0: never."""

    redraw_every: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.redraw_every < 0:
            raise ConfigError(f"method.redraw_every is {self.redraw_every}; allowed are whole numbers from 0 up.")


class RGS(PopulationMethod):
    config_class = RGSConfig

    def found(self) -> list[Species]:
        return [self.new_species(self._design(i), "random") for i in range(self.size)]

    def renew(self) -> list[Species]:
        every = self.config.redraw_every
        return self.found() if every and self.generation % every == 0 else self.population

    def _design(self, i: int) -> Design:
        """A size drawn uniformly between the initial design and the largest one, grown node by node."""
        rng = self.context.streams.generator("designs", self.generation, i)
        additions = int(rng.integers(self.task.space.max_nodes - self.task.initial_design.num_nodes + 1))
        return viable_design(self.task, additions, rng)
