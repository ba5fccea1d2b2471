"""A task tried out before anything is charged: its initial design is built, started, observed and stepped once."""

import numpy as np

from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.simulation.body import Body
from codesign_bench.tasks.base import Task


def rehearse(task: Task) -> tuple[str, ...]:
    """What an episode of this task will be measured at (EpisodeRecord.measured); ConfigError if the task cannot be used."""
    try:
        body = Body(task.initial_design, task)
        body.reset(np.random.default_rng(0))
        state = body.state()
        if not np.isfinite(state).all():
            raise ValueError("its observation at the start is not finite")
        step = body.step(np.zeros(task.initial_design.num_nodes))
        if step.problem:
            raise ValueError(step.problem)
    except CodesignError:
        raise
    except Exception as error:  # the functions of a task are anybody's code
        reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
        raise ConfigError(f"The task {task.name} cannot be used: {reason}.") from error
    return (*(f"reward_{name}" for name in step.parts), *task.metrics)
