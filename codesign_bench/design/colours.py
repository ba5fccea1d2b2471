"""What colour a robot is, wherever it is shown: rendered, drawn, or in the report."""

BONES = ("#5B6470", "#E67321", "#218CBF", "#8CB333", "#BF59A6")
"""By depth, the root first; deeper ones repeat the last."""
HINGE = "#FAD940"
OBJECT = "#B88C59"
"""Of what moves besides the robot."""


def bone(depth: int) -> str:
    return BONES[min(depth, len(BONES) - 1)]


def rgb(colour: str) -> tuple[float, float, float]:
    """Red, green and blue between 0 and 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
