"""Offspring: mutants of uniformly drawn parents. Nothing here steps a simulator, so nothing is charged."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.experiment.seeds import Streams
from codesign_bench.tasks.base import Task
from methods.evolution.mutation import MutationConfig, Operator, mutate
from methods.evolution.random_design import TRIES, viable
from methods.evolution.species import Species


class Mutant(NamedTuple):
    """A design that may become a child of `parent`."""

    parent: Species
    design: Design
    mutation: Operator | str


def mutants(parents: Sequence[Species], number: int, task: Task, config: MutationConfig, streams: Streams, generation: int) -> list[Mutant]:
    """Of parents that are drawn uniformly, with replacement, whatever their fitness."""
    chosen = streams.generator("parents", generation).integers(len(parents), size=number)
    return [viable_mutant(parents[parent], task, config, streams.generator("mutation", generation, i)) for i, parent in enumerate(chosen)]


def viable_mutant(parent: Species, task: Task, config: MutationConfig, rng: np.random.Generator) -> Mutant:
    """One that can be simulated, or after many tries a copy of the parent."""
    for _ in range(TRIES):
        design, operator = mutate(parent.design, task.space, config, rng)
        if viable(design, task):
            return Mutant(parent, design, operator)
    return Mutant(parent, parent.design, "copy")
