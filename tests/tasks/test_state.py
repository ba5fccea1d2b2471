"""What a node observes, against one number at a time from qpos and qvel."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from codesign_bench.simulation.body import Body
from codesign_bench.simulation.env import TransformAndActEnv
from codesign_bench.tasks import make_task
from tests.reference.designs import random_design
from tests.reference.observation import state
from tests.reference.skeleton import index_strings
from tests.reference.specification import DEPTHS, SPECIFICATIONS, TASKS


@pytest.mark.parametrize("name", TASKS)
def test_state_of_every_node(name: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(21)
    assert task.state_size == specification.state_size
    assert task.feature_size == DEPTHS + specification.state_size + 5
    for _ in range(30):
        design = random_design(task, specification, rng)
        body = Body(design, task)
        body.data.qpos[:] = rng.normal(0, 5, body.model.nq)
        body.data.qvel[:] = rng.normal(0, 8, body.model.nv)
        observed = body.state()
        assert observed.shape == (design.num_nodes, specification.state_size)
        assert observed.tolist() == state(name, design, body.data.qpos, body.data.qvel)


@pytest.mark.parametrize("name", TASKS)
def test_velocities_are_clipped_to_ten_and_positions_are_not(name: str) -> None:
    task = make_task(name)
    body = Body(task.initial_design, task)
    for sign in (1, -1):
        body.data.qpos[:] = sign * 123.0
        body.data.qvel[:] = sign * np.linspace(10.5, 1e6, body.model.nv)
        observed = body.state()
        velocities = {"locomotion2d": [2, 3, 4], "gap": [3, 4, 5], "locomotion3d": list(range(5, 11)), "swimmer": [1, 2, 3]}[name]
        assert observed[0, velocities].tolist() == [sign * 10.0] * len(velocities)
        assert np.abs(observed).max() == 123.0
        body.data.qvel[:] = sign * 9.75
        assert body.state()[0, velocities].tolist() == [sign * 9.75] * len(velocities)


def test_observing_does_not_change_the_simulation() -> None:
    task = make_task("locomotion2d")
    body = Body(task.initial_design, task)
    body.data.qvel[:] = 50
    first = body.state()
    body.data.qvel[:] = -50
    assert body.data.qvel.tolist() == [-50] * 4
    assert first[0, 2:].tolist() == [10, 10, 10]


@pytest.mark.parametrize(
    ("x", "phase"), [(0.0, 0.0), (1.6, 0.5), (3.2, 0.0), (4.0, 0.25), (-0.8, -0.25), (-4.0, -0.25), (6.4, 0.0), (-3.2, 0.0), (95.2, 0.75)]
)
def test_phase_by_hand(x: float, phase: float) -> None:
    task = make_task("gap")
    body = Body(task.initial_design, task)
    body.data.qpos[0] = x
    assert body.state()[:, 0].tolist() == pytest.approx([phase, phase], abs=1e-12)


def test_state_of_locomotion2d_by_hand() -> None:
    task = make_task("locomotion2d")
    body = Body(task.initial_design, task)
    body.data.qpos[:], body.data.qvel[:] = [7, 1.3, 0.2, -0.5], [1, 2, 3, 4]
    assert body.state().tolist() == [[0.2, 1.3, 3, 2, 1], [-0.5, 0, 4, 0, 0]]


def test_state_of_swimmer_by_hand() -> None:
    task = make_task("swimmer")
    body = Body(task.initial_design, task)
    body.data.qpos[:], body.data.qvel[:] = [7, 8, 0.2, -0.5], [1, 2, 3, 4]
    assert body.state().tolist() == [[0.2, 3, 2, 1], [-0.5, 4, 0, 0]]


def test_the_angles_belong_to_the_nodes_motors() -> None:
    """A control to one node's motor accelerates the hinge that this node observes most of all."""
    task, rng = make_task("swimmer"), np.random.default_rng(22)
    design = random_design(task, SPECIFICATIONS["swimmer"], rng, bodies=8)
    body = Body(design, task)
    for node in range(1, design.num_nodes):
        mujoco.mj_resetData(body.model, body.data)
        hinge = body.model.joint(index_strings(design)[node]).id
        body.data.ctrl[body.model.actuator_trnid[:, 0] == hinge] = 1
        mujoco.mj_forward(body.model, body.data)
        body.data.qvel[:] = body.data.qfrc_actuator / 100
        rates = body.state()[1:, 1]
        assert np.flatnonzero(rates).tolist() == [node - 1]


@pytest.mark.parametrize("name", TASKS)
def test_features_are_depth_state_and_attributes(name: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(23)
    design = random_design(task, specification, rng, bodies=7)
    env = TransformAndActEnv(task, skeleton_steps=1, attribute_steps=1)
    observation, _ = env.reset(seed=1, options={"design": design})
    depth = [0]
    for parent in design.parents[1:]:
        depth.append(depth[parent] + 1)
    one_hot = [[float(d == k) for k in range(DEPTHS)] for d in depth]
    still = np.zeros((env.action_space.shape[0], 7))
    for stage in range(3):
        assert observation["stage"] == stage
        nodes = observation["nodes"][: design.num_nodes]
        assert nodes.shape[1] == DEPTHS + specification.state_size + 5
        assert nodes[:, :DEPTHS].tolist() == one_hot
        np.testing.assert_allclose(nodes[:, -5:], design.attributes, atol=1e-12)
        middle = nodes[:, DEPTHS:-5]
        if stage < 2:
            assert not middle.any()
            observation, *_ = env.step(still)
        else:
            body = env._episode.body
            assert body is not None
            assert middle.tolist() == state(name, design, body.data.qpos, body.data.qvel)
            assert middle.any()
