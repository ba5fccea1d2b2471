"""Selection and reproduction, shared by NGE and ESS: the worst go, the others stay as they are and have children."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Context
from methods.evolution.mutation import MutationConfig, Operator, mutate
from methods.evolution.population import PopulationConfig, PopulationMethod
from methods.evolution.random_design import TRIES, viable, viable_design
from methods.evolution.selection import survivors
from methods.evolution.species import Species


@dataclass(frozen=True)
class InitialConfig:
    """least and most: nodes that are added to the initial design, uniformly."""

    least: int
    most: int

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most:
            raise ConfigError(f"method.initial is {self.least} to {self.most}; allowed are whole numbers from 0 up, least first.")


@dataclass(frozen=True)
class EvolutionConfig(PopulationConfig):
    elimination: float
    initial: InitialConfig
    mutation: MutationConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.elimination < 1:
            raise ConfigError(f"method.elimination is {self.elimination}; allowed are numbers from 0 up, below 1.")


class Offspring(NamedTuple):
    """A design that may become a child of `parent`."""

    parent: Species
    design: Design
    mutation: Operator | str


class Evolution(PopulationMethod):
    config_class: ClassVar[type] = EvolutionConfig

    def __init__(self, config: Any, context: Context) -> None:
        super().__init__(config, context)
        if config.elimination > 0 and self.size < 2:
            raise ConfigError(f"budget.population is {self.size}; allowed are 2 and more if method.elimination is above 0.")

    def found(self) -> list[Species]:
        """The initial design, each time with a few nodes more and with random attributes."""
        return [self.new_species(self._first_design(i), "random") for i in range(self.size)]

    def renew(self) -> list[Species]:
        """Survivors in their old order, then the children of uniformly drawn survivors."""
        staying = survivors(self.candidates(), self.config.elimination)
        parents = [species for species in self.population if species.number in staying]
        missing = self.size - len(parents)
        if not parents:  # everyone died
            return self.found()
        self.prepare(parents)
        children = []
        for offspring in self.choose(parents, missing):
            child = self.new_species(offspring.design, offspring.mutation, offspring.parent)
            self.bring_up(child, offspring)
            children.append(child)
        return [*parents, *children]

    # ---- what the methods differ in ----------------------------------------------------------------------------------

    @abstractmethod
    def bring_up(self, child: Species, offspring: Offspring) -> None:
        """What a child gets from its parent besides its design. Its networks and optimisers are fresh."""

    def prepare(self, parents: list[Species]) -> None:
        """What survivors go through before the next generation; by default nothing."""

    def choose(self, parents: list[Species], number: int) -> list[Offspring]:
        """The children-to-be; by default every one that is drawn."""
        return self.draw(parents, number)

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, parents: list[Species], number: int) -> list[Offspring]:
        """Mutations of parents that are drawn uniformly, with replacement. Charges nothing."""
        chosen = self.context.streams.generator("parents", self.generation).integers(len(parents), size=number)
        return [self._offspring(parents[parent], i) for i, parent in enumerate(chosen)]

    def _offspring(self, parent: Species, i: int) -> Offspring:
        """A mutation that can be simulated, or after many tries a copy of the parent."""
        rng = self.context.streams.generator("mutation", self.generation, i)
        for _ in range(TRIES):
            design, operator = mutate(parent.design, self.task.space, self.config.mutation, rng)
            if viable(design, self.task):
                return Offspring(parent, design, operator)
        return Offspring(parent, parent.design, "copy")

    def _first_design(self, i: int) -> Design:
        rng = self.context.streams.generator("first designs", self.generation, i)
        additions = int(rng.integers(self.config.initial.least, self.config.initial.most + 1))
        return viable_design(self.task, additions, rng)
