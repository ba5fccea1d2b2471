"""A species: a design and the controller that learns to drive it, with everything that makes its training go on."""

from __future__ import annotations

import math
from typing import Any

from codesign_bench.design.graph import Design
from codesign_bench.experiment.method import Agent, Context
from codesign_bench.simulation.episode import NO_TRANSFORM
from codesign_bench.simulation.sampler import SlotState
from codesign_bench.tasks.base import Task
from methods.evolution.acting import single_policy
from methods.evolution.config import PopulationConfig
from methods.evolution.controller import Controller
from methods.evolution.learner import Learner

CHANGING = ("fitness", "episodes", "steps", "restarts")
"""What a species counts in the course of its life."""


class Species:
    """One member of a population.

    - number: names it for ever
    - born: generation
    - mutation: the operator that made its design, or "random"
    - parent: number of its parent; None if its design was drawn at random
    - fitness: the latest that is known, NaN before its first generation has ended
    - episodes: that ended in its latest generation
    - steps: of all its life
    - restarts: how often it was begun anew with the same design
    """

    def __init__(
        self, config: PopulationConfig, context: Context, number: int, design: Design, born: int, mutation: str, parent: int | None = None
    ) -> None:
        self.config, self.context = config, context
        self.number, self.design, self.born, self.mutation, self.parent = number, design, born, mutation, parent
        self.episodes, self.steps = 0, 0
        self.restarts = -1
        self.restart()

    def restart(self) -> None:
        """Fresh weights, optimisers and episodes, and nothing known of their fitness."""
        self.restarts += 1
        self.fitness = math.nan
        config, task, streams, name = self.config, self.context.task, self.context.streams, (self.number, self.restarts)
        seed, shuffle = streams.integer("networks", *name), streams.generator("minibatches", *name)
        self.learner = Learner(self.design, task, config, self.context.device, seed, shuffle)
        slots = range(config.slots(self.context.budget, task.config.max_steps))
        self.slots = [SlotState.fresh(self.design, streams.sequence("starts", *name, slot)) for slot in slots]

    def inherit(self, parent: Species) -> None:
        """The parent's policy, value network and normaliser; optimisers stay fresh."""
        self.controller.load_state_dict(parent.controller.state_dict())

    @property
    def controller(self) -> Controller:
        return self.learner.controller

    @property
    def open_return(self) -> float:
        """Return so far of the longest open episode."""
        return max(self.slots, key=lambda slot: slot.time).open_return

    def state_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("number", "born", "mutation", "parent", *CHANGING)},
            "design": self.design.to_dict(),
            "learner": self.learner.state_dict(),
            "slots": [slot.to_dict() for slot in self.slots],
        }

    @staticmethod
    def from_state(config: PopulationConfig, context: Context, state: dict[str, Any]) -> Species:
        design = Design.from_dict(state["design"])
        species = Species(config, context, state["number"], design, state["born"], state["mutation"], state["parent"])
        for name in CHANGING:
            setattr(species, name, state[name])
        species.learner.load_state_dict(state["learner"])
        species.slots = [SlotState.from_dict(slot) for slot in state["slots"]]
        return species


def agent_of(design: Design, controller: Controller, task: Task) -> Agent:
    """To be evaluated: acts without noise, and leaves its design as it is."""
    return Agent(task.starting_from(design), single_policy(controller), NO_TRANSFORM)
