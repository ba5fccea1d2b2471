"""Neural Graph Evolution (Wang et al., ICLR 2019): graph networks as controllers, which children inherit whole.

A generation: the worst are removed, mutants of the others take their places with their parents' networks, everyone is
trained for one batch and ranked by what it earned meanwhile (fitness is amortised over the generations of a lineage).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Context
from methods.evolution.reproduction import Evolution, EvolutionConfig, Offspring
from methods.evolution.species import Species


@dataclass(frozen=True)
class NGEConfig(EvolutionConfig):
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.controller.gnn is None:
            raise ConfigError("method.controller.gnn is null; NGE needs graph networks, which fit every design (method=ess has MLPs).")


class NGE(Evolution):
    config_class = NGEConfig

    def __init__(self, config: NGEConfig, context: Context) -> None:
        super().__init__(config, context)

    def bring_up(self, child: Species, offspring: Offspring) -> None:
        child.inherit(offspring.parent)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict()
