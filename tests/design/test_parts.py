"""What a scene may hold besides the robot and its ground: fixed parts, objects that move, gravity, sensors."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.errors import ConfigError
from codesign_bench.simulation.body import Body
from codesign_bench.tasks import Task, make_task
from tests.reference.sentences import assert_one_sentence

BOX = {"name": "box", "shape": "box", "size": [0.2, 0.2, 0.2], "position": [3, 0, 0.3], "density": 10}


def with_parts(*parts: dict[str, object], env: str = "locomotion3d", **scene: object) -> Task:
    return make_task(env, scene={"parts": list(parts), **scene})


def body_of(task: Task) -> Body:
    body = Body(task.initial_design, task)
    body.reset(np.random.default_rng(0))
    return body


def below(body: Body, x: float, y: float = 0.0) -> float:
    """Height of what a ray from far above meets."""
    mujoco.mj_forward(body.model, body.data)
    groups, geom = np.array([1, 0, 0, 0, 0, 0], np.uint8), np.zeros(1, dtype=np.int32)
    return 9.0 - float(mujoco.mj_ray(body.model, body.data, np.array([x, y, 9.0]), np.array([0.0, 0, -1]), groups, 1, 1, geom))


def test_a_wall_and_a_ramp() -> None:
    wall = {"name": "wall", "shape": "box", "size": [0.1, 2, 0.5], "position": [5, 0, 0.5]}
    ramp = {"name": "ramp", "shape": "box", "size": [2, 1, 0.1], "position": [10, 0, 0], "euler": [0, -30, 0]}
    body = body_of(with_parts(wall, ramp))
    assert below(body, 4.85) == pytest.approx(0, abs=1e-9)
    assert below(body, 5.05) == pytest.approx(1.0)
    slope = (below(body, 11.0) - below(body, 10.5)) / 0.5
    assert slope == pytest.approx(np.tan(np.radians(30)), rel=1e-6)


def test_a_height_field() -> None:
    heights = [[0.0, 0.25, 0.5, 1.0]] * 2
    field = {"name": "hills", "shape": "heights", "size": [3, 1, 2, 0.1], "position": [20, 0, 0.05], "heights": heights}
    body = body_of(with_parts(field))
    for x, height in ((17.01, 0.05), (19.0, 0.55), (21.0, 1.05), (22.99, 2.05)):
        assert below(body, x) == pytest.approx(height, abs=0.02)


def test_rows_of_a_height_field_run_along_x_from_the_largest_y() -> None:
    field = {"name": "hill", "shape": "heights", "size": [3, 3, 2, 0.1], "position": [20, 0, 0.05], "heights": [[1.0, 0.5], [0.25, 0.0]]}
    body = body_of(with_parts(field))
    corners = {(17.05, 2.95): 2.05, (22.95, 2.95): 1.05, (17.05, -2.95): 0.55, (22.95, -2.95): 0.05}
    for (x, y), height in corners.items():
        assert below(body, x, y) == pytest.approx(height, abs=0.1), (x, y)


@pytest.mark.parametrize("joints", [[{"type": "free"}], [{"type": "slide", "axis": [0, 0, 1]}], [{"type": "hinge"}, {"type": "slide"}]])
def test_an_object_comes_after_the_robot_and_changes_nothing_about_it(joints: list[dict[str, object]]) -> None:
    plain, furnished = body_of(make_task("locomotion3d")), body_of(with_parts({**BOX, "joints": joints, "position": [30, 0, 5]}))
    robot = plain.model.nq
    np.testing.assert_array_equal(furnished.qpos[:robot], plain.qpos)
    np.testing.assert_array_equal(furnished.hinge_qpos, plain.hinge_qpos)
    ((positions, velocities),) = furnished.objects
    assert positions.tolist() == list(range(robot, furnished.model.nq))
    assert velocities.tolist() == list(range(plain.model.nv, furnished.model.nv))
    control = np.zeros(plain.design.num_nodes)
    for _ in range(5):
        ours, theirs = plain.step(control), furnished.step(control)
        assert theirs.reward == pytest.approx(ours.reward, abs=1e-6)
    np.testing.assert_array_equal(plain.state().shape, furnished.state().shape)


def test_an_object_falls_and_is_found_in_the_state() -> None:
    task = with_parts({**BOX, "joints": [{"type": "slide", "axis": [0, 0, 1]}], "position": [30, 0, 5]})
    body = body_of(task)
    for _ in range(10):
        body.step(np.zeros(body.design.num_nodes))
    body._alone.reread(0)
    state = body._alone.state
    assert state.object(0)[0, 0] == pytest.approx(-0.5 * 9.81 * 0.4**2, rel=1e-3)
    assert state.object_velocity(0)[0, 0] == pytest.approx(-9.81 * 0.4, rel=1e-3)


def test_an_object_on_the_ground_does_not_raise_the_robot() -> None:
    resting = {**BOX, "joints": [{"type": "free"}], "position": [30, 0, 0.2]}
    task = make_task("locomotion3d", raise_from_ground=True, scene={"parts": [resting]})
    alone = make_task("locomotion3d", raise_from_ground=True)
    assert body_of(task).qpos[2] == body_of(alone).qpos[2]


def test_gravity_is_a_number() -> None:
    body = body_of(make_task("locomotion3d", scene={"gravity": [0, 0, -1.62]}, start={"height": 1.5, "noise": 0.0}))
    body.step(np.zeros(body.design.num_nodes))
    assert body.qvel[2] == pytest.approx(-1.62 * 0.04, rel=1e-6)


def test_sensors_are_elements() -> None:
    task = make_task("gap", scene={"elements": '<sensor><framepos objtype="body" objname="0"/></sensor>'})
    body = Body(task.initial_design, task)
    body.reset(np.random.default_rng(0))
    body.update_data()
    assert body.data.sensordata.tolist() == pytest.approx([body.qpos[0], 0.0, body.qpos[1]])
    assert "<sensor>" in to_mjcf(task.initial_design, task.space, task.scene)


def test_looking_at_the_data_does_not_change_the_simulation() -> None:
    """A task that `uses_data` simulates bit for bit what one that does not simulates."""
    task = make_task("gap")
    looked, plain = body_of(task), body_of(task)
    for control in np.random.default_rng(1).normal(0, 1, (40, 2)):
        looked.update_data()
        looked.step(control)
        plain.step(control)
        np.testing.assert_array_equal(looked.snapshot(), plain.snapshot())


WRONG = {
    "a name of nothing": ({**BOX, "name": ""}, ["''"]),
    "a name like a joint index": ({**BOX, "name": "12"}, ["'12'", "a letter first"]),
    "a size too few": ({**BOX, "size": [1.0]}, ["box", "[1.0]", "3 numbers"]),
    "a size of zero": ({**BOX, "size": [1, 0, 1]}, ["box", "above 0"]),
    "an unknown shape": ({**BOX, "shape": "torus"}, ["'torus'"]),
    "a plane that moves": ({"name": "p", "shape": "plane", "size": [0, 0, 1], "joints": [{"type": "free"}]}, ["p is a plane"]),
    "heights without any": ({"name": "h", "shape": "heights", "size": [1, 1, 1, 1]}, ["h needs heights"]),
    "heights that do not span 0 to 1": ({"name": "h", "shape": "heights", "size": [1, 1, 1, 1], "heights": [[0, 0.5]] * 2}, ["0 to 1"]),
    "the name of the ground": ({**BOX, "name": "ground_3"}, ["ground_3", "do not begin with ground"]),
    "an unknown key": ({**BOX, "weight": 3}, ["'weight'"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parts_are_told_in_one_sentence(case: str) -> None:
    part, fragments = WRONG[case]
    with pytest.raises(ConfigError) as error:
        with_parts(part)
    assert_one_sentence(error.value, *fragments)


def test_two_parts_of_one_name() -> None:
    with pytest.raises(ConfigError) as error:
        with_parts(BOX, BOX)
    assert_one_sentence(error.value, "two parts of one name", "box")
