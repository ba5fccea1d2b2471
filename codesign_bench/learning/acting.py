"""Networks as they act: a snapshot of weights in the form that small batches want.

Learning multiplies thousands of rows per joint; acting has one row per joint and slot, and the cost is in the number of
calls. So the weights of all joints are applied in one batched product, on a table [joints, graphs] of node features in
which joints that a graph lacks hold another node's features, whose results are never read. Graph layers other than
GraphConv act through a copy of their module. These products are small and of many shapes: MKL's, whatever learning takes.
"""

import copy
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array, stretches
from codesign_bench.design.space import DesignSpace
from codesign_bench.learning import products
from codesign_bench.learning.forest import Forest, build_forest
from codesign_bench.learning.networks import GNN, JointMLP, NodeNetwork
from codesign_bench.simulation.graphs import GraphBatch

MLPLayers = list[tuple[Tensor, Tensor]]
"""Of each layer the weights [stack, in, out], and its bias [stack, 1, out] less what the -1 in tanh's formula adds."""


@dataclass(frozen=True)
class ForestTable:
    """A forest as a table [joints, graphs]; joints past the last one that occurs are left out.

    - node: [joints * graphs], which node stands in each place of the table (any, where none belongs)
    - place: [nodes], where in the table each node stands
    - graph: [nodes], which graph it belongs to
    """

    forest: Forest
    joints: int
    node: Tensor
    place: Tensor
    graph: Array


class ForestCache:
    """Forests of graphs, remembered: designs change when an episode ends, not from step to step, and small batches of
    designs in the making are often the same ones."""

    def __init__(self, space: DesignSpace, capacity: int = 128) -> None:
        self.space, self._capacity = space, capacity
        self._known: OrderedDict[bytes, tuple[ForestTable, Array]] = OrderedDict()
        self._last: tuple[GraphBatch | None, bytes, tuple[ForestTable, Array] | None] = (None, b"", None)

    def get(self, graphs: GraphBatch, chosen: Array) -> tuple[ForestTable, Array]:
        """The graphs at positions `chosen` as a table, and the row of each node of its forest in the batch."""
        wanted = chosen.tobytes()
        batch, before, found = self._last
        if batch is graphs and before == wanted and found is not None:
            return found
        first = graphs.offsets[chosen]
        rows, which, begin = stretches(first, graphs.offsets[chosen + 1] - first)
        parent = graphs.parents[rows]
        key = parent.tobytes() + graphs.joint_index[rows].tobytes()  # every root is a -1, so this tells where graphs begin too
        known = self._known.get(key)
        if known is None:
            known = self._build(graphs, rows, np.where(parent < 0, -1, parent + begin[which]), which)
            self._known[key] = known
            if len(self._known) > self._capacity:
                self._known.popitem(last=False)
        table, order = known
        result = table, rows[order]
        self._last = (graphs, wanted, result)
        return result

    def _build(self, graphs: GraphBatch, rows: Array, parent: Array, which: Array) -> tuple[ForestTable, Array]:
        joint = graphs.joint_index[rows]
        forest, order = build_forest(joint, parent, graphs.sibling[rows], which, self.space.joint_depths)
        joints, graph = int(joint.max()) + 1, which[order]
        place = joint[order] * forest.num_graphs + graph
        node = np.zeros(joints * forest.num_graphs, dtype=np.int64)
        node[place] = np.arange(len(place))
        return ForestTable(forest, joints, torch.from_numpy(node), torch.from_numpy(place), graph), order

    def __getstate__(self) -> dict[str, Any]:
        return {"space": self.space, "capacity": self._capacity}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["space"], state["capacity"])  # type: ignore[misc]


def acting_network(network: nn.Module) -> Callable[[Tensor, ForestTable], Tensor]:
    """The network of a policy, as it acts: [nodes, in] -> [nodes, out]."""
    return ActingNetwork(network) if isinstance(network, NodeNetwork) else ActingModule(network)


class ActingModule:
    """A copy of a network that takes a Forest."""

    def __init__(self, network: nn.Module) -> None:
        self._network = copy.deepcopy(network).cpu()

    @products.using("mkl")
    def __call__(self, x: Tensor, table: ForestTable) -> Tensor:
        result: Tensor = self._network(x, table.forest)
        return result


class ActingNetwork:
    """What a NodeNetwork computes, from a copy of its weights. tests/learning compares the two."""

    def __init__(self, network: NodeNetwork) -> None:
        gnn = network.gnn
        self._gnn = None if gnn is None else ActingGNN(gnn) if gnn.plain else copy.deepcopy(gnn).cpu()
        self._head = mlp_layers(network.head)
        self._joint_specific = network.head.joints > 1

    @products.using("mkl")
    def __call__(self, x: Tensor, table: ForestTable) -> Tensor:
        """[nodes, in] -> [nodes, out]"""
        graphs = table.forest.num_graphs
        if self._gnn is not None:
            x = self._gnn(x, table.forest)
        if not self._joint_specific:
            return stacked_mlp(x[None], self._head)[0]
        h = stacked_mlp(x.index_select(0, table.node).view(table.joints, graphs, -1), self._head)
        return h.view(table.joints * graphs, -1).index_select(0, table.place)


class ActingGNN:
    """What a GNN of GraphConv layers computes."""

    def __init__(self, gnn: GNN) -> None:
        self._embed = _copy(gnn.embed.bias), _copy(gnn.embed.weight.t())
        self._layers = [tuple(_copy(part) for part in graph_conv_weights(layer)) for layer in gnn.layers]

    def __call__(self, x: Tensor, forest: Forest) -> Tensor:
        """[nodes, in] -> [nodes, out]"""
        x = torch.addmm(self._embed[0], x, self._embed[1])
        for bias, neighbour, own in self._layers:
            x = torch.addmm(bias, forest.neighbour_sum(x), neighbour).addmm_(x, own).relu_()
        return x


def graph_conv_weights(layer: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Of a GraphConv: bias [out], weights of the neighbours and of the node itself [in, out]."""
    return layer.lin_rel.bias, layer.lin_rel.weight.t(), layer.lin_root.weight.t()


def stacked_mlp(h: Tensor, layers: MLPLayers) -> Tensor:
    """MLPs side by side, as many as h has: [stack, rows, in] -> [stack, rows, out]; tanh(z) is 2 sigmoid(2 z) - 1 as in kernels.py."""
    last, stack = len(layers) - 1, len(h)
    for layer, (weight, shift) in enumerate(layers):
        outer = 1.0 if layer == last else 2.0
        h = torch.baddbmm(shift[:stack], h, weight[:stack], beta=outer, alpha=outer if layer == 0 else 2 * outer)
        if layer < last:
            h.sigmoid_()
    return h


def mlp_layers(head: JointMLP) -> MLPLayers:
    """A copy of the head's layers, one stack for its joints."""
    layers = []
    for layer, (weight, bias) in enumerate(zip(head.weights, head.biases, strict=True)):
        shift = bias - weight.sum(1) if layer else bias
        layers.append((_copy(weight), _copy(shift)[:, None, :]))
    return layers


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
