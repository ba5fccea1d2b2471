"""Which library multiplies float32 matrices: MKL, or oneDNN where it is faster and as exact.

Both are in torch. MKL keeps to its AVX2 kernels on processors that are not Intel's; oneDNN uses what there is, but prepares itself for
every shape that it meets, so it wants few: rows of a product come in multiples of ROWS.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor

Route = Literal["mkl", "onednn"]
ROWS = 64
FASTER = 1.15
"""How much faster oneDNN has to be: what rows that only fill up cost, and the noise of a short measurement."""
LESS_EXACT = 16
"""How much larger than MKL's its largest error may be: float32 sums in another order give 1 to 3 times, TF32 1,500, bfloat16 7,000."""
NARROW = 16
"""Columns of a result for which oneDNN's products take 3 to 5 times as long as MKL's."""
SHAPES = ((1024, 64, 128), (512, 128, 128), (512, 512, 256), (256, 64, 64))
"""Rows, inputs and outputs of layers of the policy and value networks, for half a minibatch."""


def use(route: Route) -> None:
    """In this process, from now on. oneDNN is reached by permitting less than float32, so what it does has to be measured first."""
    torch.set_float32_matmul_precision("medium" if route == "onednn" else "highest")


def in_use() -> Route:
    return "mkl" if torch.get_float32_matmul_precision() == "highest" else "onednn"


def multiple_of_rows() -> int:
    """To which rows of equal joints are filled up."""
    return ROWS if in_use() == "onednn" else 1


def is_exact(route: Route) -> bool:
    """Whether its errors against float64 are those of float32 sums."""
    return max(_errors(route)) <= LESS_EXACT * max(_errors("mkl"))


def fastest(repeats: int = 9) -> Route:
    """The faster of those that are exact, on the shapes in use. Where torch has only one, the results are equal to the last bit."""
    if _errors("onednn") == _errors("mkl") or not is_exact("onednn"):
        return "mkl"
    least: dict[Route, float] = {"mkl": math.inf, "onednn": math.inf}
    for _ in range(repeats):
        for route in least:
            least[route] = min(least[route], _seconds(route))
    return "onednn" if least["onednn"] * FASTER < least["mkl"] else "mkl"


def _errors(route: Route) -> list[float]:
    """Of every product, relative to its largest result."""
    with using(route):
        return [float((a @ b - (a.double() @ b.double())).abs().max() / (a @ b).abs().max()) for a, b in _products()]


def _seconds(route: Route) -> float:
    products = list(_products())
    with using(route):
        start = time.perf_counter()
        for a, b in products:
            a @ b
        return time.perf_counter() - start


@contextlib.contextmanager
def using(route: Route) -> Iterator[None]:
    """For as long as it lasts."""
    before = in_use()
    use(route)
    try:
        yield
    finally:
        use(before)


def suited_to(width: int) -> contextlib.AbstractContextManager[None]:
    """Products with results so wide: oneDNN is slow at the narrow ones."""
    return using("mkl") if width < NARROW else contextlib.nullcontext()


def _products() -> Iterator[tuple[Tensor, Tensor]]:
    """A forward and two gradient products of every shape."""
    generator = torch.Generator().manual_seed(0)
    for rows, inputs, outputs in SHAPES:
        x, weight = torch.randn(rows, inputs, generator=generator), torch.randn(inputs, outputs, generator=generator)
        gradient = torch.randn(rows, outputs, generator=generator)
        yield from ((x, weight), (x.t(), gradient), (gradient, weight.t()))
