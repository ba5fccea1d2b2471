"""BodyGen's networks and its credit assignment, written down as the paper and its code say them: body by body, node by node.

Nothing is shared with codesign_bench.learning but the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def mosat(network: Any, x: Tensor, position: Tensor) -> Tensor:
    """One body: features [nodes, in] and rows of the table of positions [nodes] -> [nodes, width]."""
    h = x @ network.embed.weight.T + network.embed.bias
    if network.table is not None:
        h = torch.stack([each + network.table.weight[int(row)] for each, row in zip(h, position, strict=True)])
    for block in network.blocks:
        h = h + _attention(block, _layer_norm(h, block.attention_norm))
        inner = _layer_norm(h, block.mlp_norm) @ block.expand.weight.T + block.expand.bias
        h = h + (inner * torch.sigmoid(inner)) @ block.contract.weight.T + block.contract.bias
    return h


def _layer_norm(h: Tensor, layer: Any) -> Tensor:
    mean = h.mean(1, keepdim=True)
    variance = ((h - mean) ** 2).mean(1, keepdim=True)
    return (h - mean) / torch.sqrt(variance + 1e-5) * layer.weight + layer.bias


def _attention(block: Any, h: Tensor) -> Tensor:
    query, key, value = (h @ layer.weight.T + layer.bias for layer in (block.query, block.key, block.value))
    width = h.shape[1] // block.heads
    rows = []
    for node in range(len(h)):
        heads = []
        for head in range(block.heads):
            mine = slice(head * width, (head + 1) * width)
            scores = torch.stack([query[node, mine] @ key[other, mine] / math.sqrt(width) for other in range(len(h))])
            weights = torch.exp(scores) / torch.exp(scores).sum()
            heads.append(sum(weights[other] * value[other, mine] for other in range(len(h))))
        rows.append(torch.cat(heads))
    return torch.stack(rows)


def value(network: Any, x: Tensor, position: Tensor) -> Tensor:
    """Of one body, read at its root, which comes first."""
    h = mosat(network.encoder, x, position)[:1]
    *hidden, last = zip(network.head.weights, network.head.biases, strict=True)
    for weight, bias in hidden:
        h = torch.tanh(h @ weight[0] + bias[0])
    return (h @ last[0][0] + last[1][0])[0, 0]


def returns_of_episodes(rewards: Sequence[float], ended: Sequence[bool]) -> list[float | None]:
    """Of one slot, in all its batches: for every step the sum of rewards from there to the end of its episode, None if that is to come."""
    found: list[float | None] = []
    for start in range(len(rewards)):
        total, finished = 0.0, False
        for reward, end in zip(rewards[start:], ended[start:], strict=True):
            total += reward
            if end:
                finished = True
                break
        found.append(total if finished else None)
    return found
