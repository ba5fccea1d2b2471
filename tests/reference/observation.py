"""Node states, rewards and ends as the environments' description words them, one node and one number at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.reference.kinematics import from_quaternion, hinge_positions
from tests.reference.specification import PHASE_PERIOD, SPECIFICATIONS, VELOCITY_LIMIT


def clipped(velocity: float) -> float:
    return max(-VELOCITY_LIMIT, min(VELOCITY_LIMIT, float(velocity)))


def phase(x: float) -> float:
    return x / PHASE_PERIOD - math.trunc(x / PHASE_PERIOD)


def state(name: str, design: Any, qpos: np.ndarray, qvel: np.ndarray) -> list[list[float]]:
    """[nodes, state_size]."""
    specification = SPECIFICATIONS[name]
    v = [clipped(x) for x in qvel]
    root = {
        "locomotion2d": lambda: [qpos[2], qpos[1], v[2], v[1], v[0]],
        "gap": lambda: [phase(qpos[0]), qpos[2], qpos[1], v[2], v[1], v[0]],
        "locomotion3d": lambda: [*qpos[2:7], *v[:6], 0.0, 0.0],
        "swimmer": lambda: [qpos[2], v[2], v[1], v[0]],
    }[name]()
    rows = [[float(x) for x in root]]
    position = hinge_positions(design, specification)
    for node in range(1, len(design.parents)):
        angle = float(qpos[position[node]])
        rate = v[position[node] - specification.root_positions + specification.root_dofs]
        rows.append(
            {
                "locomotion2d": [angle, 0.0, rate, 0.0, 0.0],
                "gap": [phase(qpos[0]), angle, 0.0, rate, 0.0, 0.0],
                "locomotion3d": [0.0] * 11 + [angle, rate],
                "swimmer": [angle, rate, 0.0, 0.0],
            }[name]
        )
    return rows


def reward(name: str, dx: float, control: list[float], *, absolute: bool = False) -> float:
    """`control` is that of the motors, as the policy gave it."""
    specification = SPECIFICATIONS[name]
    speed = dx / specification.dt
    mean_square = sum(c * c for c in control) / len(control)
    return (abs(speed) if absolute else speed) + specification.alive - specification.control_cost * mean_square


def ends(name: str, qpos: np.ndarray) -> bool:
    specification = SPECIFICATIONS[name]
    if name == "swimmer":
        return False
    if name == "locomotion3d":
        height = qpos[2]
        tilt = math.degrees(math.acos(max(-1.0, min(1.0, (from_quaternion(qpos[3:7]) @ [0, 0, 1])[2]))))
    else:
        height = qpos[1]
        tilt = abs(math.degrees(qpos[2]))
    return bool(height <= specification.min_height or height >= specification.max_height or tilt >= specification.max_angle)
