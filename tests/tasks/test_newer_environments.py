"""The environments of BodyGen and Stackelberg PPO, against the numbers of their description, written down by hand."""

from __future__ import annotations

import gymnasium
import mujoco
import numpy as np
import pytest

from codesign_bench.design.graph import Design
from codesign_bench.design.transform import ADD_JOINT, skeleton_transform
from codesign_bench.errors import ConfigError
from codesign_bench.simulation.body import Body
from codesign_bench.tasks import Task, make_task
from tests.reference.sentences import assert_one_sentence

PLANAR = {"cheetah", "terraincrosser", "walker", "glider"}

BODIES = {
    "crawler": (29, 29),
    "terraincrosser": (14, 13),
    "cheetah": (14, 13),
    "swimmer_bodygen": (14, 13),
    "glider_regular": (5, 5),
    "glider_medium": (7, 7),
    "glider_hard": (9, 9),
    "walker_regular": (7, 7),
    "walker_medium": (15, 15),
    "walker_hard": (27, 25),
    "pusher": (29, 29),
    "stepper": (29, 29),
    "stepper_hard": (29, 29),
}
"""Bodies at most, and reachable in five skeleton steps."""
STATE = {"crawler": 13, "terraincrosser": 6, "swimmer_bodygen": 4, "pusher": 17, "stepper": 13, "stepper_hard": 13}
ENDS = {
    "crawler": (0.0, 2.0, 60),
    "pusher": (0.0, 2.0, 60),
    "stepper": (0.0, None, 90),
    "stepper_hard": (0.0, None, 90),
    "terraincrosser": (1.0, 2.0, 20),
    "cheetah": (0.7, 2.0, 20),
    "swimmer_bodygen": (None, None, None),
}
"""Lowest and highest height in metres and angle in degrees; gliders and walkers below."""
RANGES = {"cheetah": 360, "terraincrosser": 60, "walker": 180, "glider": 180, "swimmer": 100, "crawler": 30, "pusher": 30, "stepper": 30}
NO_EXPERT = {name for name in BODIES if name.startswith(("walker", "glider"))}


def kind(name: str) -> str:
    return name.split("_")[0]


def grown(task: Task) -> Design:
    design = task.initial_design
    for _ in range(5):
        design = skeleton_transform(design, np.full(design.num_nodes, ADD_JOINT), task.space)
    return design


def body_of(task: Task, seed: int = 0, design: Design | None = None) -> Body:
    body = Body(design or task.initial_design, task)
    body.reset(np.random.default_rng(seed))
    return body


@pytest.mark.parametrize("name", BODIES)
def test_numbers(name: str) -> None:
    task = make_task(name)
    config, design = task.config, task.initial_design
    assert (config.time_limit, config.discount, config.max_steps, config.reward.alive) == ("truncate", 0.995, 1000, 0.0)
    assert task.state_size == STATE.get(name, 5)
    assert task.feature_size == (3 if kind(name) == "glider" else 4) + task.state_size + 5
    assert (config.end.min_height, config.end.max_height, config.end.max_angle) == ENDS.get(name, (0.7, 2.0, 60))
    assert config.reward.control_cost == (0.0 if kind(name) in PLANAR else 1e-4)
    assert config.raise_from_ground == (name == "terraincrosser")
    slow = kind(name) in {"crawler", "swimmer", "pusher"}
    assert (task.dt, config.scene.frame_skip) == (0.04 if slow else 0.008, 4)
    limbs = {"walker": 2, "glider": 2, "crawler": 4, "pusher": 4, "stepper": 4}.get(kind(name), 1)
    assert design.num_nodes == 1 + limbs
    assert np.abs(design.range[1:]).tolist() == [[RANGES[kind(name)]] * 2] * limbs


@pytest.mark.parametrize("name", BODIES)
def test_how_many_bodies(name: str) -> None:
    task, (most, reachable) = make_task(name), BODIES[name]
    assert task.space.max_nodes == most
    assert grown(task).num_nodes == reachable


