"""MoSAT, the network of BodyGen (Lu et al., ICLR 2025): every node of a body attends to every other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from codesign_bench.errors import ConfigError
from codesign_bench.learning.attention import attention
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.node_sets import NodeSets
from codesign_bench.structured import Count

Position = Literal["topology", "order", "none"]


@dataclass(frozen=True)
class MoSATConfig:
    """`mosat` in the configuration of a method.

    - width: of a node; hidden: of the layer inside a block
    - position: what is added to an embedded node: a vector of its joint index (TopoPE), of its place in the design's order, or nothing
    - positions: how many of these vectors there are
    """

    width: Count
    blocks: Count
    heads: Count
    hidden: Count
    position: Position
    positions: Count

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ConfigError(f"method.mosat.heads is {self.heads}; allowed are divisors of method.mosat.width, {self.width}.")

    def check(self, joints: int) -> None:
        """Raises ConfigError where a task's designs have more joints than there are positions."""
        if self.position != "none" and self.positions < joints:
            raise ConfigError(f"method.mosat.positions is {self.positions}; allowed are {joints} or more, the joints of this environment.")


class MoSAT(nn.Module):
    """Linear embedding, + position, then blocks: [nodes, in] -> [nodes, width], or [graphs, width], those of the roots."""

    def __init__(self, inputs: int, config: MoSATConfig) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, config.width)
        self.position = config.position
        self.table = None if config.position == "none" else nn.Embedding(config.positions, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))

    def forward(self, x: Tensor, forest: Forest, roots: bool = False, graphs: Tensor | None = None) -> Tensor:
        """`graphs`: numbers of those that are wanted, rising, only with `roots`; the others are not computed."""
        sets = forest.sets if graphs is None else forest.sets_of(graphs.cpu().numpy())
        h: Tensor = self.embed(x.index_select(0, sets.node))
        if self.table is not None:
            place = forest.joint if self.position == "topology" else forest.place
            h = h + self.table(place.index_select(0, sets.node))
        last = len(self.blocks) - 1
        for number, block in enumerate(self.blocks):
            h = block(h, sets, roots and number == last)
        return h.index_select(0, sets.body if roots else sets.row)


class Block(nn.Module):
    """x + Attention(LN(x)), then x + MLP(LN(x)) with SiLU; no projection after the attention, no dropout."""

    def __init__(self, config: MoSATConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.expand, self.contract = nn.Linear(width, config.hidden), nn.Linear(config.hidden, width)

    def forward(self, x: Tensor, sets: NodeSets, roots: bool = False) -> Tensor:
        """[rows, width] -> the same, or [bodies, width], what only the roots have become."""
        h = self.attention_norm(x)
        key, value = self.key(h), self.value(h)
        if roots:
            x, h = x.index_select(0, sets.root), h.index_select(0, sets.root)
        x = x + attention(self.query(h), key, value, sets.groups, self.heads)
        y: Tensor = x + self.contract(functional.silu(self.expand(self.mlp_norm(x))))
        return y
