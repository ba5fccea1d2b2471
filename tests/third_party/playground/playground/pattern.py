"""Pattern search: designs are drawn by the method itself, and a rhythm drives them. Each iteration tries as many random bodies with
random rhythms as there are slots and keeps the best of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.experiment.method import Agent, Budget, Context, Iteration, Method
from codesign_bench.simulation.episode import ACTION_SIZE, CONTROL, NO_TRANSFORM
from codesign_bench.simulation.graphs import GraphBatch
from codesign_bench.simulation.showing import random_design
from codesign_bench.simulation.workers import Group

SLOTS = 2
"""Designs in each group; a slot keeps its design for a whole batch."""


@dataclass(frozen=True)
class PatternConfig:
    """Mirrors conf/method/pattern.yaml."""

    slowest: float
    fastest: float


@dataclass(frozen=True)
class Rhythm:
    """A sine of its own for every joint: phase [joints of the design space], and one rate (radians per second) for each slot."""

    phase: Any
    rate: Any
    dt: float

    def __call__(self, graphs: GraphBatch) -> Any:
        actions = np.zeros((graphs.num_nodes, ACTION_SIZE))
        graph = np.repeat(np.arange(graphs.num_graphs), np.diff(graphs.offsets))
        rate = self.rate[graphs.slot % len(self.rate)]  # an evaluation has other slots, but one rate
        now = graphs.time * self.dt
        actions[:, CONTROL] = np.sin((rate * now)[graph] + self.phase[graphs.joint_index])
        return actions


class PatternSearch(Method):
    config_class = PatternConfig

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return budget.batch

    def __init__(self, config: PatternConfig, context: Context) -> None:
        self.config, self.context, self.task = config, context, context.task
        self.iteration, self.best_return = 0, float("-inf")
        self.best_design, self.best_phase, self.best_rate = self.task.initial_design, np.zeros(self.task.space.max_nodes), config.slowest
        designs = [self.task.initial_design] * (SLOTS * context.groups)
        self.pool = context.pool(self._groups(designs))
        self.steps_per_slot = context.budget.batch // self.pool.slots

    def iterate(self) -> Iteration:
        rng = self.context.streams.generator("pattern", self.iteration)
        designs = [random_design(self.task, rng) for _ in range(self.pool.slots)]
        phase = rng.uniform(-np.pi, np.pi, self.task.space.max_nodes)
        rates = rng.uniform(self.config.slowest, self.config.fastest, (self.context.groups, SLOTS))
        self.pool.rebuild(self._groups(designs))  # as many groups as before, with other designs and fresh episodes
        rollout = self.pool.collect([Rhythm(phase, rate, self.task.dt) for rate in rates], self.steps_per_slot)
        earned = rollout.reward.mean(axis=0)  # of each slot, group after group
        best = int(earned.argmax())
        if earned[best] > self.best_return:
            self.best_return, self.best_design = float(earned[best]), designs[best]
            self.best_phase, self.best_rate = phase, float(rates.ravel()[best])
        self.iteration += 1
        return Iteration(rollout.episodes, len(designs), {"best": self.best_return})

    def champion(self) -> Agent:
        rhythm = Rhythm(self.best_phase, np.array([self.best_rate]), self.task.dt)
        return Agent(self.task.starting_from(self.best_design), rhythm, NO_TRANSFORM)

    def _groups(self, designs: list[Design]) -> list[Group]:
        """Streams are numbered by iteration: nothing is open between iterations, so the samplers have no state to keep."""
        parts = [tuple(designs[i : i + SLOTS]) for i in range(0, len(designs), SLOTS)]
        streams = self.context.streams
        return [
            Group(self.task, SLOTS, streams.sequence("sampler", self.iteration, number), NO_TRANSFORM, part)
            for number, part in enumerate(parts)
        ]

    def state_dict(self) -> dict[str, Any]:
        best = {"return": self.best_return, "design": self.best_design.to_dict(), "phase": self.best_phase.tolist(), "rate": self.best_rate}
        return {"iteration": self.iteration, "best": best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.iteration, best = state["iteration"], state["best"]
        self.best_return, self.best_design = best["return"], Design.from_dict(best["design"])
        self.best_phase, self.best_rate = np.array(best["phase"]), best["rate"]

    def close(self) -> None:
        self.pool.close()