@pytest.mark.parametrize("name", BODIES)
def test_nothing_touches_itself(name: str) -> None:
    """In mid-air a robot whose bones overlap has no contact."""
    task = make_task(name)
    body = body_of(task, design=grown(task))
    body.data.qpos[: task.scene.root_qpos] = [0, 0, 5, 1, 0, 0, 0] if task.scene.root == "free" else [0, 5, 0]
    if name == "pusher":
        body.data.qpos[-2] = 100
    mujoco.mj_forward(body.model, body.data)
    assert body.data.ncon == 0
    body.model.geom_conaffinity[:] = body.model.body_conaffinity[:] = 1
    mujoco.mj_forward(body.model, body.data)
    assert (body.data.ncon == 0) == (name == "swimmer_bodygen")


@pytest.mark.parametrize("name", BODIES)
def test_registered_with_gymnasium(name: str) -> None:
    title = "".join(word.capitalize() for word in name.split("_"))
    env = gymnasium.make(f"codesign/{title}-v1")
    observation, _ = env.reset(seed=0)
    assert observation["nodes"].shape == (BODIES[name][0], make_task(name).feature_size)
    truncated = False
    for step in range(8):
        *_, truncated, info = env.step(np.zeros(env.action_space.shape, dtype=np.float32))
        assert ("reward_control" in info) == (step >= 6)
    assert not truncated


@pytest.mark.parametrize("name", BODIES)
def test_experts(name: str) -> None:
    task = make_task(name)
    if name not in NO_EXPERT:
        assert task.with_expert().initial_design.num_nodes == {"swimmer_bodygen": 3, "cheetah": 4, "terraincrosser": 4}.get(name, 9)
        return
    with pytest.raises(ConfigError) as error:
        task.with_expert()
    assert_one_sentence(error.value, name, "expert")


def test_walkers_begin_with_two_limbs_in_one_place() -> None:
    task = make_task("walker_medium")
    physical = task.space.physical(task.initial_design.attributes)
    assert physical[1].tolist() == physical[2].tolist() == pytest.approx([0, -0.45, 200, 0.05, 0])


def test_the_speed_is_the_reward_of_a_cheetah() -> None:
    body = body_of(make_task("cheetah"))
    before = body.qpos[0]
    step = body.step(np.array([0.0, 1.0]))
    assert step.reward == pytest.approx((body.qpos[0] - before) / 0.008)


def test_ground_of_the_terraincrosser() -> None:
    """As gap's, up to 113 m at least: tops at 0.5 m, a gap every 3.206 m."""
    task = make_task("terraincrosser")
    ground = task.scene.ground
    assert (ground.top, ground.edge, ground.period, ground.gap_width) == (0.5, "sloped", 3.206, 0.96)
    assert ground.solid()[-1][1] >= 113
    assert task.config.phase_period == 3.2  # type: ignore[attr-defined]


# ---- pusher ----------------------------------------------------------------------------------------------------------------------


def test_the_cube() -> None:
    model = body_of(make_task("pusher")).model
    cube = model.body("cube")
    assert model.body_mass[cube.id] == pytest.approx(8.0)
    assert (cube.pos + model.geom("cube").pos).tolist() == pytest.approx([1.2, 0, 1.02])
    assert model.geom("cube").size.tolist() == [1, 1, 1]
    joints = slice(model.body_jntadr[cube.id], model.body_jntadr[cube.id] + 2)
    assert model.jnt_type[joints].tolist() == [2, 2]
    assert model.jnt_range[joints].tolist() == [[0, 200], [-100, 100]]
    dofs = slice(model.body_dofadr[cube.id], model.body_dofadr[cube.id] + 2)
    assert np.ravel(model.dof_damping[dofs]).tolist() == [5, 5]
    assert np.ravel(model.dof_armature[dofs]).tolist() == [1, 1]


