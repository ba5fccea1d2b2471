"""Designs as vector drawings: the capsules of a robot in parallel projection. Nothing moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from codesign_bench.analysis.robot import Robot
from codesign_bench.arrays import Array
from codesign_bench.design import colours
from codesign_bench.design.scene import Ground, Scene
from codesign_bench.errors import ConfigError
from codesign_bench.structured import build

GROUND, EARTH, WATER = "#8C8C8C", "#ECEAE4", "#E8F2F8"
CAMERA = (115.0, -40.0)
"""Azimuth and elevation in degrees of robots that move freely."""
ROUND = np.linspace(-np.pi / 2, np.pi / 2, 15)


@dataclass(frozen=True)
class View:
    """How an environment is looked at: `kind` is side (xz), top (xy) or oblique."""

    kind: str
    ground: Ground

    @staticmethod
    def of(scene: Scene, plane: str) -> View:
        return View("oblique" if scene.root == "free" else "side" if plane == "xz" else "top", scene.ground)

    @staticmethod
    def of_config(env: Mapping[str, Any]) -> View:
        """From the env part of a configuration; an unknown one is looked at obliquely, without a ground."""
        try:
            return View.of(build(Scene, env["scene"], "env.scene"), env["design"]["plane"])
        except (KeyError, TypeError, ConfigError):
            return View("oblique", Ground("none"))

    @property
    def axes(self) -> tuple[Array, Array, Array]:
        """Right, up and away from the eye."""
        if self.kind == "side":
            return np.array([1.0, 0, 0]), np.array([0, 0, 1.0]), np.array([0, 1.0, 0])
        if self.kind == "top":
            return np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), np.array([0, 0, -1.0])
        azimuth, elevation = np.radians(CAMERA)
        away = np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
        right = np.array([np.sin(azimuth), -np.cos(azimuth), 0.0])
        return right, np.cross(right, away), away

    def flat(self, points: Array) -> Array:
        right, up, _ = self.axes
        return np.stack([points @ right, points @ up], axis=-1)

    def standing(self, robot: Robot) -> Robot:
        """The robot with its lowest point on the ground; a swimmer's middle at the origin."""
        if self.kind == "top" or self.ground.kind == "none":
            middle = (np.minimum(robot.start, robot.end).min(axis=0) + np.maximum(robot.start, robot.end).max(axis=0)) / 2
            return robot.moved(-middle)
        low = np.min(np.minimum(robot.start[:, 2], robot.end[:, 2]) - robot.radius)
        return robot.moved(np.array([0, 0, self.ground.top - low]))


def extent(robot: Robot, view: View) -> tuple[float, float, float, float]:
    """Left, right, bottom, top that hold it as it stands."""
    robot = view.standing(robot)
    ends, radius = view.flat(np.stack([robot.start, robot.end])), robot.radius[:, None]
    (left, bottom), (right, top) = (ends - radius).min(axis=(0, 1)), (ends + radius).max(axis=(0, 1))
    return float(left), float(right), float(bottom), float(top)


def window(robots: Sequence[Robot], view: View, margin: float = 0.08) -> tuple[float, float]:
    """Width and height in metres in which each of the robots fits, the same for all."""
    left, right, bottom, top = np.array([extent(robot, view) for robot in robots]).T
    return float((right - left).max()) * (1 + 2 * margin), float((top - bottom).max()) * (1 + 2 * margin)


def draw(axes: Axes, robot: Robot, view: View, size: tuple[float, float] | None = None, hinges: bool = True, ahead: float = 0.0) -> None:
    """Draws a robot as it stands, in the middle of a window of `size` metres (by default: one that just holds it), and as many metres
    more in front of it as asked for."""
    robot = view.standing(robot)
    left, right, bottom, top = extent(robot, view)
    wide, tall = size or (1.16 * (right - left), 1.16 * (top - bottom))
    wide, tall = _filling(axes, wide + ahead, tall)
    middle = (left + right + ahead) / 2
    floor = bottom - 0.06 * tall if view.kind == "side" else (bottom + top) / 2 - tall / 2
    box = (middle - wide / 2, middle + wide / 2, floor, floor + tall)
    axes.set_xlim(box[0], box[1])
    axes.set_ylim(box[2], box[3])
    axes.set_aspect("equal")
    axes.axis("off")
    _ground(axes, robot, view, box)
    _bones(axes, robot, view)
    if hinges:
        _hinges(axes, robot, view)


