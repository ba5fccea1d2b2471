"""The gap task's ground, measured with rays and distances in the compiled model."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from codesign_bench.simulation.body import Body
from codesign_bench.tasks import make_task
from tests.reference.specification import FIRST_GAP, GAP_PERIOD, GAP_WIDTH, GROUND_TOP, is_solid


@pytest.fixture(scope="module")
def body() -> Body:
    return Body(make_task("gap").initial_design, make_task("gap"))


def ground_height(body: Body, x: float) -> float | None:
    """Height of what a ray from above meets, the robot left out; None over a gap."""
    geom = np.zeros(1, dtype=np.int32)
    mujoco.mj_kinematics(body.model, body.data)
    distance = mujoco.mj_ray(
        body.model, body.data, np.array([x, 0.0, 3.0]), np.array([0.0, 0.0, -1.0]), np.array([1, 0, 0, 0, 0, 0], np.uint8), 1, 1, geom
    )
    if distance < 0:
        return None
    assert body.model.geom_bodyid[geom[0]] == 0
    return 3.0 - distance


def test_gaps_every_period_and_solid_ground_between(body: Body) -> None:
    mujoco.mj_resetData(body.model, body.data)
    body.data.qpos[1] = 50
    for x in np.arange(-15, 100, 0.05):
        height = ground_height(body, float(x))
        if is_solid(x):
            assert height == pytest.approx(GROUND_TOP), x
        else:
            assert height is None, x


@pytest.mark.parametrize("period", [0, 1, 10, 29])
def test_edges_are_exact(body: Body, period: int) -> None:
    mujoco.mj_resetData(body.model, body.data)
    body.data.qpos[1] = 50
    left, right = FIRST_GAP + period * GAP_PERIOD, FIRST_GAP + period * GAP_PERIOD + GAP_WIDTH
    assert [ground_height(body, x) is None for x in (left - 1e-4, left + 1e-4, right - 1e-4, right + 1e-4)] == [False, True, True, False]


def test_first_gap_spans_093_to_189_ahead_of_the_start(body: Body) -> None:
    spans = sorted(
        (float(p[0] - s[0]), float(p[0] + s[0]))
        for p, s, b in zip(body.model.geom_pos, body.model.geom_size, body.model.geom_bodyid, strict=True)
        if b == 0
    )
    assert spans[0][0] < 0 < spans[0][1]
    assert spans[0][1] == pytest.approx(0.93)
    assert spans[1][0] == pytest.approx(1.89)
    assert spans[-1][1] >= 60
    assert spans[0][0] <= -10


def test_ground_is_deep(body: Body) -> None:
    ground = body.model.geom_bodyid == 0
    np.testing.assert_allclose(body.model.geom_pos[ground, 2] + body.model.geom_size[ground, 2], GROUND_TOP)
    np.testing.assert_allclose(2 * body.model.geom_size[ground, 2], 2)


def test_an_agent_at_12_metres_per_second_does_not_run_off() -> None:
    task = make_task("gap")
    body = Body(task.initial_design, task)
    body.reset(np.random.default_rng(0))
    data = body.data
    for _ in range(1000):
        data.qpos[1:], data.qvel[:] = [1.25, 0, 0], [12, 0, 0, 0]
        assert not body.step(np.zeros(2)).problem
    x = float(data.qpos[0])
    assert x > 90
    data.qpos[1] = 50
    assert any(ground_height(body, x + ahead) is not None for ahead in (0.0, 1.0))


def test_an_agent_over_a_gap_falls_until_the_height_ends_it() -> None:
    task = make_task("gap")
    body = Body(task.initial_design, task)
    body.reset(np.random.default_rng(0))
    body.data.qpos[0] = 1.41
    outcomes = [body.step(np.zeros(2)) for _ in range(60)]
    assert outcomes[-1].ended
    assert float(body.data.qpos[1]) < 1.0
