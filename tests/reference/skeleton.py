"""Skeleton transforms and joint indices the slow way: linked nodes, one action after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference.specification import Specification

CONSTANTS = ("attributes", "axis", "range", "friction")


@dataclass(eq=False)
class Joint:
    """A node of a linked tree. `values` holds its attributes and the constants that a new child inherits."""

    parent: Joint | None
    values: dict[str, list[float]]
    joint_offset: list[float]
    children: list[Joint] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1


def linked(design: Any) -> list[Joint]:
    """The design's nodes in their order, as linked joints."""
    joints: list[Joint] = []
    for i in range(len(design.parents)):
        parent = joints[design.parents[i]] if i else None
        joint = Joint(parent, {name: getattr(design, name)[i].tolist() for name in CONSTANTS}, design.joint_offset[i].tolist())
        if parent is not None:
            parent.children.append(joint)
        joints.append(joint)
    return joints


def can_add(joint: Joint, specification: Specification) -> bool:
    return 1 <= joint.depth <= 2 and len(joint.children) < specification.max_children


def can_delete(joint: Joint) -> bool:
    return joint.depth >= 2 and not joint.children


def transformed(order: list[Joint], actions: Sequence[int], specification: Specification) -> list[Joint]:
    """Lets the nodes act one after the other (0 NoChange, 1 AddJoint, 2 DelJoint); changes the tree and gives its new order."""
    result = list(order)
    for joint, action in zip(order, actions, strict=True):
        if action == 1 and can_add(joint, specification):
            new = Joint(joint, {name: list(value) for name, value in joint.values.items()}, [0.0, 0.0, 0.0])
            joint.children.append(new)
            result.append(new)
        elif action == 2 and can_delete(joint):
            assert joint.parent is not None
            joint.parent.children.remove(joint)
            result.remove(joint)
    return result


def assert_same(design: Any, order: list[Joint]) -> None:
    """The design holds exactly the linked joints, in this order."""
    position = {id(joint): i for i, joint in enumerate(order)}
    assert design.parents.tolist() == [-1 if joint.parent is None else position[id(joint.parent)] for joint in order]
    for name in CONSTANTS:
        assert getattr(design, name).tolist() == [joint.values[name] for joint in order], name
    assert design.joint_offset.tolist() == [joint.joint_offset for joint in order]


def index_string(joint: Joint) -> str:
    """The path from the root, the last turn first."""
    if joint.parent is None:
        return "0"
    turns = []
    here = joint
    while here.parent is not None:
        turns.append(str(1 + [id(c) for c in here.parent.children].index(id(here))))
        here = here.parent
    return "".join(turns)


def index_strings(design: Any) -> list[str]:
    return [index_string(joint) for joint in linked(design)]


def reachable(specification: Specification) -> set[str]:
    """Every index string of the largest design that the limits allow."""
    first = [str(i) for i in range(1, specification.root_children + 1)]
    turns = [str(i) for i in range(1, specification.max_children + 1)]
    second = [b + a for a in first for b in turns]
    third = [c + path for path in second for c in turns]
    return {"0", *first, *second, *third}


def depth_first(design: Any) -> list[int]:
    """Node numbers in the order in which a simulator that reads nested bodies meets them."""
    joints = linked(design)
    position = {id(joint): i for i, joint in enumerate(joints)}

    def visit(joint: Joint) -> list[int]:
        return [position[id(joint)]] + [n for child in joint.children for n in visit(child)]

    return visit(joints[0])


def random_actions(rng: np.random.Generator, nodes: int) -> list[int]:
    return rng.choice(3, size=nodes, p=[0.3, 0.45, 0.25]).tolist()
