"""Random designs, grown here without the package's transforms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.reference.specification import Specification


def random_design(task: Any, specification: Specification, rng: np.random.Generator, *, offsets: bool = False, bodies: int = 0) -> Any:
    """A design inside the task's limits with uniform attributes; a child gets its parent's axis, range and friction.

    offsets  whether joints also sit off the end of their parent's bone
    bodies   how many nodes to aim for; 0 draws the number
    """
    first = task.initial_design
    parents, source = first.parents.tolist(), list(range(first.num_nodes))
    depth = [0] + [1] * (first.num_nodes - 1)
    wanted = bodies or int(rng.integers(first.num_nodes, specification.max_bodies + 1))
    while len(parents) < wanted:
        free = [n for n in range(1, len(parents)) if depth[n] <= 2 and parents.count(n) < specification.max_children]
        if not free:
            break
        parent = int(rng.choice(free))
        parents.append(parent)
        source.append(source[parent])
        depth.append(depth[parent] + 1)
    nodes = len(parents)
    attributes = rng.uniform(-1, 1, (nodes, 5))
    attributes[0, 2] = 0
    if not first.root_bone:
        attributes[0] = 0
    joint_offset = rng.uniform(-0.1, 0.1, (nodes, 3)) if offsets else np.zeros((nodes, 3))
    joint_offset[0] = 0
    return replace(
        first,
        parents=np.array(parents),
        attributes=attributes,
        axis=first.axis[source],
        range=first.range[source],
        friction=first.friction[source],
        joint_offset=joint_offset,
    )


def chain(task: Any, directions: list[tuple[float, float]], *, extension: float = -1.0) -> Any:
    """The root and its limbs, with a chain of joints grown on the first limb; all bones point in the given normalised directions."""
    first = task.initial_design
    nodes = [*range(first.num_nodes), *[1] * (len(directions) - 2)]
    parents = [*first.parents.tolist(), *[1, first.num_nodes, first.num_nodes + 1][: len(directions) - 2]]
    attributes = first.attributes[nodes].copy()
    chained = [0, 1, *range(first.num_nodes, len(nodes))]
    for node, direction in zip(chained, directions, strict=True):
        attributes[node, :2] = direction
        attributes[node, 4] = extension
    return replace(
        first,
        parents=np.array(parents),
        attributes=attributes,
        axis=first.axis[nodes],
        range=first.range[nodes],
        friction=first.friction[nodes],
        joint_offset=np.zeros((len(nodes), 3)),
    )
