"""Expert designs against the models that the installed gymnasium package ships."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

from codesign_bench.design.graph import Design
from codesign_bench.errors import DesignError
from codesign_bench.simulation.body import Body
from codesign_bench.tasks import make_task
from tests.reference.sentences import assert_one_sentence

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
EXPERTS = {"locomotion2d": "hopper.xml", "gap": "hopper.xml", "locomotion3d": "ant.xml", "swimmer": "swimmer.xml"}
BODIES = {"locomotion2d": 4, "gap": 4, "locomotion3d": 9, "swimmer": 3}
NOISE = {"locomotion2d": 0.005, "locomotion3d": 0.1, "swimmer": 0.1}


def original(name: str):
    """With the margins that gymnasium's file means: MuJoCo 4 adds those of two geoms, older versions took the larger one."""
    model = mujoco.MjModel.from_xml_path(str(ASSETS / EXPERTS[name]))
    model.geom_margin[:] /= 2
    return model


def hinge_anchors(model) -> list[tuple[int, np.ndarray]]:
    """Every motor with its joint's place relative to the root body, in the reference pose."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return [(a, data.xanchor[model.actuator_trnid[a, 0]] - data.xpos[1]) for a in range(model.nu)]


def matching_motors(converted, source) -> list[int]:
    """For every motor of the converted model the source's motor whose joint sits at the same place."""
    pairs = []
    for _, place in hinge_anchors(converted):
        near = [a for a, other in hinge_anchors(source) if np.linalg.norm(place - other) < 1e-9]
        assert len(near) == 1
        pairs.append(near[0])
    assert sorted(pairs) == list(range(source.nu))
    return pairs


def copied(values: np.ndarray, source, converted, motors: list[int], address: str) -> np.ndarray:
    """qpos or qvel of the source in the order of the converted model."""
    result = np.array(values)
    for mine, theirs in enumerate(motors):
        to = getattr(converted, address)[converted.actuator_trnid[mine, 0]]
        result[to] = values[getattr(source, address)[source.actuator_trnid[theirs, 0]]]
    return result


@pytest.mark.parametrize("name", EXPERTS)
def test_the_expert_has_the_originals_mass_and_motors(name: str) -> None:
    task = make_task(name).with_expert()
    model, source = Body(task.initial_design, task).model, original(name)
    assert task.initial_design.num_nodes == BODIES[name]
    assert model.body_mass.sum() == pytest.approx(source.body_mass.sum(), rel=1e-3)
    motors = matching_motors(model, source)
    np.testing.assert_allclose(model.actuator_gear[:, 0], source.actuator_gear[motors, 0], rtol=1e-9)
    ranges = [source.jnt_range[source.actuator_trnid[a, 0]] for a in motors]
    np.testing.assert_allclose(model.jnt_range[model.actuator_trnid[:, 0]], ranges, atol=1e-9)


@pytest.mark.parametrize("name", NOISE)
def test_the_expert_moves_as_the_original(name: str) -> None:
    task = make_task(name).with_expert()
    converted, source = Body(task.initial_design, task).model, original(name)
    motors = matching_motors(converted, source)
    mine, theirs = mujoco.MjData(converted), mujoco.MjData(source)
    rng = np.random.default_rng(16)
    theirs.qpos[:] = source.qpos0 + rng.uniform(-NOISE[name], NOISE[name], source.nq)
    theirs.qvel[:] = rng.uniform(-NOISE[name], NOISE[name], source.nv)
    mine.qpos[:] = copied(theirs.qpos, source, converted, motors, "jnt_qposadr")
    mine.qvel[:] = copied(theirs.qvel, source, converted, motors, "jnt_dofadr")
    farthest, moved = 0.0, theirs.qpos.copy()
    contacts = 0
    for _ in range(100):
        control = rng.uniform(-1, 1, converted.nu)
        mine.ctrl[:] = control
        theirs.ctrl[motors] = control
        mujoco.mj_step(converted, mine, task.scene.frame_skip)
        mujoco.mj_step(source, theirs, task.scene.frame_skip)
        contacts += theirs.ncon
        farthest = max(farthest, float(np.abs(mine.qpos - copied(theirs.qpos, source, converted, motors, "jnt_qposadr")).max()))
    assert np.abs(theirs.qpos - moved).max() > 0.1
    assert (contacts > 0) == (name != "swimmer")
    assert farthest < 1e-6


