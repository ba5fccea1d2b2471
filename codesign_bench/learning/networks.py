"""The networks of the paper: a GNN, and heads with weights per joint (JSMLP) or shared by all joints."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from codesign_bench.errors import ConfigError
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.graph_conv import GraphConv
from codesign_bench.learning.kernels import Segments, tanh_mlp
from codesign_bench.structured import Count

OUTPUT_SCALE = 0.1
"""Initial output weights are scaled by this, and output biases start at zero."""


Sizes = tuple[Count, ...]
"""Of a network's layers."""

Head = Literal["jsmlp", "mlp", "linear"]
Init = Literal["published", "linear"]


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """A network in the configuration of a method, `where` says which.

    - gnn: widths of the graph layers, or null for none where a method allows it
    - mlp: widths of the hidden layers after them
    - layer: GraphConv, or any other layer of PyTorch Geometric that is made from its two widths and called with x and edge_index
    - layer_options: other arguments of the layer's constructor, if any
    """

    where: ClassVar[str]
    gnn: Sizes | None
    mlp: Sizes
    layer: str = "GraphConv"
    layer_options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.gnn is not None and not self.gnn:
            raise ConfigError(f"{self.where}.gnn is []; allowed is a list of whole numbers from 1 up, or null where it may be left out.")
        if self.layer != "GraphConv" or self.layer_options:
            from codesign_bench.learning.layers import check_layer

            check_layer(self.layer, self.layer_options or {}, self.gnn or (8,), self.where)


@dataclass(frozen=True, kw_only=True)
class ValueConfig(NetworkConfig):
    """`value` in the configuration of a method."""

    where = "method.value"
    gnn: Sizes


class GNN(nn.Module):
    """Linear embedding, then graph layers, each with ReLU: [nodes, in] -> [nodes, gnn[-1]].

    `depth` restricts the result to nodes up to that depth: 0 gives the roots only. GraphConv layers then compute no node
    that the roots cannot see any more; others may look at more than neighbours (at their degrees, say).
    """

    def __init__(self, inputs: int, sizes: Sizes, layer: str = "GraphConv", options: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, sizes[0])
        self.plain = layer == "GraphConv" and not options
        """Made of our GraphConv, whose weights other code may take and use."""
        pairs = list(zip((sizes[0], *sizes[:-1]), sizes, strict=True))
        if self.plain:
            self.layers = nn.ModuleList(GraphConv(a, b) for a, b in pairs)
        else:
            from codesign_bench.learning.layers import make_layer

            self.layers = nn.ModuleList(make_layer(layer, a, b, options or {}) for a, b in pairs)

    def forward(self, x: Tensor, graph: Forest | Tensor, depth: int | None = None) -> Tensor:
        """`graph`: a forest, or an edge_index [2, edges] (without `depth`)."""
        to_come = len(self.layers)
        h: Tensor = self.embed(x[: self._rows(graph, depth, to_come)])
        for layer in self.layers:
            to_come -= 1
            h = layer(h, graph, self._rows(graph, depth, to_come))
        return h

    def _rows(self, graph: Forest | Tensor, depth: int | None, layers_to_come: int) -> int | None:
        """How many nodes are needed when so many layers follow; None: all."""
        if depth is None or not isinstance(graph, Forest) or (layers_to_come and not self.plain):
            return None
        if depth + layers_to_come >= len(graph.up_to_depth) - 1:
            return None
        return graph.up_to_depth[depth + layers_to_come]


class JointMLP(nn.Module):
    """A tanh MLP with a linear output and one set of weights per joint index; with `joints=1`, one set for all nodes.

    init: "published" draws weights and biases uniformly within 1/sqrt(in * out), what the published initialiser of the
    joint-specific layers amounts to; "linear" within 1/sqrt(in), as torch's linear layers.
    """

    def __init__(self, inputs: int, sizes: Sizes, outputs: int, joints: int, init: Init) -> None:
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

    @property
    def output(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the last layer."""
        return self.weights[-1], self.biases[-1]

    def forward(self, x: Tensor, segments: Segments) -> Tensor:
        if self.joints == 1:
            segments = ((0, 0, len(x)),)
        return tanh_mlp(x, segments, list(self.weights), list(self.biases))


class NodeNetwork(nn.Module):
    """One output vector per node: features -> GNN (optional) -> head.

    head: "jsmlp" weights per joint, "mlp" one MLP shared by all joints, "linear" one shared linear layer
    """

    def __init__(self, inputs: int, outputs: int, joints: int, config: NetworkConfig, head: Head, init: Init) -> None:
        super().__init__()
        gnn = config.gnn
        self.gnn = GNN(inputs, gnn, config.layer, config.layer_options) if gnn else None
        width = gnn[-1] if gnn else inputs
        sizes = () if head == "linear" else config.mlp
        own = head == "jsmlp"
        self.head = JointMLP(width, sizes, outputs, joints if own else 1, init if own else "linear")

    def forward(self, x: Tensor, forest: Forest, roots: bool = True) -> Tensor:
        """[nodes, in] -> [nodes, out], or without the roots, which come first in a forest."""
        h, segments, first = x if self.gnn is None else self.gnn(x, forest), forest.segments, forest.num_graphs
        if not roots:
            h, segments = h[first:], tuple((joint, start - first, end - first) for joint, start, end in segments[1:])
        result: Tensor = self.head(h, segments)
        return result


class ValueNetwork(nn.Module):
    """One number per graph, read at its root: features -> GNN -> MLP."""

    def __init__(self, inputs: int, config: ValueConfig) -> None:
        super().__init__()
        self.gnn = GNN(inputs, config.gnn, config.layer, config.layer_options)
        self.head = JointMLP(config.gnn[-1], config.mlp, 1, joints=1, init="linear")

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        """[nodes, in] -> [graphs]"""
        result: Tensor = self.head(self.gnn(x, forest, depth=0), ())[:, 0]
        return result
