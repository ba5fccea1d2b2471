"""What methods share whose policy designs a robot in every episode: their start, their slots, their designs."""

from typing import Literal

import numpy as np

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Context, part_of_batch
from codesign_bench.simulation.episode import Stage, TransformSteps
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.workers import Group
from codesign_bench.tasks.base import Task

Start = Literal["initial", "expert"]


def started(task: Task, start: Start) -> Task:
    """The task with the design that episodes begin with."""
    return task.with_expert() if start == "expert" else task


def transforming_groups(task: Task, steps: TransformSteps, context: Context, inner_iterations: int) -> list[Group]:
    """batch / 1000 slots, divided over the groups: a slot's share of a batch, or of a part of it, is the longest episode."""
    batch, longest = part_of_batch(context.budget, inner_iterations), task.config.max_steps
    slots = max(batch // longest, context.groups)
    if batch % slots:
        raise ConfigError(
            f"budget.batch is {batch * inner_iterations}; allowed are multiples of {slots * inner_iterations}, the number of slots."
        )
    sizes = [len(part) for part in np.array_split(np.arange(slots), context.groups)]
    return [Group(task, size, context.streams.sequence("sampler", i), steps) for i, size in enumerate(sizes)]


def new_designs(rollout: Rollout) -> int:
    """Designs that were put into the simulator for the first time in this batch."""
    executing = rollout.stage == Stage.EXECUTION
    going_on = np.count_nonzero(executing[0])
    return len(np.unique(rollout.design[executing])) - int(going_on)