@pytest.mark.parametrize("name", EXPERTS)
def test_export_and_import_simulate_the_same(name: str) -> None:
    task = make_task(name).with_expert()
    states = []
    for design in (task.initial_design, Design.from_json(task.initial_design.to_json())):
        task.space.check(design)
        body = Body(design, task)
        body.reset(np.random.default_rng(17))
        for control in np.random.default_rng(18).uniform(-1, 1, (50, design.num_nodes)):
            body.step(control)
        states.append(body.snapshot())
    assert np.isfinite(states[0]).all()
    np.testing.assert_array_equal(states[0], states[1])


@pytest.mark.parametrize("name", EXPERTS)
def test_expert_attributes_lie_inside_bounds_no_narrower_than_the_tasks(name: str) -> None:
    plain = make_task(name)
    expert = plain.with_expert()
    assert all(a <= b for a, b in zip(expert.space.lower, plain.space.lower, strict=True))
    assert all(a >= b for a, b in zip(expert.space.upper, plain.space.upper, strict=True))
    assert np.abs(expert.initial_design.attributes).max() <= 1


# ---- models of other people -------------------------------------------------------------------------------------------

LIMB = (
    '<body name="limb" pos="0 0 -0.2">{joint}{geom}</body>',
    '<joint name="knee" type="hinge" axis="0 -1 0" range="-90 90"/>',
    '<geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05"/>',
)
MOTOR = '<motor joint="knee" gear="{gear}"/>'


DEFAULTS = '<default><joint armature="1" damping="1"/><motor ctrllimited="true" ctrlrange="-1 1"/></default>'


def mjcf(
    *,
    joint: str = LIMB[1],
    geom: str = LIMB[2],
    motor: str = MOTOR.format(gear=200),
    torso: str = "",
    world: str = "",
    defaults: str = DEFAULTS,
) -> str:
    """A torso that slides and turns in the xz-plane with one limb."""
    return (
        f'<mujoco><compiler angle="degree" autolimits="true"/>{defaults}<worldbody>'
        '<geom type="plane" size="1 1 1"/><body name="torso" pos="0 0 1">'
        '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 1 0"/>'
        f'<geom type="capsule" fromto="0 0 0.2 0 0 -0.2" size="0.05"/>{torso}{LIMB[0].format(joint=joint, geom=geom)}</body>{world}'
        f"</worldbody><actuator>{motor}</actuator></mujoco>"
    )


def expert(tmp_path: Path, text: str, name: str = "locomotion2d"):
    path = tmp_path / "mine.xml"
    path.write_text(text, encoding="utf-8")
    return make_task(name, design={"expert": str(path)}).with_expert()


def test_a_small_model_converts(tmp_path: Path) -> None:
    task = expert(tmp_path, mjcf())
    assert task.initial_design.parents.tolist() == [-1, 0]
    values = task.space.physical(task.initial_design.attributes)
    np.testing.assert_allclose(values[0, [0, 1, 3, 4]], [0, -0.2, 0.05, 0.2], atol=1e-8)
    np.testing.assert_allclose(values[1], [0, -0.4, 200, 0.05, 0], atol=1e-8)
    assert task.initial_design.range[1].tolist() == [-90, 90]
    assert task.initial_design.axis[1].tolist() == [0, -1, 0]
    plain = make_task("locomotion2d").space
    assert (task.space.lower, task.space.upper) == (plain.lower, plain.upper)


def test_values_outside_the_bounds_widen_them(tmp_path: Path) -> None:
    geom = '<geom type="capsule" fromto="0 0 0 0 0 -0.9" size="0.12"/>'
    task = expert(tmp_path, mjcf(geom=geom, motor=MOTOR.format(gear=1000)))
    assert task.space.lower == pytest.approx((-0.5, -0.9, 20, 0.03, 0))
    assert task.space.upper == pytest.approx((0.5, 0.5, 1000, 0.12, 0.5))
    np.testing.assert_allclose(task.space.physical(task.initial_design.attributes)[1], [0, -0.9, 1000, 0.12, 0], atol=1e-8)
    task = expert(tmp_path, mjcf(geom=geom.replace("0.12", "0.01"), motor=MOTOR.format(gear=3)))
    assert task.space.lower == pytest.approx((-0.5, -0.9, 3, 0.01, 0))
    body = Body(task.initial_design, task)
    assert body.model.actuator_gear[0, 0] == pytest.approx(3)


