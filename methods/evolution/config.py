"""What the configurations of populations have in common."""

from dataclasses import dataclass

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Budget
from codesign_bench.learning.networks import ValueConfig
from codesign_bench.learning.ppo import PPOConfig
from codesign_bench.structured import Count, ShareBelowOne
from methods.evolution.controller import ControllerConfig
from methods.evolution.mutation import MutationConfig


@dataclass(frozen=True)
class PopulationConfig:
    """Of every method that trains a population.

    - inner_iterations: batches into which a species' share of a generation is cut
    - cohort: species that are sampled side by side; null: as many as take the batch of a method with one agent
    """

    controller: ControllerConfig
    value: ValueConfig
    inner_iterations: Count
    cohort: Count | None
    ppo: PPOConfig

    def slots(self, budget: Budget, longest: int) -> int:
        """Of one species: its batch takes the time of the longest episode, in steps, in each of them."""
        return max(budget.agent_batch // self.inner_iterations // longest, 1)

    def steps_per_slot(self, budget: Budget, longest: int) -> int:
        """In one inner iteration."""
        parts = self.inner_iterations * self.slots(budget, longest)
        if budget.agent_batch % parts:
            raise ConfigError(
                f"budget.agent_batch is {budget.agent_batch}; allowed are multiples of {parts}, "
                "the inner iterations times the slots of an agent."
            )
        return budget.agent_batch // parts

    def cohort_size(self, budget: Budget) -> int:
        """By default as many as take at least the batch of the methods with one agent."""
        sizes = [size for size in range(1, budget.population + 1) if budget.population % size == 0]
        if self.cohort is None:
            return next((size for size in sizes if size * budget.agent_batch >= budget.batch), budget.population)
        if self.cohort not in sizes:
            raise ConfigError(f"method.cohort is {self.cohort}; allowed are divisors of the population, {budget.population}, or null.")
        return self.cohort


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
    """Of methods that select and mutate. elimination: share of a generation that goes."""

    elimination: ShareBelowOne
    initial: InitialConfig
    mutation: MutationConfig

    def check_population(self, size: int) -> None:
        """Whoever is eliminated must leave a parent behind."""
        if self.elimination > 0 and size < 2:
            raise ConfigError(f"budget.population is {size}; allowed are 2 and more if method.elimination is above 0.")
