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
from methods.nge.surrogate import GMUCConfig, Surrogate, half_masks, top


@dataclass(frozen=True)
class NGEConfig(EvolutionConfig):
    gm_uc: GMUCConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.controller.gnn is None:
            raise ConfigError("method.controller.gnn is null; NGE needs graph networks, which fit every design (method=ess has MLPs).")


class NGE(Evolution):
    config_class = NGEConfig

    def __init__(self, config: NGEConfig, context: Context) -> None:
        super().__init__(config, context)
        seed = context.streams.integer("surrogate")
        self.surrogate = Surrogate(context.task.space, config.gm_uc, seed) if config.gm_uc.enabled else None

    def bring_up(self, child: Species, offspring: Offspring) -> None:
        child.inherit(offspring.parent)

    def renew(self) -> list[Species]:
        if self.surrogate is not None:
            self.surrogate.note([(species.number, species.design, species.fitness) for species in self.population])
        return super().renew()

    def choose(self, parents: list[Species], number: int) -> list[Offspring]:
        """With GM-UC the most promising of many; as long as little is known, every one that is drawn."""
        surrogate, config = self.surrogate, self.config.gm_uc
        if surrogate is None or number == 0 or len(surrogate.records) < 2 * self.size:
            return self.draw(parents, number)
        rng = self.context.streams.generator("surrogate", self.generation)
        surrogate.train(rng)
        pool = self.draw(parents, config.pool * number)
        predictions = surrogate.predict([offspring.design for offspring in pool], half_masks(rng))
        return [pool[i] for i in top(predictions, number, config.temperature, rng)]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "surrogate": None if self.surrogate is None else self.surrogate.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        if self.surrogate is not None:
            self.surrogate.load_state_dict(state["surrogate"])