BAD_MODELS = {
    "ball joint": (mjcf(joint='<joint name="knee" type="ball"/>'), ["mine.xml", "limb", "hinge"]),
    "slide joint": (mjcf(joint='<joint name="knee" type="slide" range="-1 1"/>'), ["mine.xml", "limb", "hinge"]),
    "two joints": (mjcf(joint=LIMB[1] + '<joint name="second" axis="1 0 0" range="-9 9"/>'), ["mine.xml", "limb", "hinge"]),
    "no motor": (mjcf(motor=""), ["mine.xml", "knee", "motor"]),
    "no range": (mjcf(joint='<joint name="knee" axis="0 -1 0"/>'), ["mine.xml", "knee", "range"]),
    "box": (mjcf(geom='<geom type="box" size=".1 .1 .1"/>'), ["mine.xml", "limb", "capsule"]),
    "box on the root": (mjcf(torso='<geom type="box" size=".1 .1 .1"/>'), ["mine.xml", "torso", "capsule"]),
    "sphere for a bone": (mjcf(geom='<geom type="sphere" size=".1"/>'), ["mine.xml", "limb", "capsule"]),
    "two capsules": (mjcf(geom=LIMB[2] * 2), ["mine.xml", "limb", "2 geoms"]),
    "capsule beside its joint": (mjcf(geom='<geom type="capsule" fromto=".3 0 0 .3 0 -.4" size=".05"/>'), ["mine.xml", "limb", "joint"]),
    "bone out of the plane": (mjcf(geom='<geom type="capsule" fromto="0 0 0 0 .3 -.4" size=".05"/>'), ["mine.xml", "node 1", "xz"]),
    "two roots": (mjcf(world='<body><freejoint/><geom size=".1"/></body>'), ["mine.xml", "one root"]),
    "nothing": ("<mujoco/>", ["mine.xml", "root"]),
    "fixed root": (
        '<mujoco><worldbody><body><geom size=".1"/></body></worldbody></mujoco>',
        ["mine.xml", "root", "two slides and a hinge"],
    ),
    "another density": (mjcf(geom=LIMB[2].replace("/>", ' density="1"/>')), ["mine.xml", "kg", "1000"]),
    "another armature": (mjcf(joint=LIMB[1].replace("/>", ' armature="2"/>')), ["mine.xml", "knee", "armature 2"]),
    "another damping": (mjcf(joint=LIMB[1].replace("/>", ' damping="3"/>')), ["mine.xml", "knee", "damping 3"]),
    "not a motor": (mjcf(motor='<position joint="knee" ctrlrange="-1 1"/>'), ["mine.xml", "motor"]),
    "another control range": (mjcf(motor='<motor joint="knee" ctrlrange="-2 2"/>'), ["mine.xml", "-1 to 1"]),
    "two motors": (mjcf(motor='<motor joint="knee"/>' * 2), ["mine.xml", "one motor"]),
    "cut off": (mjcf()[:200], ["mine.xml"]),
    "not XML": ("a design", ["mine.xml"]),
    "empty": ("", ["mine.xml"]),
    "unknown element": ("<mujoco><robot/></mujoco>", ["mine.xml", "unrecognized element"]),
    "other XML": ("<robot/>", ["mine.xml"]),
}


@pytest.mark.parametrize("case", BAD_MODELS)
def test_a_model_that_cannot_be_converted_is_told_in_one_sentence(case: str, tmp_path: Path) -> None:
    text, fragments = BAD_MODELS[case]
    with pytest.raises(DesignError) as error:
        expert(tmp_path, text)
    assert_one_sentence(error.value, *fragments)


@pytest.mark.parametrize("path", ["nowhere.xml", "", ".", "/", "\0", "x" * 300], ids=lambda p: repr(p[:12]))
def test_not_a_file(path: str) -> None:
    with pytest.raises(DesignError):
        make_task("locomotion2d", design={"expert": path}).with_expert()


def test_an_expert_of_another_task_is_refused() -> None:
    with pytest.raises(DesignError) as error:
        make_task("locomotion2d", design={"expert": "ant.xml"}).with_expert()
    assert_one_sentence(error.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.xml"
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(DesignError) as error:
        make_task("locomotion2d", design={"expert": str(path)}).with_expert()
    assert_one_sentence(error.value, "mine.xml")
