"""A rollout laid out for learning: features of all nodes once, and minibatches of steps as forests.

Edges, joint indices and attributes come from the rollout's design table; nothing is stored once per step that is constant
within a design.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from codesign_bench.arrays import Array, stretches
from codesign_bench.design.space import DesignSpace
from codesign_bench.learning.forest import Forest, build_forest
from codesign_bench.simulation.graphs import DesignTable, Rollout
from codesign_bench.tasks.features import FeatureLayout

NUM_STAGES = 3


@dataclass(frozen=True)
class Steps:
    """States of many steps: per step its stage and its rows, per node everything that networks need.

    stage [steps]; first, count [steps]: rows of the step; joint_index, parent (row, -1 for a root), sibling, can_add,
    can_delete [nodes]; features [nodes, feature_size] float32, laid out as tasks/features.py says
    """

    space: DesignSpace
    stage: Array
    first: Array
    count: Array
    joint_index: Array
    parent: Array
    sibling: Array
    can_add: Array
    can_delete: Array
    features: Array

    @property
    def num_steps(self) -> int:
        return len(self.stage)

    def rows(self, steps: Array) -> tuple[Array, Array]:
        """The rows of the given steps one after the other, and for each row the position of its step among them."""
        return stretches(self.first[steps], self.count[steps])[:2]

    def select(self, steps: Array) -> Steps:
        """The given steps by themselves."""
        rows, which, first = stretches(self.first[steps], self.count[steps])
        parent = self.parent[rows]
        parent = np.where(parent < 0, -1, parent - self.first[steps][which] + first[which])
        rest = {name: getattr(self, name)[rows] for name in ("joint_index", "sibling", "can_add", "can_delete", "features")}
        return Steps(self.space, self.stage[steps], first, self.count[steps], parent=parent, **rest)

    def followed_by(self, other: Steps) -> Steps:
        nodes = len(self.parent)
        moved = replace(other, first=other.first + nodes, parent=np.where(other.parent < 0, -1, other.parent + nodes))
        names = [field.name for field in fields(self) if field.name != "space"]
        return Steps(self.space, **{name: np.concatenate([getattr(self, name), getattr(moved, name)]) for name in names})

    def forest(self, steps: Array) -> tuple[Forest, Array]:
        """The given steps as a forest, and the row of each of its nodes."""
        rows, which, begin = stretches(self.first[steps], self.count[steps])
        parent = self.parent[rows]
        local = np.where(parent < 0, -1, parent - self.first[steps][which] + begin[which])
        forest, order = build_forest(self.joint_index[rows], local, self.sibling[rows], which, self.space.joint_depths)
        return forest, rows[order]


def steps_of(table: DesignTable, design: Array, stage: Array, state: Array, space: DesignSpace) -> Steps:
    """Steps whose nodes lie one after the other in `state` [nodes, state_size]; `design` and `stage` are [steps]."""
    count = np.diff(table.offsets)[design]
    source, which, first = stretches(table.offsets[design], count)
    parent = table.parents[source]
    layout = FeatureLayout(space.num_depths, state.shape[1])
    return Steps(
        space=space,
        stage=stage,
        first=first,
        count=count,
        joint_index=table.joint_index[source],
        parent=np.where(parent < 0, -1, parent + first[which]),
        sibling=table.sibling[source],
        can_add=table.can_add[source],
        can_delete=table.can_delete[source],
        features=layout.features(table.depth[source], table.attributes[source], state),
    )


def steps_of_rollout(rollout: Rollout, space: DesignSpace) -> tuple[Steps, Steps]:
    """The rollout's steps in the order [time, slots], and the states that bootstrap it: every slot's last one, then those
    in which a time limit cut an episode."""
    taken = steps_of(rollout.designs, rollout.design.ravel(), rollout.stage.ravel(), rollout.state, space)
    cut = rollout.truncations
    design = np.concatenate([rollout.last_design, np.array([t.design for t in cut], dtype=np.int64)])
    stage = np.concatenate([rollout.last_stage, np.full(len(cut), NUM_STAGES - 1)])
    state = np.concatenate([rollout.last_state, *[t.state for t in cut]])
    return taken, steps_of(rollout.designs, design, stage, state, space)
