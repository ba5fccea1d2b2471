"""How DERL shares a budget among equal lifetimes."""

from dataclasses import dataclass
from typing import Annotated

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.limits import MOST_AGENTS
from codesign_bench.experiment.method import Budget
from codesign_bench.structured import Allowed, Count
from methods.evolution.config import PopulationConfig
from methods.evolution.mutation import MutationConfig

AGENTS = 100
"""By default a lifetime is at most this part of the budget."""


@dataclass(frozen=True)
class Lives:
    """- cohort: agents that live side by side
    - batches: of one lifetime
    - window: agents from which parents come, and random ones at the beginning
    """

    cohort: int
    batches: int
    window: int


@dataclass(frozen=True)
class DERLConfig(PopulationConfig):
    """
    - lifetime: steps of every agent; null: a hundredth of the budget, or what comes next below it and divides the budget
    - window: agents, the latest that finished, from which parents come; as many random designs come first; null: a quarter of all
    - tournament: how many are drawn from the window, with replacement; the fittest of them has a child
    """

    lifetime: Count | None
    window: Count | None
    tournament: Annotated[int, Allowed(f"are whole numbers from 1 to {MOST_AGENTS:,}", lambda size: 1 <= size <= MOST_AGENTS)]
    mutation: MutationConfig

    def lives(self, budget: Budget) -> Lives:
        """All cohorts of a budget live equally long, one after the other, and nothing is left."""
        cohort, batch = self.cohort_size(budget), budget.agent_batch
        each = budget.steps // cohort
        lifetimes = [each // cohorts for cohorts in range(1, MOST_AGENTS // cohort + 1) if each % (cohorts * batch) == 0]  # longest first
        lifetime = self.lifetime or next((steps for steps in lifetimes if steps * AGENTS <= budget.steps), lifetimes[-1])
        if lifetime not in lifetimes:
            near = [*[steps for steps in lifetimes if steps < lifetime][:1], *[steps for steps in lifetimes if steps > lifetime][-1:]]
            raise ConfigError(
                f"method.lifetime is {lifetime}; allowed are multiples of budget.agent_batch, {batch}, that divide {each}, the steps of "
                f"each member of a cohort, for at most {MOST_AGENTS:,} agents, nearest {' and '.join(map(str, near))}."
            )
        cohorts = each // lifetime
        window = self.window or max(cohorts // 4, 1) * cohort
        if window % cohort or window > cohorts * cohort:
            raise ConfigError(
                f"method.window is {window}; allowed are multiples of the cohort, {cohort}, up to {cohorts * cohort}, the agents of "
                "budget.steps."
            )
        return Lives(cohort, lifetime // batch, window)
