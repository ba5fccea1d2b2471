"""PPO whose design policies lead (Stackelberg PPO, Dai et al., ICLR 2026); leader.py has the mathematics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from codesign_bench.arrays import Array
from codesign_bench.errors import ConfigError
from codesign_bench.learning.actor_critic import GraphCritic, StageCritic
from codesign_bench.learning.batch import Steps
from codesign_bench.learning.credit import Settled
from codesign_bench.learning.leader import LeaderConfig, LeaderShard, conjugate_gradients
from codesign_bench.learning.ppo import PPO, Losses, PPOConfig, clipping, minibatches
from codesign_bench.learning.shards import Batch, Shard
from codesign_bench.learning.stage_policy import StagePolicy
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.processes import Processes

Network = Literal["policy", "value"]


@dataclass(frozen=True)
class LeaderLosses(Losses):
    """Those of the controller's minibatches; and means over the leader's, zero if it had none.

    - leader_loss: L1
    - leader_cross: norm of d over that of grad L1, before it is limited
    - leader_iterations: of conjugate gradients
    """

    leader_loss: float
    leader_cross: float
    leader_iterations: float


def make_ppo(
    policy: StagePolicy,
    critic: GraphCritic | StageCritic,
    config: PPOConfig,
    steps: TransformSteps,
    device: str = "cpu",
    processes: Processes | None = None,
) -> PPO:
    """With a leader if the configuration has one; `steps`: of design in an episode."""
    if config.leader is None:
        return PPO(policy, critic, config, device, processes)
    return StackelbergPPO(policy, critic, config, config.leader, steps, device, processes)


def check_leader(config: PPOConfig, steps: TransformSteps) -> None:
    """Raises ConfigError where nobody can lead."""
    if config.leader is not None and config.credit != "stages":
        raise ConfigError(f"method.ppo.credit is {config.credit}; with method.ppo.leader only stages is allowed.")
    if config.leader is not None and not steps.skeleton + steps.attribute:
        raise ConfigError("method.ppo.leader needs design steps, and there are none: allowed is null, or steps of skeleton or attribute.")


class StackelbergPPO(PPO):
    """Each pass over a batch updates first the design policies, by whole episodes, then the controller, by all control steps."""

    shard: ClassVar[type[Shard]] = LeaderShard

    def __init__(
        self,
        policy: StagePolicy,
        critic: GraphCritic | StageCritic,
        config: PPOConfig,
        leader: LeaderConfig,
        steps: TransformSteps,
        device: str = "cpu",
        processes: Processes | None = None,
    ) -> None:
        check_leader(config, steps)
        super().__init__(policy, critic, config, device, processes)
        self.leader, self.design_steps = leader, steps.skeleton + steps.attribute
        self.stretches = {"policy": policy.stretches, "value": critic.stretches}
        self.counts: dict[str, int] = {}
        """Adam's steps of each stretch."""
        self._led: list[tuple[float, float, float]] = []

    def learn(self, rollout: Rollout, steps: Steps, bootstrap: Steps, rng: np.random.Generator, recompute: bool = False) -> LeaderLosses:
        self._led = []
        losses = super().learn(rollout, steps, bootstrap, rng, recompute)
        return LeaderLosses(*vars(losses).values(), *np.mean(self._led or [(0.0,) * 3], axis=0).tolist())

    def _passes(
        self, batch: Batch, learned: Array, settled: Settled | None, rng: np.random.Generator
    ) -> tuple[list[tuple[float, ...]], float]:
        assert settled is not None
        config, size = self.config, self.leader.control_steps
        controls = np.setdiff1d(learned, settled.design, assume_unique=True)
        design, drawn = self.episodes(settled, controls, rng)
        most = -(-config.minibatch // self.design_steps)
        found: list[tuple[float, ...]] = []
        for number in range(config.passes):
            order = rng.permutation(len(design))
            for part in (order[i : i + most] for i in range(0, len(order), most)):
                self._lead(batch, design[part], drawn[part, number * size : (number + 1) * size])
            parts = [controls[part] for part in minibatches(batch.steps.stage[controls], config.minibatch, rng)] if len(controls) else []
            for i, minibatch in enumerate(parts):
                sums, norm, value_norm = self._gradients(batch, minibatch)
                found.append((sums.policy_loss, sums.value_loss, norm, sums.clipped, sums.kl))
                if config.kl_limit is not None and sums.kl > config.kl_limit:
                    return found, number + i / len(parts)
                self._step("policy", 1, norm)
                self._step("value", 1, value_norm)
        return found or [(0.0,) * 5], config.passes

    def episodes(self, settled: Settled, controls: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Positions of the design steps of each episode that led to control, [episodes, design steps], and of control steps drawn from it,
        [episodes, passes x control_steps]: different ones if it has that many."""
        wanted = self.config.passes * self.leader.control_steps
        designs, its = _by_episode(settled, settled.design), _by_episode(settled, controls)
        whole = [number for number, mine in designs.items() if len(mine) == self.design_steps and number in its]
        design = [designs[number] for number in whole]
        drawn = [rng.choice(its[number], wanted, replace=len(its[number]) < wanted) for number in whole]
        return np.array(design, int).reshape(-1, self.design_steps), np.array(drawn, int).reshape(-1, wanted)

    def _lead(self, batch: Batch, design: Array, controls: Array) -> None:
        """One step of the design policies and their values; `design` and `controls` [episodes, ...] of each."""
        flat = design.ravel()
        flat = flat[np.argsort(batch.steps.stage[flat], kind="stable")]
        sums, norm, value_norm = self._gradients(batch, flat)
        self._step("value", 0, value_norm)
        total = self.shards.policy.total
        plain = total.clone()
        cross, iterations = self.cross(batch, design, controls)
        cross_norm = float(cross.norm())
        if not math.isfinite(cross_norm):
            raise self._failure(batch, flat, sums, cross_norm)
        self._led.append((sums.policy_loss, cross_norm / norm if norm else 0.0, iterations))
        total.copy_(plain - min(1.0, self.leader.limit * norm / cross_norm) * cross if cross_norm else plain)
        self._step("policy", 0, float(total.norm()))

    def cross(self, batch: Batch, design: Array, controls: Array) -> tuple[Tensor, int]:
        """d, as long as the policy's vector, and how many steps conjugate gradients took."""
        shards, total = self.shards, self.shards.policy.total
        parts = [part for part in np.array_split(np.arange(len(design)), shards.count) if len(part)]
        nodes = int(batch.steps.count[controls].sum())

        def summed(method: str, arguments: list[tuple[Any, ...]], direction: Tensor | None = None) -> Tensor:
            if direction is not None:
                total.copy_(direction)
            shards.each(method, arguments)
            shards.sum_gradients(len(parts))
            return total.clone()

        def damped(direction: Tensor) -> Tensor:
            return summed("multiply", [()] * len(parts), direction).add_(direction, alpha=self.leader.damping)

        right = summed("look", [(controls[part].ravel(), nodes, controls.size) for part in parts])
        answer, iterations = conjugate_gradients(damped, right, self.leader.iterations, self.leader.tolerance)
        return summed("cross", [(design[part], len(design)) for part in parts], answer), iterations

    def _step(self, network: Network, which: int, norm: float) -> None:
        """Adam's next step of the design (0) or control (1) stretch of a network, whose gradient has that norm."""
        config, stretch = self.config, self.stretches[network][which]
        of_policy = network == "policy"
        limit = config.policy_gradient_clip if of_policy else config.value_gradient_clip
        rate = config.policy_lr if of_policy else config.value_lr
        name = f"{network} {stretch[0]}"
        self.counts[name] = self.counts.get(name, 0) + 1
        self.shards.step_within(network, stretch, clipping(norm, limit), rate, self.counts[name])

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"counts": dict(self.counts)}

    def load_state_dict(self, state: dict[str, Any], space: Any = None) -> None:
        super().load_state_dict(state, space)
        self.counts = dict(state["counts"])


def _by_episode(settled: Settled, steps: Array) -> dict[int, Array]:
    """The steps of each episode."""
    if not len(steps):
        return {}
    steps = steps[np.argsort(settled.episode[steps], kind="stable")]
    numbers, begin = np.unique(settled.episode[steps], return_index=True)
    return dict(zip(numbers.tolist(), np.split(steps, begin[1:]), strict=True))
