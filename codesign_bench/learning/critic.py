"""The value function of graphs, as PPO wants it."""

import numpy as np
import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array
from codesign_bench.learning.batch import NUM_STAGES, Steps
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.networks import ValueConfig, ValueNetwork
from codesign_bench.learning.normaliser import Normaliser


class GraphCritic(nn.Module):
    """The value of a state, read at the root. `sees_stage`: every node is told the stage besides, as a one-hot vector."""

    def __init__(self, normaliser: Normaliser, config: ValueConfig, sees_stage: bool = False) -> None:
        """`normaliser`: of all that a node shows, its own or one that it shares with an actor."""
        super().__init__()
        self.normaliser, self.sees_stage = normaliser, sees_stage
        self.network = ValueNetwork(len(normaliser.mean), config)

    def prepare(self, steps: Steps) -> Tensor:
        return torch.from_numpy(self.normaliser(self._features(steps)))

    def values(self, prepared: Tensor, forest: Forest, rows: Tensor) -> Tensor:
        result: Tensor = self.network(prepared.index_select(0, rows), forest)
        return result

    def update_normaliser(self, steps: Steps) -> None:
        """Adds a batch to the statistics."""
        self.normaliser.update(self._features(steps))

    def _features(self, steps: Steps) -> Array:
        if not self.sees_stage:
            return steps.features
        stage = np.eye(NUM_STAGES, dtype=np.float32)[np.repeat(steps.stage, steps.count)]
        return np.concatenate([steps.features, stage], axis=1)
