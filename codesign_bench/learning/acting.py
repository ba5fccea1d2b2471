"""Networks as they act: a snapshot of weights in the form that small batches want.

Learning multiplies thousands of rows per joint; acting has one row per joint and slot, and the cost is in the number of
calls. So the weights of all joints are applied in one batched product, on a table [joints, graphs] of node features in
which joints that a graph lacks hold another node's features, whose results are never read.
"""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from codesign_bench.learning.forest import Forest
from codesign_bench.learning.networks import JointMLP, NodeNetwork

Array = NDArray[Any]


class ActingNetwork:
    """What a NodeNetwork computes, from a copy of its weights. tests/learning compares the two."""

    def __init__(self, network: NodeNetwork) -> None:
        with torch.no_grad():
            self._embed: tuple[Tensor, Tensor] | None = None
            self._layers: list[tuple[Tensor, Tensor, Tensor]] = []
            if network.gnn is not None:
                embed = network.gnn.embed
                self._embed = (embed.bias.clone(), embed.weight.t().contiguous())
                for layer in network.gnn.layers:
                    neighbour, own = layer.neighbour, layer.own
                    self._layers.append((neighbour.bias.clone(), neighbour.weight.t().contiguous(), own.weight.t().contiguous()))
            self._head = _head(network.head)
        self.joints = network.head.joints

    def __call__(self, x: Tensor, forest: Forest) -> Tensor:
        """[nodes, in] -> [nodes, out]"""
        if self._embed is not None:
            x = torch.addmm(self._embed[0], x, self._embed[1])
            for bias, neighbour, own in self._layers:
                summed = forest.neighbour_sum(x)
                x = torch.addmm(bias, summed, neighbour).addmm_(x, own).relu_()
        if self.joints == 1:
            return self._mlp(x[None])[0]
        graphs = forest.num_graphs
        place = torch.from_numpy(_places(forest))
        table = torch.zeros(self.joints * graphs, dtype=torch.int64)
        table[place] = torch.arange(forest.num_nodes)
        h = self._mlp(x.index_select(0, table).view(self.joints, graphs, -1))
        return h.view(self.joints * graphs, -1).index_select(0, place)

    def _mlp(self, h: Tensor) -> Tensor:
        """[joints, rows, in] -> [joints, rows, out]; tanh(z) is 2 sigmoid(2 z) - 1 as in kernels.py."""
        last = len(self._head) - 1
        for layer, (weight, shift) in enumerate(self._head):
            outer = 1.0 if layer == last else 2.0
            h = torch.baddbmm(shift, h, weight, beta=outer, alpha=outer if layer == 0 else 2 * outer)
            if layer < last:
                h.sigmoid_()
        return h


def _head(head: JointMLP) -> list[tuple[Tensor, Tensor]]:
    layers = []
    for layer, (weight, bias) in enumerate(zip(head.weights, head.biases, strict=True)):
        shift = bias - weight.sum(1) if layer else bias
        layers.append((weight.detach().clone(), shift.detach().clone()[:, None, :]))
    return layers


def _places(forest: Forest) -> Array:
    """[nodes]: where in a table [joints, graphs] each node belongs."""
    places = forest.graph.numpy().copy()
    for joint, start, end in forest.segments:
        places[start:end] += joint * forest.num_graphs
    return places


class ForestCache:
    """Remembers the forest of the last batch: designs change when an episode ends, not from step to step."""

    def __init__(self) -> None:
        self._key: Any = None
        self._value: Any = None

    def get(self, owner: object, chosen: Array, make: Any) -> Any:
        key = chosen.tobytes()
        if self._key is None or self._key[0] is not owner or self._key[1] != key:
            self._key, self._value = (owner, key), make()
        return self._value

    def __getstate__(self) -> dict[str, Any]:
        return {"_key": None, "_value": None}
