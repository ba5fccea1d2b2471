"""What a task sees of the simulator: the state of many bodies at one moment, and what one environment step did to them.

Everything is an array over bodies, or over the joints of all bodies; a single body is the case of one. Only what is asked for is
gathered, so a task pays for what it looks at.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design

VELOCITY_LIMIT = 10.0
"""Velocities are clipped to this in what nodes observe."""


def clipped(velocity: Array) -> Array:
    """Velocities as nodes observe them."""
    return velocity.clip(-VELOCITY_LIMIT, VELOCITY_LIMIT)


class SimulatedBody(Protocol):
    """One robot in MuJoCo. The robot's coordinates come first in `qpos` and `qvel`, root before hinges; those of objects follow.

    - model, data: MuJoCo's own; `data` is up to date with the state where the task says `uses_data`
    - qpos, qvel: views of the data's
    - num_qpos, num_qvel: how many of the coordinates are the robot's
    - drawn: what the task drew for this episode, such as a target; any array that `start` sets
    """

    design: Design
    model: Any
    data: Any
    qpos: Array
    qvel: Array
    num_qpos: int
    num_qvel: int
    drawn: Array

    def touches_ground(self) -> bool:
        """Whether a part of the robot is in contact with something that cannot move."""


@dataclass(frozen=True)
class Places:
    """Where in a vector of all coordinates those of each body and joint stand; see State for what they are."""

    root: Array
    root_velocity: Array
    angle: Array
    rate: Array
    body: Array
    objects: tuple[Array, ...]
    object_velocities: tuple[Array, ...]


@dataclass(frozen=True)
class State:
    """Bodies at one moment.

    - values: qpos and qvel of all bodies, one after the other
    - bodies: each by itself, with everything that MuJoCo knows of it (see SimulatedBody); in the state before a step they are
      already as they are after it
    - seconds_ago: how long before what `bodies` show
    """

    places: Places
    values: Array
    bodies: Sequence[SimulatedBody]
    seconds_ago: float = 0.0

    @property
    def root(self) -> Array:
        """[bodies, 3]: x, z or y (in the task's plane), and the angle; [bodies, 7] for a free root: position and quaternion."""
        return self.values[self.places.root]

    @property
    def root_velocity(self) -> Array:
        """[bodies, 3], or 6 for a free root: linear, then angular in the root's own frame."""
        return self.values[self.places.root_velocity]

    @property
    def angle(self) -> Array:
        """[joints]: radians, of all bodies one after the other, in the order of each design's nodes."""
        return self.values[self.places.angle]

    @property
    def rate(self) -> Array:
        """[joints]: radians per second."""
        return self.values[self.places.rate]

    @property
    def body(self) -> Array:
        """[joints]: which body each joint belongs to, so that x[state.body] gives every joint its body's number."""
        return self.places.body

    def object(self, number: int) -> Array:
        """[bodies, coordinates] of the scene's object with that number, counting those that can move."""
        return self.values[self.places.objects[number]]

    def object_velocity(self, number: int) -> Array:
        return self.values[self.places.object_velocities[number]]

    @property
    def drawn(self) -> Array:
        """[bodies, ...]: what the task drew at the start of each episode."""
        return np.stack([body.drawn for body in self.bodies])

    @property
    def time(self) -> Array:
        """[bodies]: simulated seconds since the start."""
        return np.array([body.data.time for body in self.bodies]) - self.seconds_ago


@dataclass(frozen=True)
class Step:
    """One environment step of many bodies.

    - control [nodes of the batch]: as the policy gave it, before the motors clip it; rows: which of them are a body's, root first
    """

    before: State
    after: State
    control: Array = field(repr=False)
    rows: Sequence[slice] = field(repr=False)
    dt: float

    @property
    def dx(self) -> Array:
        """[bodies]: how far the root moved along x, metres."""
        return self.after.values[self.after.places.root[:, 0]] - self.before.values[self.before.places.root[:, 0]]

    @cached_property
    def controls(self) -> list[Array]:
        """Of each body, [motors], in the order of its nodes."""
        return [self.control[rows][1:] for rows in self.rows]
