"""The plotted number: the mean undiscounted return of the champion's deterministic episodes. Metered, never charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.design.space import DesignSpace
from codesign_bench.experiment.method import Agent
from codesign_bench.experiment.process import design_process
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks.base import Task

NEAR_BOUND = 0.01
"""An attribute counts as at its bound within this share of its range."""


@dataclass(frozen=True)
class Evaluation:
    """`design` is the design of the first episode; deterministic agents make the same one every time.
    `process` is how it came about (see experiment/process.py)."""

    return_mean: float
    return_std: float
    episode_length: float
    net_displacement: float
    net_to_path: float
    bodies: float
    at_bounds: float
    steps: int
    design: Design
    task: Task
    returns: tuple[float, ...]
    process: tuple[Design, ...]


def evaluate(agent: Agent, episodes: int, seed: np.random.SeedSequence) -> Evaluation:
    played = Sampler(agent.task, episodes, seed, agent.steps).play(agent.policy)
    records, designs = [record for record, _ in played], [design for _, design in played]
    path = sum(record.path for record in records)
    returns = [record.total_return for record in records]

    def mean(name: str) -> float:
        return float(np.mean([getattr(record, name) for record in records]))

    return Evaluation(
        return_mean=float(np.mean(returns)),
        return_std=float(np.std(returns)),
        episode_length=mean("execution_steps"),
        net_displacement=mean("net_displacement"),
        net_to_path=sum(record.net_displacement for record in records) / path if path > 0 else 0.0,
        bodies=mean("bodies"),
        at_bounds=float(np.mean([at_bounds(design, agent.task.space) for design in designs])),
        steps=sum(record.steps for record in records),
        design=designs[0],
        task=agent.task,
        returns=tuple(returns),
        process=design_process(agent, seed, designs[0]),
    )


def at_bounds(design: Design, space: DesignSpace) -> float:
    """Share of the tunable attributes that lie within one percent of a bound of their range."""
    tunable = space.tunable(design)
    linear: Any = np.sin(np.pi / 2 * design.attributes[tunable])
    return float(np.mean(np.abs(linear) > 1 - 2 * NEAR_BOUND)) if len(linear) else 0.0
