"""A robot as it is drawn: bodies, hinges and capsules in physical units, computed from a stored design. Kinematics only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import BONE, GEAR, RADIUS, START_EXTENSION, Design
from codesign_bench.design.space import DesignSpace
from codesign_bench.design.stored import StoredDesign


@dataclass(frozen=True, eq=False)
class Robot:
    """A design in its reference pose, all hinges at 0, with the root at the origin. Bodies stand in the simulator's order, depth first.

    - names [bodies]: index strings; "0" is the root
    - parents [bodies]: -1 for the root
    - depth [bodies]: 0 for the root
    - position [bodies, 3]: of the joint, metres
    - axis [bodies, 3], range [bodies, 2], gear [bodies]: of the hinge, degrees and newton metres; the root's mean nothing
    - body [capsules]: to which each belongs
    - start, end [capsules, 3], radius [capsules]: metres; a sphere starts where it ends, and a bone is its body's last capsule
    """

    names: tuple[str, ...]
    parents: Array
    depth: Array
    position: Array
    axis: Array
    range: Array
    gear: Array
    body: Array
    start: Array
    end: Array
    radius: Array

    @staticmethod
    def of(stored: StoredDesign) -> Robot:
        return _robot(stored.design, stored.space)

    @property
    def num_bodies(self) -> int:
        return len(self.names)

    @property
    def volume(self) -> float:
        """Of all capsules, cubic metres."""
        length = np.linalg.norm(self.end - self.start, axis=1)
        return float(np.sum(np.pi * self.radius**2 * (length + 4 / 3 * self.radius)))

    def moved(self, by: Array) -> Robot:
        return replace(self, position=self.position + by, start=self.start + by, end=self.end + by)


@lru_cache(maxsize=1024)
def _robot(design: Design, space: DesignSpace) -> Robot:
    topology, values = space.topology(design), space.physical(design.attributes)
    order = topology.order
    axes = [0, 2] if space.plane == "xz" else [0, 1]
    bone, back = np.zeros((design.num_nodes, 3)), np.zeros((design.num_nodes, 3))
    bone[:, axes] = values[:, BONE]
    back[:] = bone * (values[:, START_EXTENSION] / np.linalg.norm(bone, axis=1))[:, None]
    if not design.root_bone:
        bone[0] = 0
    position = np.zeros((design.num_nodes, 3))
    for node in range(1, design.num_nodes):  # parents come first
        parent = design.parents[node]
        position[node] = position[parent] + bone[parent] + design.joint_offset[node]
    bones = order if design.root_bone else order[1:]
    fixed = np.array([[*geom.start, *geom.end, geom.radius] for geom in design.root_geoms]).reshape(-1, 7)
    return Robot(
        names=tuple(topology.names[node] for node in order),
        parents=np.array([-1, *topology.place[design.parents[order[1:]]]]),
        depth=topology.depth[order],
        position=position[order],
        axis=design.axis[order],
        range=design.range[order],
        gear=values[order, GEAR],
        body=np.concatenate([np.zeros(len(fixed), dtype=int), topology.place[bones]]),
        start=np.concatenate([fixed[:, 0:3], (position - back)[bones]]),
        end=np.concatenate([fixed[:, 3:6], (position + bone)[bones]]),
        radius=np.concatenate([fixed[:, 6], values[bones, RADIUS]]),
    )
