"""What people call the parts of a robot and their attributes: "left front shin, length" instead of node 2, attribute 1."""

from collections import Counter

import numpy as np

from codesign_bench.design.graph import BONE, Design
from codesign_bench.design.space import DesignSpace

LEG = ("torso", "thigh", "shin", "foot")
"""By depth."""
ALIGNED = 0.99
"""Cosine from which a bone counts as lying along an axis."""


def part_names(design: Design, space: DesignSpace, legged: bool = True) -> list[str]:
    """One name per node, all different. Forward is +x, left is +y; the sides are told apart by where limbs point."""
    topology = space.topology_of(design.parents.tolist())
    limb = list(range(design.num_nodes))
    for node in range(1, design.num_nodes):
        parent = int(design.parents[node])
        limb[node] = node if parent == 0 else limb[parent]
    sides = _sides(design, space)
    names = []
    for node, depth in enumerate(topology.depth.tolist()):
        if legged or depth == 0:
            kind = LEG[depth] if depth < len(LEG) else f"bone {depth}"
        else:
            kind = "tail" if topology.children[node] == 0 else "middle" if depth == 1 else f"segment {depth}"
        names.append(f"{sides[limb[node]]} {kind}".strip())
    return _told_apart(names)


def attribute_names(design: Design, space: DesignSpace) -> list[tuple[str, ...]]:
    """Five per node. A bone along an axis has a length and a slant; others have an extent along each axis."""
    names: list[tuple[str, ...]] = []
    for bone in space.physical(design.attributes)[:, BONE]:
        along = np.abs(bone) / np.linalg.norm(bone)
        if along.max() > ALIGNED:
            extent = ("length", "slant") if along[0] > along[1] else ("slant", "length")
        else:
            extent = ("forward extent", "upward extent" if space.plane == "xz" else "leftward extent")
        names.append((*extent, "motor strength", "radius", "start extension"))
    return names


def _sides(design: Design, space: DesignSpace) -> dict[int, str]:
    """Of every limb at the root; a single limb needs none."""
    limbs = np.flatnonzero(design.parents == 0)
    if len(limbs) < 2:
        return dict.fromkeys([0, *limbs.tolist()], "")
    axes = [0, 2] if space.plane == "xz" else [0, 1]
    where = design.joint_offset[:, axes] + space.physical(design.attributes)[:, BONE]
    sides = {0: ""}
    for limb in limbs.tolist():
        x, across = where[limb].tolist()
        words = [("left" if across > 0 else "right") if space.plane == "xy" else "", "front" if x > 0 else "back"]
        sides[limb] = " ".join(word for word in words if word)
    return sides


def _told_apart(names: list[str]) -> list[str]:
    """Equal names get numbers."""
    often, seen = Counter(names), Counter[str]()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"{name} {seen[name]}" if often[name] > 1 else name)
    return result
