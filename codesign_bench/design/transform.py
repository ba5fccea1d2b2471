"""Skeleton and attribute transforms: pure functions from a design and the actions of its nodes to the next design."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codesign_bench.design.graph import NODE_ARRAYS, Design
from codesign_bench.design.space import DesignSpace

NO_CHANGE, ADD_JOINT, DEL_JOINT = 0, 1, 2
NUM_SKELETON_ACTIONS = 3


def skeleton_transform(design: Design, actions: ArrayLike, space: DesignSpace) -> Design:
    """Applies one skeleton action per node; an illegal one is NoChange.

    The rule is sequential: nodes act in their order, and legality is judged at each node's turn. Because a parent always
    acts before its children, a node finds itself as the step began, so the whole step can be judged and applied at once
    (tests/design compares it with the sequential rule).

    A new joint is appended to the node order as the last child of its parent, whose attributes and constants it inherits;
    it sits at the end of the parent's bone, so the parent's own joint offset (zero except in some experts) is not copied.
    """
    kept = kept_nodes(design, actions, space)
    add = np.flatnonzero((np.asarray(actions) == ADD_JOINT) & space.topology(design).can_add)
    if not len(add) and kept.all():
        return design
    keep = np.flatnonzero(kept)
    new_position = np.cumsum(kept) - 1
    parents = np.concatenate([[-1], new_position[design.parents[keep[1:]]], new_position[add]])
    rows = np.concatenate([keep, add])
    arrays = {name: getattr(design, name)[rows] for name in NODE_ARRAYS}
    arrays["joint_offset"][len(keep) :] = 0
    return design.derived(parents=parents, **arrays)


def kept_nodes(design: Design, actions: ArrayLike, space: DesignSpace) -> NDArray[np.bool_]:
    """[nodes]: which nodes a skeleton transform keeps; they come first in the new design, in their old order."""
    kept: NDArray[np.bool_] = ~((np.asarray(actions) == DEL_JOINT) & space.topology(design).can_delete)
    return kept


def attribute_transform(design: Design, actions: ArrayLike, space: DesignSpace) -> Design:
    """p <- p + a for every tunable attribute (actions: [nodes, 5]), then back into [-1, 1] through the sine map. A change
    that is not a finite number is none."""
    change = np.asarray(actions, dtype=np.float64)
    moved = design.attributes + np.where(np.isfinite(change) & space.tunable(design), change, 0.0)
    return design.derived(attributes=project(moved))


def project(p: NDArray[Any]) -> NDArray[Any]:
    """The p in [-1, 1] with the same physical value: arcsin(sin(pi p / 2)) 2 / pi; values already inside stay bit-equal."""
    inside = np.abs(p) <= 1
    return np.where(inside, p, np.arcsin(np.sin(np.pi / 2 * p)) * (2 / np.pi))
