"""Steps of a policy and a value network on minibatches, computed side by side in the processes that otherwise sample.

A minibatch is cut into shards, a network's vector into as many parts; shards are summed in their order. The result depends on how many
there are, not on where they are computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array
from codesign_bench.design.space import DesignSpace
from codesign_bench.learning import products
from codesign_bench.learning.batch import Steps
from codesign_bench.learning.forest import Forest, filled_up
from codesign_bench.learning.memory import keep_freed_memory
from codesign_bench.learning.value_scale import ValueScale
from codesign_bench.learning.vectors import Stretch, Vectors, layout_of_vectors, new_vectors, tensors, values_of
from codesign_bench.simulation.processes import Layout, Processes, SharedMemory, layout_of


class Actor(Protocol):
    """What PPO needs of a policy besides being an nn.Module."""

    def prepare(self, steps: Steps) -> list[Tensor]:
        """Normalised inputs of a whole batch, computed once, for each of its networks."""

    def log_prob(self, prepared: list[Tensor], steps: Steps, actions: Tensor, chosen: Array, forest: Forest, rows: Tensor) -> Tensor:
        """[graphs]: log-probability of the steps `chosen`, which are all of one stage, with their forest and its rows. It sees all of
        `steps` but their features. The forest may have more graphs than there are steps, after theirs."""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def to(self, device: torch.device) -> Any: ...


class Critic(Protocol):
    """What PPO needs of a value network; `scale`, and weight and bias of its output layers, only to normalise values."""

    scale: ValueScale

    @property
    def outputs(self) -> list[tuple[Tensor, Tensor]]: ...

    def prepare(self, steps: Steps) -> Tensor: ...

    def values(self, prepared: Tensor, forest: Forest, rows: Tensor) -> Tensor:
        """[graphs]"""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def to(self, device: torch.device) -> Any: ...


@dataclass(frozen=True)
class Batch:
    """What is learned from; advantages and targets follow when the values are known (`Shards.set_targets`)."""

    steps: Steps
    actions: Tensor
    old_log_prob: Tensor
    advantage: Tensor
    target: Tensor
    actor_input: list[Tensor]
    critic_input: Tensor


class Sums(NamedTuple):
    """What a shard adds to the means over its minibatch: the losses, the share of steps whose ratio was outside the clip range, and the
    distance (KL divergence) of the policy from the one that acted."""

    policy_loss: float
    value_loss: float
    clipped: float
    kl: float


class Shard:
    """One shard's part of the work, wherever it is done."""

    memory: SharedMemory
    """Where batches are found, in another process."""

    def __init__(self, number: int, actor: Actor, critic: Critic, clip: float, policy: Vectors, value: Vectors) -> None:
        self.number, self.actor, self.critic, self.clip, self.policy, self.value = number, actor, critic, clip, policy, value
        self.batch: Batch | None = None

    def load(self, batch: Batch) -> None:
        self.batch = batch

    def load_shared(self, space: DesignSpace, layout: Layout, start: int) -> None:
        self.load(_batch_of(self.memory.arrays(layout, start), space))

    @torch.no_grad()
    def values(self, chunks: Sequence[Array]) -> list[Array]:
        """Of the steps of each chunk, as the critic gives them."""
        assert self.batch is not None
        steps, prepared = self.batch.steps, self.batch.critic_input
        found = [self.critic.values(prepared, *forest_of(steps, chunk, prepared.device)) for chunk in chunks]
        return [values[: len(chunk)].cpu().numpy() for values, chunk in zip(found, chunks, strict=True)]

    @torch.no_grad()
    def log_probs(self, chunks: Sequence[Array]) -> list[Array]:
        """Of the actions of each chunk, whose steps are of one stage."""
        assert self.batch is not None
        batch = self.batch
        found = [self._log_prob(batch, chunk, *forest_of(batch.steps, chunk, batch.actions.device)) for chunk in chunks]
        return [log_prob.cpu().numpy() for log_prob in found]

    def gradients(self, chosen: Array, size: int) -> Sums:
        """Of the losses of the steps `chosen`, which are sorted by stage, divided by the `size` of the minibatch."""
        batch = self.batch
        assert batch is not None
        forest, rows = forest_of(batch.steps, chosen, batch.actions.device)
        shift = self._log_prob(batch, chosen, forest, rows) - batch.old_log_prob[chosen]
        ratio = torch.exp(shift)
        advantage = batch.advantage[chosen]
        low, high = 1 - self.clip, 1 + self.clip
        policy_loss = -torch.min(ratio * advantage, ratio.clamp(low, high) * advantage).sum() / size
        self.policy.take(self.number, policy_loss)
        value = self.critic.values(batch.critic_input, forest, rows)[: len(chosen)]
        value_loss = ((value - batch.target[chosen]) ** 2).sum() / size
        self.value.take(self.number, value_loss)
        with torch.no_grad():
            clipped = ((ratio < low) | (ratio > high)).sum().item() / size
            kl = (ratio - 1 - shift).sum().item() / size
        return Sums(policy_loss.item(), value_loss.item(), clipped, kl)

    def sum_gradients(self, shards: int) -> tuple[float, float]:
        """In this shard's parts of the vectors; returns the squares of the policy's and the critic's norms there."""
        value = self.value.sum_gradients(self.number, shards)
        return self.policy.sum_gradients(self.number, shards), value

    def step(self, scales: tuple[float, float], rates: tuple[float, float], count: int) -> None:
        for vectors, scale, rate in zip((self.policy, self.value), scales, rates, strict=True):
            vectors.step(self.number, scale, rate, count)

    def step_within(self, network: Literal["policy", "value"], stretch: Stretch, scale: float, rate: float, count: int) -> None:
        vectors: Vectors = getattr(self, network)
        vectors.step(self.number, scale, rate, count, stretch)

    def _log_prob(self, batch: Batch, chosen: Array, forest: Forest, rows: Tensor) -> Tensor:
        """Log-probabilities of steps that may be of different stages."""
        stage = batch.steps.stage[chosen]
        if stage[0] == stage[-1]:
            return self.actor.log_prob(batch.actor_input, batch.steps, batch.actions, chosen, forest, rows)[: len(chosen)]
        parts = []
        for part in np.split(chosen, np.flatnonzero(np.diff(stage)) + 1):
            part_forest, part_rows = forest_of(batch.steps, part, batch.actions.device)
            found = self.actor.log_prob(batch.actor_input, batch.steps, batch.actions, part, part_forest, part_rows)
            parts.append(found[: len(part)])
        return torch.cat(parts)


