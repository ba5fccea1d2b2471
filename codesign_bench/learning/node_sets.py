"""Many bodies as sets of nodes, laid out for attention: bodies of equal size lie side by side, each with its nodes together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from codesign_bench.arrays import Array

Groups = tuple[tuple[int, int, int], ...]
"""(first row, bodies, nodes of each) of bodies with equally many nodes."""


@dataclass(frozen=True)
class NodeSets:
    """Which node stands in which row.

    - node [rows]: of the forest; rows past the last one only fill up and repeat a node
    - row [nodes of the forest]: where each stands; any row for nodes that are left out
    - groups: smaller bodies before larger ones
    - root [bodies]: row of each body's root, in the order of the rows
    - body [graphs]: which of those bodies each graph is
    """

    node: Tensor
    row: Tensor
    groups: Groups
    root: Tensor
    body: Tensor

    def to(self, device: torch.device) -> NodeSets:
        node, row, root, body = (tensor.to(device) for tensor in (self.node, self.row, self.root, self.body))
        return NodeSets(node, row, self.groups, root, body)


def node_sets(graph: Array, graphs: Array, multiple: int = 1) -> NodeSets:
    """Of the `graphs` (numbers, rising) that nodes belong to, `graph` [nodes], with roots first; rows come in a multiple."""
    size = np.bincount(graph, minlength=int(graph.max()) + 1)
    by_size = graphs[np.argsort(size[graphs], kind="stable")]
    sizes = size[by_size]
    ends = np.cumsum(sizes)
    first = np.full(len(size), -1)
    first[by_size] = ends - sizes
    by_graph = np.argsort(graph.astype(np.uint16) if len(size) < 1 << 16 else graph, kind="stable")
    rank = np.empty(len(graph), dtype=np.int64)  # of a node within its body
    rank[by_graph] = np.arange(len(graph)) - np.repeat(np.cumsum(size) - size, size)
    wanted = first[graph] >= 0
    row = np.where(wanted, first[graph] + rank, 0)
    rows = int(ends[-1])
    node = np.zeros(-(-rows // multiple) * multiple, dtype=np.int64)
    node[row[wanted]] = np.flatnonzero(wanted)
    values, begin, count = np.unique(sizes, return_index=True, return_counts=True)
    starts = (ends - sizes)[begin]
    groups = tuple(zip(starts.tolist(), count.tolist(), values.tolist(), strict=True))
    body = np.empty(len(graphs), dtype=np.int64)
    body[np.searchsorted(graphs, by_size)] = np.arange(len(graphs))
    return NodeSets(torch.from_numpy(node), torch.from_numpy(row), groups, torch.from_numpy(ends - sizes), torch.from_numpy(body))
