"""What a final re-evaluation leaves in a run folder (see experiment/reevaluate.py): reevaluation.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.run_folder import write_atomically
from codesign_bench.plain_files import read_json
from codesign_bench.structured import AnyNumber, build

if TYPE_CHECKING:
    from codesign_bench.experiment.evaluation import Evaluation

Which = Literal["champion", "incumbent"]
"""Of a run's agents: the one to evaluate now, or the fittest of all iterations, which some methods keep beside it."""
FILES: Mapping[Which, str] = {"champion": "reevaluation.json", "incumbent": "reevaluation_incumbent.json"}
"""Two files, as reevaluation.json is what tables and reports take to be about the final agent."""


@dataclass(frozen=True)
class FreshEpisodes:
    """Of one agent.

    - steps: what its run had been charged for learning; evaluation_steps: what these episodes took
    - columns: means over the episodes, as an evaluation has them
    - training: of a new controller, the words that configured its training, the same for every design; empty for a run's own agent
    """

    steps: int
    seed: int
    evaluation_steps: int
    returns: tuple[AnyNumber, ...]
    columns: dict[str, AnyNumber]
    training: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not {"return_mean", "return_std"} <= self.columns.keys():
            raise ConfigError("Fresh episodes lack return_mean or return_std.")

    @staticmethod
    def of(evaluation: Evaluation, steps: int, seed: int, training: tuple[str, ...] = ()) -> FreshEpisodes:
        return FreshEpisodes(steps, seed, evaluation.steps, evaluation.returns, {**evaluation.columns, **evaluation.measured}, training)

    @property
    def episodes(self) -> int:
        return len(self.returns)

    @property
    def return_mean(self) -> float:
        return float(self.columns["return_mean"])

    @property
    def return_std(self) -> float:
        return float(self.columns["return_std"])


@dataclass(frozen=True)
class Reevaluation:
    """The content of reevaluation.json, or of the incumbent's file."""

    agent: FreshEpisodes
    controller: FreshEpisodes | None

    def columns(self) -> dict[str, float]:
        """For the table of all runs: columns of their own, never mixed with those of progress.csv."""
        parts = {"reevaluated": self.agent, **({"retrained": self.controller} if self.controller else {})}
        names = ("steps", "episodes", "return_mean", "return_std", "evaluation_steps")
        return {f"{part}_{name}": getattr(fresh, name) for part, fresh in parts.items() for name in names}

    def save(self, folder: Path, which: Which = "champion") -> None:
        write_atomically(folder / FILES[which], json.dumps(asdict(self), indent=1))

    @staticmethod
    def load(folder: Path, which: Which = "champion") -> Reevaluation | None:
        """What was written, or None if nothing was; a damaged file raises ConfigError."""
        path = folder / FILES[which]
        if not path.is_file():
            return None
        try:
            return build(Reevaluation, read_json(path))
        except (OSError, ValueError):
            raise ConfigError(f"{path} does not hold a re-evaluation; make it again with codesign-bench reevaluate.") from None
