"""Proximal policy optimisation on graphs: minibatches grouped by stage, gradients summed over fixed shards."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from codesign_bench.arrays import Array
from codesign_bench.design.space import DesignSpace
from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.learning.batch import Steps
from codesign_bench.learning.credit import DesignCredit, Settled, Taken, standardised
from codesign_bench.learning.gae import advantages
from codesign_bench.learning.leader import LeaderConfig
from codesign_bench.learning.return_scale import ReturnScales
from codesign_bench.learning.shards import Actor, Batch, Critic, Shard, Shards, Sums, forest_of
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.processes import Processes
from codesign_bench.structured import Checked, Count, Positive, Share


class LearningError(CodesignError, RuntimeError):
    """A loss is not finite: learning cannot go on. `dump` holds the minibatch and the weights that gave it."""

    def __init__(self, message: str, dump: dict[str, Any]) -> None:
        super().__init__(message)
        self.dump = dump


@dataclass(frozen=True)
class PPOConfig(Checked):
    """minibatch and passes per batch; clip of the ratio; learning rates of the policy and value networks (Adam, constant).

    - value_gradient_clip: norm at which the critic's gradient is clipped, as policy_gradient_clip is the policy's; null: never
    - credit: gae: of all steps; stages: design steps are credited with the return of their episode, see credit.py
    - return_scales: the critic learns returns divided by their deviation, of design and of control steps, see ReturnScales
    - kl_limit: a batch is left when a minibatch finds the policy further than this (KL divergence) from the one that acted; null: never
    - normalise_values: the critic learns returns on a running scale of their own, see ValueScale; takes the place of return_scales
    - leader: design policies reckon with the controller's answer, see leader.py; null: they do not
    """

    minibatch: Count
    passes: Count
    clip: Positive
    gamma: Share
    gae_lambda: Share
    policy_lr: Positive
    value_lr: Positive
    policy_gradient_clip: Positive
    shards: Count
    kl_limit: Positive | None = None
    normalise_values: bool = False
    value_gradient_clip: Positive | None = None
    credit: Literal["gae", "stages"] = "gae"
    return_scales: bool = False
    leader: LeaderConfig | None = None


@dataclass(frozen=True)
class Losses:
    """Means over the minibatches of a batch.

    - clipped: share of steps whose ratio was outside the clip range
    - kl: distance of the policy from the one that acted
    - explained_variance: of the targets, by the values before learning
    - passes: over the batch, the last one perhaps in part
    """

    policy: float
    value: float
    gradient_norm: float
    clipped: float
    kl: float
    explained_variance: float
    passes: float


class PPO:
    """Optimisers around a policy and a value network."""

    shard: ClassVar[type[Shard]] = Shard

    def __init__(self, actor: Actor, critic: Critic, config: PPOConfig, device: str = "cpu", processes: Processes | None = None) -> None:
        """`device`: where the update is computed; acting is always on the CPU, beside the simulator. `processes` compute shards of
        minibatches side by side."""
        if config.normalise_values and not hasattr(critic, "scale"):
            raise ConfigError(
                f"ppo.normalise_values is true; {type(critic).__name__} has no scale to normalise with, so only false is allowed."
            )
        self.actor, self.critic, self.config, self.device = actor, critic, config, torch.device(device)
        self.shards = Shards(actor, critic, config.clip, config.shards, self.device, processes, self.shard)
        self.return_scales, self.design_credit = ReturnScales(), DesignCredit()
        self.updates = 0

    def learn(self, rollout: Rollout, steps: Steps, bootstrap: Steps, rng: np.random.Generator, recompute: bool = False) -> Losses:
        """All passes over one batch. `recompute`: ratios are to the policy with its inputs as they are now, not as it acted."""
        taken = Taken(steps, rollout.actions, rollout.log_prob.ravel())
        settled = self.design_credit.settle(rollout, taken) if self.config.credit == "stages" else None
        if settled is not None and not len(settled.learned):  # a few design steps, all of which wait for their episodes to end
            return Losses(*[0.0] * len(fields(Losses)))
        taken = taken if settled is None else settled.taken
        batch, stage = self._load(taken), taken.steps.stage
        if recompute:
            self.shards.recompute_log_prob(stage)
        value = self._raw(self.shards.values(len(stage)), stage)
        last = self._raw(self._outputs(bootstrap), bootstrap.stage)
        gae, target = _advantages_and_targets(rollout, value[: steps.num_steps], last, self.config)
        if settled is None:
            learned, advantage = np.arange(len(stage)), ((gae - gae.mean()) / (gae.std() + 1e-8)).ravel()
            target = target.ravel()
        else:
            learned, advantage, target = settled.learned, *_credited(gae, target, value, settled)
        self.shards.set_targets(advantage, self._learnable(target, stage, learned))
        found, passes = self._passes(batch, learned, settled, rng)
        policy_loss, value_loss, norm, clipped, kl = np.mean(found, axis=0).tolist()
        return Losses(policy_loss, value_loss, norm, clipped, kl, explained_variance(value[learned], target[learned]), passes)

    def _load(self, taken: Taken) -> Batch:
        """The batch, without its advantages and targets, as all shards have it."""
        steps = taken.steps
        batch = Batch(
            steps=steps,
            actions=self._tensor(taken.actions),
            old_log_prob=self._tensor(taken.log_prob),
            advantage=torch.zeros(steps.num_steps, device=self.device),
            target=torch.zeros(steps.num_steps, device=self.device),
            actor_input=[part.to(self.device) for part in self.actor.prepare(steps)],
            critic_input=self.critic.prepare(steps).to(self.device),
        )
        self.shards.load(batch)
        return batch

    def _passes(
        self, batch: Batch, learned: Array, settled: Settled | None, rng: np.random.Generator
    ) -> tuple[list[tuple[float, ...]], float]:
        """What every minibatch gave, and how many passes were made before the policy was too far from the one that acted."""
        config = self.config
        found: list[tuple[float, ...]] = []
        for number in range(config.passes):
            parts = [learned[part] for part in minibatches(batch.steps.stage[learned], config.minibatch, rng)]
            for i, minibatch in enumerate(parts):
                sums, norm, value_norm = self._gradients(batch, minibatch)
                found.append((sums.policy_loss, sums.value_loss, norm, sums.clipped, sums.kl))
                if config.kl_limit is not None and sums.kl > config.kl_limit:
                    return found, number + i / len(parts)
                self.updates += 1
                scales = clipping(norm, config.policy_gradient_clip), clipping(value_norm, config.value_gradient_clip)
                self.shards.step(scales, (config.policy_lr, config.value_lr), self.updates)
        return found, config.passes

    def _gradients(self, batch: Batch, minibatch: Array) -> tuple[Sums, float, float]:
        """As Shards.gradients gives them; raises LearningError where they are not finite."""
        sums, norm, value_norm = self.shards.gradients(minibatch)
        if not np.isfinite(sums.policy_loss + sums.value_loss + norm):  # a ratio that overflows can leave the loss finite
            raise self._failure(batch, minibatch, sums, norm)
        return sums, norm, value_norm

    def _failure(self, batch: Batch, minibatch: Array, sums: Sums, norm: float) -> LearningError:
        rows, _ = batch.steps.rows(minibatch)
        advantage, target = self.shards.targets
        dump = {
            "losses": [sums.policy_loss, sums.value_loss],
            "minibatch": torch.from_numpy(minibatch),
            "features": torch.from_numpy(batch.steps.features[rows]),
            "actions": batch.actions[rows],
            "old_log_prob": batch.old_log_prob[minibatch],
            "advantage": advantage[minibatch],
            "target": target[minibatch],
            "policy_parameters": [p.detach() for p in self.actor.parameters()],
            "value_parameters": [p.detach() for p in self.critic.parameters()],
        }
        losses = f"policy loss {sums.policy_loss}, value loss {sums.value_loss}, gradient norm {norm}"
        return LearningError(f"A loss or gradient is not finite: {losses}.", dump)

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array.astype(np.float32, copy=False)).to(self.device)

    @torch.no_grad()
    def _outputs(self, steps: Steps) -> Array:
        """[steps] float64: what the critic says of a few steps."""
        prepared = self.critic.prepare(steps).to(self.device)
        outputs = self.critic.values(prepared, *forest_of(steps, np.arange(steps.num_steps), self.device))
        return outputs[: steps.num_steps].cpu().numpy().astype(np.float64)

    def _raw(self, outputs: Array, stage: Array) -> Array:
        """Values on the scale of returns."""
        if self.config.normalise_values:
            return self.critic.scale.values(outputs)
        return self.return_scales.values(outputs, stage) if self.config.return_scales else outputs

    def _learnable(self, target: Array, stage: Array, learned: Array) -> Array:
        """Targets on the scale of the critic's outputs, which takes in those that are learned."""
        if self.config.normalise_values:
            self.critic.scale.update(target[learned], *self.critic.outputs)
            return self.critic.scale.normalised(target)
        if self.config.return_scales:
            self.return_scales.update(target[learned], stage[learned])
            return self.return_scales.normalised(target, stage)
        return target

    def state_dict(self) -> dict[str, Any]:
        state = {"updates": self.updates, "policy": self.shards.policy.state_dict(), "value": self.shards.value.state_dict()}
        return state | {"return_scales": self.return_scales.state_dict(), "design_credit": self.design_credit.state_dict()}

    def load_state_dict(self, state: dict[str, Any], space: DesignSpace | None = None) -> None:
        """`space`: of the designs, for those that wait for their credit."""
        self.updates = state["updates"]
        self.return_scales.load_state_dict(state["return_scales"])
        self.design_credit.load_state_dict(state["design_credit"], space)
        self.shards.policy.load_state_dict(state["policy"])
        self.shards.value.load_state_dict(state["value"])


