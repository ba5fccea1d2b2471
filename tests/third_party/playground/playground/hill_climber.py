"""A hill climber: one linear map from what a node observes to what it does, designing and moving alike. Each batch tries the
best map so far with noise added to its weights, and keeps it if the batch earned more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from codesign_bench.experiment.method import Agent, Budget, Context, Iteration, Method
from codesign_bench.simulation.episode import ACTION_SIZE, SKELETON, TransformSteps
from codesign_bench.simulation.graphs import GraphBatch
from codesign_bench.simulation.workers import Group

SLOTS = 2
"""Episodes side by side in each group."""


@dataclass(frozen=True)
class HillClimberConfig:
    """Mirrors conf/method/hill_climber.yaml."""

    noise: float
    skeleton_steps: int
    attribute_steps: int


@dataclass(frozen=True)
class LinearPolicy:
    """weights [feature_size, 7]"""

    weights: Any

    def __call__(self, graphs: GraphBatch) -> Any:
        actions = graphs.features @ self.weights
        actions[:, SKELETON] = np.clip(np.rint(actions[:, SKELETON]), 0, 2)  # no change, add a joint, delete this one
        return actions


class HillClimber(Method):
    config_class = HillClimberConfig

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return budget.batch

    def __init__(self, config: HillClimberConfig, context: Context) -> None:
        self.config, self.task = config, context.task
        self.steps = TransformSteps(config.skeleton_steps, config.attribute_steps)
        self.rng = context.streams.generator("hill climber")
        self.weights, self.reward = torch.zeros(self.task.feature_size, ACTION_SIZE), float("-inf")
        groups = [Group(self.task, SLOTS, context.streams.sequence("sampler", i), self.steps) for i in range(context.groups)]
        self.pool = context.pool(groups)  # the only source of steps: it charges the run's budget
        self.steps_per_slot = context.budget.batch // self.pool.slots

    def iterate(self) -> Iteration:
        tried = self.weights + self.config.noise * torch.from_numpy(self.rng.normal(size=self.weights.shape)).float()
        rollout = self.pool.collect(LinearPolicy(tried.numpy()), self.steps_per_slot)
        reward = float(rollout.reward.mean())
        if reward > self.reward:
            self.weights, self.reward = tried, reward
        return Iteration(rollout.episodes, rollout.designs.num_designs, {"reward": reward})

    def champion(self) -> Agent:
        return Agent(self.task, LinearPolicy(self.weights.numpy()), self.steps)

    def state_dict(self) -> dict[str, Any]:
        state = {"weights": self.weights, "reward": self.reward}
        return {**state, "rng": self.rng.bit_generator.state, "samplers": self.pool.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights, self.reward = state["weights"].clone(), state["reward"]
        self.rng.bit_generator.state = state["rng"]
        self.pool.load_state_dict(state["samplers"])

    def close(self) -> None:
        self.pool.close()
