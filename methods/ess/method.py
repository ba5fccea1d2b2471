"""Evolutionary structure search with MLP controllers (ESS-Sims of Wang et al. 2019): designs are inherited, controllers not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codesign_bench.errors import ConfigError
from methods.evolution.reproduction import Evolution, EvolutionConfig, Offspring
from methods.evolution.species import Species


@dataclass(frozen=True)
class ESSConfig(EvolutionConfig):
    amortized: bool
    inherit_if_same_topology: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inherit_if_same_topology and not self.amortized:
            raise ConfigError(
                "method.inherit_if_same_topology is true; allowed is false where method.amortized is false: parents start anew too."
            )


class ESS(Evolution):
    config_class = ESSConfig

    def prepare(self, parents: list[Species]) -> None:
        """Strict: everyone learns from scratch in every generation."""
        if not self.config.amortized:
            for species in parents:
                species.restart()

    def bring_up(self, child: Species, offspring: Offspring) -> None:
        same = np.array_equal(child.design.parents, offspring.parent.design.parents)
        if self.config.inherit_if_same_topology and same:
            child.inherit(offspring.parent)
