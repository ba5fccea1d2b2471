"""Proximal policy optimisation on graphs: minibatches grouped by stage, gradients summed over fixed shards.

A minibatch is cut into `shards` parts that are computed on one thread each and summed in order, so the result does not
depend on how many threads there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array
from codesign_bench.errors import CodesignError
from codesign_bench.learning.batch import Steps
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.gae import advantages
from codesign_bench.learning.memory import without_compiler_folder
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.structured import Checked, Count, Positive, Share


class LearningError(CodesignError, RuntimeError):
    """A loss is not finite: learning cannot go on. `dump` holds the minibatch and the weights that gave it."""

    def __init__(self, message: str, dump: dict[str, Any]) -> None:
        super().__init__(message)
        self.dump = dump


@dataclass(frozen=True)
class PPOConfig(Checked):
    """minibatch and passes per batch; clip of the ratio; learning rates of the policy and value networks (Adam, constant)."""

    minibatch: Count
    passes: Count
    clip: Positive
    gamma: Share
    gae_lambda: Share
    policy_lr: Positive
    value_lr: Positive
    policy_gradient_clip: Positive
    shards: Count


class Actor(Protocol):
    """What PPO needs of a policy besides being an nn.Module."""

    def prepare(self, steps: Steps) -> list[Tensor]:
        """Normalised inputs of a whole batch, computed once, for each of its networks."""

    def log_prob(self, prepared: list[Tensor], steps: Steps, actions: Tensor, chosen: Array, forest: Forest, rows: Tensor) -> Tensor:
        """[chosen]: log-probability of the steps `chosen`, which are all of one stage, with their forest and its rows."""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def to(self, device: torch.device) -> Any: ...


class Critic(Protocol):
    def prepare(self, steps: Steps) -> Tensor: ...

    def values(self, prepared: Tensor, forest: Forest, rows: Tensor) -> Tensor:
        """[graphs]"""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def to(self, device: torch.device) -> Any: ...


@dataclass(frozen=True)
class Losses:
    policy: float
    value: float
    gradient_norm: float
    clipped: float
    """Share of steps whose ratio was outside the clip range."""


class PPO:
    """Optimisers and threads around a policy and a value network."""

    def __init__(self, actor: Actor, critic: Critic, config: PPOConfig, device: str = "cpu") -> None:
        """`device`: where the update is computed; acting is always on the CPU, beside the simulator."""
        self.device = torch.device(device)
        actor.to(self.device)
        critic.to(self.device)
        self.actor, self.critic, self.config = actor, critic, config
        self._policy, self._value = _Flat(list(actor.parameters())), _Flat(list(critic.parameters()))
        with without_compiler_folder():
            self.policy_optimiser = torch.optim.Adam([self._policy.all], lr=config.policy_lr, fused=True)
            self.value_optimiser = torch.optim.Adam([self._value.all], lr=config.value_lr, fused=True)

    def learn(self, rollout: Rollout, steps: Steps, bootstrap: Steps, rng: np.random.Generator) -> Losses:
        """All passes over one batch."""
        config = self.config
        with ThreadPoolExecutor(config.shards) as threads:
            critic_input = self.critic.prepare(steps).to(self.device)
            value = self._values(critic_input, steps, threads)
            last = self._values(self.critic.prepare(bootstrap).to(self.device), bootstrap, threads)
            advantage, target = _advantages_and_targets(rollout, value, last, config)
            batch = _Batch(
                steps=steps,
                actions=self._tensor(rollout.actions),
                old_log_prob=self._tensor(rollout.log_prob.ravel()),
                advantage=self._tensor((advantage - advantage.mean()) / (advantage.std() + 1e-8)).ravel(),
                target=self._tensor(target).ravel(),
                actor_input=[part.to(self.device) for part in self.actor.prepare(steps)],
                critic_input=critic_input,
            )
            losses: list[tuple[float, float, float, float]] = []
            for _ in range(config.passes):
                losses += [self._step(batch, minibatch, threads) for minibatch in minibatches(steps.stage, config.minibatch, rng)]
        return Losses(*np.mean(losses, axis=0).tolist())

    def _step(self, batch: _Batch, minibatch: Array, threads: ThreadPoolExecutor) -> tuple[float, float, float, float]:
        """One step of both optimisers. Every policy parameter is stepped, with zero gradient where it was not used."""
        shards = [shard for shard in np.array_split(minibatch, self.config.shards) if len(shard)]
        results = list(threads.map(lambda shard: self._gradients(batch, shard, len(minibatch)), shards))
        self._policy.sum_gradients([r.policy_gradients for r in results])
        self._value.sum_gradients([r.value_gradients for r in results])
        policy_loss, value_loss = sum(r.policy_loss for r in results), sum(r.value_loss for r in results)
        clipped = sum(r.clipped for r in results)
        norm = float(nn.utils.clip_grad_norm_([self._policy.all], self.config.policy_gradient_clip))
        if not np.isfinite(policy_loss + value_loss + norm):  # a ratio that overflows can leave the loss finite
            raise self._failure(batch, minibatch, policy_loss, value_loss, norm)
        self.policy_optimiser.step()
        self.value_optimiser.step()
        return policy_loss, value_loss, norm, clipped

    def _failure(self, batch: _Batch, minibatch: Array, policy_loss: float, value_loss: float, norm: float) -> LearningError:
        rows, _ = batch.steps.rows(minibatch)
        dump = {
            "losses": [policy_loss, value_loss],
            "minibatch": torch.from_numpy(minibatch),
            "features": torch.from_numpy(batch.steps.features[rows]),
            "actions": batch.actions[rows],
            "old_log_prob": batch.old_log_prob[minibatch],
            "advantage": batch.advantage[minibatch],
            "target": batch.target[minibatch],
            "policy_parameters": [p.detach() for p in self._policy.parameters],
            "value_parameters": [p.detach() for p in self._value.parameters],
        }
        return LearningError(
            f"A loss or gradient is not finite: policy loss {policy_loss}, value loss {value_loss}, gradient norm {norm}.", dump
        )

    def _gradients(self, batch: _Batch, shard: Array, size: int) -> _Shard:
        steps = batch.steps
        forest, rows = self._forest(steps, shard)
        ratio = torch.exp(self._log_prob(batch, shard, forest, rows) - batch.old_log_prob[shard])
        advantage = batch.advantage[shard]
        low, high = 1 - self.config.clip, 1 + self.config.clip
        policy_loss = -torch.min(ratio * advantage, ratio.clamp(low, high) * advantage).sum() / size
        policy_gradients = torch.autograd.grad(policy_loss, self._policy.parameters, allow_unused=True)
        value = self.critic.values(batch.critic_input, forest, rows)
        value_loss = ((value - batch.target[shard]) ** 2).sum() / size
        value_gradients = torch.autograd.grad(value_loss, self._value.parameters, allow_unused=True)
        with torch.no_grad():
            clipped = ((ratio < low) | (ratio > high)).sum().item() / size
        return _Shard(policy_gradients, value_gradients, policy_loss.item(), value_loss.item(), clipped)

    def _log_prob(self, batch: _Batch, shard: Array, forest: Forest, rows: Tensor) -> Tensor:
        """Log-probabilities of steps that may be of different stages; minibatches are sorted by stage."""
        stage = batch.steps.stage[shard]
        if stage[0] == stage[-1]:
            return self.actor.log_prob(batch.actor_input, batch.steps, batch.actions, shard, forest, rows)
        parts = []
        for part in np.split(shard, np.flatnonzero(np.diff(stage)) + 1):
            part_forest, part_rows = self._forest(batch.steps, part)
            parts.append(self.actor.log_prob(batch.actor_input, batch.steps, batch.actions, part, part_forest, part_rows))
        return torch.cat(parts)

    def _forest(self, steps: Steps, chosen: Array) -> tuple[Forest, Tensor]:
        """The chosen steps as a forest, and the row of each of its nodes, where the update is computed."""
        forest, rows = steps.forest(chosen)
        return forest.to(self.device), torch.from_numpy(rows).to(self.device)

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array.astype(np.float32, copy=False)).to(self.device)

    def _values(self, prepared: Tensor, steps: Steps, threads: ThreadPoolExecutor, size: int = 1024) -> Array:
        """[steps] float64, without gradients."""

        @torch.no_grad()
        def part(chosen: Array) -> Array:
            return self.critic.values(prepared, *self._forest(steps, chosen)).cpu().numpy().astype(np.float64)

        chunks = [np.arange(i, min(i + size, steps.num_steps)) for i in range(0, steps.num_steps, size)]
        return np.concatenate(list(threads.map(part, chunks)))

    def state_dict(self) -> dict[str, Any]:
        return {"policy_optimiser": self.policy_optimiser.state_dict(), "value_optimiser": self.value_optimiser.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.policy_optimiser.load_state_dict(state["policy_optimiser"])
        self.value_optimiser.load_state_dict(state["value_optimiser"])


@dataclass(frozen=True)
class _Batch:
    steps: Steps
    actions: Tensor
    old_log_prob: Tensor
    advantage: Tensor
    target: Tensor
    actor_input: list[Tensor]
    critic_input: Tensor


@dataclass(frozen=True)
class _Shard:
    """A shard's share of a minibatch's losses and gradients."""

    policy_gradients: Sequence[Tensor | None]
    value_gradients: Sequence[Tensor | None]
    policy_loss: float
    value_loss: float
    clipped: float


class _Flat:
    """Parameters laid out in one vector, so that summing, clipping and stepping are a few large operations. The parameters
    themselves become views of it."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        self.all = nn.Parameter(torch.cat([parameter.detach().ravel() for parameter in parameters]))
        self.all.grad = torch.zeros_like(self.all)
        sizes = [parameter.numel() for parameter in parameters]
        for parameter, values in zip(parameters, self.all.detach().split(sizes), strict=True):
            parameter.data = values.view_as(parameter)
        self._gradients = [g.view_as(p) for p, g in zip(parameters, self.all.grad.split(sizes), strict=True)]

    def sum_gradients(self, shares: Sequence[Sequence[Tensor | None]]) -> None:
        """Shard after shard; zero where no shard gave any."""
        assert self.all.grad is not None
        self.all.grad.zero_()
        for share in shares:
            pairs = [(mine, theirs) for mine, theirs in zip(self._gradients, share, strict=True) if theirs is not None]
            torch._foreach_add_([mine for mine, _ in pairs], [theirs for _, theirs in pairs])


def minibatches(stage: Array, size: int, rng: np.random.Generator) -> list[Array]:
    """One pass: shuffle, stable sort by stage, cut into max(1, round(steps / size)) near-equal parts; nothing is dropped."""
    order = rng.permutation(len(stage))
    order = order[np.argsort(stage[order], kind="stable")]
    return np.array_split(order, max(1, round(len(stage) / size)))


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
