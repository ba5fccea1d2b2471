"""Running normalisation of node features."""

from typing import Any

import numpy as np
from torch import nn

from codesign_bench.arrays import Array

CLIP = 5.0
LEAST_DEVIATION = 1e-4
"""A feature that varies less than this is sent to 0: dividing by it would turn rounding errors into +-CLIP."""


class Normaliser(nn.Module):
    """Running mean and standard deviation per feature, over nodes; the identity until the first batch was added. A module without
    parameters, so that the state of a network that has one holds its statistics.

    The statistics are frozen while a batch is acted on and learned from; `update` adds the batch once, before or after learning.
    """

    def __init__(self, size: int, clip: float = CLIP) -> None:
        super().__init__()
        self.largest = clip
        self.count = 0
        self.mean = np.zeros(size)
        self.squares = np.zeros(size)
        """Sum of squared deviations from the mean."""

    def forward(self, features: Array) -> Array:
        """[nodes, size] -> [nodes, size] float32."""
        if self.count == 0:
            return features.astype(np.float32, copy=False)
        out = np.multiply(features - self.mean, self.scale, dtype=np.float64)
        return np.clip(out, -self.clip, self.clip, out=out).astype(np.float32)

    @property
    def scale(self) -> Array:
        """[size]: what deviations from the mean are multiplied with."""
        if self.count == 0:
            return np.ones(len(self.mean))
        deviation = np.sqrt(self.squares / self.count)
        return np.where(deviation < LEAST_DEVIATION, 0.0, 1 / np.maximum(deviation, LEAST_DEVIATION))

    @property
    def clip(self) -> float:
        """Largest result."""
        return self.largest if self.count else np.inf

    def update(self, features: Array) -> None:
        """Adds a batch [nodes, size] to the statistics (Chan's parallel update)."""
        if len(features) == 0:
            return
        count = len(features)
        mean = features.mean(axis=0, dtype=np.float64)
        squares = ((features - mean) ** 2).sum(axis=0, dtype=np.float64)
        total = self.count + count
        shift = mean - self.mean
        self.squares = self.squares + squares + shift**2 * (self.count * count / total)
        self.mean = self.mean + shift * (count / total)
        self.count = total

    def get_extra_state(self) -> dict[str, Any]:
        return {"count": self.count, "mean": self.mean.tolist(), "squares": self.squares.tolist()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.count = int(state["count"])
        self.mean, self.squares = np.asarray(state["mean"]), np.asarray(state["squares"])
