"""Attention among the nodes of each body, for bodies of different sizes at once, with hand-written gradients.

Bodies of equal size lie side by side (node_sets.py), so that each size is one batched product without padding or masks: 13 sizes at most
for 14 nodes. tests/reference has the obvious twin, body by body.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from codesign_bench.learning import products
from codesign_bench.learning.node_sets import Groups


def attention(query: Tensor, key: Tensor, value: Tensor, groups: Groups, heads: int) -> Tensor:
    """softmax(q k^T / sqrt(width of a head)) v within each body and head.

    key, value [rows, width]; query [rows, width], or [bodies, width], one of each body. The result is as the query; zero in rows that
    only fill up.
    """
    return _Attention.apply(query, key, value, groups, heads)  # type: ignore[no-any-return,no-untyped-call]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, groups: Groups, heads: int) -> Tensor:
        per_body = len(query) != len(key)
        out, scale = _empty_like(query, groups), 1 / math.sqrt(query.shape[1] // heads)
        weights = []
        with products.using("mkl"):  # small ones in many shapes
            for group, own in _places(groups, per_body):
                q, k, v = _part(query, own, heads), _part(key, group, heads), _part(value, group, heads)
                w = torch.softmax(torch.bmm(q, k.transpose(1, 2)).mul_(scale), 2)
                _multiply(w, v, out, own, heads)
                weights.append(w)
        ctx.save_for_backward(query, key, value, *weights)
        ctx.save_for_forward(query, key, value, *weights)
        ctx.groups, ctx.heads, ctx.per_body, ctx.scale = groups, heads, per_body, scale
        return out

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        query, key, value, *weights = ctx.saved_tensors
        d_query, d_key, d_value = tangents[:3]
        out, heads = _empty_like(query, ctx.groups), ctx.heads
        for (group, own), w in zip(_places(ctx.groups, ctx.per_body), weights, strict=True):
            q, k, v = _part(query, own, heads), _part(key, group, heads), _part(value, group, heads)
            d_q, d_k, d_v = _part(d_query, own, heads), _part(d_key, group, heads), _part(d_value, group, heads)
            d_scores = (torch.bmm(d_q, k.transpose(1, 2)) + torch.bmm(q, d_k.transpose(1, 2))).mul_(ctx.scale)
            d_w = w * (d_scores - (w * d_scores).sum(2, keepdim=True))
            _multiply(torch.cat([d_w, w], 2), torch.cat([v, d_v], 1), out, own, heads)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, *weights = ctx.saved_tensors
        gradient, heads = gradients[0].contiguous(), ctx.heads
        d_query, d_key, d_value = (_empty_like(x, ctx.groups) for x in (query, key, value))
        with products.using("mkl"):
            for (group, own), w in zip(_places(ctx.groups, ctx.per_body), weights, strict=True):
                q, k, v = _part(query, own, heads), _part(key, group, heads), _part(value, group, heads)
                g = _part(gradient, own, heads)
                _multiply(w.transpose(1, 2), g, d_value, group, heads)
                d_scores = torch._softmax_backward_data(torch.bmm(g, v.transpose(1, 2)), w, 2, w.dtype).mul_(ctx.scale)
                _multiply(d_scores, k, d_query, own, heads)
                _multiply(d_scores.transpose(1, 2), q, d_key, group, heads)
        return d_query, d_key, d_value, None, None


def _places(groups: Groups, per_body: bool) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """Each group, and the same where there is one row of each body."""
    bodies = 0
    places = []
    for group in groups:
        places.append((group, (bodies, group[1], 1) if per_body else group))
        bodies += group[1]
    return places


def _empty_like(x: Tensor, groups: Groups) -> Tensor:
    """Zero in the rows that only fill up."""
    first, bodies, size = groups[-1]
    out = torch.empty_like(x)
    out[first + bodies * size :] = 0
    return out


def _view(x: Tensor, group: tuple[int, int, int], heads: int) -> Tensor:
    """[bodies, nodes, heads, width of a head]"""
    first, bodies, size = group
    return x[first : first + bodies * size].view(bodies, size, heads, -1)


def _part(x: Tensor, group: tuple[int, int, int], heads: int) -> Tensor:
    """[bodies * heads, nodes, width of a head]"""
    part = _view(x, group, heads)
    return part[:, :, 0] if heads == 1 else part.transpose(1, 2).flatten(0, 1)


def _multiply(a: Tensor, b: Tensor, out: Tensor, group: tuple[int, int, int], heads: int) -> None:
    """The batched product of a and b into a group's rows."""
    target = _view(out, group, heads)
    if heads == 1:
        torch.bmm(a, b, out=target[:, :, 0])
    else:
        product = torch.bmm(a, b)
        target.copy_(product.view(len(target), heads, *product.shape[1:]).transpose(1, 2))
