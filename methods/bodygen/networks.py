"""BodyGen's three sub-policies and three value networks."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from codesign_bench.arrays import Array
from codesign_bench.design.graph import NUM_ATTRIBUTES
from codesign_bench.design.transform import NUM_SKELETON_ACTIONS
from codesign_bench.learning.batch import NUM_STAGES
from codesign_bench.learning.encoders import EncodedNodes, EncodedValue, Encoder
from codesign_bench.learning.mosat import MoSAT, MoSATConfig
from codesign_bench.learning.networks import GNN, NetworkConfig, Sizes
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.stage_policy import StagePolicy, SubPolicy
from codesign_bench.simulation.episode import Stage
from codesign_bench.tasks.base import Task


@dataclass(frozen=True, kw_only=True)
class GNNConfig(NetworkConfig):
    """`gnn` in the configuration."""

    where = "method.gnn"
    gnn: Sizes
    mlp: Sizes = ()


@dataclass(frozen=True)
class EncoderConfig:
    kind: Literal["mosat", "gnn"]
    mosat: MoSATConfig
    gnn: GNNConfig

    @property
    def width(self) -> int:
        return self.mosat.width if self.kind == "mosat" else self.gnn.gnn[-1]

    def make(self, inputs: int) -> Encoder:
        return MoSAT(inputs, self.mosat) if self.kind == "mosat" else GNN(inputs, self.gnn.gnn, self.gnn.layer, self.gnn.layer_options)


def policy_of(task: Task, encoder: EncoderConfig, normaliser: Normaliser, attribute_log_std: float, control_log_std: float) -> StagePolicy:
    """Skeleton and attribute policies see the design, the control policy sees the simulator's state besides."""
    everything, design_only = np.arange(task.features.size), task.features.design_columns

    def sub_policy(stage: Stage, columns: Array, outputs: int, log_std: Tensor | None) -> SubPolicy:
        network = EncodedNodes(encoder.make(len(columns)), encoder.width, outputs, small=log_std is not None)
        return SubPolicy(stage, columns, network, log_std, normaliser)

    return StagePolicy(
        task,
        sub_policy(Stage.SKELETON, design_only, NUM_SKELETON_ACTIONS, None),
        sub_policy(Stage.ATTRIBUTE, design_only, NUM_ATTRIBUTES, torch.full((NUM_ATTRIBUTES,), attribute_log_std)),
        sub_policy(Stage.EXECUTION, everything, 1, torch.full((1,), control_log_std)),
    )


def values_of(task: Task, encoder: EncoderConfig, mlp: Sizes) -> list[EncodedValue]:
    """One for each stage, of all that a node shows."""
    return [EncodedValue(encoder.make(task.features.size), encoder.width, mlp) for _ in range(NUM_STAGES)]
