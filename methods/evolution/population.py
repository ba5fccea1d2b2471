"""A population: the species of the current generation, and what a run remembers of earlier ones."""

import copy
import json
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.experiment.method import Context, Iteration
from codesign_bench.learning.ppo import Losses
from codesign_bench.simulation.episode import EpisodeRecord
from methods.evolution.config import PopulationConfig
from methods.evolution.random_design import random_design
from methods.evolution.selection import ranked
from methods.evolution.species import Species

Row = dict[str, Any]
"""Of a table."""


@dataclass
class Incumbent:
    """The fittest species of all generations, with its controller as it was at the end of that generation: after the update
    from the batch whose return is the fitness."""

    species: int
    generation: int
    fitness: float
    design: Design
    controller: dict[str, Any]


class Population:
    """Records and state of a run; who is in `species` is up to the method.

    - species: of the current generation; those of the last one until the method has renewed them, at first none
    - generation: number of the current one, from 0
    - trained: how many of `species`, from the first on, this generation has trained; 0 where it has not begun
    - fittest: of all generations that have ended
    - episodes, losses: of this generation so far
    """

    def __init__(self, config: PopulationConfig, context: Context) -> None:
        self.config, self.context = config, context
        self.size = context.budget.population
        self.species: list[Species] = []
        self.generation, self.trained, self.next_number = 0, 0, 0
        self.fittest: Incumbent | None = None
        self.episodes: list[EpisodeRecord] = []
        self.losses: list[dict[str, float]] = []

    def newborn(self, design: Design, mutation: str, parent: Species | None = None) -> Species:
        """A species with a number of its own and fresh networks. It joins when the method puts it into `species`."""
        number = None if parent is None else parent.number
        self.next_number += 1
        return Species(self.config, self.context, self.next_number - 1, design, self.generation, mutation, number)

    def founders(self, least: int, most: int, stream: str) -> list[Species]:
        """As many as there are places, without parents: random designs with uniformly `least` to `most` nodes more than the
        initial one."""
        task, streams = self.context.task, self.context.streams
        rngs = [streams.generator(stream, self.generation, i) for i in range(self.size)]
        return [self.newborn(random_design(task, int(rng.integers(least, most + 1)), rng), "random") for rng in rngs]

    def best(self) -> Species:
        return ranked(self.species)[0]

    def rank(self) -> Iteration:
        """Ends the generation: who is best, whether it is the best ever, and the records of all."""
        self.note_fittest()
        newborn = [species for species in self.species if species.born == self.generation]
        iteration = self.iteration(self.species, self.genealogy(), [birth(species) for species in newborn])
        self.generation += 1
        return iteration

    def note_fittest(self) -> None:
        """The best of the current generation, if it is the best ever."""
        best = self.best()
        if self.fittest is None or best.fitness > self.fittest.fitness:
            controller = copy.deepcopy(best.controller.state_dict())  # later learning leaves it alone
            self.fittest = Incumbent(best.number, self.generation, best.fitness, best.design, controller)

    def genealogy(self) -> list[Row]:
        """Of the current generation, one row for each species."""
        best = self.best()
        return [self._row(species, best) for species in self.species]

    def iteration(self, species: list[Species], genealogy: list[Row], born: list[Row]) -> Iteration:
        """What was noted since the last one, and the fitness of `species`, for the runner."""
        fitness = np.array([one.fitness for one in species])
        alive = fitness[np.isfinite(fitness)]
        metrics = {
            **{field.name: float(np.mean([update[field.name] for update in self.losses] or [math.nan])) for field in fields(Losses)},
            "fitness_best": ranked(species)[0].fitness,
            "fitness_mean": float(alive.mean()) if len(alive) else float("nan"),
            "fitness_incumbent": float("nan") if self.fittest is None else self.fittest.fitness,
            "dead": float(len(fitness) - len(alive)),
        }
        iteration = Iteration(tuple(self.episodes), len(born), metrics, {"genealogy": genealogy, "species": born})
        self.trained, self.episodes, self.losses = 0, [], []
        return iteration

    def _row(self, species: Species, best: Species) -> Row:
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

    # ---- stop and go on ----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        incumbent = self.fittest and {**vars(self.fittest), "design": self.fittest.design.to_dict()}
        return {
            "species": [species.state_dict() for species in self.species],
            "generation": self.generation,
            "trained": self.trained,
            "next_number": self.next_number,
            "incumbent": incumbent,
            "episodes": [asdict(episode) for episode in self.episodes],
            "losses": self.losses,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.species = [Species.from_state(self.config, self.context, species) for species in state["species"]]
        self.generation, self.trained, self.next_number = state["generation"], state["trained"], state["next_number"]
        self.fittest = None
        if state["incumbent"] is not None:
            self.fittest = Incumbent(**{**state["incumbent"], "design": Design.from_dict(state["incumbent"]["design"])})
        self.episodes = [EpisodeRecord(**row) for row in state["episodes"]]
        self.losses = [dict(row) for row in state["losses"]]


def birth(species: Species) -> Row:
    design = json.dumps(species.design.to_dict(), separators=(",", ":"))
    entry = {"species": species.number, "parent": species.parent, "born": species.born, "mutation": species.mutation}
    return {**entry, "bodies": species.design.num_nodes, "design": design}
