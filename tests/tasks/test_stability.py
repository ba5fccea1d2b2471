"""Zero control for 100 steps: designs drawn at random keep a finite state."""

from __future__ import annotations

import numpy as np
import pytest

from codesign_bench.simulation.body import BodyPool
from codesign_bench.tasks import make_task
from tests.reference.designs import random_design
from tests.reference.specification import SPECIFICATIONS, TASKS


def unstable_designs(name: str, count: int) -> int:
    task, rng = make_task(name), np.random.default_rng(61)
    pool, unstable = BodyPool(task), 0
    for _ in range(count):
        body = pool.build(random_design(task, SPECIFICATIONS[name], rng))
        body.reset(rng)
        control = np.zeros(body.design.num_nodes)
        for _ in range(100):
            if body.step(control).problem:
                unstable += 1
                break
            assert np.isfinite(body.data.qpos).all()
            assert np.isfinite(body.data.qvel).all()
            assert np.isfinite(body.state()).all()
        pool.discard(body)
    return unstable


@pytest.mark.parametrize("name", TASKS)
def test_200_random_designs(name: str) -> None:
    assert unstable_designs(name, 200) <= 0.02 * 200


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_1000_random_designs(name: str) -> None:
    assert unstable_designs(name, 1000) <= 0.02 * 1000
