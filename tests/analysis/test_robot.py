"""Robots computed from stored designs are those that MuJoCo compiles; a stored design can be built again."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest

from codesign_bench.analysis.robot import Robot
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import DesignError
from codesign_bench.simulation.showing import random_design
from codesign_bench.tasks import Task, make_task
from tests.reference.specification import TASKS


@pytest.mark.parametrize("env", list(TASKS))
@pytest.mark.parametrize("expert", [False, True])
def test_a_robot_is_the_one_that_mujoco_compiles(env: str, expert: bool) -> None:
    task: Task = make_task(env).with_expert() if expert else make_task(env)
    for design in (task.initial_design, random_design(task, np.random.default_rng(4))):
        robot = Robot.of(StoredDesign(design, task.space))
        model = mujoco.MjModel.from_xml_string(to_mjcf(design, task.space, task.scene))
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        root = data.xpos[1]
        assert robot.names == tuple(model.body(i).name for i in range(1, model.nbody))
        np.testing.assert_array_equal(robot.parents[1:], model.body_parentid[2:] - 1)
        np.testing.assert_allclose(robot.position, data.xpos[1:] - root, atol=1e-12)
        mine = model.geom_bodyid > 0
        np.testing.assert_array_equal(robot.body, model.geom_bodyid[mine] - 1)
        np.testing.assert_allclose((robot.start + robot.end) / 2, data.geom_xpos[mine] - root, atol=1e-12)
        np.testing.assert_allclose(robot.radius, model.geom_size[mine, 0], atol=1e-12)
        half = np.where(model.geom_type[mine] == mujoco.mjtGeom.mjGEOM_CAPSULE, model.geom_size[mine, 1], 0.0)
        np.testing.assert_allclose(np.linalg.norm(robot.end - robot.start, axis=1) / 2, half, atol=1e-12)
        along = (robot.end - robot.start) / np.maximum(2 * half, 1e-12)[:, None]
        cosine = np.abs(np.sum(along * data.geom_xmat[mine].reshape(-1, 3, 3)[:, :, 2], axis=1))
        np.testing.assert_allclose(cosine[half > 0], 1, atol=1e-9)
        hinges = np.flatnonzero(model.jnt_bodyid > 1)
        np.testing.assert_allclose(robot.axis[1:], model.jnt_axis[hinges], atol=1e-9)
        np.testing.assert_allclose(robot.range[1:], np.degrees(model.jnt_range[hinges]), atol=1e-9)
        np.testing.assert_allclose(robot.gear[1:], model.actuator_gear[:, 0], atol=1e-12)
        assert robot.volume * task.scene.geom_density == pytest.approx(model.body_mass.sum(), rel=1e-9)
        assert robot.depth.tolist() == [0, *(robot.depth[parent] + 1 for parent in robot.parents[1:])]


def test_a_stored_design_keeps_the_bounds_that_a_method_widened(tmp_path: Path) -> None:
    widened = make_task("gap", design={"radius": [0.045, 0.055]}).with_expert()
    stored = StoredDesign(widened.initial_design, widened.space)
    (tmp_path / "final.json").write_text(stored.to_json())
    again = StoredDesign.load(tmp_path / "final.json")
    assert again == stored
    assert again.space != make_task("gap").space
    (tmp_path / "process.json").write_text(json.dumps([stored.to_dict()] * 2))
    assert StoredDesign.load_all(tmp_path / "process.json") == [stored, stored]


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"", "JSON"), (b"\xff\xfe", "UTF-8"), (b"[]", "format"), (b'{"format": 1}', "format"), (b'{"format": 2}', "space is None")],
)
def test_a_file_that_holds_no_design_is_named(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DesignError, match=rf"a\.json.*{part}"):
        StoredDesign.load(tmp_path / "a.json")
    with pytest.raises(DesignError, match=r"b\.json is missing"):
        StoredDesign.load(tmp_path / "b.json")
