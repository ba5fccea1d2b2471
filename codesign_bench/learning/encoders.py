"""Networks that put a head on an encoder of nodes, which is MoSAT or a GNN: one output per node, or one number per graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from codesign_bench.learning.forest import Forest
from codesign_bench.learning.mosat import MoSAT
from codesign_bench.learning.networks import GNN, OUTPUT_SCALE, JointMLP, Sizes

Encoder = MoSAT | GNN


class EncodedNodes(nn.Module):
    """features -> encoder -> linear layer: [nodes, in] -> [nodes, out]. Of a `small` one the initial output is scaled by OUTPUT_SCALE."""

    def __init__(self, encoder: Encoder, width: int, outputs: int, small: bool) -> None:
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(width, outputs)
        if small:
            with torch.no_grad():
                self.head.weight.mul_(OUTPUT_SCALE)
                self.head.bias.zero_()

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        result: Tensor = self.head(self.encoder(x, forest))
        return result


class EncodedValue(nn.Module):
    """One number per graph, read at its root: features -> encoder -> MLP."""

    def __init__(self, encoder: Encoder, width: int, mlp: Sizes) -> None:
        super().__init__()
        self.encoder, self.head = encoder, JointMLP(width, mlp, 1, joints=1, init="linear")

    def forward(self, x: Tensor, forest: Forest, graphs: Tensor | None = None) -> Tensor:
        """[nodes, in] -> [graphs], or some of them, whose numbers rise"""
        if isinstance(self.encoder, MoSAT):
            root = self.encoder(x, forest, roots=True, graphs=graphs)
        else:
            root = self.encoder(x, forest, depth=0)
            root = root if graphs is None else root.index_select(0, graphs)
        result: Tensor = self.head(root, ())[:, 0]
        return result
