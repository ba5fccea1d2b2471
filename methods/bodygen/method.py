"""BodyGen (Lu et al., ICLR 2025): sample a batch with the policy, merge it into the normaliser, update with PPO, repeat.

A body is a set of nodes that attend to each other (MoSAT) and know their place in its tree (TopoPE). Three policies and three value
networks, one for each stage; design steps are credited with the return of their episode (codesign_bench/learning/credit.py).
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch

from codesign_bench.experiment.method import Agent, Budget, Context, Iteration, Method, part_of_batch
from codesign_bench.experiment.transforming import Start, new_designs, started, transforming_groups
from codesign_bench.learning.actor_critic import StageCritic
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.mosat import MoSATConfig
from codesign_bench.learning.networks import Sizes
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.ppo import PPOConfig
from codesign_bench.learning.stackelberg import check_leader, make_ppo
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.structured import Count, Natural, Positive
from codesign_bench.tasks.base import Task
from methods.bodygen.networks import EncoderConfig, GNNConfig, policy_of, values_of


@dataclass(frozen=True)
class SkeletonConfig:
    steps: Natural


@dataclass(frozen=True)
class AttributeConfig:
    steps: Natural
    log_std: float


@dataclass(frozen=True)
class ExecutionConfig:
    """log_std: initial; log_std_in: in some environments, by their names."""

    log_std: float
    log_std_in: dict[str, float]

    def log_std_of(self, env: str) -> float:
        return self.log_std_in.get(env, self.log_std)


@dataclass(frozen=True)
class HeadConfig:
    mlp: Sizes


@dataclass(frozen=True)
class BodyGenConfig:
    start: Start
    skeleton: SkeletonConfig
    attribute: AttributeConfig
    execution: ExecutionConfig
    encoder: Literal["mosat", "gnn"]
    mosat: MoSATConfig
    gnn: GNNConfig
    value: HeadConfig
    clip_features: Positive
    merge: Literal["before", "after"]
    ppo: PPOConfig
    inner_iterations: Count


class BodyGen(Method):
    config_class = BodyGenConfig

    @staticmethod
    def iteration_steps(budget: Budget) -> int:
        return budget.batch

    @classmethod
    def check(cls, config: BodyGenConfig, budget: Budget, task: Task) -> None:
        started(task, config.start)
        check_leader(config.ppo, TransformSteps(config.skeleton.steps, config.attribute.steps))
        if config.encoder == "mosat":
            config.mosat.check(task.space.max_nodes)

    def __init__(self, config: BodyGenConfig, context: Context) -> None:
        self.config = config
        self.task = started(context.task, config.start)
        self.steps = TransformSteps(config.skeleton.steps, config.attribute.steps)
        torch.manual_seed(context.streams.integer("networks"))
        encoder = EncoderConfig(config.encoder, config.mosat, config.gnn)
        self.normaliser = Normaliser(self.task.features.size, config.clip_features)
        log_stds = config.attribute.log_std, config.execution.log_std_of(self.task.name)
        self.policy = policy_of(self.task, encoder, self.normaliser, *log_stds)
        self.value = StageCritic(self.normaliser, values_of(self.task, encoder, config.value.mlp))
        self.pool = context.pool(transforming_groups(self.task, self.steps, context, config.inner_iterations))
        self.ppo = make_ppo(self.policy, self.value, config.ppo, self.steps, context.device, self.pool.processes)
        self.shuffle = context.streams.generator("minibatches")
        self.steps_per_slot = part_of_batch(context.budget, config.inner_iterations) // self.pool.slots

    def iterate(self) -> Iteration:
        return Iteration.of_parts([self._learn() for _ in range(self.config.inner_iterations)])

    def _learn(self) -> Iteration:
        rollout = self.pool.collect(self.policy.acting(), self.steps_per_slot)
        steps, bootstrap = steps_of_rollout(rollout, self.task.space)
        before = self.config.merge == "before"
        if before:
            self.normaliser.update(steps.features)
        losses = self.ppo.learn(rollout, steps, bootstrap, self.shuffle, recompute=before)
        if not before:
            self.normaliser.update(steps.features)
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
