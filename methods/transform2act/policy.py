"""The Transform2Act policy: three sub-policies that share no weights, one for each stage, and the value network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from codesign_bench.design.graph import NUM_ATTRIBUTES
from codesign_bench.design.transform import ADD_JOINT, DEL_JOINT, NUM_SKELETON_ACTIONS
from codesign_bench.learning.batch import NUM_STAGES, Steps, forest_of_graphs, tensor
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.networks import NodeNetwork, ValueNetwork
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.simulation.episode import ACTION_SIZE, ATTRIBUTES, CONTROL, SKELETON, Stage
from codesign_bench.simulation.graphs import Decision, GraphBatch
from codesign_bench.tasks.base import Task

Array = NDArray[Any]
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class SubPolicyConfig:
    """gnn: sizes of the GraphConv layers, or null for none; head: jsmlp, mlp (shared) or linear (shared)."""

    gnn: tuple[int, ...] | None
    mlp: tuple[int, ...]
    head: Literal["jsmlp", "mlp", "linear"]
    init: Literal["published", "linear"]


class SubPolicy(nn.Module):
    """One stage's policy: normalised node features -> one distribution per node."""

    def __init__(self, stage: Stage, columns: Array, outputs: int, joints: int, config: SubPolicyConfig, log_std: float | None) -> None:
        super().__init__()
        self.stage, self.columns = stage, columns
        self.normaliser = Normaliser(len(columns))
        self.network = NodeNetwork(len(columns), outputs, joints, config.gnn, config.mlp, config.head, config.init)
        self.log_std = None if log_std is None else nn.Parameter(torch.full((outputs,), log_std))

    def inputs(self, features: Array) -> Array:
        return self.normaliser(features[:, self.columns])

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        """[nodes, columns] -> logits or means [nodes, outputs]"""
        result: Tensor = self.network(x, forest)
        return result

    def log_prob(self, output: Tensor, actions: Tensor, illegal: Tensor | None) -> Tensor:
        """[nodes]: log-probability of each node's action ([nodes, 7]) under its distribution."""
        if self.log_std is None:
            logits = output if illegal is None else output.masked_fill(illegal, -math.inf)
            choice = actions[:, SKELETON].long()
            return torch.log_softmax(logits, dim=1).gather(1, choice[:, None])[:, 0]
        taken = actions[:, ATTRIBUTES] if self.stage is Stage.ATTRIBUTE else actions[:, CONTROL : CONTROL + 1]
        z = (taken - output) * torch.exp(-self.log_std)
        return -0.5 * (z * z).sum(1) - (self.log_std.sum() + len(self.log_std) * HALF_LOG_TWO_PI)


