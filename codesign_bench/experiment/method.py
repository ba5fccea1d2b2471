"""The plug-in interface: what a method is to the runner.

A method is a class found through the entry-point group `codesign_bench.methods`; a third party's package can add one.
It takes every step for learning from the pool it is given, which charges the run's ledger.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any, ClassVar

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.seeds import Streams
from codesign_bench.learning import products
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import EpisodeRecord, TransformSteps
from codesign_bench.simulation.graphs import Policy
from codesign_bench.simulation.processes import SharedMemory
from codesign_bench.simulation.workers import Group, WorkerPool
from codesign_bench.structured import Count
from codesign_bench.tasks.base import Task

ENTRY_POINTS = "codesign_bench.methods"


@dataclass(frozen=True)
class Budget:
    """The content of conf/budget/NAME.yaml. Steps are environment steps, transform and control alike."""

    name: str
    steps: int
    until: int
    batch: Count
    population: Count
    agent_batch: Count
    evaluate_every: Count


@dataclass(frozen=True)
class Agent:
    """A design procedure and a controller: a deterministic policy in a task, and the transform steps it takes first."""

    task: Task
    policy: Policy
    steps: TransformSteps

    @property
    def longest(self) -> int:
        """Steps that an episode may have."""
        return self.steps.skeleton + self.steps.attribute + self.task.config.max_steps


@dataclass(frozen=True)
class Iteration:
    """What one iteration or generation did.

    - metrics: numbers for the logs and the table `learning`, such as losses; explained_variance, of the critic, is also a column of
      progress.csv
    - tables: rows that the runner appends to RUN/tables/NAME.csv; the keys of a table's first row are its columns
    """

    episodes: tuple[EpisodeRecord, ...]
    new_designs: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Mapping[str, float | int | str | None]]] = field(default_factory=dict)

    @staticmethod
    def of_parts(parts: Sequence[Iteration]) -> Iteration:
        """One that was made in several parts: metrics are their means."""
        episodes = tuple(episode for part in parts for episode in part.episodes)
        metrics = {name: sum(part.metrics[name] for part in parts) / len(parts) for name in parts[0].metrics}
        tables = {name: [row for part in parts for row in part.tables[name]] for name in parts[0].tables}
        return Iteration(episodes, sum(part.new_designs for part in parts), metrics, tables)


def part_of_batch(budget: Budget, inner_iterations: int) -> int:
    """Steps of one of the equal parts in which a batch is sampled and learned from."""
    if budget.batch % inner_iterations:
        raise ConfigError(f"method.inner_iterations is {inner_iterations}; allowed are divisors of budget.batch, {budget.batch}.")
    return budget.batch // inner_iterations


@dataclass(frozen=True)
class Context:
    """What the runner gives to a method besides its configuration. `checkpoint` saves the run as it is; a method with long
    iterations calls it in the middle of one, when its state is whole."""

    task: Task
    budget: Budget
    streams: Streams
    ledger: Ledger
    groups: int
    workers: int
    device: str
    checkpoint: Callable[[], None] = lambda: None

    def pool(self, groups: list[Group]) -> WorkerPool:
        """The only source of steps for learning."""
        pool = WorkerPool(groups, self.workers, self.ledger)
        pool.processes.place("products", [partial(_use_products, products.in_use())] * pool.processes.count)
        return pool


def _use_products(route: products.Route, memory: SharedMemory) -> None:
    """Processes multiply by the route of the one that started them."""
    products.use(route)


class Method(ABC):
    """One run of a method."""

    config_class: ClassVar[type]
    """Dataclass that mirrors conf/method/NAME.yaml, without `name`, `plugin`, `label` and `colour`."""
    evaluate_each_iteration: ClassVar[bool] = False
    """Evaluated after every iteration, whatever budget.evaluate_every says: methods whose champion is another one each time."""

    @staticmethod
    @abstractmethod
    def iteration_steps(budget: Budget) -> int:
        """Charged steps of one iteration or generation."""

    @classmethod
    def check(cls, config: Any, budget: Budget, task: Task) -> None:
        """Raises ConfigError where a configuration does not go with a budget or a task; before a run has a folder."""
        return

    @abstractmethod
    def __init__(self, config: Any, context: Context) -> None: ...

    @abstractmethod
    def iterate(self) -> Iteration:
        """Learns from one batch or generation."""

    @abstractmethod
    def champion(self) -> Agent:
        """The design and controller to evaluate now."""

    def incumbent(self) -> Agent | None:
        """The fittest of all iterations so far, where a method keeps it beside the champion of the latest one."""
        return None

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on bit-equally: tensors, arrays, numbers, strings, lists and dictionaries."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Ends worker processes."""


@cache
def known_methods() -> dict[str, Any]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def method_class(plugin: str) -> type[Method]:
    known = known_methods()
    if plugin not in known:
        raise ConfigError(f"There is no method plug-in '{plugin}'; installed are {', '.join(sorted(known)) or 'none'}.")
    found: type[Method] = known[plugin].load()
    return found
