"""The type of arrays whose shape and numbers a docstring tells."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
