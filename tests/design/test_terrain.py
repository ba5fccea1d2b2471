"""The gap task's ground, measured with rays and distances in the compiled model."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from codesign_bench.errors import ConfigError
from codesign_bench.simulation.body import Body
from codesign_bench.tasks import make_task
from tests.reference.sentences import assert_one_sentence
from tests.reference.specification import (
    FIRST_GAP,
    GAP_PERIOD,
    GAP_WIDTH,
    GROUND_BOTTOM,
    GROUND_TOP,
    PHASE_PERIOD,
    ground_profile,
    is_solid,
)


def above_ground(**ground: object) -> Body:
    task = make_task("gap", scene={"ground": ground})
    body = Body(task.initial_design, task)
    body.data.qpos[1] = 50
    return body


@pytest.fixture
def sloped() -> Body:
    return above_ground()


@pytest.fixture
def sharp() -> Body:
    return above_ground(edge="sharp")


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


def spans(body: Body, height: float) -> list[tuple[float, float]]:
    """The intervals of x, to a tenth of a millimetre, in which the ground from behind the start to the third gap is that high."""
    coarse = np.arange(-2.5, 9, 0.01)
    is_high = [(found := ground_height(body, float(x))) is not None and found >= height for x in coarse]
    starts, ends = [], []
    for i in np.flatnonzero(np.diff(is_high)):
        low, high = float(coarse[i]), float(coarse[i + 1])
        while high - low > 1e-4:
            middle = (low + high) / 2
            found = ground_height(body, middle)
            low, high = (middle, high) if (found is not None and found >= height) == is_high[i] else (low, middle)
        (ends if is_high[i] else starts).append(low)
    return list(zip(starts, [end for end in ends if end > starts[0]], strict=False))


# ---- sloped edges, as the height field behind the published curves -----------------------------------------------------------


def test_heights_of_sloped_ground_are_a_trapezoids(sloped: Body) -> None:
    for x in np.arange(-10, 100, 0.0137):
        height, expected = ground_height(sloped, float(x)), ground_profile(float(x))
        assert (height is None) == (expected is None), x
        assert height is None or height == pytest.approx(expected, abs=1e-9), x


def test_sloped_ground_agrees_with_what_was_measured_in_the_published_one(sloped: Body) -> None:
    """Its pixels are 0.129 m, and its edges differ by up to one from gap to gap; ours are regular, less than half a pixel away."""
    pixel = 0.129
    widths = {}
    for height in (0.48, -0.5, -1.49):
        solid = spans(sloped, height)
        widths[height] = np.diff(np.ravel(solid))
        np.testing.assert_allclose(np.diff([start for start, _ in solid]), 3.21, atol=0.005)
    np.testing.assert_allclose(widths[-0.5][1::2], 0.96, atol=1e-3)
    np.testing.assert_allclose(widths[0.48][1::2], 1.23, atol=0.02)
    np.testing.assert_allclose(widths[0.48][0::2], 1.99, atol=0.02)
    np.testing.assert_allclose(widths[-1.49][1::2], 0.73, atol=0.03)
    (start, end), (following, _), *_ = spans(sloped, 0.5 - 1e-9)
    np.testing.assert_allclose([start, end, following], [-1.17, 0.78, 2.06], atol=pixel / 3)


def test_contacts_with_a_slope_push_along_its_normal() -> None:
    """A robot whose lowest point is put onto the middle of an edge, from either side."""
    normal = np.array([1.0, 0.0, 0.129]) / np.hypot(1.0, 0.129)
    for edge, sign in ((FIRST_GAP, 1.0), (FIRST_GAP + GAP_WIDTH, -1.0)):
        body = above_ground()
        radius, outward = 0.05, normal * [sign, 1, 1]
        centre = np.array([edge, 0, -0.5]) + outward * (radius - 0.001)
        body.data.qpos[:2] = centre[0], centre[2] + 0.65
        mujoco.mj_forward(body.model, body.data)
        directions = [
            contact.frame[:3] for contact in body.data.contact if contact.geom.min() < np.count_nonzero(body.model.geom_bodyid == 0)
        ]
        assert len(directions) >= 1
        for direction in directions:
            assert abs(float(direction @ outward)) == pytest.approx(1, abs=1e-6)


# ---- sharp edges --------------------------------------------------------------------------------------------------------------


def test_gaps_every_period_and_solid_ground_between(sharp: Body) -> None:
    for x in np.arange(-10, 100, 0.05):
        height = ground_height(sharp, float(x))
        if is_solid(x):
            assert height == pytest.approx(GROUND_TOP), x
        else:
            assert height is None, x


@pytest.mark.parametrize("period", [-1, 0, 1, 10, 29])
def test_edges_are_exact(sharp: Body, period: int) -> None:
    left, right = FIRST_GAP + period * GAP_PERIOD, FIRST_GAP + period * GAP_PERIOD + GAP_WIDTH
    assert [ground_height(sharp, x) is None for x in (left - 1e-4, left + 1e-4, right - 1e-4, right + 1e-4)] == [False, True, True, False]


def test_the_papers_ground() -> None:
    first, second, *_ = spans(above_ground(edge="sharp", period=3.2), GROUND_TOP)
    np.testing.assert_allclose([first[1], second[0], second[1]], [0.93, 1.89, 4.13], atol=2e-4)


# ---- both ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edge", ["sharp", "sloped"])
def test_ground_is_deep_and_reaches_far(edge: str) -> None:
    model = above_ground(edge=edge).model
    for start, end in zip(*_extent(model), strict=True):
        assert start[2] <= GROUND_BOTTOM + 1e-9
        assert end[2] <= GROUND_TOP + 1e-9
    starts, ends = _extent(model)
    assert starts[:, 0].min() <= -10
    assert ends[:, 0].max() >= 100


def _extent(model) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners of the ground's boxes."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    ground = np.flatnonzero(model.geom_bodyid == 0)
    reach = np.einsum("gij,gj->gi", np.abs(data.geom_xmat[ground].reshape(-1, 3, 3)), model.geom_size[ground])
    return data.geom_xpos[ground] - reach, data.geom_xpos[ground] + reach


def test_the_phase_has_a_period_of_its_own() -> None:
    for period, expected in ((PHASE_PERIOD, 3.0 / 3.2), (None, 3.0 / 3.206)):
        task = make_task("gap", phase_period=period)
        body = Body(task.initial_design, task)
        body.data.qpos[0] = 3.0
        np.testing.assert_allclose(body.state()[:, 0], expected)
    assert make_task("gap").config.phase_period == PHASE_PERIOD


@pytest.mark.parametrize(
    ("ground", "fragments"),
    [
        ({"edge": "round"}, ["edge", "round", "sharp", "sloped"]),
        ({"edge_run": 0.48}, ["edge_run", "0.48"]),
        ({"edge_run": 0}, ["edge_run", "0"]),
        ({"edge_run": -0.1}, ["edge_run", "-0.1"]),
        ({"kind": "plane"}, ["edge", "sloped", "plane"]),
        ({"first_gap": 2.3}, ["first_gap", "2.3"]),
        ({"behind": 0}, ["behind"]),
    ],
)
def test_grounds_that_cannot_be(ground: dict, fragments: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        make_task("gap", scene={"ground": ground})
    assert_one_sentence(error.value, *fragments)


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
