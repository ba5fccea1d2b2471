"""Sizes beyond which a run would take minutes to begin, or all memory, without a word: refused before anything is done."""

from typing import Annotated, Any

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Budget
from codesign_bench.simulation.processes import available_cores
from codesign_bench.structured import Allowed

MOST_GROUPS = MOST_SHARDS = 64
MOST_EPISODES = MOST_SLOTS = MOST_AGENTS = 10_000
LONGEST, MOST_FRAMES = 1_000_000, 1000
MOST_STEPS = 10_000_000
"""Of a batch: its steps are held in memory, about a kilobyte each."""

Groups = Annotated[int, Allowed(f"are whole numbers from 1 to {MOST_GROUPS}", lambda value: 1 <= value <= MOST_GROUPS)]
Episodes = Annotated[int, Allowed(f"are whole numbers from 1 to {MOST_EPISODES:,}", lambda value: 1 <= value <= MOST_EPISODES)]


def check_sizes(budget: Budget, longest: int, frame_skip: int, method_config: Any) -> None:
    """`longest` is an episode's length in steps, one of which a slot gets through in a batch; `frame_skip` the simulator's steps in one."""
    for name, value, most in (("env.max_steps", longest, LONGEST), ("env.scene.frame_skip", frame_skip, MOST_FRAMES)):
        if value > most:
            raise ConfigError(f"{name} is {value}; allowed are whole numbers from 1 to {most:,}.")
    ppo = getattr(method_config, "ppo", None)
    if ppo is not None and ppo.shards > min(MOST_SHARDS, ppo.minibatch):
        most = min(MOST_SHARDS, ppo.minibatch)
        cores = available_cores()
        raise ConfigError(f"method.ppo.shards is {ppo.shards}; allowed are whole numbers from 1 to {most}; this machine has {cores} cores.")
    if budget.population > MOST_AGENTS:
        raise ConfigError(f"budget.population is {budget.population}; allowed are whole numbers from 1 to {MOST_AGENTS:,}.")
    for name, steps in (("batch", budget.batch), ("agent_batch", budget.agent_batch)):
        if steps > MOST_STEPS:
            raise ConfigError(f"budget.{name} is {steps}; allowed are at most {MOST_STEPS:,}, as a batch is held in memory.")
        if steps // longest > MOST_SLOTS:
            raise ConfigError(
                f"budget.{name} is {steps} and env.max_steps {longest}, which makes {steps // longest:,} slots; allowed are at most "
                f"{MOST_SLOTS:,} of them."
            )
