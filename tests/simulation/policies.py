"""Policies for the tests: in a module of their own, so that worker processes can import them."""

from __future__ import annotations

import itertools
import os
import signal
import sys

import numpy as np

from codesign_bench.simulation.graphs import Decision, GraphBatch, Policy
from codesign_bench.simulation.sampler import random_policy


def one_graph(features: np.ndarray, joint_index: np.ndarray) -> np.ndarray:
    """Actions [nodes, 7] of one graph, from what that graph looks like and from nothing else."""
    seen = features.astype(np.float64).sum(axis=1) + 0.37 * joint_index
    wave = np.sin(np.outer(seen, [3.0, 5.0, 7.0, 11.0, 13.0, 17.0]))
    choice = np.floor(3 * np.abs(np.sin(19.0 * seen + 1.0))).clip(0, 2)
    return np.column_stack([wave, choice]).astype(np.float32)


def each_graph_alone(graphs: GraphBatch) -> np.ndarray:
    pieces = itertools.pairwise(graphs.offsets.tolist())
    return np.concatenate([one_graph(graphs.features[a:b], graphs.joint_index[a:b]) for a, b in pieces])


def with_log_prob(graphs: GraphBatch) -> Decision:
    return Decision(random_policy(graphs), graphs.offsets[1:].astype(np.float64))


def zeros(graphs: GraphBatch) -> np.ndarray:
    return np.zeros((graphs.num_nodes, 7))


def nan_controls(graphs: GraphBatch) -> np.ndarray:
    actions = random_policy(graphs)
    actions[:, 0] = np.nan
    return actions


def nan_attributes(graphs: GraphBatch) -> np.ndarray:
    actions = random_policy(graphs)
    actions[:, 1:6] = np.nan
    return actions


def infinite_attributes(graphs: GraphBatch) -> np.ndarray:
    actions = random_policy(graphs)
    actions[:, 1:6] = np.inf
    return actions


def wrong_shape(graphs: GraphBatch) -> np.ndarray:
    return np.zeros((graphs.num_nodes, 3))


def raises(graphs: GraphBatch) -> np.ndarray:
    raise KeyError("the policy lost its marbles")


def kills_itself(graphs: GraphBatch) -> np.ndarray:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def exits(graphs: GraphBatch) -> np.ndarray:
    os._exit(7)


def tells_heavy_modules(graphs: GraphBatch) -> Decision:
    """log_prob: 1 if a heavy package is loaded in this process, else 0."""
    heavy = any(name in sys.modules for name in ("torch", "torch_geometric", "matplotlib", "pandas"))
    return Decision(np.zeros((graphs.num_nodes, 7)), np.full(graphs.num_graphs, float(heavy)))


class WithoutLearningPackages:
    """A policy, and as log_prob how many packages that only learning and analysis need are loaded in this process."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def __call__(self, graphs: GraphBatch) -> Decision:
        decision = self.policy(graphs)
        loaded = [name for name in ("torch_geometric", "pandas", "matplotlib") if name in sys.modules]
        return Decision(decision.actions, np.full(graphs.num_graphs, float(len(loaded))))  # type: ignore[union-attr]


def tells_threads(graphs: GraphBatch) -> Decision:
    """log_prob: what this process was told about threads."""
    return Decision(np.zeros((graphs.num_nodes, 7)), np.full(graphs.num_graphs, float(os.environ.get("OMP_NUM_THREADS", "-1"))))


class Cannot:
    """Can be sent to a worker and not be received there."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _fail, ("this policy cannot be read",)

    def __call__(self, graphs: GraphBatch) -> np.ndarray:
        return zeros(graphs)


def _fail(message: str) -> None:
    raise RuntimeError(message)