def test_what_pushing_is_worth() -> None:
    body, rng = body_of(make_task("pusher")), np.random.default_rng(5)
    for _ in range(30):
        control = rng.normal(0, 2, body.design.num_nodes)
        x, y = body.qpos[-2:].copy()
        step = body.step(control)
        dx, dy = body.qpos[-2] - x, body.qpos[-1] - y
        root = body.qpos[:3]
        distance = np.sqrt((body.qpos[-2] - root[0]) ** 2 + (body.qpos[-1] - root[1]) ** 2 + root[2] ** 2)
        expected = dx / 0.04 - 0.1 * abs(dy) / 0.04 + 1 / (1 + distance) - 1e-4 * np.mean(control[1:] ** 2)
        assert step.reward == pytest.approx(expected, rel=1e-12)
        state = body.state()
        assert state[0, 0] == root[2]
        assert state[0, 11:].tolist() == pytest.approx([body.qpos[-2] - root[0], body.qpos[-1] - root[1], -root[2], 0, 0, 0])
        assert not state[1:, :15].any()
        assert state[1:, 15].tolist() == [body.qpos[i] for i in body.hinge_qpos]


# ---- stepper ---------------------------------------------------------------------------------------------------------------------

X = np.r_[np.linspace(-3, 12, 400), np.linspace(95, 110, 400), [203.0, 221.0]]


def height_of_field(x: float, rise: float) -> float:
    """Of the published stairs, with treads of exactly 2 m: levels of 10 pixels of 0.2 m, the height between two is interpolated."""
    pixel = (x - 0.5) / 0.2
    left, right = np.floor(pixel), np.floor(pixel) + 1
    level = [min(max(np.floor(p / 10), 0), 100) for p in (left, right)]
    return float(rise * (level[0] + (pixel - left) * (level[1] - level[0])))


@pytest.mark.parametrize(("name", "rise"), [("stepper", 0.4), ("stepper_hard", 0.8)])
def test_heights_of_the_stairs(name: str, rise: float) -> None:
    """What a ray finds and what the task says are the published heights; rises are 0.4 m and 0.8 m on treads of 2 m."""
    task = make_task(name)
    body = body_of(task)
    top = 200.0
    for x in X:
        geom, down = np.zeros(1, dtype=np.int32), np.array([0.0, 0.0, -1.0])
        robot = 1  # the ray passes through the robot's bodies
        body.qpos[:3] = [-50, 0, 0.4]
        mujoco.mj_forward(body.model, body.data)
        found = mujoco.mj_ray(body.model, body.data, np.array([x, 7.0, top]), down, None, robot, -1, geom)
        expected = height_of_field(float(x), rise)
        assert top - found == pytest.approx(expected, abs=1e-6)
        body.qpos[:3] = [x, 7.0, expected + 0.4]
        assert body.state()[0, 0] == pytest.approx(0.4, abs=1e-6)


def test_vertical_rises_are_a_key() -> None:
    task = make_task("stepper", stairs={"edge_run": 0.0})
    body = body_of(task)
    for x, height in [(0.4, 0), (2.499, 0), (2.501, 0.4), (4.499, 0.4), (4.501, 0.8)]:
        body.qpos[:3] = [x, 0, 5]
        assert body.state()[0, 0] == pytest.approx(5 - height)


@pytest.mark.parametrize(("height", "angle", "over"), [(0.1, 0, False), (0.0, 0, True), (50, 0, False), (3, 89, False), (3, 91, True)])
def test_ends_of_the_stepper(height: float, angle: float, over: bool) -> None:
    """Of the root itself, not of its height above the stairs."""
    body = body_of(make_task("stepper"))
    half = np.radians(angle) / 2
    body.qpos[:7] = [40, 0, height, np.cos(half), np.sin(half), 0, 0]
    assert body.ended() is over
