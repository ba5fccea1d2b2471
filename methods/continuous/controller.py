"""The controller of a design that does not change within an episode: Transform2Act's execution policy and value network.

Design attributes are part of what a node observes, so one controller drives all designs of a population.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from codesign_bench.learning.acting import ActingNetwork, ForestCache
from codesign_bench.learning.batch import Steps
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.networks import HALF_LOG_TWO_PI, NodeNetwork, Sizes, ValueConfig, ValueNetwork, check_sizes
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.simulation.episode import ACTION_SIZE, CONTROL
from codesign_bench.simulation.graphs import Decision, GraphBatch
from codesign_bench.tasks.base import Task

Array = NDArray[Any]


@dataclass(frozen=True)
class ControllerConfig:
    """gnn: sizes of the GraphConv layers, or null for none; head: jsmlp, mlp (shared) or linear (shared)."""

    gnn: Sizes | None
    mlp: Sizes
    head: Literal["jsmlp", "mlp", "linear"]
    init: Literal["published", "linear"]
    log_std: float

    def __post_init__(self) -> None:
        check_sizes(self.gnn, self.mlp, "method.controller")


class Controller(nn.Module):
    """Features of a node and its neighbours -> the Gaussian of its control. The root has no motor and takes no action."""

    def __init__(self, task: Task, config: ControllerConfig) -> None:
        super().__init__()
        self.space = task.space
        self.normaliser = Normaliser(task.feature_size)
        self.network = NodeNetwork(task.feature_size, 1, task.space.max_nodes, config.gnn, config.mlp, config.head, config.init)
        self.log_std = nn.Parameter(torch.full((1,), config.log_std))

    def acting(self, deterministic: bool = False) -> ActingController:
        """A snapshot that acts."""
        return ActingController(self, deterministic)

    def prepare(self, steps: Steps) -> list[Tensor]:
        return [torch.from_numpy(self.normaliser(steps.features))]

    def log_prob(self, prepared: list[Tensor], steps: Steps, actions: Tensor, chosen: Array, forest: Forest, rows: Tensor) -> Tensor:
        """[graphs]; a forest's roots come first."""
        joints = slice(forest.num_graphs, None)
        mean = self.network(prepared[0].index_select(0, rows), forest)[joints, 0]
        z = (actions[rows[joints], CONTROL] - mean) * torch.exp(-self.log_std)
        each: Tensor = -0.5 * z * z - (self.log_std + HALF_LOG_TWO_PI)
        return each.new_zeros(forest.num_graphs).index_add(0, forest.graph[joints], each)

    def merge(self, steps: Steps) -> None:
        """Adds a batch to the statistics of the normaliser."""
        self.normaliser.merge(steps.features)


class ActingController:
    """The controller as it acts, from a copy of its weights; picklable, so that workers can have it."""

    def __init__(self, controller: Controller, deterministic: bool) -> None:
        self.deterministic = deterministic
        self.normaliser = copy.deepcopy(controller.normaliser)
        self.network = ActingNetwork(controller.network)
        self.log_std = float(controller.log_std.detach())
        self.forests = ForestCache(controller.space)

    @torch.inference_mode()
    def __call__(self, graphs: GraphBatch) -> Decision:
        acting, rows = self.forests.get(graphs, np.arange(graphs.num_graphs))
        mean: Array = self.network(torch.from_numpy(self.normaliser(graphs.features[rows])), acting).numpy()[:, 0]
        z = np.zeros_like(mean) if self.deterministic else graphs.rng.standard_normal(len(mean), dtype=np.float32)
        actions = np.zeros((graphs.num_nodes, ACTION_SIZE), dtype=np.float32)
        actions[rows, CONTROL] = mean + z * math.exp(self.log_std)
        joints = slice(graphs.num_graphs, None)
        each = -0.5 * z * z - (self.log_std + HALF_LOG_TWO_PI)
        log_prob = np.bincount(acting.graph[joints], weights=each[joints], minlength=graphs.num_graphs)
        return Decision(actions, log_prob.astype(np.float32))


class Value(nn.Module):
    """The value of a state, read at the root."""

    def __init__(self, task: Task, config: ValueConfig) -> None:
        super().__init__()
        self.normaliser = Normaliser(task.feature_size)
        self.network = ValueNetwork(task.feature_size, config.gnn, config.mlp)

    def prepare(self, steps: Steps) -> Tensor:
        return torch.from_numpy(self.normaliser(steps.features))

    def values(self, prepared: Tensor, forest: Forest, rows: Tensor) -> Tensor:
        result: Tensor = self.network(prepared.index_select(0, rows), forest)
        return result

    def merge(self, steps: Steps) -> None:
        self.normaliser.merge(steps.features)
