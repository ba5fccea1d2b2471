"""Robots read back from their MJCF: the physical values of the design, and the design space in which it has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codesign_bench.analysis.robot import Robot, read_design, read_robot
from codesign_bench.design.graph import BONE, GEAR, RADIUS, START_EXTENSION
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.errors import DesignError
from codesign_bench.paths import env_config
from codesign_bench.simulation.showing import random_design
from codesign_bench.structured import merged
from codesign_bench.tasks import TASKS, Task, make_task, task_from_config


def saved(folder: Path, task: Task, seed: int = 0) -> None:
    design = random_design(task, np.random.default_rng(seed))
    (folder / "designs").mkdir(exist_ok=True)
    (folder / "designs" / "final.json").write_text(design.to_json())
    (folder / "designs" / "final.xml").write_text(to_mjcf(design, task.space, task.scene))


@pytest.mark.parametrize("env", list(TASKS))
def test_physical_values_come_back(env: str) -> None:
    task = make_task(env)
    design = random_design(task, np.random.default_rng(4))
    robot = Robot.from_mjcf(to_mjcf(design, task.space, task.scene))
    names = task.space.topology(design).names
    by_name = {part.name: part for part in robot.parts}
    assert set(by_name) == set(names)
    plane = [0, 2] if task.space.plane == "xz" else [0, 1]
    for node in range(1, design.num_nodes):
        part, values = by_name[names[node]], task.space.physical(design.attributes)[node]
        assert robot.parts[part.parent].name == names[design.parents[node]]
        (capsule,), (joint,) = part.capsules, part.joints
        np.testing.assert_allclose(np.array(capsule.end)[plane], values[BONE], atol=1e-12)
        assert np.linalg.norm(capsule.start) == pytest.approx(values[START_EXTENSION], abs=1e-12)
        assert (capsule.radius, joint.gear) == pytest.approx((values[RADIUS], values[GEAR]))
        assert joint.kind == "hinge"
        np.testing.assert_allclose(joint.axis, design.axis[node], atol=1e-12)


def test_a_design_is_read_with_the_space_that_it_was_made_in(tmp_path: Path) -> None:
    env = merged(env_config("gap", tuple(TASKS)), {"design": {"radius": [0.045, 0.055]}})
    own = task_from_config(env)
    widened = own.with_expert()
    saved(tmp_path, own)
    design, task = read_design(tmp_path, "final", env)
    assert task.space == own.space
    saved(tmp_path, widened)
    design, task = read_design(tmp_path, "final", env)
    assert task.space == widened.space != own.space
    assert Robot.from_mjcf(to_mjcf(design, task.space, task.scene)).is_like(read_robot(tmp_path / "designs" / "final.xml"))


def test_a_design_that_is_not_its_robot_is_refused(tmp_path: Path) -> None:
    saved(tmp_path, make_task("gap"))
    other = random_design(make_task("gap"), np.random.default_rng(9))
    (tmp_path / "designs" / "final.json").write_text(other.to_json())
    with pytest.raises(DesignError, match=r"final\.json is not the robot of final\.xml"):
        read_design(tmp_path, "final", env_config("gap", tuple(TASKS)))


@pytest.mark.parametrize("content", [b"", b"<mujoco>", b"\xff\xfe", b"<mujoco/>", b"<robot/>"])
def test_a_file_that_holds_no_robot_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.xml").write_bytes(content)
    with pytest.raises(DesignError, match=r"a\.xml"):
        read_robot(tmp_path / "a.xml")
    with pytest.raises(DesignError, match=r"b\.xml is missing"):
        read_robot(tmp_path / "b.xml")
