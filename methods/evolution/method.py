"""What NGE, ESS, RGS and DERL are besides their generations: a population, where it is sampled, and what the runner asks of a plug-in."""

from typing import Any

from codesign_bench.experiment.method import Agent, Budget, Context, Method
from methods.evolution.config import PopulationConfig
from methods.evolution.controller import Controller
from methods.evolution.population import Population
from methods.evolution.species import agent_of
from methods.evolution.training import CohortSampler, generation_steps


class PopulationMethod(Method):
    """A subclass says in `iterate` what a generation is; nothing here calls it."""

    evaluate_each_iteration = True

    def __init__(self, config: PopulationConfig, context: Context) -> None:
        self.context = context
        self.population = Population(config, context)
        self.sampler = CohortSampler(config, context)

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return generation_steps(budget)

    def champion(self) -> Agent:
        best = self.population.best()
        return agent_of(best.design, best.controller, self.context.task)

    def incumbent(self) -> Agent | None:
        """The fittest of all generations, with the controller that it had; None before the first generation has ended."""
        fittest, config = self.population.fittest, self.population.config
        if fittest is None:
            return None
        controller = Controller(fittest.design, self.context.task, config.controller, config.value, seed=0)
        controller.load_state_dict(fittest.controller)
        return agent_of(fittest.design, controller, self.context.task)

    def state_dict(self) -> dict[str, Any]:
        return {"population": self.population.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.population.load_state_dict(state["population"])

    def close(self) -> None:
        self.sampler.pool.close()
