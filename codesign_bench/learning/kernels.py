"""The two products that learning spends its time in, with hand-written gradients, backward and forward (jvp).

Plain autograd spends much of its time between the matrix products: on 8,192 rows of width 64 (one thread of a shared
two-core x86 machine) torch's tanh took 1.6 to 2 times as long as the product that feeds it, its sigmoid about half as long.
Each function here has an obvious twin in tests/reference that it must equal, forward and gradient.
"""

from typing import Any

import torch
from torch import Tensor

from codesign_bench.learning import products
from codesign_bench.learning.forest import Forest

Segments = tuple[tuple[int, int, int], ...]


def graph_conv(x: Tensor, neighbour_weight: Tensor, bias: Tensor, own_weight: Tensor, forest: Forest, rows: int | None = None) -> Tensor:
    """relu(sum of neighbours @ neighbour_weight^T + bias + own @ own_weight^T) for the first `rows` nodes (default: all).

    x: [nodes, in], weights [out, in], result [rows, out]. This is PyTorch Geometric's GraphConv with sum aggregation.
    `x` must hold the neighbours of those rows.
    """
    return _GraphConv.apply(x, neighbour_weight, bias, own_weight, forest, rows)  # type: ignore[no-any-return,no-untyped-call]


class _GraphConv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, neighbour_weight: Tensor, bias: Tensor, own_weight: Tensor, forest: Forest, rows: int | None
    ) -> Tensor:
        summed = forest.neighbour_sum(x, rows)
        own = x if rows is None else x[:rows]
        out = torch.addmm(bias, summed, neighbour_weight.t())
        out.addmm_(own, own_weight.t())
        out.relu_()
        ctx.save_for_backward(x, summed, out, neighbour_weight, own_weight)
        ctx.save_for_forward(x, summed, out, neighbour_weight, own_weight)
        ctx.forest = forest
        return out

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        x, summed, out, neighbour_weight, own_weight = ctx.saved_tensors
        d_x, d_neighbour, d_bias, d_own = tangents[:4]
        rows = len(out)
        moved = torch.addmm(d_bias, summed, d_neighbour.t()).addmm_(x[:rows], d_own.t())
        if d_x is not None:
            moved.addmm_(ctx.forest.neighbour_sum(d_x, rows), neighbour_weight.t()).addmm_(d_x[:rows], own_weight.t())
        result: Tensor = torch.ops.aten.threshold_backward(moved, out, 0)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, summed, out, neighbour_weight, own_weight = ctx.saved_tensors
        g = torch.ops.aten.threshold_backward(gradients[0], out, 0)
        rows = len(out)
        d_neighbour, d_bias, d_own = g.t() @ summed, g.sum(0), g.t() @ x[:rows]
        d_x = None
        if ctx.needs_input_grad[0]:
            # the neighbour relation is symmetric, so its transpose is the same sum, with zeros where no gradient arrives
            back = g @ neighbour_weight
            if rows < ctx.forest.num_nodes:
                padded = back.new_zeros((ctx.forest.num_nodes, back.shape[1]))
                padded[:rows] = back
                back = padded
            d_x = ctx.forest.neighbour_sum(back, len(x))
            d_x[:rows].addmm_(g, own_weight)
        return d_x, d_neighbour, d_bias, d_own, None, None


