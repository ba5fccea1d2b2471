"""How symmetric a design is, as three numbers between 0 and 1: the effect of joint-specialised weights, measured.

- sibling: are limbs that hang on the same joint alike? Sibling subtrees are matched joint by joint; a pair of joints scores one minus the
  mean difference of bone length, gear, radius and start extension (each as a share of its range), a joint without a counterpart scores
  0; the mean over all pairs of siblings. Directions do not count. NaN for a design without siblings.
- mirror: is there an axis through the root on whose other side the robot looks the same? The share of the bones' area, in the plane of
  the design, whose mirror image lies on the robot, for the best axis: every 2.5 degrees, towards every bone's ends, and along the
  robot's principal axes. Any straight chain has such an axis, and scores near 1.
- left-right: the same for one axis, that of travel (x). NaN for designs in the upright plane, which have no left and right.

All are NaN for designs of more than MOST_BODIES, which no task of ours has, and which would take minutes.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from codesign_bench.analysis.robot import Robot
from codesign_bench.arrays import Array
from codesign_bench.design.graph import BONE, GEAR, RADIUS, START_EXTENSION, Design

AXES = 72
ALONG, ACROSS = 12, 3
"""Sample points of a bone."""
MOST_BODIES = 200


def sibling_symmetry(design: Design) -> float:
    if design.num_nodes > MOST_BODIES:
        return float("nan")
    features = _features(design)
    children: list[list[int]] = [[] for _ in range(design.num_nodes)]
    for node, parent in enumerate(design.parents[1:].tolist(), start=1):
        children[parent].append(node)
    sizes = [1] * design.num_nodes
    for node in range(design.num_nodes - 1, 0, -1):
        sizes[int(design.parents[node])] += sizes[node]

    def match(u: int, v: int) -> tuple[float, int]:
        """Summed scores and number of pairs of the best match of two subtrees."""
        score, pairs = 1 - float(np.abs(features[u] - features[v]).mean()), 1
        if children[u] and children[v]:
            found = np.array([[match(a, b) for b in children[v]] for a in children[u]])
            chosen = linear_sum_assignment(found[..., 0] + 1e-9 * found[..., 1], maximize=True)  # of equal ones, that with more pairs
            score, pairs = score + float(found[..., 0][chosen].sum()), pairs + round(float(found[..., 1][chosen].sum()))
        return score, pairs

    scores = []
    for siblings in children:
        for u, v in combinations(siblings, 2):
            score, pairs = match(u, v)
            scores.append(score / (sizes[u] + sizes[v] - pairs))
    return float(np.mean(scores)) if scores else float("nan")


def _features(design: Design) -> Array:
    """[nodes, 4] in [0, 1]: bone length, gear, radius, start extension as shares of their ranges."""
    share = np.sin(np.pi / 2 * design.attributes)
    length = np.hypot(*share[:, BONE].T) / np.sqrt(2)
    return np.column_stack([length, (share[:, [GEAR, RADIUS, START_EXTENSION]] + 1) / 2])


def left_right_symmetry(robot: Robot, plane: str) -> float:
    return float("nan") if plane == "xz" else mirror_symmetry(robot, plane, [0.0])


def mirror_symmetry(robot: Robot, plane: str, angles: Sequence[float] | None = None) -> float:
    """For the best of the axes at these angles to x, by default those described above. `plane` is the design's, "xz" or "xy"; a bone that
    is a point (a sphere) is sampled across only one way."""
    if len(robot.radius) > MOST_BODIES:
        return float("nan")
    axes = [0, 2] if plane == "xz" else [0, 1]
    start, end = (robot.start - robot.position[0])[:, axes], (robot.end - robot.position[0])[:, axes]
    along = start[:, None] + (end - start)[:, None] * ((np.arange(ALONG) + 0.5) / ALONG)[:, None]
    length = np.linalg.norm(end - start, axis=1)
    side = np.column_stack([start[:, 1] - end[:, 1], end[:, 0] - start[:, 0]]) / np.maximum(length, 1e-12)[:, None]
    aside = side[:, None] * ((np.arange(ACROSS) + 0.5) / ACROSS * 2 - 1)[:, None] * robot.radius[:, None, None]
    points = (along[:, :, None] + aside[:, None]).reshape(-1, 2)
    area = np.repeat((length + 2 * robot.radius) * robot.radius, ALONG * ACROSS)
    best = 0.0
    for angle in [*np.arange(AXES) * np.pi / AXES, *_likely_axes(start, end, points, area)] if angles is None else angles:
        c, s = np.cos(2 * angle), np.sin(2 * angle)
        best = max(best, float(area @ _inside(points @ np.array([[c, s], [s, -c]]), start, end, robot.radius)))
    return best / float(area.sum())


def _likely_axes(start: Array, end: Array, points: Array, area: Array) -> list[float]:
    """Angles towards the ends of the bones, and of the principal axes of all points."""
    ends = np.concatenate([start, end])
    far = ends[np.linalg.norm(ends, axis=1) > 1e-9]
    _, principal = np.linalg.eigh((points * area[:, None]).T @ points)
    return [float(np.arctan2(y, x)) for x, y in [*far, *principal.T]]


def _inside(points: Array, start: Array, end: Array, radius: Array) -> NDArray[np.bool_]:
    """[points]: which lie in one of the capsules."""
    found = np.zeros(len(points), dtype=bool)
    for a, b, r in zip(start, end, radius, strict=True):
        bone, to_point = b - a, points - a
        along = np.clip(to_point @ bone / max(float(bone @ bone), 1e-12), 0, 1)
        away = to_point - along[:, None] * bone
        found |= (away * away).sum(axis=1) <= r * r
    return found
