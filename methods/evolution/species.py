"""A species: a design and the controller that learns to drive it, with everything that makes its training go on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from codesign_bench.design.graph import Design
from codesign_bench.experiment.seeds import Streams
from codesign_bench.learning.networks import ValueConfig
from codesign_bench.learning.ppo import PPO, PPOConfig
from codesign_bench.simulation.episode import NO_TRANSFORM
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks.base import Task
from methods.evolution.controller import Controller, ControllerConfig

Slot = dict[str, Any]
"""The state of one slot of a sampler: its stream of starts and its open episode."""


@dataclass(frozen=True)
class Nursery:
    """What is needed to make a species."""

    task: Task
    controller: ControllerConfig
    value: ValueConfig
    ppo: PPOConfig
    slots: int
    streams: Streams
    device: str

    def make(self, number: int, design: Design, born: int, mutation: str, parent: int | None = None) -> Species:
        return Species(self, number, design, born, mutation, parent)

    def load(self, state: dict[str, Any]) -> Species:
        species = self.make(state["number"], Design.from_dict(state["design"]), state["born"], state["mutation"], state["parent"])
        species.load_state_dict(state)
        return species


class Species:
    """`number` names it for ever. `restarts` counts how often it was begun anew with the same design."""

    def __init__(self, nursery: Nursery, number: int, design: Design, born: int, mutation: str, parent: int | None) -> None:
        self.number, self.design, self.born, self.mutation, self.parent = number, design, born, mutation, parent
        self.nursery = nursery
        self.episodes, self.steps = 0, 0
        self.restarts = -1
        self.restart()

    def restart(self) -> None:
        """Fresh weights, optimisers and episodes, and nothing known of their fitness."""
        self.restarts += 1
        self.fitness = math.nan
        nursery, name = self.nursery, (self.number, self.restarts)
        seed = nursery.streams.integer("networks", *name)
        self.controller = Controller(self.design, nursery.task, nursery.controller, nursery.value, seed)
        self.ppo = PPO(self.controller.actor, self.controller.critic, nursery.ppo, nursery.device)
        self.shuffle = nursery.streams.generator("minibatches", *name)
        self.slots = self._fresh_slots(name)

    def inherit(self, parent: Species) -> None:
        """The parent's policy, value network and normaliser; optimisers stay fresh."""
        self.controller.load_state_dict(parent.controller.state_dict())

    def _fresh_slots(self, name: tuple[int, int]) -> list[Slot]:
        slots, streams = self.nursery.slots, self.nursery.streams
        starts = [streams.sequence("starts", *name, slot) for slot in range(slots)]
        unused = np.random.SeedSequence(0)  # of action noise, which has streams of its own
        sampler = Sampler(self.nursery.task, slots, unused, NO_TRANSFORM, [self.design] * slots, starts)
        return slots_of(sampler.state_dict())

    @property
    def open_return(self) -> float:
        """Return so far of the longest open episode."""
        longest = max((slot["episode"] for slot in self.slots), key=lambda episode: episode["time"])
        return float(longest["total_return"])

    def state_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "design": self.design.to_dict(),
            "born": self.born,
            "mutation": self.mutation,
            "parent": self.parent,
            "fitness": self.fitness,
            "episodes": self.episodes,
            "steps": self.steps,
            "restarts": self.restarts,
            "controller": self.controller.state_dict(),
            "ppo": self.ppo.state_dict(),
            "shuffle": self.shuffle.bit_generator.state,
            "slots": self.slots,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.fitness, self.episodes, self.steps, self.restarts = state["fitness"], state["episodes"], state["steps"], state["restarts"]
        self.controller.load_state_dict(state["controller"])
        self.ppo.load_state_dict(state["ppo"])
        self.shuffle.bit_generator.state = state["shuffle"]
        self.slots = list(state["slots"])


def slots_of(state: dict[str, Any]) -> list[Slot]:
    """The state of a sampler, slot by slot; designs are left out."""
    episodes = [{key: value for key, value in episode.items() if key != "design"} for episode in state["episodes"]]
    return [{"starts": rng, "episode": episode} for rng, episode in zip(state["reset_rngs"], episodes, strict=True)]


def sampler_state(slots: list[tuple[Design, Slot]]) -> dict[str, Any]:
    """The state of a sampler with these slots."""
    entries = [design.to_dict() for design, _ in slots]
    return {
        "rng": np.random.default_rng(0).bit_generator.state,
        "reset_rngs": [slot["starts"] for _, slot in slots],
        "designs": entries,
        "episodes": [{**slot["episode"], "design": entry} for entry, (_, slot) in zip(entries, slots, strict=True)],
    }


def copied(state: dict[str, Any]) -> dict[str, Any]:
    """A state of modules that later learning leaves alone."""
    return {key: copied(v) if isinstance(v, dict) else v.detach().clone() if isinstance(v, torch.Tensor) else v for key, v in state.items()}
