"""The networks of the paper: a GNN of GraphConv layers, and heads with weights per joint (JSMLP) or shared by all joints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from codesign_bench.errors import ConfigError
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.kernels import Segments, graph_conv, tanh_mlp

OUTPUT_SCALE = 0.1
"""Initial output weights are scaled by this, and output biases start at zero."""


Sizes = tuple[int, ...]
"""Of a network's layers."""

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
"""What a Gaussian's log-density has besides its exponent and its log standard deviation."""


def check_sizes(gnn: Sizes | None, mlp: Sizes, where: str) -> None:
    """Raises ConfigError unless these can be the sizes of a network's layers."""
    if gnn is not None and (not gnn or min(gnn) < 1):
        raise ConfigError(f"{where}.gnn is {list(gnn)}; allowed is a list of whole numbers from 1 up, or null where it may be left out.")
    if mlp and min(mlp) < 1:
        raise ConfigError(f"{where}.mlp is {list(mlp)}; allowed is a list of whole numbers from 1 up.")


@dataclass(frozen=True)
class ValueConfig:
    """`value` in the configuration of a method."""

    gnn: Sizes
    mlp: Sizes

    def __post_init__(self) -> None:
        check_sizes(self.gnn, self.mlp, "method.value")


class GNN(nn.Module):
    """Linear embedding, then GraphConv layers with ReLU: [nodes, in] -> [nodes, sizes[-1]].

    `depth` restricts the result to nodes up to that depth: 0 gives the roots only, and each layer then computes no node
    that the roots cannot see any more.
    """

    def __init__(self, inputs: int, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, sizes[0])
        self.layers = nn.ModuleList(GraphConv(a, b) for a, b in zip((sizes[0], *sizes[:-1]), sizes, strict=True))

    def forward(self, x: Tensor, forest: Forest, depth: int | None = None) -> Tensor:
        to_come = len(self.layers)
        h: Tensor = self.embed(x[: self._rows(forest, depth, to_come)])
        for layer in self.layers:
            to_come -= 1
            h = layer(h, forest, self._rows(forest, depth, to_come))
        return h

    def graph_convs(self) -> Iterator[GraphConv]:
        for layer in self.layers:
            assert isinstance(layer, GraphConv)
            yield layer

    @staticmethod
    def _rows(forest: Forest, depth: int | None, layers_to_come: int) -> int | None:
        if depth is None or depth + layers_to_come >= len(forest.up_to_depth) - 1:
            return None
        return forest.up_to_depth[depth + layers_to_come]


class GraphConv(nn.Module):
    """Morris et al. 2019: own features and the sum of the neighbours', each through its own weights; then ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.neighbour = nn.Linear(inputs, outputs)
        self.own = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x: Tensor, forest: Forest, rows: int | None) -> Tensor:
        return graph_conv(x, self.neighbour.weight, self.neighbour.bias, self.own.weight, forest, rows)


class JointMLP(nn.Module):
    """A tanh MLP with a linear output and one set of weights per joint index; with `joints=1`, one set for all nodes.

    init: "published" draws weights and biases uniformly within 1/sqrt(in * out), what the published initialiser of the
    joint-specific layers amounts to; "linear" within 1/sqrt(in), as torch's linear layers.
    """

    def __init__(self, inputs: int, sizes: tuple[int, ...], outputs: int, joints: int, init: Literal["published", "linear"]) -> None:
        super().__init__()
        pairs = list(zip((inputs, *sizes), (*sizes, outputs), strict=True))
        self.weights = nn.ParameterList(nn.Parameter(torch.empty(joints, a, b)) for a, b in pairs)
        self.biases = nn.ParameterList(nn.Parameter(torch.empty(joints, b)) for _, b in pairs)
        for (a, b), weight, bias in zip(pairs, self.weights, self.biases, strict=True):
            bound = 1 / math.sqrt(a * b) if init == "published" else 1 / math.sqrt(a)
            nn.init.uniform_(weight, -bound, bound)
            nn.init.uniform_(bias, -bound, bound)
        with torch.no_grad():
            self.weights[-1].mul_(OUTPUT_SCALE)
            self.biases[-1].zero_()
        self.joints = joints

    def forward(self, x: Tensor, segments: Segments) -> Tensor:
        if self.joints == 1:
            segments = ((0, 0, len(x)),)
        return tanh_mlp(x, segments, list(self.weights), list(self.biases))


class NodeNetwork(nn.Module):
    """One output vector per node: features -> GNN (optional) -> head.

    head: "jsmlp" weights per joint, "mlp" one MLP shared by all joints, "linear" one shared linear layer
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        joints: int,
        gnn: tuple[int, ...] | None,
        mlp: tuple[int, ...],
        head: Literal["jsmlp", "mlp", "linear"],
        init: Literal["published", "linear"],
    ) -> None:
        super().__init__()
        self.gnn = GNN(inputs, gnn) if gnn else None
        width = gnn[-1] if gnn else inputs
        sizes = () if head == "linear" else mlp
        own = head == "jsmlp"
        self.head = JointMLP(width, sizes, outputs, joints if own else 1, init if own else "linear")

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        h = x if self.gnn is None else self.gnn(x, forest)
        result: Tensor = self.head(h, forest.segments)
        return result


class ValueNetwork(nn.Module):
    """One number per graph, read at its root: features -> GNN -> MLP."""

    def __init__(self, inputs: int, gnn: tuple[int, ...], mlp: tuple[int, ...]) -> None:
        super().__init__()
        self.gnn = GNN(inputs, gnn)
        self.head = JointMLP(gnn[-1], mlp, 1, joints=1, init="linear")

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        """[nodes, in] -> [graphs]"""
        result: Tensor = self.head(self.gnn(x, forest, depth=0), ())[:, 0]
        return result


def num_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
