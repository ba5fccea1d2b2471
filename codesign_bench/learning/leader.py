"""Stackelberg PPO (Dai et al., ICLR 2026): the design leads, the controller follows.

PPO changes a design policy as if its controller stayed what it is. Here the designer reckons with the controller's next step: with theta1
the design sub-policies' weights, theta2 the controller's, L1 and Jc their clipped losses, F the Fisher matrix of the controls, and Ja the
loss of whole episodes,

    s = (F + damping)^-1  grad_theta2 Jc                 the controller's answer, by conjugate gradients
    d = grad_theta1 <grad_theta2 Ja, s>                  what changes of a design do to its worth
    theta1 follows  grad L1 - d

Ja is minus the mean over episodes of (mean ratio of its design steps) x (mean of ratio x advantage of some of its control steps). Only the
second factor knows theta2, so d is the gradient of design ratios weighted by how fast the second factor changes along s: nothing is
differentiated twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call

from codesign_bench.arrays import Array
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.shards import Shard, forest_of
from codesign_bench.learning.stage_policy import StagePolicy
from codesign_bench.simulation.episode import CONTROL, Stage
from codesign_bench.structured import Checked, Count, NotNegative, Positive


@dataclass(frozen=True)
class LeaderConfig(Checked):
    """`ppo.leader` in the configuration of a method.

    - control_steps: of an episode that stand for it in a pass
    - damping: of the Fisher matrix; the larger, the less the designer reckons with
    - iterations: of conjugate gradients, at most; tolerance: of what is left of the right side, as a share of it
    - limit: of the norm of d, as a multiple of the norm of grad L1
    """

    control_steps: Count
    damping: Positive
    iterations: Count
    tolerance: Positive
    limit: NotNegative


class Controls(NamedTuple):
    """The control steps that a shard looks at, and the Gaussians of their nodes.

    - x [nodes, columns], mean [nodes, 1] (with its graph); weight [nodes, 1]: of a node in the mean over all; 0 where it only fills up
    - ratio, advantage [steps]
    """

    chosen: Array
    forest: Forest
    rows: Tensor
    x: Tensor
    mean: Tensor
    weight: Tensor
    ratio: Tensor
    advantage: Tensor


class LeaderShard(Shard):
    """A shard that also computes its part of the leader's gradient. Directions are handed over in the policy's `total`."""

    controls: Controls | None = None

    def look(self, chosen: Array, nodes: int, size: int) -> None:
        """Takes the gradient of Jc in the control steps `chosen`; `size` and `nodes` are those of the whole minibatch."""
        batch, policy = self.batch, self._policy
        assert batch is not None
        forest, rows = forest_of(batch.steps, chosen, batch.actions.device)
        x = batch.actor_input[Stage.EXECUTION].index_select(0, rows)
        mean = policy.execution(x, forest)
        log_prob = policy.graph_log_prob(Stage.EXECUTION, mean, batch.steps, batch.actions, forest, rows)[: len(chosen)]
        ratio, advantage = torch.exp(log_prob - batch.old_log_prob[chosen]), batch.advantage[chosen]
        loss = -torch.min(ratio * advantage, ratio.clamp(1 - self.clip, 1 + self.clip) * advantage).sum() / size
        self.policy.take(self.number, loss, keep=True)
        weight = (forest.graph < len(chosen)).to(x.dtype)[:, None] / nodes
        self.controls = Controls(chosen, forest, rows, x, mean, weight, ratio.detach(), advantage)

    def multiply(self) -> None:
        """Takes F times the direction: the Hessian, where they are equal, of the mean divergence of a node's Gaussian from what it was."""
        controls, log_std = self._looked_at()
        d_mean, d_log_std = self._changes(controls)
        push = controls.weight * d_mean * torch.exp(-2 * log_std.detach())
        self.policy.take(self.number, (controls.mean * push).sum() + (log_std * 2 * d_log_std).sum() * controls.weight.sum(), keep=True)

    def cross(self, design: Array, episodes: int) -> None:
        """Takes d; the direction is s. `design` [episodes of this shard, design steps], whose control steps were looked at."""
        batch, (controls, log_std) = self.batch, self._looked_at()
        assert batch is not None
        d_mean, d_log_std = self._changes(controls)
        with torch.no_grad():
            taken = batch.actions.index_select(0, controls.rows)[:, CONTROL : CONTROL + 1]
            z = (taken - controls.mean) * torch.exp(-log_std)
            each = (z * torch.exp(-log_std) * d_mean + (z * z - 1) * d_log_std)[:, 0]
            d_log_prob = each.new_zeros(controls.forest.num_graphs).index_add(0, controls.forest.graph, each)[: len(controls.chosen)]
            gain = (controls.ratio * controls.advantage * d_log_prob).view(len(design), -1).mean(1)
        order = np.argsort(batch.steps.stage[design.ravel()], kind="stable")
        chosen, episode = design.ravel()[order], np.repeat(np.arange(len(design)), design.shape[1])[order]
        log_prob = self._log_prob(batch, chosen, *forest_of(batch.steps, chosen, batch.actions.device))
        ratio = torch.exp(log_prob - batch.old_log_prob[chosen])
        self.policy.take(self.number, -(ratio * gain[episode]).sum() / (design.shape[1] * episodes))
        self.controls = None

    def _looked_at(self) -> tuple[Controls, Tensor]:
        """And the controller's log_std."""
        controls, log_std = self.controls, self._policy.execution.log_std
        assert controls is not None
        assert log_std is not None
        return controls, log_std

    def _changes(self, controls: Controls) -> tuple[Tensor, Tensor]:
        """Of the means [nodes, 1] and of log_std, when the controller's weights move in the direction."""
        moves = self._moves()
        d_log_std = moves.pop("log_std")
        execution = self._policy.execution
        with torch.no_grad(), forward_ad.dual_level():
            weights = {name: forward_ad.make_dual(weight, moves[name]) for name, weight in execution.named_parameters() if name in moves}
            moved = functional_call(execution, weights, (controls.x, controls.forest))
            d_mean = forward_ad.unpack_dual(moved).tangent
        assert d_mean is not None
        return d_mean, d_log_std

    def _moves(self) -> dict[str, Tensor]:
        """The direction, by names of the controller's weights, which are the last ones of the vector."""
        named = dict(self._policy.execution.named_parameters())
        sizes = [weight.numel() for weight in named.values()]
        parts = self.policy.total[-sum(sizes) :].split(sizes)
        return {name: part.view_as(weight) for (name, weight), part in zip(named.items(), parts, strict=True)}

    @property
    def _policy(self) -> StagePolicy:
        assert isinstance(self.actor, StagePolicy)
        return self.actor


def conjugate_gradients(
    multiply: Callable[[Tensor], Tensor], right: Tensor, iterations: int, tolerance: float, smallest: float = 1e-8
) -> tuple[Tensor, int]:
    """Solves A x = right for a symmetric positive A, given as a product, and says in how many steps; one that finds A not positive there
    is not taken."""
    x, residual = torch.zeros_like(right), right.clone()
    direction, square = residual.clone(), float(residual.dot(residual))
    enough = max(tolerance * math.sqrt(square), smallest)
    for number in range(iterations):
        if math.sqrt(square) <= enough:
            return x, number
        product = multiply(direction)
        curvature = float(direction.dot(product))
        if curvature <= 0:
            return x, number
        x += square / curvature * direction
        residual -= square / curvature * product
        before, square = square, float(residual.dot(residual))
        direction = residual + square / before * direction
    return x, iterations
