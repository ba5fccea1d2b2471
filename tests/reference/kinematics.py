"""Where joints and bones are in the world, computed from the graph alone: one node at a time, with rotation matrices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tests.reference.skeleton import depth_first
from tests.reference.specification import Specification


class Place(NamedTuple):
    """World positions of a node's joint, of the end of its bone, and of the point where its capsule begins."""

    joint: np.ndarray
    end: np.ndarray
    start: np.ndarray
    axis: np.ndarray


def physical(p: list[float], specification: Specification) -> list[float]:
    """Five normalised attributes as metres, gear, metres, metres."""
    bounds = zip(p, specification.lower, specification.upper, strict=True)
    values = [low + (math.sin(math.pi * x / 2) + 1) / 2 * (high - low) for x, low, high in bounds]
    if values[0] == 0 and values[1] == 0:
        values[0] = 1e-6
    return values


def rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross


def from_quaternion(quaternion: np.ndarray) -> np.ndarray:
    w = quaternion[0] / np.linalg.norm(quaternion)
    vector = quaternion[1:]
    length = np.linalg.norm(vector)
    return np.eye(3) if length == 0 else rotation(vector / length, 2 * math.atan2(length / np.linalg.norm(quaternion), w))


def hinge_positions(design: Any, specification: Specification) -> dict[int, int]:
    """Position of every non-root node's angle in qpos: after the root's, depth first."""
    return {node: specification.root_positions + i for i, node in enumerate(depth_first(design)[1:])}


def places(design: Any, specification: Specification, qpos: np.ndarray) -> list[Place]:
    """[nodes] in a pose."""
    if specification.root_positions == 7:
        position, turned = qpos[:3].copy(), from_quaternion(qpos[3:7])
    elif specification.plane == "xz":
        position, turned = np.array([qpos[0], 0.0, qpos[1]]), rotation(np.array([0, 1, 0]), qpos[2])
    else:
        position, turned = np.array([qpos[0], qpos[1], 0.0]), rotation(np.array([0, 0, 1]), qpos[2])
    angles = hinge_positions(design, specification)
    result: list[Place] = []
    frames: list[np.ndarray] = []
    for node, parent in enumerate(design.parents.tolist()):
        if node == 0:
            joint, frame, axis = position, turned, np.zeros(3)
        else:
            joint = result[parent].end + frames[parent] @ design.joint_offset[node]
            frame = frames[parent] @ rotation(design.axis[node], qpos[angles[node]])
            axis = frames[parent] @ design.axis[node]
        a, b, _, _, extension = physical(design.attributes[node].tolist(), specification)
        bone = np.array([a, 0.0, b] if specification.plane == "xz" else [a, b, 0.0])
        if node == 0 and not design.root_bone:
            bone, extension = np.zeros(3), 0.0
        length = np.linalg.norm(bone)
        back = -extension * bone / length if length else np.zeros(3)
        result.append(Place(joint, joint + frame @ bone, joint + frame @ back, axis))
        frames.append(frame)
    return result
