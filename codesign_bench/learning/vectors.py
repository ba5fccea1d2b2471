"""A network's parameters in one vector, and beside it the vectors that change it: gradients of shards, and Adam's moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array
from codesign_bench.simulation.processes import Layout

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Adam's, as in Kingma and Ba."""
GRAIN = 1024
"""Parts of a vector begin at multiples of it, so that every element is computed by the same instructions whatever the parts."""
Stretch = tuple[int, int]
"""Of a vector: its first number, and the one after its last."""


class Vectors:
    """All of one network: `values`, of which its parameters become views, `gradients` [shards, ...] and their `total`, and Adam's
    moments `mean` and `square`. They may lie in memory that several processes share."""

    def __init__(self, parameters: Sequence[nn.Parameter], arrays: dict[str, Tensor]) -> None:
        """`arrays`: as `layout` says; `values` holds the parameters' values already."""
        self.parameters, self._sizes = list(parameters), [parameter.numel() for parameter in parameters]
        self.values, self.gradients, self.total, self.mean, self.square = (arrays[name] for name in layout_of_vectors(1, 1))
        for parameter, mine in zip(self.parameters, self._views(self.values), strict=True):
            parameter.data = mine
        self._targets: list[list[Tensor]] = [self._views(row) for row in self.gradients]
        self._filled = [[True] * len(self.parameters) for _ in self._targets]

    def take(self, shard: int, loss: Tensor, keep: bool = False) -> None:
        """The gradients of a shard's loss; zero for parameters that it does not depend on. `keep`: more is asked of the same graph."""
        found = torch.autograd.grad(loss, self.parameters, allow_unused=True, retain_graph=keep)
        targets, filled = self._targets[shard], self._filled[shard]
        pairs = [(target, gradient) for target, gradient in zip(targets, found, strict=True) if gradient is not None]
        torch._foreach_copy_([target for target, _ in pairs], [gradient for _, gradient in pairs])
        used = [gradient is not None for gradient in found]
        for target, before, now in zip(targets, filled, used, strict=True):
            if before and not now:
                target.zero_()
        self._filled[shard] = used

    def sum_gradients(self, part: int, shards: int) -> float:
        """Shard after shard, in one of the parts of the vector; returns the square of their norm."""
        mine = self._part(part)
        total = self.total[mine].copy_(self.gradients[0, mine])
        for row in self.gradients[1:shards]:
            total += row[mine]
        return float(torch.linalg.vector_norm(total)) ** 2  # torch's dot takes 16 times as long (568,320 numbers, Zen 5)

    def step(self, part: int, scale: float, rate: float, count: int, stretch: Stretch | None = None) -> None:
        """Adam's `count`-th step in one of the parts, with gradients multiplied by `scale`; only within a stretch, if one is given."""
        mine = self._part(part)
        if stretch is not None:
            mine = slice(max(mine.start, stretch[0]), max(mine.start, min(mine.stop, stretch[1])))
        if len(self.values[mine]) == 0:
            return
        if scale != 1:
            self.total[mine] *= scale
        lists = [[vector[mine]] for vector in (self.values, self.total, self.mean, self.square)]
        done = torch.tensor(float(count), device=self.values.device)
        settings: dict[str, Any] = {"lr": rate, "beta1": BETAS[0], "beta2": BETAS[1], "eps": EPSILON, "weight_decay": 0.0}
        torch._fused_adam_(*lists, [], [done], **settings, amsgrad=False, maximize=False)  # type: ignore[call-overload]

    def state_dict(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "square": self.square}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.mean.copy_(state["mean"])
        self.square.copy_(state["square"])

    def _part(self, number: int) -> slice:
        """As many parts as there are shards."""
        size = -(-len(self.values) // (len(self.gradients) * GRAIN)) * GRAIN
        return slice(number * size, (number + 1) * size)

    def _views(self, vector: Tensor) -> list[Tensor]:
        return [part.view_as(p) for p, part in zip(self.parameters, vector.split(self._sizes), strict=True)]


def layout_of_vectors(size: int, shards: int) -> Layout:
    """Of a network with so many numbers."""
    shapes = {"values": (size,), "gradients": (shards, size), "total": (size,), "mean": (size,), "square": (size,)}
    return {name: (shape, "<f4") for name, shape in shapes.items()}


def values_of(parameters: Sequence[nn.Parameter]) -> Tensor:
    return torch.cat([parameter.detach().ravel() for parameter in parameters])


def new_vectors(parameters: Sequence[nn.Parameter], shards: int) -> Vectors:
    """In this process, where the parameters are."""
    values = values_of(parameters)
    arrays = {name: values.new_zeros(shape) for name, (shape, _) in layout_of_vectors(len(values), shards).items()}
    return Vectors(parameters, arrays | {"values": values})


def tensors(arrays: dict[str, Array]) -> dict[str, Tensor]:
    """That share the arrays' memory."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def halves(network: nn.Module, last: nn.Module) -> tuple[Stretch, Stretch]:
    """Of the vector of a network's parameters: those before its `last` part, and those of it."""
    total, end = (sum(parameter.numel() for parameter in module.parameters()) for module in (network, last))
    return (0, total - end), (total - end, total)
