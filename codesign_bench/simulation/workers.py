"""Groups of slots in worker processes. What they sample does not depend on how many processes there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import TransformSteps
from codesign_bench.simulation.graphs import Policy, Rollout
from codesign_bench.simulation.processes import Processes, SharedMemory
from codesign_bench.simulation.sampler import Sampler, SlotState
from codesign_bench.tasks.base import Task


@dataclass(frozen=True)
class Group:
    """How to build a sampler, wherever it will run."""

    task: Task
    slots: int
    seed: np.random.SeedSequence
    steps: TransformSteps | None = None
    designs: tuple[Design, ...] | None = None
    reset_seeds: tuple[np.random.SeedSequence, ...] | None = None

    def build(self) -> Sampler:
        return Sampler(self.task, self.slots, self.seed, self.steps, self.designs, self.reset_seeds)


class WorkerPool:
    """Groups of slots spread over worker processes; with `workers=0` they run in this process.

    Every step is charged to the ledger, if there is one, before it is simulated.
    """

    def __init__(self, groups: Sequence[Group], workers: int = 0, ledger: Ledger | None = None) -> None:
        if workers < 0 or not groups:
            raise ConfigError(f"{workers} workers were asked for {len(groups)} groups; allowed are 0 and more for 1 and more.")
        self.groups, self.ledger = list(groups), ledger
        self.processes = Processes(min(workers, len(groups)))
        """Of the groups; while none of them samples they can do other work."""
        self._place()

    @property
    def slots(self) -> int:
        return sum(group.slots for group in self.groups)

    @property
    def pids(self) -> list[int]:
        return self.processes.pids

    def collect(self, policy: Policy | Sequence[Policy], steps: int) -> Rollout:
        """`steps` steps in every slot of every group, with one policy for all or one for each group."""
        policies = self._one_each(policy if isinstance(policy, Sequence) else [policy] * len(self.groups), "policies")
        if self.ledger is not None:
            self.ledger.charge(steps * self.slots)
        return Rollout.concatenate(self._each("collect", [(p, steps) for p in policies]))

    def rebuild(self, groups: Sequence[Group]) -> None:
        """As many other groups in the processes of the old ones: new designs and streams; open episodes are dropped."""
        self.groups = self._one_each(groups, "new groups")
        self._place()

    def lend(self, slots: Sequence[Sequence[SlotState]]) -> None:
        """Gives the slots of every group to agents; see `Sampler.lend`."""
        self._each("lend", [(mine,) for mine in self._one_each(slots, "lists of slots")])

    def take_back(self) -> list[list[SlotState]]:
        """The slots of every group as they are now, for `lend`."""
        return self._each("take_back", [()] * len(self.groups))

    def state_dict(self) -> list[dict[str, Any]]:
        """The state of every group, in order."""
        return self._each("state_dict", [()] * len(self.groups))

    def load_state_dict(self, states: Sequence[dict[str, Any]]) -> None:
        self._each("load_state_dict", [(state,) for state in self._one_each(states, "states")])

    def close(self) -> None:
        self.processes.close()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _one_each(self, values: Sequence[Any], what: str) -> list[Any]:
        if len(values) != len(self.groups):
            raise ConfigError(f"{len(values)} {what} were given for {len(self.groups)} groups; allowed is one for each.")
        return list(values)

    def _place(self) -> None:
        self.processes.place(SAMPLER, [partial(_sampler, group) for group in self.groups])

    def _each(self, name: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of every group's sampler, wherever it runs."""
        return self.processes.call(name, SAMPLER, arguments)


SAMPLER = "sampler"


def _sampler(group: Group, memory: SharedMemory) -> Sampler:
    return group.build()
