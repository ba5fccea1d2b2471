"""The start of the execution stage: noise, heights, and designs that reach into the ground."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from codesign_bench.design.transform import ADD_JOINT, attribute_transform, skeleton_transform
from codesign_bench.simulation.body import Body, BodyPool
from codesign_bench.tasks import make_task
from tests.reference.designs import chain, random_design
from tests.reference.specification import SPECIFICATIONS, TASKS

DOWN = (0.0, -1.0)


@pytest.mark.parametrize("name", TASKS)
def test_noise_fills_its_bounds(name: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(41)
    body = Body(task.initial_design, task)
    positions, velocities = [], []
    for _ in range(200):
        body.reset(rng)
        positions.append(body.data.qpos.copy())
        velocities.append(body.data.qvel.copy())
    reference = [0.0, specification.root_height, *[0.0] * (body.model.nq - 2)]
    if name == "locomotion3d":
        reference = [0.0, 0.0, 0.4, 1.0, *[0.0] * (body.model.nq - 4)]
    away = np.abs(np.array(positions) - reference).max(axis=0)
    noisy = np.ones(body.model.nq, dtype=bool)
    if name == "locomotion3d":
        noisy[2:7] = False
        assert {p[2] for p in positions} == {0.4}
        quaternions = np.array([p[3:7] for p in positions])
        np.testing.assert_allclose(np.linalg.norm(quaternions, axis=1), 1, atol=1e-12)
        ratio = np.abs(quaternions[:, 1:] / quaternions[:, :1])
        assert ratio.max() <= 0.1 / 0.9
        assert ratio.max(axis=0).min() > 0.08
    for furthest in (away[noisy], np.abs(velocities).max(axis=0)):
        assert furthest.max() <= specification.noise
        assert furthest.min() > 0.9 * specification.noise
    assert (np.abs(np.mean(velocities, axis=0)) < 0.2 * specification.noise).all()


def test_noise_is_a_key() -> None:
    for name in TASKS:
        task = make_task(name, start={"noise": 0.0})
        body = Body(task.initial_design, task)
        body.reset(np.random.default_rng(0))
        np.testing.assert_array_equal(body.data.qpos, body.model.qpos0)
        assert not body.data.qvel.any()


# ---- designs with a start height of their own ------------------------------------------------------------------------------------

EXPERT_HEIGHTS = {"locomotion2d": 1.25, "gap": 1.25, "locomotion3d": 0.75}
"""Of the root's body in gymnasium's files, metres."""


@pytest.mark.parametrize("name", EXPERT_HEIGHTS)
def test_an_expert_starts_at_its_own_height(name: str) -> None:
    task = make_task(name, start={"noise": 0.0}, raise_from_ground=False).with_expert()
    body = Body(task.initial_design, task)
    body.reset(np.random.default_rng(0))
    assert body.data.qpos[2 if name == "locomotion3d" else 1] == EXPERT_HEIGHTS[name]
    mujoco.mj_kinematics(body.model, body.data)
    assert body.data.xpos[1, 2] == pytest.approx(EXPERT_HEIGHTS[name], abs=1e-12)


def test_heights_of_a_plane_task_keep_their_noise() -> None:
    """The noise of a task without `start.height` is around the design's height."""
    task = make_task("locomotion2d")
    high = Body(replace(task.initial_design, start_height=1.75), task)
    plain = Body(task.initial_design, task)
    for seed in range(5):
        plain.reset(np.random.default_rng(seed))
        high.reset(np.random.default_rng(seed))
        np.testing.assert_allclose(high.data.qpos - plain.data.qpos, [0, 0.5, 0, 0], atol=1e-12)
        assert plain.data.qpos[1] != 1.25


def test_a_swimmer_has_no_height() -> None:
    assert make_task("swimmer").with_expert().initial_design.start_height is None


