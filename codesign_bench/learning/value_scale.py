"""Running normalisation of a critic's targets (van Hasselt et al. 2016, "PopArt")."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array

RATE = 0.1
"""Weight of a new batch against all before it."""
SMALLEST = 1e-3
"""Of deviations that targets are divided by."""


class ValueScale(nn.Module):
    """Mean and deviation of returns. The critic learns (target - mean) / deviation; when they move, its output layer is rescaled, so that
    what it predicts stays. Untouched it changes nothing."""

    mean: Tensor
    deviation: Tensor
    moments: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros((), dtype=torch.float64))
        self.register_buffer("deviation", torch.ones((), dtype=torch.float64))
        self.register_buffer("moments", torch.zeros(3, dtype=torch.float64))
        """Running sums over batches of 1, the mean target and the mean squared target, each weighted by its age."""

    def values(self, outputs: Array) -> Array:
        """Of a critic's outputs, on the scale of returns."""
        return outputs * self.deviation.item() + self.mean.item()

    def normalised(self, targets: Array) -> Array:
        return (targets - self.mean.item()) / self.deviation.item()

    @torch.no_grad()
    def update(self, targets: Array, *outputs: tuple[Tensor, Tensor]) -> None:
        """Adds a batch of targets; `outputs` are weight and bias of the critic's output layers. A critic that has learned nothing has no
        predictions to keep."""
        new = self.moments[0] == 0
        batch = torch.tensor([1.0, np.mean(targets), np.mean(np.square(targets))], dtype=torch.float64)
        self.moments.mul_(1 - RATE).add_(batch.to(self.moments.device), alpha=RATE)
        _, mean, square = self.moments / self.moments[0]
        deviation = (square - mean**2).clamp(min=SMALLEST**2).sqrt()
        for weight, bias in [] if new else outputs:
            weight.mul_((self.deviation / deviation).item())
            bias.mul_((self.deviation / deviation).item()).add_(((self.mean - mean) / deviation).item())
        self.mean.copy_(mean)
        self.deviation.copy_(deviation)
