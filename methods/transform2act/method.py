"""Transform2Act (Yuan et al., ICLR 2022), Algorithm 1: sample a batch with the policy, update it with PPO, repeat."""

from dataclasses import dataclass, field
from typing import Any

import torch

from codesign_bench.experiment.method import Agent, Budget, Context, Iteration, Method, part_of_batch
from codesign_bench.experiment.transforming import Start, new_designs, started, transforming_groups
from codesign_bench.learning.actor_critic import GraphCritic
from codesign_bench.learning.batch import NUM_STAGES, steps_of_rollout
from codesign_bench.learning.networks import Init, ValueConfig
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.ppo import PPOConfig
from codesign_bench.learning.stackelberg import check_leader, make_ppo
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.structured import Count, Natural
from codesign_bench.tasks.base import Task
from methods.transform2act.policy import SubPolicyConfig, Transform2ActPolicy


@dataclass(frozen=True, kw_only=True)
class SkeletonConfig(SubPolicyConfig):
    where = "method.skeleton"
    steps: Natural
    log_std: None = field(default=None, init=False)


@dataclass(frozen=True, kw_only=True)
class AttributeConfig(SubPolicyConfig):
    where = "method.attribute"
    steps: Natural
    log_std: float


@dataclass(frozen=True, kw_only=True)
class ExecutionConfig(SubPolicyConfig):
    where = "method.execution"
    log_std: float


@dataclass(frozen=True)
class JSMLPConfig:
    init: Init


@dataclass(frozen=True)
class Transform2ActConfig:
    start: Start
    skeleton: SkeletonConfig
    attribute: AttributeConfig
    execution: ExecutionConfig
    jsmlp: JSMLPConfig
    value: ValueConfig
    ppo: PPOConfig
    inner_iterations: Count


class Transform2Act(Method):
    config_class = Transform2ActConfig

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return budget.batch

    @classmethod
    def check(cls, config: Transform2ActConfig, budget: Budget, task: Task) -> None:
        started(task, config.start)
        check_leader(config.ppo, TransformSteps(config.skeleton.steps, config.attribute.steps))

    def __init__(self, config: Transform2ActConfig, context: Context) -> None:
        self.config = config
        self.task = started(context.task, config.start)
        self.steps = TransformSteps(config.skeleton.steps, config.attribute.steps)
        torch.manual_seed(context.streams.integer("networks"))
        self.policy = Transform2ActPolicy(self.task, config.skeleton, config.attribute, config.execution, config.jsmlp.init)
        self.value = GraphCritic(Normaliser(self.task.features.size + NUM_STAGES), config.value, sees_stage=True)
        self.pool = context.pool(transforming_groups(self.task, self.steps, context, config.inner_iterations))
        self.ppo = make_ppo(self.policy, self.value, config.ppo, self.steps, context.device, self.pool.processes)
        self.shuffle = context.streams.generator("minibatches")
        self.steps_per_slot = part_of_batch(context.budget, config.inner_iterations) // self.pool.slots

    def iterate(self) -> Iteration:
        return Iteration.of_parts([self._learn() for _ in range(self.config.inner_iterations)])

    def _learn(self) -> Iteration:
        rollout = self.pool.collect(self.policy.acting(), self.steps_per_slot)
        steps, bootstrap = steps_of_rollout(rollout, self.task.space)
        losses = self.ppo.learn(rollout, steps, bootstrap, self.shuffle)
        self.policy.update_normalisers(steps)
        self.value.update_normaliser(steps)
        return Iteration(rollout.episodes, new_designs(rollout), vars(losses))

    def champion(self) -> Agent:
        return Agent(self.task, self.policy.acting(deterministic=True), self.steps)

    def state_dict(self) -> dict[str, Any]:
        return {
            "policy": self.policy.state_dict(),
            "value": self.value.state_dict(),
            "ppo": self.ppo.state_dict(),
            "shuffle": self.shuffle.bit_generator.state,
            "samplers": self.pool.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.policy.load_state_dict(state["policy"])
        self.value.load_state_dict(state["value"])
        self.ppo.load_state_dict(state["ppo"], self.task.space)
        self.shuffle.bit_generator.state = state["shuffle"]
        self.pool.load_state_dict(state["samplers"])

    def close(self) -> None:
        self.pool.close()