def tanh_mlp(x: Tensor, segments: Segments, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    """A multilayer perceptron with tanh between its layers and its own weights for each joint.

    x [nodes, in]; segments: rows start:end use the weights of a joint; weights [joints, in, out] and biases [joints, out]
    of each layer; result [nodes, out of the last].
    """
    parameters = [tensor for pair in zip(weights, biases, strict=True) for tensor in pair]
    return _TanhMLP.apply(x, segments, *parameters)  # type: ignore[no-any-return,no-untyped-call]


class _TanhMLP(torch.autograd.Function):
    """tanh(z) = 2 s - 1 with s = sigmoid(2 z). Only s is stored; the factors of two and the -1 go into the products around
    it (their alpha and bias), so an activation costs one pass over memory each way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, segments: Segments, *parameters: Tensor) -> Tensor:
        weights, biases = parameters[0::2], parameters[1::2]
        joints, sizes = [joint for joint, _, _ in segments], [end - start for _, start, end in segments]
        last = len(weights) - 1
        stored, h = [], x
        for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            after_tanh = layer > 0
            shift = bias - weight.sum(1) if after_tanh else bias
            outer = 1.0 if layer == last else 2.0
            inner = outer * (2.0 if after_tanh else 1.0)
            out = h.new_empty((len(h), weight.shape[2]))
            with products.suited_to(weight.shape[2]):
                for joint, rows, target in zip(joints, h.split(sizes), out.split(sizes), strict=True):
                    torch.addmm(shift[joint], rows, weight[joint], beta=outer, alpha=inner, out=target)
            if layer < last:
                out.sigmoid_()
                stored.append(out)
            h = out
        ctx.save_for_backward(x, *stored, *weights)
        ctx.save_for_forward(x, *stored, *weights)
        ctx.segments, ctx.hidden = segments, len(stored)
        return h

    @staticmethod
    def jvp(ctx: Any, d_x: Tensor | None, _: Any, *tangents: Tensor) -> Tensor:
        saved = ctx.saved_tensors
        x, stored, weights = saved[0], saved[1 : 1 + ctx.hidden], saved[1 + ctx.hidden :]
        h, d_h = x, d_x
        for layer, (weight, d_weight, d_bias) in enumerate(zip(weights, tangents[0::2], tangents[1::2], strict=True)):
            out = h.new_empty((len(h), weight.shape[2]))
            for joint, start, end in ctx.segments:
                torch.addmm(d_bias[joint], h[start:end], d_weight[joint], out=out[start:end])
                if d_h is not None:
                    out[start:end].addmm_(d_h[start:end], weight[joint])
            if layer < ctx.hidden:
                h = 2 * stored[layer] - 1
                out *= 1 - h * h
            d_h = out
        assert d_h is not None
        return d_h

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        x, stored, weights = saved[0], saved[1 : 1 + ctx.hidden], saved[1 + ctx.hidden :]
        joints, sizes = [joint for joint, _, _ in ctx.segments], [end - start for _, start, end in ctx.segments]
        g, scale = gradients[0].contiguous(), 1.0
        results: list[Tensor | None] = []
        for layer in range(len(weights) - 1, -1, -1):
            weight, after_tanh = weights[layer], layer > 0
            h = stored[layer - 1] if after_tanh else x
            d_weight, d_bias = torch.zeros_like(weight), weight.new_zeros((weight.shape[0], weight.shape[2]))
            need_input = after_tanh or ctx.needs_input_grad[0]
            d_h = torch.empty_like(h) if need_input else None
            factor = scale * (2.0 if after_tanh else 1.0)
            with products.suited_to(weight.shape[2]):
                for joint, rows, inputs in zip(joints, g.split(sizes), h.split(sizes), strict=True):
                    share = d_weight[joint]
                    torch.sum(rows, 0, out=d_bias[joint])
                    torch.addmm(share, inputs.t(), rows, beta=0, alpha=factor, out=share)
                if d_h is not None:
                    for joint, rows, target in zip(joints, g.split(sizes), d_h.split(sizes), strict=True):
                        torch.addmm(target, rows, weight[joint].t(), beta=0, alpha=scale, out=target)
            d_bias *= scale
            if after_tanh:
                assert d_h is not None
                d_weight -= d_bias[:, None, :]
                g = torch.addcmul(h, h, h, value=-1).mul_(d_h)  # s (1 - s), a quarter of the slope of tanh
                scale = 4.0
            results[:0] = [d_weight, d_bias]
        results.insert(0, d_h)
        return results[0], None, *results[1:]
