"""Robots as graphs of PyTorch Geometric."""

import torch
from torch_geometric.data import Data

from codesign_bench.design.graph import Design
from codesign_bench.design.space import DesignSpace
from codesign_bench.tasks.features import FeatureLayout

DOWN, UP = 0, 1
"""Types of edges: from a parent to its child, and back."""


def to_data(design: Design, space: DesignSpace) -> Data:
    """The body alone, without any simulator state; nodes are numbered as in the design, node 0 is the root.

    - x: [nodes, depths + 5] float32, depth as a one-hot vector, then the attributes
    - edge_index: [2, 2 (nodes - 1)], from parents to children, then back
    - edge_type: [edges], 0 down, 1 up
    - depth: [nodes]
    - axis: [nodes, 3] float32, of each joint in the frame of its parent; zeros for the root
    - attributes: [nodes, 5] float32, normalised to -1 to 1
    """
    topology = space.topology(design)
    child = torch.arange(1, design.num_nodes)
    parent = torch.from_numpy(design.parents[1:].copy())
    down = torch.stack([parent, child])
    x = FeatureLayout(space.num_depths, 0).features(topology.depth, design.attributes)
    return Data(
        x=torch.from_numpy(x),
        edge_index=torch.cat([down, down.flip(0)], dim=1),
        edge_type=torch.tensor([DOWN, UP]).repeat_interleave(len(child)),
        depth=torch.from_numpy(topology.depth.copy()),
        axis=torch.tensor(design.axis, dtype=torch.float32),
        attributes=torch.tensor(design.attributes, dtype=torch.float32),
    )
