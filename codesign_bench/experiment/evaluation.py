"""The plotted number: the mean undiscounted return of the champion's deterministic episodes. Metered, never charged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.design.space import DesignSpace
from codesign_bench.experiment.design_process import design_process
from codesign_bench.experiment.method import Agent
from codesign_bench.simulation.episode import EpisodeRecord
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks.base import Task

NEAR_BOUND = 0.01
"""An attribute counts as at its bound within this share of its range."""


@dataclass(frozen=True)
class Evaluation:
    """Deterministic episodes of one agent.

    - columns: means over the episodes, as progress.csv and re-evaluations record them
    - measured: the same of what the task measures: parts of the reward, its metrics
    - returns: of each episode; steps: of all together, transform steps included
    - design: of the first episode; deterministic agents make the same one every time
    - process: how it came about (see experiment/design_process.py)
    """

    columns: Mapping[str, float]
    measured: Mapping[str, float]
    returns: tuple[float, ...]
    steps: int
    design: Design
    task: Task
    process: tuple[Design, ...]

    @property
    def return_mean(self) -> float:
        return self.columns["return_mean"]


def evaluate(agent: Agent, episodes: int, seed: np.random.SeedSequence, after_step: Callable[[], None] = lambda: None) -> Evaluation:
    played = Sampler(agent.task, episodes, seed, agent.steps).play(agent.policy, after_step)
    records, designs = [record for record, _ in played], [design for _, design in played]
    return Evaluation(
        columns=_columns(records, designs, agent.task.space),
        measured=_measured(records),
        returns=tuple(record.total_return for record in records),
        steps=sum(record.steps for record in records),
        design=designs[0],
        task=agent.task,
        process=design_process(agent, seed, designs[0]),
    )


def _columns(records: Sequence[EpisodeRecord], designs: Sequence[Design], space: DesignSpace) -> dict[str, float]:
    path = sum(record.path for record in records)
    returns = [record.total_return for record in records]

    def mean(values: Iterable[float]) -> float:
        return float(np.mean(list(values)))

    return {
        "return_mean": mean(returns),
        "return_std": float(np.std(returns)),
        "episode_length": mean(record.execution_steps for record in records),
        "net_displacement": mean(record.net_displacement for record in records),
        "net_to_path": sum(record.net_displacement for record in records) / path if path > 0 else 0.0,
        "bodies": mean(record.bodies for record in records),
        "at_bounds": mean(at_bounds(design, space) for design in designs),
    }


def _measured(records: Sequence[EpisodeRecord]) -> dict[str, float]:
    """An episode whose design cannot be built has measured nothing."""
    names = dict.fromkeys(name for record in records for name in record.measured)
    return {name: float(np.mean([record.measured.get(name, 0.0) for record in records])) for name in names}


def at_bounds(design: Design, space: DesignSpace) -> float:
    """Share of the tunable attributes that lie within one percent of a bound of their range."""
    tunable = space.tunable(design)
    linear: Any = np.sin(np.pi / 2 * design.attributes[tunable])
    return float(np.mean(np.abs(linear) > 1 - 2 * NEAR_BOUND)) if len(linear) else 0.0
