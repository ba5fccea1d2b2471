"""The leader's second term, written down as Stackelberg PPO defines it: everything differentiated twice, the Fisher matrix in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tests.reference.slow_transform2act import EXECUTION, SlowPolicy, collate


def flat(gradients: Sequence[Tensor | None], parameters: Sequence[Tensor]) -> Tensor:
    return torch.cat([(torch.zeros_like(p) if g is None else g).ravel() for g, p in zip(gradients, parameters, strict=True)])


def fisher(policy: SlowPolicy, steps: Sequence[Any]) -> Tensor:
    """Second derivatives of the mean over nodes of KL(what the Gaussian was || what it is) by the controller's weights, in full."""
    control = policy.stages[EXECUTION]
    parameters = list(control.parameters())
    now = torch.distributions.Normal(control.output(collate(steps)), control.log_std.exp())
    before = torch.distributions.Normal(now.mean.detach(), now.stddev.detach())
    divergence = torch.distributions.kl_divergence(before, now).sum(1).mean()
    gradient = flat(torch.autograd.grad(divergence, parameters, create_graph=True, allow_unused=True), parameters)
    rows = [flat(torch.autograd.grad(each, parameters, retain_graph=True, allow_unused=True), parameters) for each in gradient]
    return torch.stack(rows)


def cross(
    policy: SlowPolicy, design: Sequence[Sequence[Any]], control: Sequence[Sequence[Any]], old: dict[int, float],
    advantage: dict[int, float], damping: float, clip: float
) -> Tensor:  # fmt: skip
    """d by the weights of the design sub-policies. `design` and `control`: the steps of each episode; `old` and `advantage` by id(step)."""
    leader = [p for stage in (0, 1) for p in policy.stages[stage].parameters()]
    follower = list(policy.stages[EXECUTION].parameters())

    def ratios(steps: Sequence[Any]) -> Tensor:
        return torch.exp(policy.log_prob(steps) - torch.tensor([old[id(step)] for step in steps], dtype=torch.float64))

    def advantages(steps: Sequence[Any]) -> Tensor:
        return torch.tensor([advantage[id(step)] for step in steps], dtype=torch.float64)

    everything = [step for steps in control for step in steps]
    ratio, worth = ratios(everything), advantages(everything)
    clipped = -torch.minimum(ratio * worth, ratio.clamp(1 - clip, 1 + clip) * worth).mean()
    right = flat(torch.autograd.grad(clipped, follower, allow_unused=True), follower)
    answer = torch.linalg.solve(fisher(policy, everything) + damping * torch.eye(len(right), dtype=torch.float64), right)
    episodes = [ratios(d).mean() * (ratios(c) * advantages(c)).mean() for d, c in zip(design, control, strict=True)]
    loss = -torch.stack(episodes).mean()
    gradient = flat(torch.autograd.grad(loss, follower, create_graph=True, allow_unused=True), follower)
    return flat(torch.autograd.grad(gradient @ answer, leader, allow_unused=True), leader)
