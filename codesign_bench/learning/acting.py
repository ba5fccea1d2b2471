"""Networks as they act: a snapshot of weights in the form that small batches want.

Learning multiplies thousands of rows per joint; acting has one row per joint and slot, and the cost is in the number of
calls. So the weights of all joints are applied in one batched product, on a table [joints, graphs] of node features in
which joints that a graph lacks hold another node's features, whose results are never read.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from codesign_bench.design.space import DesignSpace
from codesign_bench.learning.forest import Forest, plant
from codesign_bench.learning.networks import JointMLP, NodeNetwork
from codesign_bench.simulation.graphs import GraphBatch

Array = NDArray[Any]


@dataclass(frozen=True)
class ActingForest:
    """A forest and its table [joints, graphs]; joints past the last one that occurs are left out.

    table  [joints * graphs]  which node stands in each place of the table (any, where none belongs)
    place  [nodes]            where in the table each node stands
    graph  [nodes]            which graph it belongs to
    """

    forest: Forest
    joints: int
    table: Tensor
    place: Tensor
    graph: Array


class ForestCache:
    """Forests of graphs, remembered: designs change when an episode ends, not from step to step, and small batches of
    designs in the making are often the same ones."""

    def __init__(self, space: DesignSpace, most: int = 128) -> None:
        self.space, self._most = space, most
        self._known: OrderedDict[bytes, tuple[ActingForest, Array]] = OrderedDict()
        self._last: tuple[GraphBatch | None, bytes, tuple[ActingForest, Array] | None] = (None, b"", None)

    def get(self, graphs: GraphBatch, chosen: Array) -> tuple[ActingForest, Array]:
        """The graphs at positions `chosen` as a forest, and the row of each of its nodes in the batch."""
        wanted = chosen.tobytes()
        batch, before, found = self._last
        if batch is graphs and before == wanted and found is not None:
            return found
        first = graphs.offsets[chosen]
        count = graphs.offsets[chosen + 1] - first
        which = np.repeat(np.arange(len(chosen)), count)
        begin = np.cumsum(count) - count
        rows = np.arange(len(which)) + (first - begin)[which]
        parent = graphs.parents[rows]
        key = parent.tobytes() + graphs.joint_index[rows].tobytes()  # every root is a -1, so this tells where graphs begin too
        known = self._known.get(key)
        if known is None:
            known = self._plant(graphs, rows, np.where(parent < 0, -1, parent + begin[which]), which)
            self._known[key] = known
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        forest, order = known
        result = forest, rows[order]
        self._last = (graphs, wanted, result)
        return result

    def _plant(self, graphs: GraphBatch, rows: Array, parent: Array, which: Array) -> tuple[ActingForest, Array]:
        joint = graphs.joint_index[rows]
        forest, order = plant(joint, parent, graphs.sibling[rows], which, self.space.joint_depths)
        joints, graph = int(joint.max()) + 1, which[order]
        place = joint[order] * forest.num_graphs + graph
        table = np.zeros(joints * forest.num_graphs, dtype=np.int64)
        table[place] = np.arange(len(place))
        return ActingForest(forest, joints, torch.from_numpy(table), torch.from_numpy(place), graph), order

    def __getstate__(self) -> dict[str, Any]:
        return {"space": self.space, "most": self._most}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["space"], state["most"])  # type: ignore[misc]


class ActingNetwork:
    """What a NodeNetwork computes, from a copy of its weights. tests/learning compares the two."""

    def __init__(self, network: NodeNetwork) -> None:
        self._embed: tuple[Tensor, Tensor] | None = None
        self._layers: list[tuple[Tensor, Tensor, Tensor]] = []
        if network.gnn is not None:
            embed = network.gnn.embed
            self._embed = (_copy(embed.bias), _copy(embed.weight.t()))
            for layer in network.gnn.graph_convs():
                self._layers.append((_copy(layer.neighbour.bias), _copy(layer.neighbour.weight.t()), _copy(layer.own.weight.t())))
        self._head = _head(network.head)
        self._joint_specific = network.head.joints > 1

    def __call__(self, x: Tensor, acting: ActingForest) -> Tensor:
        """[nodes, in] -> [nodes, out]"""
        forest = acting.forest
        if self._embed is not None:
            x = torch.addmm(self._embed[0], x, self._embed[1])
            for bias, neighbour, own in self._layers:
                summed = forest.neighbour_sum(x)
                x = torch.addmm(bias, summed, neighbour).addmm_(x, own).relu_()
        if not self._joint_specific:
            return self._mlp(x[None])[0]
        h = self._mlp(x.index_select(0, acting.table).view(acting.joints, forest.num_graphs, -1))
        return h.view(acting.joints * forest.num_graphs, -1).index_select(0, acting.place)

    def _mlp(self, h: Tensor) -> Tensor:
        """[joints, rows, in] -> [joints, rows, out]; tanh(z) is 2 sigmoid(2 z) - 1 as in kernels.py."""
        last, joints = len(self._head) - 1, len(h)
        for layer, (weight, shift) in enumerate(self._head):
            outer = 1.0 if layer == last else 2.0
            h = torch.baddbmm(shift[:joints], h, weight[:joints], beta=outer, alpha=outer if layer == 0 else 2 * outer)
            if layer < last:
                h.sigmoid_()
        return h


def _head(head: JointMLP) -> list[tuple[Tensor, Tensor]]:
    layers = []
    for layer, (weight, bias) in enumerate(zip(head.weights, head.biases, strict=True)):
        shift = bias - weight.sum(1) if layer else bias
        layers.append((_copy(weight), _copy(shift)[:, None, :]))
    return layers


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
