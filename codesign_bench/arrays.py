"""Arrays: their type, whose shape and numbers a docstring tells, and stretches of rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def stretches(first: Array, count: Array) -> tuple[Array, Array, Array]:
    """Stretches of rows, each `count` long from its `first` on, laid one after the other: the rows, which stretch each of them belongs
    to, and where each stretch begins now."""
    begin = np.cumsum(count) - count
    which = np.repeat(np.arange(len(count)), count)
    return np.arange(len(which)) + (first - begin)[which], which, begin
