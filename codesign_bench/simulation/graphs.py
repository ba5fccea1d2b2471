"""Batches of graphs: what policies see while acting, and what a rollout stores.

Nodes of all graphs are concatenated; graph g owns the rows offsets[g] to offsets[g + 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from codesign_bench.arrays import Array, stretches
from codesign_bench.design.graph import Design
from codesign_bench.design.space import DesignSpace, Topology
from codesign_bench.simulation.episode import EpisodeRecord


@dataclass(frozen=True)
class DesignTable:
    """Designs stored once each, however many steps are taken with them.

    - offsets [designs + 1]: first node of each design
    - parents [nodes]: within the design, -1 for the root
    - depth [nodes]; sibling [nodes]: rank among the children of its parent, from 0
    - joint_index [nodes]: which joint a node is, across designs: its place among the indices that the task can reach
    - attributes [nodes, 5]: normalised
    - can_add, can_delete [nodes]: legality of skeleton actions
    """

    offsets: Array
    parents: Array
    depth: Array
    sibling: Array
    joint_index: Array
    attributes: Array
    can_add: Array
    can_delete: Array

    @staticmethod
    def from_designs(designs: Sequence[Design], space: DesignSpace) -> DesignTable:
        return DesignTable.of(designs, [space.topology(design) for design in designs])

    @staticmethod
    def of(designs: Sequence[Design], topologies: Sequence[Topology]) -> DesignTable:
        return DesignTable(
            offsets=np.concatenate([[0], np.cumsum([design.num_nodes for design in designs])]).astype(np.int64),
            parents=np.concatenate([design.parents for design in designs]),
            depth=np.concatenate([t.depth for t in topologies]),
            sibling=np.concatenate([t.sibling for t in topologies]),
            joint_index=np.concatenate([t.joint_index for t in topologies]),
            attributes=np.concatenate([design.attributes for design in designs]),
            can_add=np.concatenate([t.can_add for t in topologies]),
            can_delete=np.concatenate([t.can_delete for t in topologies]),
        )

    @property
    def num_designs(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def concatenate(tables: Sequence[DesignTable]) -> DesignTable:
        firsts = np.cumsum([0] + [int(t.offsets[-1]) for t in tables])
        offsets = [t.offsets[:-1] + first for t, first in zip(tables, firsts, strict=False)]
        names = ("parents", "depth", "sibling", "joint_index", "attributes", "can_add", "can_delete")
        rest = {name: np.concatenate([getattr(t, name) for t in tables]) for name in names}
        return DesignTable(offsets=np.concatenate([*offsets, firsts[-1:]]), **rest)


@dataclass(frozen=True)
class GraphBatch(DesignTable):
    """What a policy acts on: one graph per slot, whose designs the table holds.

    - features [nodes, feature_size] float32: see tasks/features.py; the simulator's state is zeros in the transform stages
    - stage [graphs]: skeleton, attribute or execution (simulation/episode.py, Stage)
    - time [graphs]: steps that the episode has taken, transform steps included
    - slot [graphs]: which slot of the sampler it is; a new episode in a slot begins with time 0
    - rng: the group's own stream of action noise
    """

    features: Array
    stage: Array
    time: Array
    slot: Array
    rng: np.random.Generator

    @property
    def num_graphs(self) -> int:
        return len(self.stage)

    @property
    def num_nodes(self) -> int:
        return len(self.features)

    @property
    def edges(self) -> Array:
        """[2, edges]: rows of `features`, both ways between parent and child."""
        child = np.flatnonzero(self.parents >= 0)
        first = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        parent = self.parents[child] + first[child]
        return np.stack([np.concatenate([parent, child]), np.concatenate([child, parent])])


class Decision(NamedTuple):
    """Actions [nodes, 7] (control, five attributes, skeleton choice) and, if a learner needs them, log-probabilities [graphs]."""

    actions: Array
    log_prob: Array | None = None


Policy = Callable[[GraphBatch], "Decision | Array"]
"""Any callable from a batch of graphs to actions."""


class Truncation(NamedTuple):
    """The state in which a time limit cut an episode, for bootstrapping."""

    time: int
    slot: int
    design: int
    state: Array


_PER_STEP = ("stage", "reward", "terminated", "truncated", "log_prob")
"""Arrays of a rollout [time, slots] that name no row of another one."""


@dataclass(frozen=True)
class Rollout:
    """Steps of many slots: flat nodes, per-step offsets, one design table. Step (t, s) is slot s at time t.

    - designs: the table; design [time, slots]: row of the table
    - stage [time, slots]
    - node_offset [time, slots]: first row of the step in `state` and `actions`, whose rows follow the order of the steps
    - reward [time, slots] float64
    - terminated [time, slots]: ends without bootstrap
    - truncated [time, slots]: time limits that are bootstrapped (see `truncations`)
    - log_prob [time, slots] float32, zeros if the policy gave none
    - state [nodes, state_size] float32; actions [nodes, 7] float32
    - last_design, last_stage [slots], last_state: what each slot sees after the last step
    """

    designs: DesignTable
    design: Array
    stage: Array
    node_offset: Array
    reward: Array
    terminated: Array
    truncated: Array
    log_prob: Array
    state: Array
    actions: Array
    last_design: Array
    last_stage: Array
    last_state: Array
    truncations: tuple[Truncation, ...]
    episodes: tuple[EpisodeRecord, ...]

    @property
    def num_steps(self) -> int:
        return int(self.reward.size)

    @staticmethod
    def concatenate(rollouts: Sequence[Rollout]) -> Rollout:
        """Rollouts of equal length side by side: the slots of the first, then those of the second, ..."""
        if len(rollouts) == 1:
            return rollouts[0]
        nodes = np.cumsum([0] + [len(r.state) for r in rollouts])
        first = np.concatenate([r.node_offset + n for r, n in zip(rollouts, nodes, strict=False)], axis=1).ravel()
        count = np.concatenate([np.diff(r.designs.offsets)[r.design] for r in rollouts], axis=1).ravel()
        rows, _, offset = stretches(first, count)
        designs = np.cumsum([0] + [r.designs.num_designs for r in rollouts])
        slots = np.cumsum([0] + [r.design.shape[1] for r in rollouts])
        truncations = [
            t._replace(slot=t.slot + int(slots[i]), design=t.design + int(designs[i]))
            for i, r in enumerate(rollouts)
            for t in r.truncations
        ]
        return Rollout(
            designs=DesignTable.concatenate([r.designs for r in rollouts]),
            design=np.concatenate([r.design + d for r, d in zip(rollouts, designs, strict=False)], axis=1),
            node_offset=offset.reshape(rollouts[0].design.shape[0], -1),
            state=np.concatenate([r.state for r in rollouts])[rows],
            actions=np.concatenate([r.actions for r in rollouts])[rows],
            last_design=np.concatenate([r.last_design + d for r, d in zip(rollouts, designs, strict=False)]),
            last_stage=np.concatenate([r.last_stage for r in rollouts]),
            last_state=np.concatenate([r.last_state for r in rollouts]),
            truncations=tuple(truncations),
            episodes=tuple(replace(e, slot=e.slot + int(slots[i])) for i, r in enumerate(rollouts) for e in r.episodes),
            **{name: np.concatenate([getattr(r, name) for r in rollouts], axis=1) for name in _PER_STEP},
        )

    def of_slots(self, columns: Array) -> Rollout:
        """Some slots, in the order given, as a rollout of theirs; the table of designs is kept whole. Episodes and truncations
        come slot by slot, so that sums over them do not depend on which slots ran beside these."""
        nodes = np.diff(self.designs.offsets)
        design = self.design[:, columns]
        rows, _, first = stretches(self.node_offset[:, columns].ravel(), nodes[design].ravel())
        last_count = nodes[self.last_design]
        last_rows, _, _ = stretches((np.cumsum(last_count) - last_count)[columns], last_count[columns])
        slot_of = {int(column): slot for slot, column in enumerate(columns)}
        truncations = [t._replace(slot=slot_of[t.slot]) for t in self.truncations if t.slot in slot_of]
        episodes = [replace(e, slot=slot_of[e.slot]) for e in self.episodes if e.slot in slot_of]
        return replace(
            self,
            design=design,
            node_offset=first.reshape(design.shape),
            state=self.state[rows],
            actions=self.actions[rows],
            last_design=self.last_design[columns],
            last_stage=self.last_stage[columns],
            last_state=self.last_state[last_rows],
            truncations=tuple(sorted(truncations, key=lambda t: t.slot)),
            episodes=tuple(sorted(episodes, key=lambda e: e.slot)),
            **{name: getattr(self, name)[:, columns] for name in _PER_STEP},
        )
