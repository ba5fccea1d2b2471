"""A design: a rooted tree of joints, each with one bone, described by arrays and never changed in place.

A node is a hinge joint together with the bone (a capsule) that hangs on it; node 0 is the root, which carries the torso
and has no motor. Parents come before their children in the node order.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from codesign_bench.arrays import Array
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.plain_files import from_json
from codesign_bench.structured import build

ATTRIBUTE_NAMES = ("bone offset 1", "bone offset 2", "gear", "radius", "start extension")
NUM_ATTRIBUTES = len(ATTRIBUTE_NAMES)
MOST_NODES = 1000
"""As many as a design space may have joints."""
BONE, GEAR, RADIUS, START_EXTENSION = slice(0, 2), 2, 3, 4
"""Columns of an attribute vector."""

NODE_ARRAYS = {"attributes": NUM_ATTRIBUTES, "axis": 3, "range": 2, "friction": 3, "joint_offset": 3}
"""What a design knows of each node besides its parent, and how many numbers it takes."""

Pair = tuple[float, float]
Triple = tuple[float, float, float]
DEFAULT_FRICTION = (1.0, 0.005, 0.0001)
"""MuJoCo's sliding, torsional and rolling friction of a geom that does not say otherwise."""


@dataclass(frozen=True)
class FixedGeom:
    """A rigid part of the root that no transform changes: a capsule from `start` to `end`, or a sphere where they are equal.

    Positions are relative to the root's joints, in metres.
    """

    start: Triple
    end: Triple
    radius: float
    friction: Triple = DEFAULT_FRICTION

    def __post_init__(self) -> None:
        if self.radius <= 0:
            raise DesignError(f"The radius of a fixed geom is {self.radius}; allowed are values above 0.")


@dataclass(frozen=True, eq=False)
class Design:
    """A robot: skeleton, attributes, and the constants that transforms keep.

    - parents [nodes]: index of the parent node, -1 for the root
    - attributes [nodes, 5]: normalised to [-1, 1]; the order is ATTRIBUTE_NAMES (see DesignSpace for physical values)
    - axis [nodes, 3]: hinge axis
    - range [nodes, 2]: hinge limits in degrees
    - friction [nodes, 3]: of the bone's capsule
    - joint_offset [nodes, 3]: from the end of the parent's bone to this joint, in metres (zero except in some experts)
    - root_bone: whether the root has a bone of its own; without one its attributes are zeros
    - root_geoms: rigid parts of the root
    - start_height: of the root at the start of an episode, metres; None: the task's
    """

    parents: Array
    attributes: Array
    axis: Array
    range: Array
    friction: Array
    joint_offset: Array
    root_bone: bool = True
    root_geoms: tuple[FixedGeom, ...] = ()
    start_height: float | None = None

    def __post_init__(self) -> None:
        nodes = np.shape(self.parents)[0] if np.ndim(self.parents) == 1 else 0
        shapes: dict[str, tuple[int, ...]] = {"parents": (nodes,), **{name: (nodes, width) for name, width in NODE_ARRAYS.items()}}
        for name, shape in shapes.items():
            dtype = np.int64 if name == "parents" else np.float64
            array = np.array(getattr(self, name), dtype=dtype)
            if array.shape != shape or nodes == 0:
                raise DesignError(f"A design's {name} has shape {array.shape}; allowed is {shape} with at least one node.")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def num_nodes(self) -> int:
        return len(self.parents)

    def derived(self, **arrays: Array) -> Design:
        """This design with other arrays, for transforms: fresh ones of the right shapes and types, which are not copied."""
        design = object.__new__(Design)
        design.__dict__.update(self.__dict__)
        for array in arrays.values():
            array.flags.writeable = False
        design.__dict__.update(arrays)
        return design

    def with_attributes(self, attributes: ArrayLike) -> Design:
        return replace(self, attributes=np.asarray(attributes))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Design):
            return NotImplemented
        same = (getattr(self, name) == getattr(other, name) for name in ("root_bone", "root_geoms", "start_height"))
        return all(same) and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("parents", *NODE_ARRAYS))

    def __hash__(self) -> int:
        return hash((self.parents.tobytes(), (self.attributes + 0.0).tobytes(), self.root_bone))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; `from_dict` gives the identical design back."""
        arrays = {name: getattr(self, name).tolist() for name in NODE_ARRAYS}
        nodes = [{"parent": parent, **{name: rows[i] for name, rows in arrays.items()}} for i, parent in enumerate(self.parents.tolist())]
        geoms = [{name: list(v) if isinstance(v, tuple) else v for name, v in asdict(geom).items()} for geom in self.root_geoms]
        return {"root_bone": self.root_bone, "root_geoms": geoms, "start_height": self.start_height, "nodes": nodes}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1)

    @staticmethod
    def from_json(text: str) -> Design:
        try:
            value = from_json(text)
        except ConfigError as error:
            raise DesignError(f"This is not a design: the text {error}.") from None
        return Design.from_dict(value)

    @staticmethod
    def from_dict(value: Any) -> Design:
        """Reads what `to_dict` wrote; checks that it is a finite tree. The limits of a task are DesignSpace.check's."""
        nodes = value.get("nodes") if isinstance(value, dict) else None
        if isinstance(nodes, list) and len(nodes) > MOST_NODES:  # before time is spent on them
            raise DesignError(f"The design has {len(nodes)} nodes; allowed are 1 to {MOST_NODES}.")
        try:
            content = build(_Content, value, "design")
        except ConfigError as error:
            raise DesignError(f"This is not a design: {error}") from None
        if not content.nodes:
            raise DesignError("The design's nodes are empty; allowed is a list with the root first.")
        parents = [node.parent for node in content.nodes]
        check_tree(parents)
        arrays: dict[str, Any] = {name: np.array([getattr(node, name) for node in content.nodes]) for name in NODE_ARRAYS}
        constants = {name: getattr(content, name) for name in ("root_bone", "root_geoms", "start_height")}
        return Design(np.array(parents), **arrays, **constants)


@dataclass(frozen=True)
class _Node:
    """A node as `Design.to_dict` writes it."""

    parent: int
    attributes: tuple[float, float, float, float, float]
    axis: Triple
    range: Pair
    friction: Triple
    joint_offset: Triple


@dataclass(frozen=True)
class _Content:
    """What `Design.to_dict` writes."""

    root_bone: bool
    root_geoms: tuple[FixedGeom, ...]
    nodes: tuple[_Node, ...]
    start_height: float | None = None


def check_tree(parents: Sequence[int]) -> None:
    """Raises DesignError unless node 0 is the only root and every other node's parent comes before it (so: no cycles)."""
    for i, parent in enumerate(parents):
        if i == 0 and parent != -1:
            raise DesignError(f"The parent of node 0 is {reprlib.repr(parent)}; node 0 is the root and its parent must be -1.")
        if i > 0 and not 0 <= parent < i:
            raise DesignError(f"The parent of node {i} is {reprlib.repr(parent)}; allowed is 0 to {i - 1} (no cycles).")
