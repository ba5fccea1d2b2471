"""The design space of a task: attribute ranges, skeleton limits, legality, and the map between normalised and physical values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import ATTRIBUTE_NAMES, BONE, GEAR, MOST_NODES, NODE_ARRAYS, NUM_ATTRIBUTES, Design, check_tree
from codesign_bench.design.joint_index import index_strings, reachable_strings
from codesign_bench.errors import DesignError

SHORTEST_BONE = 1e-6
"""Metres. A capsule needs a length, and MuJoCo refuses shorter ones: a shorter bone is stretched to this, a bone of length
zero along the first axis."""
MOST_TOPOLOGIES = 4096
MOST_GEOMS = 100
LARGEST = 1e6
"""Of a bound, whatever its unit."""


@dataclass(frozen=True, eq=False)
class Topology:
    """What follows from the skeleton alone, shared by all designs with the same parents.

    - depth [nodes]: 0 for the root
    - children [nodes]: number of children
    - sibling [nodes]: rank among the children of its parent, from 0
    - joint_index [nodes]: position of the joint's index among the indices that the task can reach
    - names [nodes]: index strings, the names of bodies and joints
    - can_add [nodes]: where AddJoint is legal
    - can_delete [nodes]: where DelJoint is legal
    - edges [2, 2 (nodes - 1)]: both ways between parent and child
    - order [nodes]: the nodes depth first, children in order: the order of bodies and motors in the simulator
    - place [nodes]: where in that order each node comes
    """

    depth: Array
    children: Array
    sibling: Array
    joint_index: Array
    names: tuple[str, ...]
    can_add: Array
    can_delete: Array
    edges: Array
    order: Array
    place: Array


@dataclass(frozen=True)
class DesignSpace:
    """Which designs a task allows.

    - plane: the axes of the bone offset: "xz" or "xy"
    - lower, upper: bounds of the five attributes, physical units
    - root_children: the root's children; it never gains or loses one
    - max_children: of every other joint
    - max_depth: of a joint; the root has depth 0
    """

    plane: str
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    root_children: int
    max_children: int
    max_depth: int

    def __post_init__(self) -> None:
        if self.plane not in ("xz", "xy"):
            raise DesignError(f"The plane of the design space is {self.plane!r}; allowed are 'xz' and 'xy'.")
        if len(self.lower) != NUM_ATTRIBUTES or len(self.upper) != NUM_ATTRIBUTES:
            raise DesignError(f"The design space needs {NUM_ATTRIBUTES} lower and upper bounds, one for each of {ATTRIBUTE_NAMES}.")
        for name, low, high in zip(ATTRIBUTE_NAMES, self.lower, self.upper, strict=True):
            if not -LARGEST <= low < high <= LARGEST:
                raise DesignError(
                    f"The range of {name} is [{low}, {high}]; allowed is a lower bound below the upper bound, both within {LARGEST:,.0f}."
                )
        if self.lower[3] <= 0:
            raise DesignError(f"The range of radius starts at {self.lower[3]}; allowed are values above 0.")
        if self.lower[4] < 0:
            raise DesignError(f"The range of start extension starts at {self.lower[4]}; allowed are values from 0 up.")
        for name, value in (("root_children", self.root_children), ("max_children", self.max_children), ("max_depth", self.max_depth)):
            if value < 1:
                raise DesignError(f"{name} is {value}; allowed are whole numbers from 1 up.")
        joints, level = 1, self.root_children
        for _ in range(self.max_depth):
            joints, level = joints + level, level * self.max_children
            if joints > MOST_NODES:
                text = f"max_depth is {self.max_depth} and max_children {self.max_children}"
                raise DesignError(f"{text}; allowed are {MOST_NODES} joints in all.")
        if self.index_base > 10:
            raise DesignError(f"A joint may have {self.index_base - 1} children; allowed are at most 9, one digit.")

    # ---- sizes -------------------------------------------------------------------------------------------------------

    @cached_property
    def index_base(self) -> int:
        return max(self.root_children, self.max_children) + 1

    @cached_property
    def index_names(self) -> tuple[str, ...]:
        """The index strings that can occur, in the order of `Topology.joint_index`."""
        return tuple(reachable_strings(self.root_children, self.max_children, self.max_depth))

    @cached_property
    def _index_positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.index_names)}

    @cached_property
    def joint_depths(self) -> Array:
        """[joints]: the depth at which each joint index lies."""
        return np.array([0] + [len(name) for name in self.index_names[1:]])

    @property
    def max_nodes(self) -> int:
        return len(self.index_names)

    @property
    def num_depths(self) -> int:
        return self.max_depth + 1

    # ---- attributes --------------------------------------------------------------------------------------------------

    @cached_property
    def _lower(self) -> Array:
        return np.asarray(self.lower, dtype=np.float64)

    @cached_property
    def _width(self) -> Array:
        return np.asarray(self.upper, dtype=np.float64) - self._lower

    def physical(self, p: Array) -> Array:
        """Normalised attributes [..., 5], any real numbers, to physical values inside the bounds."""
        values: Array = self._lower + (np.sin(np.pi / 2 * np.asarray(p, dtype=np.float64)) + 1) / 2 * self._width
        bone = values[..., BONE]
        length = np.hypot(bone[..., 0], bone[..., 1])
        short = length < SHORTEST_BONE
        if short.any():
            bone[..., 0] += (length == 0) * SHORTEST_BONE
            length = np.where(length == 0, SHORTEST_BONE, length)
            bone *= np.where(short, SHORTEST_BONE / length, 1.0)[..., None]
        return values

    @cached_property
    def typical(self) -> list[float]:
        """The physical attributes of p = 0.5, where no bone vanishes."""
        values: list[float] = self.physical(np.full(NUM_ATTRIBUTES, 0.5)).tolist()
        return values

    def normalised(self, values: Array) -> Array:
        """Physical values inside the bounds to p in [-1, 1]."""
        s = 2 * (np.asarray(values, dtype=np.float64) - self._lower) / self._width - 1
        return np.arcsin(np.clip(s, -1, 1)) * (2 / np.pi)

    def tunable(self, design: Design) -> Array:
        """[nodes, 5] True where a transform may change the attribute: the root has no motor and maybe no bone."""
        mask = np.ones((design.num_nodes, NUM_ATTRIBUTES), dtype=bool)
        mask[0] = design.root_bone
        mask[0, GEAR] = False
        return mask

    def including(self, values: Array, tunable: Array) -> DesignSpace:
        """This space with bounds widened where a tunable physical value [nodes, 5] lies outside them."""
        low = np.where(tunable, values, np.inf).min(axis=0)
        high = np.where(tunable, values, -np.inf).max(axis=0)
        lower = tuple(float(min(a, b)) for a, b in zip(self.lower, low, strict=True))
        upper = tuple(float(max(a, b)) for a, b in zip(self.upper, high, strict=True))
        return replace(self, lower=lower, upper=upper)

    # ---- skeleton ----------------------------------------------------------------------------------------------------

    def topology(self, design: Design) -> Topology:
        """Remembered for every skeleton that was seen: this is asked for at every transform."""
        key = design.parents.tobytes()
        found = self._topologies.get(key)
        if found is None:
            found = self.topology_of(design.parents.tolist())
            if len(self._topologies) >= MOST_TOPOLOGIES:
                self._topologies.clear()
            self._topologies[key] = found
        return found

    @cached_property
    def _topologies(self) -> dict[bytes, Topology]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self, design: Design) -> None:
        """Raises DesignError, naming the value and what is allowed, unless the design belongs to this space."""
        check_tree(design.parents.tolist())
        topology = self.topology_of(design.parents.tolist())
        for i in range(design.num_nodes):
            depth, children = int(topology.depth[i]), int(topology.children[i])
            if depth > self.max_depth:
                raise DesignError(f"Node {i} has depth {depth}; allowed is at most {self.max_depth}.")
            if i > 0 and children > self.max_children:
                raise DesignError(f"Node {i} has {children} children; allowed are at most {self.max_children}.")
        if topology.children[0] != self.root_children:
            raise DesignError(f"The root has {topology.children[0]} children; this task's root has exactly {self.root_children}.")
        for name in NODE_ARRAYS:
            if not np.all(np.abs(getattr(design, name)) <= LARGEST):
                said = "holds a value that is not finite, or huge"
                raise DesignError(f"The design's {name} {said}; allowed are numbers within {LARGEST:,.0f}.")
        outside = np.argwhere(np.abs(design.attributes) > 1)
        if len(outside):
            i, j = outside[0]
            value = design.attributes[i, j]
            raise DesignError(f"The {ATTRIBUTE_NAMES[j]} of node {i} is {value} (normalised); allowed is -1 to 1.")
        if np.any(design.attributes[0][~self.tunable(design)[0]] != 0):
            raise DesignError("The root has no motor, and attributes of the root that do not exist must be 0.")
        for i in range(1, design.num_nodes):
            if not 1e-6 <= np.abs(design.axis[i]).max() <= LARGEST:
                raise DesignError(f"The axis of node {i} is {design.axis[i].tolist()}; allowed are vectors that are not zero, nor huge.")
            if not design.range[i, 0] < design.range[i, 1]:
                raise DesignError(f"The range of node {i} is {design.range[i].tolist()}; allowed is a lower and then an upper limit.")
        if np.any(design.friction < 0) or np.any(design.friction > 1000):
            raise DesignError("The design's friction holds a value outside 0 to 1000; allowed are values inside.")
        if np.any(np.abs(design.joint_offset) > 100) or np.any(np.abs(design.range) > 3600):
            raise DesignError("The design has a joint offset beyond 100 m or a range beyond 3600 degrees; allowed is less.")
        if len(design.root_geoms) > MOST_GEOMS:
            raise DesignError(f"The root has {len(design.root_geoms)} fixed geoms; allowed are at most {MOST_GEOMS}.")
        for i, geom in enumerate(design.root_geoms):
            near = np.max(np.abs([geom.start, geom.end])) <= 100
            length = float(np.linalg.norm(np.subtract(geom.end, geom.start))) if near else np.inf
            if not (length == 0 or SHORTEST_BONE <= length <= 100) or not 0 < geom.radius <= 100 or min(geom.friction) < 0:
                raise DesignError(
                    f"Root geom {i} has length {length}, radius {geom.radius} and friction {list(geom.friction)}; allowed are a length"
                    f" of 0 or {SHORTEST_BONE} to 100, a radius above 0 up to 100, and friction from 0 up."
                )
        if design.start_height is not None and not abs(design.start_height) <= 100:
            raise DesignError(f"The design's start height is {design.start_height}; allowed are -100 to 100 metres, or none of its own.")
        if not design.root_bone and not design.root_geoms:
            raise DesignError("The root has neither a bone nor fixed geoms; allowed is a root with a body.")

    def topology_of(self, parents: Sequence[int]) -> Topology:
        """Computes a topology afresh; `topology` remembers the ones it has seen. Works for trees outside the limits too."""
        nodes = len(parents)
        depth = np.zeros(nodes, dtype=np.int64)
        children_of: list[list[int]] = [[] for _ in range(nodes)]
        sibling = np.zeros(nodes, dtype=np.int64)
        for i in range(1, nodes):
            depth[i] = depth[parents[i]] + 1
            sibling[i] = len(children_of[parents[i]])
            children_of[parents[i]].append(i)
        children = np.array([len(c) for c in children_of], dtype=np.int64)
        child = np.arange(1, nodes)
        parent = np.asarray(parents[1:], dtype=np.int64)
        names = tuple(index_strings(parents))
        order, stack = [], [0]
        while stack:
            node = stack.pop()
            order.append(node)
            stack.extend(reversed(children_of[node]))
        return Topology(
            depth=depth,
            children=children,
            sibling=sibling,
            joint_index=np.array([self._index_positions.get(name, -1) for name in names], dtype=np.int64),
            names=names,
            can_add=(depth >= 1) & (depth < self.max_depth) & (children < self.max_children),
            can_delete=(depth >= 2) & (children == 0),
            edges=np.stack([np.concatenate([parent, child]), np.concatenate([child, parent])]).astype(np.int64),
            order=np.array(order, dtype=np.int64),
            place=np.argsort(order),
        )
