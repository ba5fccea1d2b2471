"""The controller of a design that does not change within an episode: Transform2Act's execution policy.

Design attributes are part of what a node observes, so one controller drives all designs of a population.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch

from codesign_bench.arrays import Array
from codesign_bench.learning.acting import ActingNetwork, ForestCache
from codesign_bench.learning.actor_critic import GraphController
from codesign_bench.learning.batch import Steps
from codesign_bench.learning.gaussian import log_density
from codesign_bench.learning.networks import Head, Init, NetworkConfig
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.simulation.episode import ACTION_SIZE, CONTROL
from codesign_bench.simulation.graphs import Decision, GraphBatch
from codesign_bench.tasks.base import Task


@dataclass(frozen=True, kw_only=True)
class ControllerConfig(NetworkConfig):
    """head: jsmlp, mlp (shared) or linear (shared)."""

    where = "method.controller"
    head: Head
    init: Init
    log_std: float


class Controller(GraphController):
    def __init__(self, task: Task, config: ControllerConfig) -> None:
        normaliser = Normaliser(task.features.size)
        super().__init__(normaliser, task.space.max_nodes, config, config.head, config.init, config.log_std)
        self.space = task.space

    def acting(self, deterministic: bool = False) -> ActingController:
        """A snapshot that acts."""
        return ActingController(self, deterministic)

    def update_normaliser(self, steps: Steps) -> None:
        """Adds a batch to the statistics."""
        self.normaliser.update(steps.features)


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
        table, rows = self.forests.get(graphs, np.arange(graphs.num_graphs))
        mean: Array = self.network(torch.from_numpy(self.normaliser(graphs.features[rows])), table).numpy()[:, 0]
        z = np.zeros_like(mean) if self.deterministic else graphs.rng.standard_normal(len(mean), dtype=np.float32)
        actions = np.zeros((graphs.num_nodes, ACTION_SIZE), dtype=np.float32)
        actions[rows, CONTROL] = mean + z * math.exp(self.log_std)
        joints = slice(graphs.num_graphs, None)
        each = log_density(z[joints], self.log_std)
        log_prob = np.bincount(table.graph[joints], weights=each, minlength=graphs.num_graphs)
        return Decision(actions, log_prob.astype(np.float32))
