"""Policies and values of graphs, as PPO wants them: the controller of a design that does not change within an episode, and critics."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array
from codesign_bench.learning.batch import NUM_STAGES, Steps
from codesign_bench.learning.encoders import EncodedValue
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.gaussian import log_density
from codesign_bench.learning.networks import Head, Init, NetworkConfig, NodeNetwork, ValueConfig, ValueNetwork
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.value_scale import ValueScale
from codesign_bench.learning.vectors import Stretch, halves
from codesign_bench.simulation.episode import CONTROL


class GraphController(nn.Module):
    """Features of a node and its neighbours -> the Gaussian of its control. The root has no motor and takes no action."""

    def __init__(self, normaliser: Normaliser, joints: int, config: NetworkConfig, head: Head, init: Init, log_std: float) -> None:
        """`joints`: different ones that designs can have; no tensor depends on it unless the head has weights per joint."""
        super().__init__()
        self.normaliser = normaliser
        self.network = NodeNetwork(len(normaliser.mean), 1, joints, config, head, init)
        self.log_std = nn.Parameter(torch.full((1,), log_std))

    @staticmethod
    def features(steps: Steps) -> Array:
        return steps.features

    def prepare(self, steps: Steps) -> list[Tensor]:
        return [torch.from_numpy(self.normaliser(steps.features))]

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        """[nodes, features] -> means [nodes but the roots, 1]"""
        mean: Tensor = self.network(x, forest, roots=False)
        return mean

    def log_prob(self, prepared: list[Tensor], steps: Steps, actions: Tensor, chosen: Array, forest: Forest, rows: Tensor) -> Tensor:
        joints = slice(forest.num_graphs, None)  # a forest's roots come first
        mean = self(prepared[0].index_select(0, rows), forest)[:, 0]
        each: Tensor = log_density((actions[rows[joints], CONTROL] - mean) * torch.exp(-self.log_std), self.log_std)
        return each.new_zeros(forest.num_graphs).index_add(0, forest.graph[joints], each)


class GraphCritic(nn.Module):
    """The value of a state, read at the root. `sees_stage`: every node is told the stage besides, as a one-hot vector."""

    def __init__(self, normaliser: Normaliser, config: ValueConfig, sees_stage: bool = False) -> None:
        """`normaliser`: of all that a node shows, its own or one that it shares with an actor."""
        super().__init__()
        self.normaliser, self.sees_stage = normaliser, sees_stage
        self.network = ValueNetwork(len(normaliser.mean), config)
        self.scale = ValueScale()

    @property
    def outputs(self) -> list[tuple[Tensor, Tensor]]:
        return [self.network.head.output]

    @property
    def stretches(self) -> tuple[Stretch, Stretch]:
        """Of the vector of its parameters: those that design steps change, and control steps. Here it is all."""
        _, everything = halves(self, self)
        return everything, everything

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


class StageCritic(nn.Module):
    """A value network for each stage; each sees everything that a node shows."""

    def __init__(self, normaliser: Normaliser, networks: Sequence[EncodedValue]) -> None:
        super().__init__()
        self.normaliser, self.networks = normaliser, nn.ModuleList(networks)
        self.scale = ValueScale()

    @property
    def outputs(self) -> list[tuple[Tensor, Tensor]]:
        return [network.head.output for network in self.networks]  # type: ignore[union-attr,misc]

    @property
    def stretches(self) -> tuple[Stretch, Stretch]:
        """Of the vector of its parameters: those of the design stages, and those of control."""
        return halves(self, self.networks[-1])

    def prepare(self, steps: Steps) -> Tensor:
        """The stage is the last column."""
        stage = np.repeat(steps.stage, steps.count).astype(np.float32)
        return torch.from_numpy(np.column_stack([self.normaliser(steps.features), stage]))

    def values(self, prepared: Tensor, forest: Forest, rows: Tensor) -> Tensor:
        x = prepared.index_select(0, rows)
        x, stage = x[:, :-1], x[: forest.num_graphs - forest.fillers, -1]  # a forest's roots come first
        present = stage.unique().long().tolist()
        if len(present) == 1:
            only: Tensor = self.networks[present[0]](x, forest)
            return only
        values = x.new_zeros(len(stage))
        for number in present:
            graphs = torch.nonzero(stage == number)[:, 0]
            values = values.index_copy(0, graphs, self.networks[number](x, forest, graphs))
        return values
