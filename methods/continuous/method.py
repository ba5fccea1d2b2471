"""Continuous design (Ha, 2019): one controller learns with PPO on a population of designs, and the returns of the designs
move the distribution that they are drawn from. With sigma 0 it is PPO on the expert design (method=expert)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Agent, Budget, Context, Iteration, Method, part_of_batch
from codesign_bench.learning.actor_critic import GraphCritic
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.networks import ValueConfig
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.ppo import PPO, Losses, PPOConfig
from codesign_bench.simulation.episode import NO_TRANSFORM, EpisodeRecord
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.workers import Group
from codesign_bench.structured import Count
from codesign_bench.tasks.base import Task
from methods.continuous.controller import Controller, ControllerConfig
from methods.continuous.distribution import DesignConfig, DesignDistribution
from methods.continuous.parameters import DesignParameters

Row = dict[str, float | int | str]


@dataclass(frozen=True)
class ContinuousConfig:
    design: DesignConfig
    controller: ControllerConfig
    value: ValueConfig
    ppo: PPOConfig
    inner_iterations: Count


class Continuous(Method):
    config_class = ContinuousConfig

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return budget.batch

    @classmethod
    def check(cls, config: ContinuousConfig, budget: Budget, task: Task) -> None:
        task.with_expert()

    def __init__(self, config: ContinuousConfig, context: Context) -> None:
        self.config, self.context = config, context
        self.task = context.task.with_expert()
        self.parameters = DesignParameters(self.task, config.design.range)
        self.distribution = DesignDistribution(self.parameters.size, config.design)
        part = part_of_batch(context.budget, config.inner_iterations)
        pairs, self.quota = antithetic_pairs(part, self.task.config.max_steps, context.groups)
        self.pairs = pairs * config.inner_iterations
        torch.manual_seed(context.streams.integer("networks"))
        self.controller = Controller(self.task, config.controller)
        self.value = GraphCritic(Normaliser(self.task.features.size), config.value)
        self.iteration = 0
        self.tried = np.zeros((0, self.parameters.size))
        self.pool = context.pool(self._groups([self.task.initial_design] * (2 * pairs), 0))
        self.ppo = PPO(self.controller, self.value, config.ppo, context.device, self.pool.processes)

    def iterate(self) -> Iteration:
        """Every design of the population takes its quota from a fresh start; nothing is open between iterations. With inner iterations the
        controller learns after each part of the population, the distribution still from all of it."""
        window, shuffle = self._window(), self.context.streams.generator("minibatches", self.iteration)
        noise = self.context.streams.generator("designs", self.iteration).standard_normal((self.pairs, self.parameters.size))
        noise *= window != "frozen"
        members = self.distribution.members(noise)
        designs = [self.parameters.design(w) for w in members]
        size, parts, returns = len(designs) // self.config.inner_iterations, [], []
        for first in range(0, len(designs), size):
            rollout, losses = self._learn(designs[first : first + size], first, shuffle)
            parts.append(Iteration(rollout.episodes, 0, vars(losses)))
            returns.append(mean_returns(rollout.episodes, size))
        if window == "learn":
            self.distribution.update(noise, np.concatenate(returns))
        self.iteration += 1
        tables = self._tables(members, np.concatenate(returns))
        return replace(Iteration.of_parts(parts), new_designs=self._new_designs(designs), tables=tables)

    def _learn(self, designs: Sequence[Design], first: int, shuffle: np.random.Generator) -> tuple[Rollout, Losses]:
        """The controller from the quota of these designs, of which the first one has this number in the population."""
        self.pool.rebuild(self._groups(designs, first))
        rollout = self.pool.collect(self.controller.acting(), self.quota)
        steps, bootstrap = steps_of_rollout(rollout, self.task.space)
        losses = self.ppo.learn(rollout, steps, bootstrap, shuffle)
        self.controller.update_normaliser(steps)
        self.value.update_normaliser(steps)
        return rollout, losses

    def champion(self) -> Agent:
        """The design at mu with its mean controls."""
        task = self.task.starting_from(self.parameters.design(self.distribution.mu), self.task.space)
        return Agent(task, self.controller.acting(deterministic=True), NO_TRANSFORM)

    def state_dict(self) -> dict[str, Any]:
        return {
            "controller": self.controller.state_dict(),
            "value": self.value.state_dict(),
            "ppo": self.ppo.state_dict(),
            "distribution": self.distribution.state_dict(),
            "iteration": self.iteration,
            "tried": torch.from_numpy(self.tried),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.controller.load_state_dict(state["controller"])
        self.value.load_state_dict(state["value"])
        self.ppo.load_state_dict(state["ppo"])
        self.distribution.load_state_dict(state["distribution"])
        self.iteration = int(state["iteration"])
        self.tried = state["tried"].numpy().copy()

    def close(self) -> None:
        self.pool.close()

    # ---- the parts of an iteration -----------------------------------------------------------------------------------

    def _window(self) -> Literal["warm up", "learn", "frozen"]:
        """What the distribution does in the coming iteration; frozen, all designs are mu."""
        design, ledger = self.config.design, self.context.ledger
        if ledger.left <= design.freeze_last_steps:
            return "frozen"
        return "warm up" if ledger.charged < design.warmup_steps else "learn"

    def _groups(self, designs: Sequence[Design], first: int) -> list[Group]:
        """Of designs from this number on. Partners of a pair follow each other and share the stream of their simulator starts. Streams are
        numbered by iteration, so there is no state to keep."""
        streams, count = self.context.streams, self.context.groups
        starts = [streams.sequence("starts", self.iteration, member // 2) for member in range(first, first + len(designs))]
        groups = []
        for number, part in enumerate(np.array_split(np.arange(len(designs)), count)):
            seed, mine = streams.sequence("sampler", self.iteration, first + number), tuple(designs[i] for i in part)
            groups.append(Group(self.task, len(part), seed, NO_TRANSFORM, mine, tuple(starts[i] for i in part)))
        return groups

    def _new_designs(self, designs: Sequence[Design]) -> int:
        """Designs that were not in the population before; those that noise makes are always new."""
        attributes = np.unique([design.attributes[self.parameters.tunable] for design in designs], axis=0)
        new = len(np.unique(np.concatenate([self.tried, attributes]), axis=0)) - len(self.tried)
        self.tried = attributes
        return new

    # ---- records -----------------------------------------------------------------------------------------------------

    def _tables(self, members: Array, returns: Array) -> dict[str, list[Row]]:
        """None if all designs are the expert."""
        design, steps = self.config.design, self.context.ledger.charged
        if design.sigma == 0 and design.learning_rate == 0:
            return {}
        population: Row = {
            "iteration": self.iteration,
            "steps": steps,
            "return_mean": float(returns.mean()),
            "return_std": float(returns.std()),
            "return_best": float(returns.max()),
            "return_worst": float(returns.min()),
            "clipped": self.parameters.clipped(members),
        }
        first = self._rows(0, 0, DesignDistribution(self.parameters.size, design)) if self.iteration == 1 else []
        return {"population": [population], "design_distribution": first + self._rows(self.iteration, steps, self.distribution)}

    def _rows(self, iteration: int, steps: int, distribution: DesignDistribution) -> list[Row]:
        value = self.parameters.physical(distribution.mu).tolist()
        numbers = zip(self.parameters.names, distribution.mu.tolist(), distribution.sigma.tolist(), value, strict=True)
        return [
            {"iteration": iteration, "steps": steps, "part": part, "attribute": attribute, "mu": mu, "sigma": sigma, "value": physical}
            for (part, attribute), mu, sigma, physical in numbers
        ]


def antithetic_pairs(batch: int, longest: int, groups: int) -> tuple[int, int]:
    """Pairs of designs, and the steps of each design: a whole episode at least, so that each design has a return."""
    pairs = batch // (2 * longest)
    if pairs < 1 or batch % (2 * pairs) or 2 * pairs < groups:
        least = max(1, -(-groups // 2)) * 2 * longest
        raise ConfigError(f"budget.batch is {batch}; allowed are multiples of {2 * longest} (pairs of designs) from {least} up.")
    return pairs, batch // (2 * pairs)


def mean_returns(episodes: Sequence[EpisodeRecord], designs: int) -> Array:
    """[designs]: the mean undiscounted return of the episodes that each design completed; slot i runs design i."""
    slot = [episode.slot for episode in episodes]
    total = np.bincount(slot, weights=[episode.total_return for episode in episodes], minlength=designs)
    mean: Array = total / np.bincount(slot, minlength=designs)
    return mean