class Shards:
    """All shards of the minibatches of one pair of networks: in this process, one after the other, or in others."""

    def __init__(
        self,
        actor: Actor,
        critic: Critic,
        clip: float,
        count: int,
        device: torch.device,
        processes: Processes | None,
        kind: type[Shard] = Shard,
    ) -> None:
        """Processes are used if they have any, and only on the CPU."""
        actor.to(device)
        critic.to(device)
        self.count, networks = count, (list(actor.parameters()), list(critic.parameters()))
        self._processes = processes if processes is not None and processes.count and device.type == "cpu" else None
        if self._processes is None:
            self.policy, self.value = (new_vectors(parameters, count) for parameters in networks)
            self._here = [kind(number, actor, critic, clip, self.policy, self.value) for number in range(count)]
        else:
            memory, values = self._processes.memory, [values_of(parameters) for parameters in networks]
            layouts = [layout_of_vectors(len(mine), count) for mine in values]
            starts = [memory.reserve(layout) for layout in layouts]
            arrays = [tensors(memory.arrays(layout, start)) for layout, start in zip(layouts, starts, strict=True)]
            for mine, shared in zip(values, arrays, strict=True):
                shared["values"].copy_(mine)
            self._name = f"shard {starts}"
            remote = [partial(_remote_shard, kind, number, actor, critic, clip, layouts, starts) for number in range(count)]
            self._processes.place(self._name, remote)  # as they are before their parameters become views of a vector
            self.policy, self.value = (Vectors(p, shared) for p, shared in zip(networks, arrays, strict=True))
        self.targets = (torch.empty(0), torch.empty(0))
        """Advantages and targets of the batch, as the shards see them."""
        self.old_log_prob = torch.empty(0)
        """The same of the log-probabilities that ratios are taken to."""

    def load(self, batch: Batch) -> None:
        """What the minibatches are taken from."""
        self.targets, self.old_log_prob = (batch.advantage, batch.target), batch.old_log_prob
        if self._processes is None:
            self.each("load", [(batch,)] * self.count)
            return
        arrays, memory = _arrays_of(batch), self._processes.memory
        layout = layout_of(arrays)
        shared = memory.arrays(layout, memory.reserved)
        for name, array in arrays.items():
            shared[name][...] = array
        self.targets = torch.from_numpy(shared["advantage"]), torch.from_numpy(shared["target"])
        self.old_log_prob = torch.from_numpy(shared["old_log_prob"])
        self.each("load_shared", [(batch.steps.space, layout, memory.reserved)] * self.count)

    def set_targets(self, advantage: Array, target: Array) -> None:
        """[steps] each, for the steps that were loaded."""
        for mine, given in zip(self.targets, (advantage, target), strict=True):
            mine.copy_(torch.from_numpy(given.astype(np.float32, copy=False)))

    def values(self, steps: int, chunk: int = 1024) -> Array:
        """[steps] float64, of the steps that were loaded, without gradients."""
        chunks = [np.arange(i, min(i + chunk, steps)) for i in range(0, steps, chunk)]
        return np.concatenate(self._of_chunks("values", chunks)).astype(np.float64)

    def recompute_log_prob(self, stage: Array, chunk: int = 1024) -> None:
        """Ratios are taken to the policy as it is now; `stage` [steps] of the steps that were loaded."""
        chunks = []
        for each in np.unique(stage):
            mine = np.flatnonzero(stage == each)
            chunks += [mine[i : i + chunk] for i in range(0, len(mine), chunk)]
        for mine, found in zip(chunks, self._of_chunks("log_probs", chunks), strict=True):
            self.old_log_prob[mine] = torch.from_numpy(found).to(self.old_log_prob.device)

    def _of_chunks(self, method: str, chunks: Sequence[Array]) -> list[Array]:
        found = self.each(method, [(chunks[i :: self.count],) for i in range(self.count)])
        return [found[i % self.count][i // self.count] for i in range(len(chunks))]

    def gradients(self, minibatch: Array) -> tuple[Sums, float, float]:
        """What a minibatch gives, and the norms of the policy's and the critic's gradients."""
        parts = [part for part in np.array_split(minibatch, self.count) if len(part)]
        sums = self.each("gradients", [(part, len(minibatch)) for part in parts])
        return Sums(*map(sum, zip(*sums, strict=True))), *self.sum_gradients(len(parts))

    def sum_gradients(self, shards: int) -> tuple[float, float]:
        """Of the first `shards`, into the totals; returns the norms of the policy's and the critic's."""
        squares = self.each("sum_gradients", [(shards,)] * self.count)
        policy, value = (math.sqrt(sum(each)) for each in zip(*squares, strict=True))
        return policy, value

    def step(self, scales: tuple[float, float], rates: tuple[float, float], count: int) -> None:
        """Adam's step number `count` of policy and critic with the last minibatch's gradients, multiplied by `scales`."""
        self.each("step", [(scales, rates, count)] * self.count)

    def step_within(self, network: Literal["policy", "value"], stretch: Stretch, scale: float, rate: float, count: int) -> None:
        """The same of one of the networks, within a stretch of its vector."""
        self.each("step_within", [(network, stretch, scale, rate, count)] * self.count)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a method of the first shards gives for these arguments, one tuple for each."""
        if self._processes is not None:
            return self._processes.call(method, self._name, arguments)
        return [getattr(shard, method)(*mine) for shard, mine in zip(self._here, arguments, strict=False)]


def forest_of(steps: Steps, chosen: Array, device: torch.device) -> tuple[Forest, Tensor]:
    """The chosen steps as a forest, and the row of each of its nodes, where the update is computed. It may have more graphs than there are
    steps, at its end."""
    forest, rows = steps.forest(chosen)
    if (multiple := products.multiple_of_rows()) > 1:
        forest, rows = filled_up(forest, rows, multiple)
    return forest.to(device), torch.from_numpy(rows).to(device)


# ---- in another process ------------------------------------------------------------------------------------------------


def _remote_shard(
    kind: type[Shard],
    number: int,
    actor: Actor,
    critic: Critic,
    clip: float,
    layouts: Sequence[Layout],
    starts: Sequence[int],
    memory: SharedMemory,
) -> Shard:
    keep_freed_memory()
    arrays = [tensors(memory.arrays(layout, start)) for layout, start in zip(layouts, starts, strict=True)]
    policy, value = Vectors(list(actor.parameters()), arrays[0]), Vectors(list(critic.parameters()), arrays[1])
    shard = kind(number, actor, critic, clip, policy, value)
    shard.memory = memory
    return shard


STEPS = [f.name for f in fields(Steps) if f.name not in ("space", "features")]
TENSORS = ("actions", "old_log_prob", "advantage", "target", "critic_input")


def _arrays_of(batch: Batch) -> dict[str, Array]:
    arrays = {name: getattr(batch.steps, name) for name in STEPS}
    arrays |= {name: getattr(batch, name).numpy() for name in TENSORS}
    return arrays | {f"actor_input {i}": part.numpy() for i, part in enumerate(batch.actor_input)}


def _batch_of(arrays: dict[str, Array], space: DesignSpace) -> Batch:
    """What `_arrays_of` took apart; the features stay behind, since what networks make of them is there."""
    steps = Steps(space, **{name: arrays[name] for name in STEPS}, features=np.empty((0, 0), np.float32))
    inputs = [torch.from_numpy(array) for name, array in arrays.items() if name.startswith("actor_input")]
    return Batch(steps, **{name: torch.from_numpy(arrays[name]) for name in TENSORS}, actor_input=inputs)
