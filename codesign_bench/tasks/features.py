"""What a node of a robot's graph shows to networks, and in which columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from codesign_bench.arrays import Array
from codesign_bench.design.graph import NUM_ATTRIBUTES


@dataclass(frozen=True)
class FeatureLayout:
    """Columns of a node's features: its depth as a one-hot vector, the simulator's state (zeros while transforming), its
    normalised attributes."""

    num_depths: int
    state_size: int

    @property
    def size(self) -> int:
        return self.num_depths + self.state_size + NUM_ATTRIBUTES

    @property
    def depth(self) -> slice:
        return slice(0, self.num_depths)

    @property
    def state(self) -> slice:
        return slice(self.num_depths, self.num_depths + self.state_size)

    @property
    def attributes(self) -> slice:
        return slice(self.num_depths + self.state_size, self.size)

    @property
    def design_columns(self) -> Array:
        """Positions of everything but the simulator's state."""
        return np.delete(np.arange(self.size), self.state)

    def features(self, depth: Array, attributes: Array, state: Array | None = None, dtype: DTypeLike = np.float32) -> Array:
        """[nodes, size] from depth [nodes], attributes [nodes, 5] and state [nodes, state_size] (None: zeros)."""
        features = np.zeros((len(depth), self.size), dtype=dtype)
        features[np.arange(len(depth)), depth] = 1
        features[:, self.attributes] = attributes
        if state is not None:
            features[:, self.state] = state
        return features
