"""Running scales of a critic's targets, one of design steps and one of control steps, as BodyGen has them (Lu et al., ICLR 2025)."""

from __future__ import annotations

from typing import Any

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.simulation.episode import Stage

EPSILON = 1e-8


class ReturnScales:
    """The critic learns target / deviation, with the deviation of all targets so far, which are not centred; 1 before the first. Unlike
    ValueScale, what it predicts moves with the deviation."""

    def __init__(self) -> None:
        self.design, self.control = Normaliser(1), Normaliser(1)
        """Of which only the statistics are used."""

    def values(self, outputs: Array, stage: Array) -> Array:
        """Of a critic's outputs [steps], on the scale of returns."""
        return outputs * self._deviations(stage)

    def normalised(self, targets: Array, stage: Array) -> Array:
        return targets / self._deviations(stage)

    def update(self, targets: Array, stage: Array) -> None:
        """Adds the targets [steps] of a batch."""
        control = stage == Stage.EXECUTION
        self.design.update(targets[~control, None])
        self.control.update(targets[control, None])

    def _deviations(self, stage: Array) -> Array:
        return np.where(stage == Stage.EXECUTION, _deviation(self.control), _deviation(self.design))

    def state_dict(self) -> dict[str, Any]:
        return {"design": self.design.get_extra_state(), "control": self.control.get_extra_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.design.set_extra_state(state["design"])
        self.control.set_extra_state(state["control"])


def _deviation(statistics: Normaliser) -> float:
    return float(np.sqrt(statistics.squares[0] / statistics.count + EPSILON)) if statistics.count else 1.0