def _filling(axes: Axes, wide: float, tall: float) -> tuple[float, float]:
    """The window, enlarged to the shape of the axes, so that equal axes draw at equal scale and labels line up."""
    place, figure = axes.get_position(original=True), axes.get_figure(root=True)
    assert figure is not None
    aspect = place.width * figure.get_figwidth() / (place.height * figure.get_figheight())
    return max(wide, tall * aspect), max(tall, wide / aspect)


def _ground(axes: Axes, robot: Robot, view: View, box: tuple[float, float, float, float]) -> None:
    left, right, bottom, _ = box
    kind = view.ground.kind
    if view.kind == "top":
        axes.add_patch(Rectangle((left, bottom), right - left, box[3] - bottom, facecolor=WATER, lw=0, zorder=0))
    if view.kind == "side" and kind != "none":
        ground, spans = view.ground, [(left - 1, right + 1)]
        if kind == "gaps":
            spans = [(a, b) for a, b in ground.solid() if a - 1 < right and b + 1 > left]
        for a, b in spans:
            heights = bottom, ground.top, ground.top, bottom
            in_low, in_top = (ground.inset(height) for height in (bottom, ground.top))
            places = a + in_low, a + in_top, b - in_top, b - in_low
            axes.fill(places, heights, color=EARTH, lw=0, zorder=0)
            axes.plot(places, heights, color=GROUND, lw=0.8, solid_capstyle="butt", zorder=0.5)
    elif view.kind == "oblique" and kind == "plane":
        shadows = []
        for start, end, radius in zip(robot.start, robot.end, robot.radius, strict=True):
            outline = _stadium(start[:2], end[:2], radius)
            shadows.append(view.flat(np.column_stack([outline, np.full(len(outline), view.ground.top)])))
        axes.add_collection(PolyCollection(shadows, facecolors="#DCDCDC", edgecolors="none", zorder=0))


def _bones(axes: Axes, robot: Robot, view: View) -> None:
    _, _, away = view.axes
    far = (robot.start + robot.end) / 2 @ away
    order = np.argsort(-far, kind="stable") if view.kind == "oblique" else np.arange(len(robot.radius))
    shapes, faces, edges = [], [], []
    start, end = view.flat(robot.start), view.flat(robot.end)
    for i in order:
        colour = np.array(colours.rgb(colours.bone(int(robot.depth[robot.body[i]]))))
        radius = robot.radius[i]
        shine = np.array([-0.18, 0.22]) * radius
        for inner, face in ((1.0, colour), (0.6, colour + 0.22 * (1 - colour)), (0.28, colour + 0.42 * (1 - colour))):
            offset = shine * (1 - inner) * 1.4
            shapes.append(_stadium(start[i] + offset, end[i] + offset, radius * inner))
            faces.append(face)
            edges.append(0.55 * colour if inner == 1.0 else face)
    widths = np.tile([0.5, 0.0, 0.0], len(order))
    axes.add_collection(PolyCollection(shapes, facecolors=faces, edgecolors=edges, linewidths=widths, zorder=2))


def _hinges(axes: Axes, robot: Robot, view: View) -> None:
    torso = robot.radius[robot.body == 0].max(initial=0.0)
    hinges, thick = robot.position[1:], robot.radius[np.searchsorted(robot.body, np.arange(1, robot.num_bodies))]
    seen = np.linalg.norm(hinges - robot.position[0], axis=-1) >= torso if view.kind == "oblique" else np.ones(len(hinges), bool)
    discs = [_stadium(c, c, 0.42 * r) for c, r in zip(view.flat(hinges[seen]), thick[seen], strict=True)]
    axes.add_collection(PolyCollection(discs, facecolors=colours.HINGE, edgecolors="#5A4A10", linewidths=0.35, zorder=3))


def _stadium(start: Array, end: Array, radius: float) -> Array:
    """[points, 2]: the outline of a capsule in parallel projection, whichever way it points."""
    direction = end - start
    angle = np.arctan2(direction[1], direction[0])
    cap = np.column_stack([np.cos(angle + ROUND), np.sin(angle + ROUND)]) * radius
    return np.concatenate([end + cap, start - cap])