def test_a_body_is_not_reused_at_another_height() -> None:
    task = make_task("locomotion3d").with_expert()
    design, pool = task.initial_design, BodyPool(task)
    for height in (0.75, 0.6, None, 0.75):
        body = pool.build(replace(design, start_height=height))
        body.reset(np.random.default_rng(0))
        assert body.data.qpos[2] == (height or 0.4)
        assert body.model.qpos0[2] == (height or 0.4)
        pool.discard(body)


def test_transforms_keep_the_start_height() -> None:
    task = make_task("locomotion3d").with_expert()
    design = attribute_transform(task.initial_design, np.full((9, 5), 0.1), task.space)
    assert skeleton_transform(design, np.full(9, ADD_JOINT), task.space).start_height == 0.75
    assert design.with_attributes(design.attributes).start_height == 0.75


def test_the_ant_stands_at_zero_control() -> None:
    """Started at 0.4 m it is thrown over by its own legs in two episodes of three."""
    task = make_task("locomotion3d").with_expert()
    body, standing = Body(task.initial_design, task), 0
    for seed in range(50):
        body.reset(np.random.default_rng(seed))
        standing += not any(body.step(np.zeros(9)).ended for _ in range(100))
    assert standing >= 48


def ground_distance(body: Body) -> float:
    """The smallest distance between a bone and the ground; negative when they overlap."""
    model, data = body.model, body.data
    mujoco.mj_forward(model, data)
    segment = np.zeros(6)
    ground = np.flatnonzero(model.geom_bodyid == 0)
    near = ground[np.abs(model.geom_pos[ground, 0]) < 25]
    bones = np.flatnonzero(model.geom_bodyid != 0)
    return min(mujoco.mj_geomDistance(model, data, int(g), int(b), 1.0, segment) for g in near for b in bones)


def test_gap_raises_a_design_until_it_touches_nothing() -> None:
    task, flat, rng = make_task("gap"), make_task("gap", raise_from_ground=False), np.random.default_rng(42)
    raised = 0
    for trial in range(60):
        design = random_design(task, SPECIFICATIONS["gap"], rng)
        body, still = Body(design, task), Body(design, flat)
        body.reset(np.random.default_rng(trial))
        still.reset(np.random.default_rng(trial))
        start, height = float(still.data.qpos[1]), float(body.data.qpos[1])
        np.testing.assert_array_equal(np.delete(body.data.qpos, 1), np.delete(still.data.qpos, 1))
        np.testing.assert_array_equal(body.data.qvel, still.data.qvel)
        steps = round((height - start) / 0.05)
        assert height == pytest.approx(start + 0.05 * steps, abs=1e-9)
        assert ground_distance(body) > 0 or height >= 2.0
        if steps:
            raised += 1
            body.data.qpos[1] -= 0.05
            assert ground_distance(body) < 0.002
            assert body.data.qpos[1] < 2.0
    assert 10 < raised < 60


def test_gap_raises_no_further_than_the_upper_limit() -> None:
    """Legs of 2 m: raised to the limit, where the first step ends the episode."""
    task = make_task("gap")
    body = Body(chain(task, [DOWN] * 4), task)
    body.reset(np.random.default_rng(0))
    assert 2.0 <= body.data.qpos[1] < 2.05
    assert ground_distance(body) < 0
    assert body.step(np.zeros(4)).ended


@pytest.mark.parametrize("length", [2, 3, 4])
def test_locomotion2d_is_not_raised(length: int) -> None:
    task = make_task("locomotion2d")
    body = Body(chain(task, [DOWN] * length), task)
    body.reset(np.random.default_rng(0))
    assert abs(body.data.qpos[1] - 1.25) <= 0.005
    assert (ground_distance(body) < 0) == (length > 2)


def test_locomotion2d_can_be_raised_by_its_key() -> None:
    task = make_task("locomotion2d", raise_from_ground=True)
    body = Body(chain(task, [DOWN] * 3), task)
    body.reset(np.random.default_rng(0))
    assert body.data.qpos[1] > 1.3
    assert ground_distance(body) > 0
