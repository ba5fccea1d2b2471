"""A method without networks, with one flaw that can be chosen: what the conformance suite must find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from codesign_bench.experiment.method import Agent, Budget, Context, Iteration, Method
from codesign_bench.simulation.episode import ACTION_SIZE, TransformSteps
from codesign_bench.simulation.workers import Group, WorkerPool
from codesign_bench.tasks import make_task


@dataclass(frozen=True)
class ToyConfig:
    flaw: str


@dataclass(frozen=True)
class ToyPolicy:
    weights: Any
    noise: float

    def __call__(self, graphs: Any) -> Any:
        actions = np.tile(self.weights, (graphs.num_nodes, 1))
        return actions + self.noise * graphs.rng.normal(size=actions.shape).round(3).astype(np.float32)


class Toy(Method):
    """Random search around its weights: a batch, then a random step, scaled with the reward."""

    config_class = ToyConfig

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return budget.batch

    def __init__(self, config: ToyConfig, context: Context) -> None:
        self.flaw, self.context = config.flaw, context
        self.weights = torch.zeros(ACTION_SIZE)
        self.rng = context.streams.generator("toy")
        self.steps = TransformSteps(1, 1)
        self.iterations = 0
        groups = [Group(context.task, 2, context.streams.sequence("sampler", i), self.steps) for i in range(2)]
        self.pool = WorkerPool(groups) if config.flaw == "steps of its own" else context.pool(groups)

    def iterate(self) -> Iteration:
        self.iterations += 1
        each = self.context.budget.batch // self.pool.slots
        rollout = self.pool.collect(ToyPolicy(self.weights.numpy().copy(), 0.3), each)
        if self.flaw == "charges twice" and self.iterations == 2:
            self.pool.collect(ToyPolicy(self.weights.numpy().copy(), 0.3), each)
        step = self.rng.normal(size=ACTION_SIZE)
        if self.flaw == "global numbers":
            step += np.random.normal(size=ACTION_SIZE)  # noqa: NPY002
        if self.flaw == "counts workers":
            step += self.context.workers
        if self.flaw == "litters":
            Path("litter.txt").write_text("x")
        self.weights += torch.from_numpy(0.1 * step * np.sign(rollout.reward.mean())).float()
        rewards = [{"iteration": self.iterations, "slot": i, "reward": reward} for i, reward in enumerate(rollout.reward.sum(0).tolist())]
        tables = {"slots": rewards, **({"second": [{"odd": "a, b"}]} if self.iterations % 2 == 0 else {})}
        return Iteration(rollout.episodes, len(rollout.episodes), {"reward": float(rollout.reward.mean())}, tables)

    def champion(self) -> Agent:
        if self.flaw == "evaluation trains":
            self.rng.normal()
        task = make_task("gap") if self.flaw == "other task" else self.context.task
        return Agent(task, ToyPolicy(self.weights.numpy().copy(), 0.3 if self.flaw == "noisy champion" else 0.0), self.steps)

    def state_dict(self) -> dict[str, Any]:
        state = {"weights": self.weights, "iterations": self.iterations, "samplers": self.pool.state_dict()}
        if self.flaw != "forgets":
            state["rng"] = self.rng.bit_generator.state
        if self.flaw == "saves objects":
            state["object"] = Path("x")
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights = state["weights"].clone()
        self.iterations = state["iterations"]
        self.pool.load_state_dict(state["samplers"])
        if "rng" in state:
            self.rng.bit_generator.state = state["rng"]

    def close(self) -> None:
        self.pool.close()
