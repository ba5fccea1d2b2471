"""Many trees at once, laid out for fast products.

Nodes are sorted by joint index. That puts equal joints side by side (one matrix product per joint), roots first in the
order of their graphs, and, because indices are numbered breadth first, every depth after the one above it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from codesign_bench.arrays import Array
from codesign_bench.learning import products
from codesign_bench.learning.node_sets import NodeSets, node_sets


@dataclass(frozen=True)
class Forest:
    """Neighbours of every node in compressed rows, segments of equal joints, and how many nodes lie up to each depth.

    - neighbours: [edges], positions of the neighbours (parent, then children) of node 0, of node 1, ...
    - offsets: [nodes + 1], where each node's neighbours begin
    - segments: (joint, start, end) of contiguous rows with the same joint index
    - up_to_depth: number of nodes with depth <= 0, 1, 2, ...; the first is the number of graphs
    - graph: [nodes], which graph a node belongs to
    - order: [nodes], which of the nodes that it was built from each one is
    - fillers: how many graphs, the last ones, only fill up
    """

    neighbours: Tensor
    offsets: Tensor
    segments: tuple[tuple[int, int, int], ...]
    up_to_depth: tuple[int, ...]
    graph: Tensor
    order: Array
    fillers: int = 0

    def to(self, device: torch.device) -> Forest:
        if device == self.graph.device:
            return self
        return replace(self, neighbours=self.neighbours.to(device), offsets=self.offsets.to(device), graph=self.graph.to(device))

    @cached_property
    def sets(self) -> NodeSets:
        """Its nodes, but for those that fill up, as attention wants them."""
        return self.sets_of(np.arange(self.num_graphs - self.fillers))

    def sets_of(self, graphs: Array) -> NodeSets:
        """The same of some of its graphs, whose numbers rise."""
        return node_sets(self.graph.cpu().numpy(), graphs, products.multiple_of_rows()).to(self.graph.device)

    @cached_property
    def joint(self) -> Tensor:
        """[nodes]: joint index."""
        joints, sizes = [joint for joint, _, _ in self.segments], [end - start for _, start, end in self.segments]
        return torch.from_numpy(np.repeat(joints, sizes)).to(self.graph.device)

    @cached_property
    def place(self) -> Tensor:
        """[nodes]: which of its design's nodes each one is; the forest was built from one design after the other."""
        graph = self.graph.cpu().numpy()
        first = np.full(self.num_graphs, len(graph))
        np.minimum.at(first, graph, self.order)
        return torch.from_numpy(self.order - first[graph]).to(self.graph.device)

    @property
    def num_nodes(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_graphs(self) -> int:
        return self.up_to_depth[0]

    @cached_property
    def edge_index(self) -> Tensor:
        """[2, edges]: from the neighbour to the node, as PyTorch Geometric has it."""
        nodes = torch.arange(self.num_nodes, device=self.offsets.device)
        return torch.stack([self.neighbours, nodes.repeat_interleave(self.offsets.diff())])

    def neighbour_sum(self, x: Tensor, rows: int | None = None) -> Tensor:
        """Sum over neighbours of the first `rows` nodes: [nodes, width] -> [rows, width]. An embedding bag is the fastest
        sparse product with a matrix of ones that torch has on a CPU (one thread of a shared two-core x86 machine, 8,192 nodes
        of width 64: 4 to 8 times as fast as index_add, 1.5 to 3 times as fast as a CSR product)."""
        offsets = self.offsets if rows is None else self.offsets[: rows + 1]
        neighbours = self.neighbours if rows is None else self.neighbours[: int(offsets[-1])]
        if len(neighbours) == 0:
            return x.new_zeros((len(offsets) - 1, x.shape[1]))
        return torch.embedding_bag(x, neighbours, offsets, False, 0, False, None, True)[0]


def build_forest(joint_index: Array, parent: Array, sibling: Array, graph: Array, depth_of_joint: Array) -> tuple[Forest, Array]:
    """A forest from flat nodes in any order, and the order in which it takes them: row i of the forest is node order[i].

    joint_index, parent (position among these nodes, -1 for roots), sibling (0-based rank among its siblings), graph
    (non-decreasing over the roots): all [nodes]; depth_of_joint [joints].
    """
    nodes = len(joint_index)
    order = np.argsort(joint_index.astype(np.int16), kind="stable")
    position = np.empty(nodes + 1, dtype=np.int64)
    position[order] = np.arange(nodes)
    position[-1] = -1
    joints = joint_index[order]
    parents = position[parent[order]]  # the root's -1 picks the last entry, which is -1
    counts = np.bincount(joints, minlength=len(depth_of_joint))
    ends = np.cumsum(counts)
    roots = int(counts[0])

    child = np.arange(roots, nodes)
    parent_of_child = parents[roots:]
    degree = np.bincount(parent_of_child, minlength=nodes)
    degree[roots:] += 1
    offsets = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(degree, out=offsets[1:])
    neighbours = np.empty(2 * (nodes - roots), dtype=np.int64)
    neighbours[offsets[roots:-1]] = parent_of_child
    neighbours[offsets[parent_of_child] + (parent_of_child >= roots) + sibling[order][roots:]] = child

    present = np.flatnonzero(counts)
    segments = tuple((int(j), int(ends[j] - counts[j]), int(ends[j])) for j in present)
    depths = depth_of_joint[-1] + 1
    up_to_depth = tuple(int(counts[depth_of_joint <= d].sum()) for d in range(depths))
    forest = Forest(torch.from_numpy(neighbours), torch.from_numpy(offsets), segments, up_to_depth, torch.from_numpy(graph[order]), order)
    return forest, order


def filled_up(forest: Forest, order: Array, multiple: int) -> tuple[Forest, Array]:
    """Every segment of a forest brought to a multiple of rows, so that products come in few shapes. What fills it up copies a node of the
    segment, has no neighbours, and is in a graph that comes after all others: whoever reads the result of each graph leaves those out."""
    starts, ends = (np.array(numbers) for numbers in list(zip(*forest.segments, strict=True))[1:])
    sizes = ends - starts
    needed = sizes.copy()
    needed[0] += 1  # a graph that is nobody's
    room = -(-needed // multiple) * multiple
    row = np.arange(forest.num_nodes) + np.repeat(np.cumsum(room) - room - starts, sizes)
    source = np.repeat(ends - 1, room)
    source[row] = np.arange(forest.num_nodes)
    degree = np.zeros(len(source), dtype=np.int64)
    degree[row] = np.diff(forest.offsets.numpy())
    graph = np.full(len(source), forest.num_graphs)
    graph[row] = forest.graph.numpy()
    graph[sizes[0] : room[0]] = np.arange(sizes[0], room[0])
    joints = [joint for joint, _, _ in forest.segments]
    places = zip(joints, (np.cumsum(room) - room).tolist(), np.cumsum(room).tolist(), strict=True)
    filled = Forest(
        neighbours=torch.from_numpy(row[forest.neighbours.numpy()]),
        offsets=torch.from_numpy(np.concatenate([[0], np.cumsum(degree)])),
        segments=tuple(places),
        up_to_depth=tuple(int(room[ends <= rows].sum()) for rows in forest.up_to_depth),
        graph=torch.from_numpy(graph),
        order=forest.order[source],
        fillers=int(room[0] - sizes[0]),
    )
    return filled, order[source]
