"""Transform2Act (Yuan et al., ICLR 2022), Algorithm 1: sample a batch with the policy, update it with PPO, repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Agent, Budget, Context, Iteration, Method
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.networks import Sizes, ValueConfig, check_sizes
from codesign_bench.learning.ppo import PPO, PPOConfig
from codesign_bench.simulation.episode import Stage, TransformSteps
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.workers import Group
from methods.transform2act.policy import SubPolicyConfig, Transform2ActPolicy, Value

Head = Literal["jsmlp", "mlp", "linear"]


@dataclass(frozen=True)
class SkeletonConfig:
    steps: int
    gnn: Sizes | None
    mlp: Sizes
    head: Head


@dataclass(frozen=True)
class AttributeConfig:
    steps: int
    gnn: Sizes | None
    mlp: Sizes
    head: Head
    log_std: float


@dataclass(frozen=True)
class ExecutionConfig:
    gnn: Sizes | None
    mlp: Sizes
    head: Head
    log_std: float


@dataclass(frozen=True)
class JSMLPConfig:
    init: Literal["published", "linear"]


@dataclass(frozen=True)
class Transform2ActConfig:
    start: Literal["initial", "expert"]
    skeleton: SkeletonConfig
    attribute: AttributeConfig
    execution: ExecutionConfig
    jsmlp: JSMLPConfig
    value: ValueConfig
    ppo: PPOConfig

    def __post_init__(self) -> None:
        TransformSteps(self.skeleton.steps, self.attribute.steps)
        for where in ("skeleton", "attribute", "execution"):
            part = getattr(self, where)
            check_sizes(part.gnn, part.mlp, f"method.{where}")


class Transform2Act(Method):
    config_class = Transform2ActConfig

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return budget.batch

    def __init__(self, config: Transform2ActConfig, context: Context) -> None:
        self.config = config
        self.task = context.task.with_expert() if config.start == "expert" else context.task
        self.steps = TransformSteps(config.skeleton.steps, config.attribute.steps)
        torch.manual_seed(context.streams.integer("networks"))
        self.policy, self.value = _networks(config, self)
        self.ppo = PPO(self.policy, self.value, config.ppo, context.device)
        self.shuffle = context.streams.generator("minibatches")
        self.pool = context.pool(_groups(self, context))
        self.steps_per_slot = context.budget.batch // self.pool.slots

    def iterate(self) -> Iteration:
        rollout = self.pool.collect(self.policy.acting(), self.steps_per_slot)
        steps, bootstrap = steps_of_rollout(rollout, self.task.space)
        losses = self.ppo.learn(rollout, steps, bootstrap, self.shuffle)
        self.policy.merge(steps)
        self.value.merge(steps)
        return Iteration(rollout.episodes, _new_designs(rollout), vars(losses))

    def champion(self) -> Agent:
        return Agent(self.task, self.policy.acting(deterministic=True), self.steps)

    def state_dict(self) -> dict[str, Any]:
        return {
            "policy": self.policy.state_dict(),
            "value": self.value.state_dict(),
            "normalisers": [n.state_dict() for n in self._normalisers()],
            "ppo": self.ppo.state_dict(),
            "shuffle": self.shuffle.bit_generator.state,
            "samplers": self.pool.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.policy.load_state_dict(state["policy"])
        self.value.load_state_dict(state["value"])
        for normaliser, saved in zip(self._normalisers(), state["normalisers"], strict=True):
            normaliser.load_state_dict(saved)
        self.ppo.load_state_dict(state["ppo"])
        self.shuffle.bit_generator.state = state["shuffle"]
        self.pool.load_state_dict(state["samplers"])

    def close(self) -> None:
        self.pool.close()

    def _normalisers(self) -> list[Any]:
        return [*(self.policy.of_stage(stage).normaliser for stage in Stage), self.value.normaliser]


def _networks(config: Transform2ActConfig, method: Transform2Act) -> tuple[Transform2ActPolicy, Value]:
    parts: dict[Stage, Any] = {Stage.SKELETON: config.skeleton, Stage.ATTRIBUTE: config.attribute, Stage.EXECUTION: config.execution}
    sub_policies = {stage: SubPolicyConfig(part.gnn, part.mlp, part.head, config.jsmlp.init) for stage, part in parts.items()}
    policy = Transform2ActPolicy(method.task, sub_policies, config.attribute.log_std, config.execution.log_std)
    return policy, Value(method.task, config.value.gnn, config.value.mlp)


def _groups(method: Transform2Act, context: Context) -> list[Group]:
    """batch / 1000 slots, divided over the groups: a slot's share of a batch is the longest episode."""
    batch, longest = context.budget.batch, method.task.config.max_steps
    slots = max(batch // longest, context.groups)
    if batch % slots:
        raise ConfigError(f"budget.batch is {batch}; allowed are multiples of {slots}, the number of slots.")
    sizes = [len(part) for part in np.array_split(np.arange(slots), context.groups)]
    return [Group(method.task, size, context.streams.sequence("sampler", i), method.steps) for i, size in enumerate(sizes)]


def _new_designs(rollout: Rollout) -> int:
    """Designs that were put into the simulator for the first time in this batch."""
    executing = rollout.stage == Stage.EXECUTION
    going_on = np.count_nonzero(executing[0])
    return len(np.unique(rollout.design[executing])) - int(going_on)
