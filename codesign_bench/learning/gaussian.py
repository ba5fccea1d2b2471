"""The density of a Gaussian, for arrays and tensors."""

import math
from typing import Any, TypeVar

from numpy.typing import NDArray
from torch import Tensor

Values = TypeVar("Values", NDArray[Any], Tensor)

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def log_density(z: Values, log_std: Any, joint: bool = False) -> Values:
    """Of numbers that lie z standard deviations from their mean: of each; `joint`: [rows, k] -> [rows], of all k together."""
    squares, logs, numbers = (z * z, log_std, 1) if not joint else ((z * z).sum(1), log_std.sum(), z.shape[1])
    density: Values = -0.5 * squares - (logs + numbers * HALF_LOG_TWO_PI)
    return density