def clipping(norm: float, limit: float | None) -> float:
    """What a gradient of that norm is multiplied with."""
    return 1.0 if limit is None else min(1.0, limit / (norm + 1e-6))


def _credited(gae: Array, target: Array, value: Array, settled: Settled) -> tuple[Array, Array]:
    """Advantages and targets [steps] with those of design steps by their returns, and both kinds standardised; zero where nothing is
    learned."""
    control = np.setdiff1d(settled.learned, settled.design, assume_unique=True)
    advantage, targets = np.zeros(len(value)), np.zeros(len(value))
    advantage[control], targets[control] = standardised(gae.ravel()[control]), target.ravel()[control]
    advantage[settled.design], targets[settled.design] = standardised(settled.returns - value[settled.design]), settled.returns
    return advantage, targets


def minibatches(stage: Array, size: int, rng: np.random.Generator) -> list[Array]:
    """One pass: shuffle, stable sort by stage, cut into max(1, round(steps / size)) near-equal parts; nothing is dropped."""
    order = rng.permutation(len(stage))
    order = order[np.argsort(stage[order], kind="stable")]
    return np.array_split(order, max(1, round(len(stage) / size)))


def explained_variance(value: Array, target: Array) -> float:
    """1: values are the targets; 0: no better than a constant; 0 also where targets are all the same."""
    variance = np.var(target)
    return float(1 - np.var(target - value) / variance) if variance > 0 else 0.0


def _advantages_and_targets(rollout: Rollout, value: Array, bootstrap: Array, config: PPOConfig) -> tuple[Array, Array]:
    """[time, slots] each. A step that leads to another is followed by that one's value, a cut one is bootstrapped."""
    shape = rollout.reward.shape
    value = value.reshape(shape)
    slots = shape[1]
    following = np.concatenate([value[1:], bootstrap[None, :slots]])
    for cut, v in zip(rollout.truncations, bootstrap[slots:], strict=True):
        following[cut.time, cut.slot] = v
    following[rollout.terminated] = 0.0
    ended = rollout.terminated | rollout.truncated
    advantage = advantages(rollout.reward, value, following, ended, config.gamma, config.gae_lambda)
    return advantage, advantage + value