class Transform2ActPolicy(nn.Module):
    """A conditional policy: which sub-policy acts depends on the stage that a graph is in."""

    def __init__(self, task: Task, sub_policies: dict[Stage, SubPolicyConfig], attribute_log_std: float, control_log_std: float) -> None:
        super().__init__()
        self.space = task.space
        self.mask_illegal_actions = task.config.design.mask_illegal_actions
        depths, joints = task.space.num_depths, task.space.max_nodes
        everything = np.arange(task.feature_size)
        design_only = np.concatenate([everything[:depths], everything[depths + task.state_size :]])
        self.skeleton = SubPolicy(Stage.SKELETON, design_only, NUM_SKELETON_ACTIONS, joints, sub_policies[Stage.SKELETON], None)
        self.attribute = SubPolicy(Stage.ATTRIBUTE, design_only, NUM_ATTRIBUTES, joints, sub_policies[Stage.ATTRIBUTE], attribute_log_std)
        self.execution = SubPolicy(Stage.EXECUTION, everything, 1, joints, sub_policies[Stage.EXECUTION], control_log_std)
        self.deterministic = False

    def of_stage(self, stage: int) -> SubPolicy:
        return (self.skeleton, self.attribute, self.execution)[stage]

    # ---- acting ------------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def __call__(self, graphs: GraphBatch) -> Decision:  # type: ignore[override]
        """One action per node of every graph. Deterministic: the most likely choice, the mean attributes and controls."""
        actions = np.zeros((graphs.num_nodes, ACTION_SIZE), dtype=np.float32)
        log_prob = np.zeros(graphs.num_graphs, dtype=np.float32)
        for stage in range(NUM_STAGES):
            chosen = np.flatnonzero(graphs.stage == stage)
            if len(chosen):
                forest, rows = forest_of_graphs(graphs, self.space, chosen)
                sub = self.of_stage(stage)
                output = sub.forward(tensor(sub.inputs(graphs.features[rows])), forest)
                illegal = self._illegal(sub, graphs.can_add, graphs.can_delete, rows)
                taken = self._sample(sub, output, illegal, graphs.rng)
                actions[rows] = taken
                if not self.deterministic:
                    node_log_prob = sub.log_prob(output, torch.from_numpy(taken), illegal).numpy()
                    log_prob[chosen] = np.bincount(forest.graph.numpy(), weights=node_log_prob, minlength=len(chosen))
        return Decision(actions, log_prob)

    def _sample(self, sub: SubPolicy, output: Tensor, illegal: Tensor | None, rng: np.random.Generator) -> Array:
        """[nodes, 7], zeros in the columns of other stages."""
        actions = np.zeros((len(output), ACTION_SIZE), dtype=np.float32)
        if sub.log_std is None:
            logits = output if illegal is None else output.masked_fill(illegal, -math.inf)
            noise = 0.0 if self.deterministic else rng.gumbel(size=tuple(logits.shape))
            actions[:, SKELETON] = (logits.numpy() + noise).argmax(axis=1)
            return actions
        mean = output.numpy()
        if not self.deterministic:
            mean = mean + rng.standard_normal(mean.shape, dtype=np.float32) * torch.exp(sub.log_std).numpy()
        actions[:, ATTRIBUTES if sub.stage is Stage.ATTRIBUTE else slice(CONTROL, CONTROL + 1)] = mean
        return actions

    def _illegal(self, sub: SubPolicy, can_add: Array, can_delete: Array, rows: Array) -> Tensor | None:
        if sub.stage is not Stage.SKELETON or not self.mask_illegal_actions:
            return None
        illegal = np.zeros((len(rows), NUM_SKELETON_ACTIONS), dtype=bool)
        illegal[:, ADD_JOINT], illegal[:, DEL_JOINT] = ~can_add[rows], ~can_delete[rows]
        return torch.from_numpy(illegal)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def prepare(self, steps: Steps) -> list[Tensor]:
        """Normalised inputs of every sub-policy, [nodes, columns]; rows of other stages are left at zero."""
        node_stage = np.repeat(steps.stage, steps.count)
        prepared = []
        for stage in range(NUM_STAGES):
            sub, mine = self.of_stage(stage), np.flatnonzero(node_stage == stage)
            x = np.zeros((len(node_stage), len(sub.columns)), dtype=np.float32)
            x[mine] = sub.inputs(steps.features[mine])
            prepared.append(torch.from_numpy(x))
        return prepared

    def log_prob(self, prepared: list[Tensor], steps: Steps, actions: Tensor, chosen: Array, forest: Forest, rows: Array) -> Tensor:
        stage = int(steps.stage[chosen[0]])
        sub, index = self.of_stage(stage), torch.from_numpy(rows)
        output = sub.forward(prepared[stage].index_select(0, index), forest)
        illegal = self._illegal(sub, steps.can_add, steps.can_delete, rows)
        node_log_prob = sub.log_prob(output, actions.index_select(0, index), illegal)
        return node_log_prob.new_zeros(forest.num_graphs).index_add(0, forest.graph, node_log_prob)

    def merge(self, steps: Steps) -> None:
        """Adds a batch to the statistics of the normalisers."""
        node_stage = np.repeat(steps.stage, steps.count)
        for stage in range(NUM_STAGES):
            sub = self.of_stage(stage)
            sub.normaliser.merge(steps.features[node_stage == stage][:, sub.columns])


class Value(nn.Module):
    """The value network for all stages; its features are a node's own plus the stage as a one-hot vector."""

    def __init__(self, task: Task, gnn: tuple[int, ...], mlp: tuple[int, ...]) -> None:
        super().__init__()
        size = task.feature_size + NUM_STAGES
        self.normaliser = Normaliser(size)
        self.network = ValueNetwork(size, gnn, mlp)

    def prepare(self, steps: Steps) -> Tensor:
        return torch.from_numpy(self.normaliser(self._features(steps)))

    def values(self, prepared: Tensor, forest: Forest, rows: Array) -> Tensor:
        result: Tensor = self.network(prepared.index_select(0, torch.from_numpy(rows)), forest)
        return result

    def merge(self, steps: Steps) -> None:
        self.normaliser.merge(self._features(steps))

    @staticmethod
    def _features(steps: Steps) -> Array:
        stage = np.eye(NUM_STAGES, dtype=np.float32)[np.repeat(steps.stage, steps.count)]
        return np.concatenate([steps.features, stage], axis=1)
