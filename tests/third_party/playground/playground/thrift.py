"""Thrift: run forward and pay for every joule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from codesign_bench.tasks.base import Array, Numbers, forward_speed
from codesign_bench.tasks.config import EnvConfig
from codesign_bench.tasks.locomotion2d import Locomotion2d
from codesign_bench.tasks.state import Step


@dataclass(frozen=True)
class ThriftConfig(EnvConfig):
    """price: of a joule, in metres of forward travel."""

    price: float = 0.001


class Thrift(Locomotion2d):
    """Run forward in the xz-plane on flat ground at little cost.

    - State, control, ends, start: as locomotion2d
    - Reward: dx/dt + alive - price * power; power = sum over joints of |torque x rate|, watts
    - Metrics: energy, joules of the whole episode

    Version 1.
    """

    config: ThriftConfig
    config_class = ThriftConfig
    uses_data = True
    metrics = {"energy": "sum"}

    def reward(self, step: Step) -> Mapping[str, Numbers]:
        config = self.config
        return {"forward": forward_speed(step, config.reward), "alive": config.reward.alive, "energy": -config.price * power(step)}

    def measure(self, step: Step) -> Mapping[str, Numbers]:
        return {"energy": power(step) * step.dt}


def power(step: Step) -> Array:
    """[bodies]: watts after the step."""
    return np.array([np.abs(body.data.qfrc_actuator * body.qvel).sum() for body in step.after.bodies])
