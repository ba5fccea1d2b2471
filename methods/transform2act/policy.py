"""The Transform2Act policy: three sub-policies, each a GNN with a head of weights per joint."""

from dataclasses import dataclass

import numpy as np
import torch

from codesign_bench.arrays import Array
from codesign_bench.design.graph import NUM_ATTRIBUTES
from codesign_bench.design.transform import NUM_SKELETON_ACTIONS
from codesign_bench.learning.networks import Head, Init, NetworkConfig, NodeNetwork
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.stage_policy import StagePolicy, SubPolicy
from codesign_bench.simulation.episode import Stage
from codesign_bench.tasks.base import Task


@dataclass(frozen=True, kw_only=True)
class SubPolicyConfig(NetworkConfig):
    """head: jsmlp, mlp (shared) or linear (shared); log_std: initial, of a Gaussian sub-policy."""

    head: Head
    log_std: float | None = None


class Transform2ActPolicy(StagePolicy):
    """Skeleton and attribute sub-policies see the design, the execution sub-policy sees the simulator's state besides."""

    def __init__(
        self, task: Task, skeleton: SubPolicyConfig, attribute: SubPolicyConfig, execution: SubPolicyConfig, init: Init = "published"
    ) -> None:
        joints = task.space.max_nodes
        everything, design_only = np.arange(task.features.size), task.features.design_columns

        def sub_policy(stage: Stage, columns: Array, outputs: int, config: SubPolicyConfig) -> SubPolicy:
            network = NodeNetwork(len(columns), outputs, joints, config, config.head, init)
            log_std = None if config.log_std is None else torch.full((outputs,), config.log_std)
            return SubPolicy(stage, columns, network, log_std, Normaliser(len(columns)))

        super().__init__(
            task,
            sub_policy(Stage.SKELETON, design_only, NUM_SKELETON_ACTIONS, skeleton),
            sub_policy(Stage.ATTRIBUTE, design_only, NUM_ATTRIBUTES, attribute),
            sub_policy(Stage.EXECUTION, everything, 1, execution),
        )
