"""The design parameters w of a fixed skeleton: one number per tunable attribute, and what they make of the expert (w = 0)."""

from typing import Literal

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.design.part_names import attribute_names, part_names
from codesign_bench.tasks.base import Task

Range = Literal["additive", "scale75"]

LARGEST_SCALE = 0.75
SATURATED = 15.0
"""In float64 tanh reaches 1 at about 19; here the factor stays inside its open interval."""


class DesignParameters:
    """additive: p = clip(p0 + w, -1, 1), which reaches everything that Transform2Act's attribute transform reaches.
    scale75: physical value = expert's value * (1 + 0.75 tanh w), clipped to the bounds, as Ha (2019) has it.
    """

    def __init__(self, task: Task, range: Range) -> None:
        self.expert, self.space, self.range = task.initial_design, task.space, range
        self.tunable = task.space.tunable(self.expert)
        self.size = int(self.tunable.sum())
        parts = part_names(self.expert, self.space, legged=task.scene.ground.kind != "none")
        attributes = attribute_names(self.expert, self.space)
        self.names = [(parts[node], attributes[node][k]) for node, k in np.argwhere(self.tunable).tolist()]
        """(part, attribute) of each parameter."""

    def design(self, w: Array) -> Design:
        """The skeleton and its constants are the expert's; attributes are always inside the bounds."""
        change = np.zeros(self.tunable.shape)
        change[self.tunable] = w
        return self.expert.derived(attributes=self._scaled(change) if self.range == "scale75" else self._added(change))

    def physical(self, w: Array) -> Array:
        """[size]: metres, and gears."""
        return self.space.physical(self.design(w).attributes)[self.tunable]

    def clipped(self, w: Array) -> float:
        """Share of the parameters of many designs [designs, size] that a bound cuts."""
        if self.range == "additive":
            return float(np.mean(np.abs(self.expert.attributes[self.tunable] + w) > 1))
        lower, upper = (np.broadcast_to(bound, self.tunable.shape)[self.tunable] for bound in (self.space.lower, self.space.upper))
        value = self.space.physical(self.expert.attributes)[self.tunable] * scale(w)
        return float(np.mean((value < lower) | (value > upper)))

    def _added(self, change: Array) -> Array:
        p: Array = np.clip(self.expert.attributes + change, -1, 1)
        return p

    def _scaled(self, change: Array) -> Array:
        values = np.clip(self.space.physical(self.expert.attributes) * scale(change), self.space.lower, self.space.upper)
        return np.where(change == 0, self.expert.attributes, self.space.normalised(values))


def scale(w: Array) -> Array:
    """The factor on the expert's value, inside (0.25, 1.75)."""
    factor: Array = 1 + LARGEST_SCALE * np.tanh(np.clip(w, -SATURATED, SATURATED))
    return factor
