"""Offspring: mutants of their parents. Nothing here steps a simulator, so nothing is charged."""

from collections.abc import Sequence
from typing import NamedTuple

from codesign_bench.design.graph import Design
from codesign_bench.experiment.seeds import Streams
from codesign_bench.tasks.base import Task
from methods.evolution.mutation import MutationConfig, Operator, mutate
from methods.evolution.species import Species


class Mutant(NamedTuple):
    """A design that may become a child of `parent`."""

    parent: Species
    design: Design
    mutation: Operator


def mutants(parents: Sequence[Species], number: int, task: Task, config: MutationConfig, streams: Streams, generation: int) -> list[Mutant]:
    """Of parents that are drawn uniformly, with replacement, whatever their fitness."""
    chosen = streams.generator("parents", generation).integers(len(parents), size=number)
    return offspring([parents[number] for number in chosen], task, config, streams, generation)


def offspring(parents: Sequence[Species], task: Task, config: MutationConfig, streams: Streams, generation: int) -> list[Mutant]:
    """One mutant of each."""
    result = []
    for i, parent in enumerate(parents):
        design, operator = mutate(parent.design, task.space, config, streams.generator("mutation", generation, i))
        result.append(Mutant(parent, design, operator))
    return result
