"""The layer of the paper's graph networks: PyTorch Geometric's GraphConv with our kernel.

It does without torch_geometric, whose import takes longer than the rest of a run's start, until an edge_index is given.
"""

from __future__ import annotations

from torch import Tensor, nn

from codesign_bench.learning.forest import Forest
from codesign_bench.learning.kernels import graph_conv


class GraphConv(nn.Module):
    """Morris et al. 2019: own features and the sum of the neighbours', each through its own weights; then ReLU.

    Parameters are named as in torch_geometric.nn.GraphConv, so that state dicts load both ways. On a Forest `x` need only hold the nodes
    that the first `rows` see.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin_rel = nn.Linear(in_channels, out_channels)
        self.lin_root = nn.Linear(in_channels, out_channels, bias=False)

    def forward(self, x: Tensor, graph: Forest | Tensor, rows: int | None = None) -> Tensor:
        """[nodes, in] -> [rows, out], the first `rows` nodes (default: all); `graph`: a forest, or an edge_index [2, edges]"""
        if isinstance(graph, Forest):
            return graph_conv(x, self.lin_rel.weight, self.lin_rel.bias, self.lin_root.weight, graph, rows)
        out: Tensor = self.original()(x, graph)
        return out.relu()[:rows]

    def original(self) -> nn.Module:
        """PyTorch Geometric's own layer on these weights, without the ReLU."""
        from codesign_bench.learning.layers import make_original

        layer = make_original("GraphConv", self.in_channels, self.out_channels)
        layer.lin_rel, layer.lin_root = self.lin_rel, self.lin_root  # type: ignore[assignment]
        return layer
