"""A design: a rooted tree of joints, each with one bone, described by arrays and never changed in place.

A node is a hinge joint together with the bone (a capsule) that hangs on it; node 0 is the root, which carries the torso
and has no motor. Parents come before their children in the node order.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from codesign_bench.arrays import Array
from codesign_bench.errors import DesignError

ATTRIBUTE_NAMES = ("bone offset 1", "bone offset 2", "gear", "radius", "start extension")
NUM_ATTRIBUTES = len(ATTRIBUTE_NAMES)
BONE, GEAR, RADIUS, START_EXTENSION = slice(0, 2), 2, 3, 4
"""Columns of an attribute vector."""

DEFAULT_FRICTION = (1.0, 0.005, 0.0001)
"""MuJoCo's sliding, torsional and rolling friction of a geom that does not say otherwise."""


@dataclass(frozen=True)
class FixedGeom:
    """A rigid part of the root that no transform changes: a capsule from `start` to `end`, or a sphere where they are equal.

    Positions are relative to the root's joints, in metres.
    """

    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    friction: tuple[float, float, float] = DEFAULT_FRICTION


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
    """

    parents: Array
    attributes: Array
    axis: Array
    range: Array
    friction: Array
    joint_offset: Array
    root_bone: bool = True
    root_geoms: tuple[FixedGeom, ...] = ()

    def __post_init__(self) -> None:
        nodes = np.shape(self.parents)[0] if np.ndim(self.parents) == 1 else 0
        shapes: dict[str, tuple[int, ...]] = {
            "parents": (nodes,),
            "attributes": (nodes, NUM_ATTRIBUTES),
            "axis": (nodes, 3),
            "range": (nodes, 2),
            "friction": (nodes, 3),
            "joint_offset": (nodes, 3),
        }
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
        arrays = ("parents", "attributes", "axis", "range", "friction", "joint_offset")
        return (
            self.root_bone == other.root_bone
            and self.root_geoms == other.root_geoms
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
        )

    def __hash__(self) -> int:
        return hash((self.parents.tobytes(), (self.attributes + 0.0).tobytes(), self.root_bone))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; `from_dict` gives the identical design back."""
        nodes = [
            {
                "parent": int(self.parents[i]),
                "attributes": self.attributes[i].tolist(),
                "axis": self.axis[i].tolist(),
                "range": self.range[i].tolist(),
                "friction": self.friction[i].tolist(),
                "joint_offset": self.joint_offset[i].tolist(),
            }
            for i in range(self.num_nodes)
        ]
        geoms = [{"start": list(g.start), "end": list(g.end), "radius": g.radius, "friction": list(g.friction)} for g in self.root_geoms]
        return {"root_bone": self.root_bone, "root_geoms": geoms, "nodes": nodes}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1)

    @staticmethod
    def from_json(text: str) -> Design:
        try:
            value = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise DesignError(f"This is not a design: the JSON cannot be read ({error}).") from None
        return Design.from_dict(value)

    @staticmethod
    def from_dict(value: Any) -> Design:
        """Reads what `to_dict` wrote; checks that it is a finite tree. The limits of a task are DesignSpace.check's."""
        fields = _mapping(value, "a design", {"root_bone", "root_geoms", "nodes"})
        if not isinstance(fields["root_bone"], bool):
            raise DesignError(f"root_bone is {reprlib.repr(fields['root_bone'])}; allowed are true and false.")
        if not isinstance(fields["nodes"], list) or not fields["nodes"]:
            raise DesignError("The design's nodes are empty or not a list; allowed is a list with the root first.")
        if not isinstance(fields["root_geoms"], list):
            raise DesignError("root_geoms is not a list.")
        keys = {"parent", "attributes", "axis", "range", "friction", "joint_offset"}
        nodes = [_mapping(node, f"node {i}", keys) for i, node in enumerate(fields["nodes"])]
        parents = [node["parent"] for node in nodes]
        check_tree(parents)

        def rows(key: str, width: int) -> list[list[float]]:
            return [_numbers(node[key], width, f"{key} of node {i}") for i, node in enumerate(nodes)]

        def geom(i: int, item: Any) -> FixedGeom:
            entry = _mapping(item, f"root geom {i}", {"start", "end", "radius", "friction"})
            start, end, friction = (tuple(_numbers(entry[k], 3, f"{k} of root geom {i}")) for k in ("start", "end", "friction"))
            (radius,) = _numbers([entry["radius"]], 1, f"radius of root geom {i}")
            if radius <= 0:
                raise DesignError(f"The radius of root geom {i} is {radius}; allowed are values above 0.")
            return FixedGeom(start, end, radius, friction)  # type: ignore[arg-type]

        return Design(
            parents=np.asarray(parents),
            attributes=np.asarray(rows("attributes", NUM_ATTRIBUTES)),
            axis=np.asarray(rows("axis", 3)),
            range=np.asarray(rows("range", 2)),
            friction=np.asarray(rows("friction", 3)),
            joint_offset=np.asarray(rows("joint_offset", 3)),
            root_bone=fields["root_bone"],
            root_geoms=tuple(geom(i, item) for i, item in enumerate(fields["root_geoms"])),
        )


def check_tree(parents: ArrayLike | list[Any]) -> None:
    """Raises DesignError unless node 0 is the only root and every other node's parent comes before it (so: no cycles)."""
    for i, parent in enumerate(list(parents)):  # type: ignore[arg-type]
        if isinstance(parent, bool) or not isinstance(parent, (int, np.integer)):
            raise DesignError(f"The parent of node {i} is {reprlib.repr(parent)}; allowed are whole numbers.")
        if i == 0 and parent != -1:
            raise DesignError(f"The parent of node 0 is {reprlib.repr(parent)}; node 0 is the root and its parent must be -1.")
        if i > 0 and not 0 <= parent < i:
            raise DesignError(
                f"The parent of node {i} is {reprlib.repr(parent)}; allowed is an earlier node, 0 to {i - 1} (a tree has no cycles)."
            )


def _mapping(value: Any, what: str, keys: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise DesignError(f"The entry for {what} is {type(value).__name__}; allowed is an object with {', '.join(sorted(keys))}.")
    if set(value) != keys:
        wrong = sorted(map(reprlib.repr, set(value) ^ keys))[:10]
        raise DesignError(f"The entry for {what} has missing or unknown keys {', '.join(wrong)}; allowed are {', '.join(sorted(keys))}.")
    return value


def _numbers(value: Any, width: int, what: str) -> list[float]:
    ok = isinstance(value, list) and len(value) == width
    if not ok or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in value):
        raise DesignError(f"The {what} is {reprlib.repr(value)}; allowed is a list of {width} numbers.")
    try:
        numbers = [float(v) for v in value]
    except OverflowError:
        numbers = [float("inf")]
    if not np.all(np.isfinite(numbers)):
        raise DesignError(f"The {what} is {reprlib.repr(value)}; allowed are finite numbers.")
    return numbers
