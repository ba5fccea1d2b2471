"""Sampling: the species of a cohort take their steps side by side, in the groups of one pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Context
from codesign_bench.simulation.episode import NO_TRANSFORM
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.workers import Group
from methods.evolution.acting import StackedPolicy, stacked_policy
from methods.evolution.species import Species, sampler_state, slots_of

Array = NDArray[Any]


class Cohorts:
    """A population cut into cohorts of equal size, of which one is sampled at a time: bounded memory, and a moment to save
    the run after each.

    A species has agent_batch / 1000 slots, so that a slot's share of a batch is the longest episode. Its slots are dealt out
    to the groups in turn, so that groups have equal work whatever the designs.
    """

    def __init__(self, context: Context, size: int | None, inner_iterations: int) -> None:
        budget, longest = context.budget, context.task.config.max_steps
        batch = budget.agent_batch // inner_iterations
        self.slots = max(batch // longest, 1)
        if budget.agent_batch % (inner_iterations * self.slots):
            raise ConfigError(
                f"budget.agent_batch is {budget.agent_batch}; allowed are multiples of {inner_iterations * self.slots}, "
                "the inner iterations times the slots of an agent."
            )
        self.steps_per_slot = batch // self.slots
        self.size = size or _default_size(budget.population, budget.agent_batch, budget.batch)
        if budget.population % self.size:
            raise ConfigError(f"method.cohort is {size}; allowed are divisors of the population, {budget.population}, or null.")
        self.count = budget.population // self.size
        places = [(member, slot) for member in range(self.size) for slot in range(self.slots)]
        groups = min(context.groups, len(places))
        self._places = [places[group::groups] for group in range(groups)]
        self._streams = context.streams
        seeds = [context.streams.sequence("sampler", group) for group in range(groups)]
        self.pool = context.pool([Group(context.task, len(p), seed, NO_TRANSFORM) for p, seed in zip(self._places, seeds, strict=True)])

    def members(self, population: Sequence[Species], cohort: int) -> Sequence[Species]:
        return population[cohort * self.size : (cohort + 1) * self.size]

    def collect(self, members: Sequence[Species], *moment: int) -> list[Rollout]:
        """One batch of each member. `moment` (generation, inner iteration) names the streams of action noise, which depend on
        nothing else besides the species and its slots."""
        self.pool.load_state_dict([sampler_state([(members[m].design, members[m].slots[s]) for m, s in p]) for p in self._places])
        rollout = self.pool.collect([self._policy(members, group, moment) for group in range(len(self._places))], self.steps_per_slot)
        columns = np.empty((len(members), self.slots), dtype=np.int64)  # by slot, whichever group had it
        order = [place for places in self._places for place in places]
        states = [slot for state in self.pool.state_dict() for slot in slots_of(state)]
        for column, ((member, slot), state) in enumerate(zip(order, states, strict=True)):
            columns[member, slot] = column
            members[member].slots[slot] = state
        return [select_slots(rollout, mine) for mine in columns]

    def _policy(self, members: Sequence[Species], group: int, moment: tuple[int, ...]) -> StackedPolicy:
        mine = [member for member, _ in self._places[group]]
        first = dict(reversed(self._places[group]))  # of each member's slots in this group
        present = sorted(first)
        seeds = [self._streams.sequence("actions", members[m].number, *moment, first[m]) for m in present]
        return stacked_policy([members[m].controller for m in present], [mine.count(m) for m in present], seeds)


def _default_size(population: int, agent_batch: int, batch: int) -> int:
    """As many as take at least the batch of the methods with one agent."""
    sizes = [size for size in range(1, population + 1) if population % size == 0]
    return next((size for size in sizes if size * agent_batch >= batch), population)


def select_slots(rollout: Rollout, columns: Array) -> Rollout:
    """Some slots of a rollout, in the order given, as a rollout; its table of designs is kept whole. Episodes and truncations
    come slot by slot, so that sums over them do not depend on which group had a slot."""
    design = rollout.design[:, columns]
    count = np.diff(rollout.designs.offsets)[design].ravel()
    first = np.cumsum(count) - count
    rows = np.arange(int(count.sum())) + np.repeat(rollout.node_offset[:, columns].ravel() - first, count)
    last_count = np.diff(rollout.designs.offsets)[rollout.last_design]
    last_first = np.cumsum(last_count) - last_count
    last_rows = [np.arange(last_first[column], last_first[column] + last_count[column]) for column in columns]
    slot_of = {int(column): slot for slot, column in enumerate(columns)}
    truncations = [t._replace(slot=slot_of[t.slot]) for t in rollout.truncations if t.slot in slot_of]
    episodes = [replace(e, slot=slot_of[e.slot]) for e in rollout.episodes if e.slot in slot_of]
    plain = ("stage", "reward", "terminated", "truncated", "log_prob")
    return replace(
        rollout,
        design=design,
        node_offset=first.reshape(design.shape),
        state=rollout.state[rows],
        actions=rollout.actions[rows],
        last_design=rollout.last_design[columns],
        last_stage=rollout.last_stage[columns],
        last_state=rollout.last_state[np.concatenate(last_rows)],
        truncations=tuple(sorted(truncations, key=lambda t: t.slot)),
        episodes=tuple(sorted(episodes, key=lambda e: e.slot)),
        **{name: getattr(rollout, name)[:, columns] for name in plain},
    )
