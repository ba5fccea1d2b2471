"""A population that is trained generation by generation: what NGE, ESS and RGS share.

A generation: begin it (the first population, or what the last generation leaves and its children), train every species
for one batch, rank them. Beginning is the first thing that a generation does, so that a run which stops after generation g
is an exact prefix of one that goes on.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Agent, Budget, Context, Iteration, Method
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.networks import ValueConfig
from codesign_bench.learning.ppo import LearningError, PPOConfig
from codesign_bench.simulation.episode import NO_TRANSFORM, EpisodeRecord
from methods.evolution.acting import single_policy
from methods.evolution.cohort import Cohorts
from methods.evolution.controller import Controller, ControllerConfig
from methods.evolution.selection import DEAD, Candidate, fitness_of, ranked, window
from methods.evolution.species import Nursery, Species, copied


@dataclass(frozen=True)
class PopulationConfig:
    """inner_iterations: batches into which a species' share of a generation is cut; cohort: species that are sampled side by
    side, null for as many as take the batch of a method with one agent."""

    controller: ControllerConfig
    value: ValueConfig
    inner_iterations: int
    cohort: int | None
    ppo: PPOConfig

    def __post_init__(self) -> None:
        if self.inner_iterations < 1:
            raise ConfigError(f"method.inner_iterations is {self.inner_iterations}; allowed are whole numbers from 1 up.")
        if self.cohort is not None and self.cohort < 1:
            raise ConfigError(f"method.cohort is {self.cohort}; allowed are whole numbers from 1 up, or null.")


@dataclass
class Incumbent:
    """The fittest species of all generations, with its controller as it was at the end of that generation: after the update
    from the batch whose return is the fitness."""

    species: int
    generation: int
    fitness: float
    design: Design
    controller: dict[str, Any]


class PopulationMethod(Method):
    config_class: ClassVar[type] = PopulationConfig
    evaluate_each_iteration = True

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return budget.population * budget.agent_batch

    def __init__(self, config: Any, context: Context) -> None:
        self.config, self.context, self.task = config, context, context.task
        self.size = context.budget.population
        self.cohorts = Cohorts(context, config.cohort, config.inner_iterations)
        self.nursery = Nursery(
            context.task, config.controller, config.value, config.ppo, self.cohorts.slots, context.streams, context.device
        )
        self.population: list[Species] = []
        self.generation, self.cohort, self.next_number = 0, 0, 0
        self.fittest: Incumbent | None = None
        self._episodes: list[EpisodeRecord] = []
        self._losses: list[list[float]] = []

    # ---- the loop ----------------------------------------------------------------------------------------------------

    def iterate(self) -> Iteration:
        """One generation, or what is left of one."""
        if self.cohort == 0:
            self.population = self.found() if self.generation == 0 else self.renew()
        while self.cohort < self.cohorts.count:
            if self.cohort > 0:
                self.context.checkpoint()
            self._train(self.cohorts.members(self.population, self.cohort))
            self.cohort += 1
        return self._end_generation()

    @abstractmethod
    def found(self) -> list[Species]:
        """The population of the first generation."""

    @abstractmethod
    def renew(self) -> list[Species]:
        """The population of the next generation, from the trained one of the last."""

    def _train(self, members: Sequence[Species]) -> None:
        """One batch of PPO for every member, or several that share its steps; its fitness is what it earned meanwhile."""
        counted = window(self.config.inner_iterations)
        earned: list[list[float]] = [[] for _ in members]
        for species in members:
            species.episodes = 0
        for inner in range(self.config.inner_iterations):
            rollouts = self.cohorts.collect(members, self.generation, inner)
            for species, rollout, mine in zip(members, rollouts, earned, strict=True):
                steps, bootstrap = steps_of_rollout(rollout, self.task.space)
                species.steps += rollout.num_steps
                species.episodes += len(rollout.episodes)
                self._episodes += rollout.episodes
                try:
                    losses = species.ppo.learn(rollout, steps, bootstrap, species.shuffle)
                except LearningError:  # one species that cannot learn must not end the run of all
                    mine.append(DEAD)
                    continue
                species.controller.update_normaliser(steps)
                if inner in counted:
                    mine.append(fitness_of(rollout.episodes, species.open_return))
                self._losses.append(list(astuple(losses)))
        for species, mine in zip(members, earned, strict=True):
            mean = float(np.mean(mine))
            species.fitness = DEAD if math.isnan(mean) else mean  # nothing is above NaN: it would stay the best for ever

    def _end_generation(self) -> Iteration:
        best = self.best()
        if self.fittest is None or best.fitness > self.fittest.fitness:
            state = copied(best.controller.state_dict())
            self.fittest = Incumbent(best.number, self.generation, best.fitness, best.design, state)
        newborn = [species for species in self.population if species.born == self.generation]
        fitness = np.array([species.fitness for species in self.population])
        alive = fitness[np.isfinite(fitness)]
        losses = dict(
            zip(
                ("policy", "value", "gradient_norm", "clipped"), np.mean(self._losses or [[float("nan")] * 4], axis=0).tolist(), strict=True
            )
        )
        metrics = {
            **losses,
            "fitness_best": best.fitness,
            "fitness_mean": float(alive.mean()) if len(alive) else float("nan"),
            "fitness_incumbent": self.fittest.fitness,
            "dead": float(len(fitness) - len(alive)),
        }
        rows = {"genealogy": [self._row(species, best) for species in self.population], "species": [_birth(s) for s in newborn]}
        iteration = Iteration(tuple(self._episodes), len(newborn), metrics, rows)
        self.generation, self.cohort, self._episodes, self._losses = self.generation + 1, 0, [], []
        return iteration

    def _row(self, species: Species, best: Species) -> dict[str, Any]:
        return {
            "generation": self.generation,
            "species": species.number,
            "parent": species.parent,
            "born": species.born,
            "mutation": species.mutation,
            "fitness": species.fitness,
            "bodies": species.design.num_nodes,
            "episodes": species.episodes,
            "steps": species.steps,
            "champion": int(species is best),
        }

    # ---- species -----------------------------------------------------------------------------------------------------

    def new_species(self, design: Design, mutation: str, parent: Species | None = None) -> Species:
        species = self.nursery.make(self.next_number, design, self.generation, mutation, None if parent is None else parent.number)
        self.next_number += 1
        return species

    def candidates(self) -> list[Candidate]:
        return [Candidate(species.number, species.born, species.fitness) for species in self.population]

    def best(self) -> Species:
        """The fittest of the latest fitness known of each."""
        number = ranked(self.candidates())[0].species
        return next(species for species in self.population if species.number == number)

    def champion(self) -> Agent:
        best = self.best()
        return self._agent(best.design, best.controller)

    def incumbent(self) -> Agent | None:
        """The fittest of all generations, with the controller that it had; None before the first generation has ended."""
        if self.fittest is None:
            return None
        nursery = self.nursery
        controller = Controller(self.fittest.design, nursery.task, nursery.controller, nursery.value, seed=0)
        controller.load_state_dict(self.fittest.controller)
        return self._agent(self.fittest.design, controller)

    def _agent(self, design: Design, controller: Controller) -> Agent:
        return Agent(self.task.starting_from(design), single_policy(controller), NO_TRANSFORM)

    # ---- stop and go on ----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        incumbent = self.fittest and {**vars(self.fittest), "design": self.fittest.design.to_dict()}
        return {
            "population": [species.state_dict() for species in self.population],
            "generation": self.generation,
            "cohort": self.cohort,
            "next_number": self.next_number,
            "incumbent": incumbent,
            "episodes": torch.tensor([astuple(episode) for episode in self._episodes], dtype=torch.float64),
            "losses": self._losses,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.population = [self.nursery.load(species) for species in state["population"]]
        self.generation, self.cohort, self.next_number = state["generation"], state["cohort"], state["next_number"]
        self.fittest = None
        if state["incumbent"] is not None:
            self.fittest = Incumbent(**{**state["incumbent"], "design": Design.from_dict(state["incumbent"]["design"])})
        self._episodes = [_episode(row) for row in state["episodes"].tolist()]
        self._losses = [list(row) for row in state["losses"]]

    def close(self) -> None:
        self.cohorts.pool.close()


def _birth(species: Species) -> dict[str, Any]:
    design = json.dumps(species.design.to_dict(), separators=(",", ":"))
    entry = {"species": species.number, "parent": species.parent, "born": species.born, "mutation": species.mutation}
    return {**entry, "bodies": species.design.num_nodes, "design": design}


def _episode(row: list[float]) -> EpisodeRecord:
    slot, total_return, steps, execution_steps, net, path, bodies, unstable = row
    return EpisodeRecord(int(slot), total_return, int(steps), int(execution_steps), net, path, int(bodies), bool(unstable))
