"""The initial designs, in the numbers of the environments' description."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.tasks import make_task
from tests.reference.specification import SPECIFICATIONS, TASKS


def capsule_ends(task):
    """World positions of the two ends of every capsule in the reference pose, each pair sorted."""
    model = mujoco.MjModel.from_xml_string(to_mjcf(task.initial_design, task.space, task.scene))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    result = []
    for geom in np.flatnonzero((model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE) & (model.geom_bodyid > 0)):
        half = data.geom_xmat[geom].reshape(3, 3)[:, 2] * model.geom_size[geom, 1]
        centre = data.geom_xpos[geom]
        result.append((sorted([(centre + half).round(9).tolist(), (centre - half).round(9).tolist()]), float(model.geom_size[geom, 0])))
    return model, data, result


@pytest.mark.parametrize("name", ["locomotion2d", "gap"])
def test_planar_runners(name: str) -> None:
    task = make_task(name)
    model, data, ends = capsule_ends(task)
    assert ends == [([[0, 0, 1.05], [0, 0, 1.45]], pytest.approx(0.05)), ([[0, 0, 0.6], [0, 0, 1.05]], pytest.approx(0.05))]
    np.testing.assert_allclose(data.xpos[1], [0, 0, 1.25])
    np.testing.assert_allclose(data.xanchor[3], [0, 0, 1.05], atol=1e-12)
    np.testing.assert_allclose(model.jnt_range[3], [-2 * math.pi, 2 * math.pi])
    assert model.actuator_gear[:, 0].tolist() == pytest.approx([200])
    design = task.initial_design
    assert design.friction[:, 0].tolist() == [0.9, 2.0]
    np.testing.assert_allclose(task.space.physical(design.attributes)[0, [0, 1, 3, 4]], [0, -0.2, 0.05, 0.2], atol=1e-12)
    np.testing.assert_allclose(task.space.physical(design.attributes)[1], [0, -0.45, 200, 0.05, 0], atol=1e-12)


def test_locomotion3d() -> None:
    task = make_task("locomotion3d")
    model, data, ends = capsule_ends(task)
    corners = [(0.4, 0.4), (-0.4, 0.4), (-0.4, -0.4), (0.4, -0.4)]
    assert ends == [(sorted([[0, 0, 0.4], [x, y, 0.4]]), pytest.approx(0.08)) for x, y in corners]
    assert model.geom_size[model.body_geomadr[1], 0] == 0.25
    assert model.geom_type[model.body_geomadr[1]] == mujoco.mjtGeom.mjGEOM_SPHERE
    axes = np.array([(-1, 1, 0), (-1, -1, 0), (1, -1, 0), (1, 1, 0)]) / math.sqrt(2)
    np.testing.assert_allclose(data.xaxis[1:], axes, atol=1e-12)
    np.testing.assert_allclose(np.einsum("ij,ij->i", data.xaxis[1:, :2], np.array(corners)), 0, atol=1e-12)
    np.testing.assert_allclose(np.rad2deg(model.jnt_range[1:]), [[-30, 30]] * 4)
    assert model.actuator_gear[:, 0].tolist() == pytest.approx([150] * 4)
    assert task.initial_design.attributes[0].tolist() == [0] * 5


def test_swimmer() -> None:
    task = make_task("swimmer")
    model, data, ends = capsule_ends(task)
    assert ends == [([[0, -1, 0], [0, 0, 0]], pytest.approx(0.08)), ([[0, -2, 0], [0, -1, 0]], pytest.approx(0.08))]
    np.testing.assert_allclose(data.xpos[1], 0)
    np.testing.assert_allclose(np.rad2deg(model.jnt_range[3]), [-100, 100])
    assert model.actuator_gear[:, 0].tolist() == pytest.approx([150])


@pytest.mark.parametrize("name", TASKS)
def test_limits_and_bounds(name: str) -> None:
    space, specification = make_task(name).space, SPECIFICATIONS[name]
    assert (space.lower, space.upper, space.plane) == (specification.lower, specification.upper, specification.plane)
    assert (space.root_children, space.max_children, space.max_depth) == (specification.root_children, specification.max_children, 3)
    assert space.max_nodes == specification.max_bodies
    assert space.num_depths == 4
