"""Rewards and ends of a step, against the formulas of the environments' description and a simulation step by step."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from codesign_bench.simulation.body import Body
from codesign_bench.simulation.env import TransformAndActEnv
from codesign_bench.tasks import Task, make_task
from tests.reference.designs import random_design
from tests.reference.observation import ends, reward
from tests.reference.skeleton import index_strings
from tests.reference.specification import SPECIFICATIONS, TASKS


@pytest.mark.parametrize("speed", ["forward", "absolute"])
@pytest.mark.parametrize("name", TASKS)
def test_reward_of_every_step(name: str, speed: str) -> None:
    task, specification, rng = make_task(name, reward={"speed": speed}), SPECIFICATIONS[name], np.random.default_rng(31)
    backwards = 0
    for _ in range(5):
        design = random_design(task, specification, rng)
        body = Body(design, task)
        body.reset(rng)
        model = body.model
        order = np.argsort([model.body(name).id for name in index_strings(design)])
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = body.data.qpos, body.data.qvel
        for _ in range(20):
            control = rng.normal(0, 2, design.num_nodes)
            before = float(data.qpos[0])
            for _ in range(4):
                data.ctrl[:] = np.clip(control[order[1:]], -1, 1)
                mujoco.mj_step(model, data)
            step = body.step(control)
            np.testing.assert_array_equal(body.data.qpos, data.qpos)
            np.testing.assert_array_equal(body.data.qvel, data.qvel)
            dx = float(data.qpos[0]) - before
            backwards += dx < 0
            assert step.dx == dx
            assert step.reward == pytest.approx(reward(name, dx, control[1:].tolist(), absolute=speed == "absolute"), rel=1e-12, abs=1e-12)
            assert step.reward == pytest.approx(sum(step.parts.values()))
            assert step.ended == ends(name, data.qpos)
            assert not step.problem
    assert backwards > 0


@pytest.mark.parametrize("name", ["locomotion3d", "swimmer"])
def test_control_cost_by_hand(name: str) -> None:
    """Mean over motors of the squared control as given, beyond the motors' range too; the root's is not counted."""
    task = make_task(name)
    body = Body(task.initial_design, task)
    body.reset(np.random.default_rng(0))
    control = np.full(task.initial_design.num_nodes, 5.0)
    control[0] = 1e6
    assert body.step(control).parts["control"] == pytest.approx(-25e-4)
    control[:] = 0
    control[1] = 2
    assert body.step(control).parts["control"] == pytest.approx(-4e-4 / (len(control) - 1))


@pytest.mark.parametrize("name", ["locomotion2d", "gap"])
def test_planar_runners_pay_nothing_for_control(name: str) -> None:
    task = make_task(name)
    body = Body(task.initial_design, task)
    body.reset(np.random.default_rng(0))
    assert body.step(np.array([0.0, 3.0])).parts["control"] == 0


@pytest.mark.parametrize("name", TASKS)
def test_the_roots_control_is_ignored_and_controls_are_clipped(name: str) -> None:
    task = make_task(name)
    states = []
    for root, scale in ((0.0, 1.0), (7.0, 1.0), (0.0, 9.0)):
        body = Body(task.initial_design, task)
        body.reset(np.random.default_rng(0))
        control = np.full(task.initial_design.num_nodes, scale)
        control[0] = root
        for _ in range(5):
            body.step(control)
        states.append(body.data.qpos.copy())
    np.testing.assert_array_equal(states[0], states[1])
    np.testing.assert_array_equal(states[0], states[2])


def ended_at(task: Task, pose: list[float]) -> bool:
    """Whether the task ends an episode of its initial design in this pose."""
    body = Body(task.initial_design, task)
    body.data.qpos[:] = pose
    return body.ended()


def tilted(degrees: float, axis: tuple[float, float, float]) -> list[float]:
    half = math.radians(degrees) / 2
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    return [math.cos(half), math.sin(half) * x, math.sin(half) * y, math.sin(half) * z]


# height, pitch in degrees, ends
PLANAR = {
    "locomotion2d": [(0.7, 0, True), (0.7001, 0, False), (0.5, 0, True), (-3.0, 0, True)],
    "gap": [(1.0, 0, True), (1.0001, 0, False), (0.7, 0, True)],
}
BOTH = [(2.0, 0, True), (1.9999, 0, False), (9.0, 0, True), (1.25, 20.0001, True), (1.25, 19.9999, False), (1.25, -20.0001, True)]
BOTH += [(1.25, -19.9999, False), (1.25, 0, False), (1.25, 340, True)]


@pytest.mark.parametrize(("name", "case"), [(name, case) for name in PLANAR for case in PLANAR[name] + BOTH])
def test_limits_of_planar_runners(name: str, case: tuple[float, float, bool]) -> None:
    height, pitch, over = case
    assert ended_at(make_task(name), [5.0, height, math.radians(pitch), 0.0]) is over


@pytest.mark.parametrize("name", PLANAR)
def test_the_pitch_limit_itself_ends(name: str) -> None:
    for sign in (1, -1):
        assert ended_at(make_task(name), [0.0, 1.25, sign * math.radians(20), 0.0])


@pytest.mark.parametrize(
    ("height", "quaternion", "over"),
    [
        (0.0, tilted(0, (1, 0, 0)), True),
        (0.0001, tilted(0, (1, 0, 0)), False),
        (2.0, tilted(0, (1, 0, 0)), True),
        (1.9999, tilted(0, (1, 0, 0)), False),
        (0.5, tilted(59.999, (1, 0, 0)), False),
        (0.5, tilted(60.001, (1, 0, 0)), True),
        (0.5, tilted(-60.001, (1, 1, 0)), True),
        (0.5, tilted(59.999, (-1, 2, 0)), False),
        (0.5, tilted(170, (0, 0, 1)), False),
        (0.5, tilted(180, (0, 1, 0)), True),
        (0.5, [-x for x in tilted(59.999, (0, 1, 0))], False),
    ],
)
def test_limits_of_locomotion3d(height: float, quaternion: list[float], over: bool) -> None:
    assert ended_at(make_task("locomotion3d"), [0, 0, height, *quaternion, 0, 0, 0, 0]) is over


def test_swimmer_never_ends_early() -> None:
    task = make_task("swimmer")
    for qpos in ([0, 0, 0, 0], [1e6, -1e6, 1e3, -5], [0, -100, 180, 2]):
        assert not ended_at(task, qpos)


@pytest.mark.parametrize("name", ["locomotion2d", "gap", "locomotion3d"])
def test_limits_are_keys_and_null_is_no_limit(name: str) -> None:
    free = make_task(name, end={"min_height": None, "max_height": None, "max_angle": None})
    pose = [0, 99, 3, 0.0] if name != "locomotion3d" else [0, 0, -9, *tilted(120, (1, 0, 0)), 0, 0, 0, 0]
    assert ended_at(make_task(name), pose)
    assert not ended_at(free, pose)


@pytest.mark.parametrize("name", TASKS)
def test_a_state_that_is_not_finite_ends_with_reward_zero(name: str) -> None:
    task = make_task(name)
    body = Body(task.initial_design, task)
    for value in (math.nan, math.inf, 1e300):
        body.reset(np.random.default_rng(0))
        body.data.qvel[0] = value
        step = body.step(np.zeros(task.initial_design.num_nodes))
        assert step.problem
        assert (step.reward, step.dx) == (0.0, 0.0)
    body.reset(np.random.default_rng(0))
    assert not body.step(np.zeros(task.initial_design.num_nodes)).problem


@pytest.mark.parametrize("name", TASKS)
def test_a_control_that_is_not_a_number_is_unstable(name: str) -> None:
    task = make_task(name)
    body = Body(task.initial_design, task)
    body.reset(np.random.default_rng(0))
    step = body.step(np.full(task.initial_design.num_nodes, math.nan))
    assert step.problem
    assert step.reward == 0


@pytest.mark.parametrize(("time_limit", "outcome"), [("terminal", (True, False)), ("truncate", (False, True))])
def test_time_limit(time_limit: str, outcome: tuple[bool, bool]) -> None:
    env = TransformAndActEnv("swimmer", skeleton_steps=0, attribute_steps=0, max_steps=3, time_limit=time_limit)
    env.reset(seed=0)
    outcomes = [env.step(np.zeros((14, 7)))[2:4] for _ in range(3)]
    assert outcomes == [(False, False), (False, False), outcome]


@pytest.mark.parametrize("name", TASKS)
def test_default_settings_are_the_published_ones(name: str) -> None:
    config = make_task(name).config
    assert (config.max_steps, config.time_limit, config.reward.speed) == (1000, "terminal", "forward")
    assert config.design.mask_illegal_actions is False
    assert config.raise_from_ground is (name == "gap")
    assert make_task(name).dt == SPECIFICATIONS[name].dt
