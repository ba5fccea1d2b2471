"""Graph -> MJCF -> compiled model, against positions computed from the graph and the constants of the four environments."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from codesign_bench.design import mjcf
from codesign_bench.design.mjcf import indented, to_mjcf
from codesign_bench.simulation.body import Body, BodyPool
from codesign_bench.tasks import make_task
from tests.reference.designs import random_design
from tests.reference.kinematics import hinge_positions, physical, places
from tests.reference.skeleton import index_strings
from tests.reference.specification import SPECIFICATIONS, TASKS

HINGE, SLIDE, FREE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_FREE))
GROUND_GEOMS = {"locomotion2d": 1, "locomotion3d": 1, "swimmer": 0, "gap": 105}
DESIGNS = 25


def compiled(task, design):
    return mujoco.MjModel.from_xml_string(to_mjcf(design, task.space, task.scene))


def simulated(task, design):
    """The model that a body steps."""
    return Body(design, task).model


def reused(task, design):
    """The model of a body that was another design with the same skeleton before."""
    pool = BodyPool(task)
    rng = np.random.default_rng(0)
    pool.discard(pool.build(design.with_attributes(rng.uniform(-1, 1, design.attributes.shape) * (design.attributes != 0))))
    return pool.build(design).model


WAYS = {"compiled": compiled, "simulated": simulated, "reused": reused}


def node_bodies(model, design) -> list[int]:
    """Body of every node, found by its name, and its motor's joint belongs to it: motors come in the order of the bodies."""
    bodies = [model.body(name).id for name in index_strings(design)]
    assert [model.jnt_bodyid[j] for j in model.actuator_trnid[:, 0]] == sorted(bodies)[1:]
    return bodies


def bone_geoms(model, design) -> list[int | None]:
    """The capsule of every node; the fixed geoms of a root come first in its body."""
    result: list[int | None] = []
    for node, body in enumerate(node_bodies(model, design)):
        fixed = len(design.root_geoms) if node == 0 else 0
        has_bone = node > 0 or design.root_bone
        assert model.body_geomnum[body] == fixed + has_bone
        result.append(int(model.body_geomadr[body]) + fixed if has_bone else None)
    return result


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TASKS)
def test_random_designs_compile_to_the_same_tree_at_the_same_places(name: str, way: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(1)
    for trial in range(DESIGNS):
        design = random_design(task, specification, rng, offsets=trial % 2 == 1, bodies=specification.max_bodies if trial == 0 else 0)
        nodes = len(design.parents)
        model = WAYS[way](task, design)
        root_joints = 1 if name == "locomotion3d" else 3
        assert (model.nbody, model.njnt, model.nu) == (nodes + 1, root_joints + nodes - 1, nodes - 1)
        assert model.ngeom == GROUND_GEOMS[name] + nodes
        assert (model.nq, model.nv) == (specification.root_positions + nodes - 1, specification.root_dofs + nodes - 1)

        bodies = node_bodies(model, design)
        assert sorted(bodies) == list(range(1, nodes + 1))
        assert [int(model.body_parentid[b]) for b in bodies] == [0] + [bodies[p] for p in design.parents[1:]]

        data = mujoco.MjData(model)
        angles = hinge_positions(design, specification)
        for pose in ("reference", "random"):
            if pose == "random":
                data.qpos[:] += rng.uniform(-1, 1, model.nq)
            mujoco.mj_kinematics(model, data)
            expected = places(design, specification, data.qpos)
            for node, place in enumerate(expected):
                if node > 0:
                    joint = int(model.body_jntadr[bodies[node]])
                    assert model.jnt_type[joint] == HINGE
                    assert model.jnt_qposadr[joint] == angles[node]
                    np.testing.assert_allclose(data.xanchor[joint], place.joint, rtol=0, atol=1e-6)
                    np.testing.assert_allclose(data.xaxis[joint], place.axis, rtol=0, atol=1e-6)
                else:
                    np.testing.assert_allclose(data.xpos[1], place.joint, rtol=0, atol=1e-6)
                geom = bone_geoms(model, design)[node]
                if geom is None:
                    continue
                half = data.geom_xmat[geom].reshape(3, 3)[:, 2] * model.geom_size[geom, 1]
                ends = [data.geom_xpos[geom] + half, data.geom_xpos[geom] - half]
                if np.linalg.norm(ends[0] - place.end) > np.linalg.norm(ends[1] - place.end):
                    ends.reverse()
                np.testing.assert_allclose(ends[0], place.end, rtol=0, atol=1e-6)
                np.testing.assert_allclose(ends[1], place.start, rtol=0, atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TASKS)
def test_radius_gear_range_and_friction_reach_the_model(name: str, way: str) -> None:
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(2)
    for _ in range(DESIGNS):
        design = random_design(task, specification, rng)
        model = WAYS[way](task, design)
        for node, geom in enumerate(bone_geoms(model, design)):
            _, _, gear, radius, _ = physical(design.attributes[node].tolist(), specification)
            if geom is not None:
                assert model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE
                assert model.geom_size[geom, 0] == pytest.approx(radius, rel=1e-12)
                assert model.geom_friction[geom].tolist() == design.friction[node].tolist()
            if node > 0:
                hinge = model.joint(index_strings(design)[node]).id
                (motor,) = np.flatnonzero(model.actuator_trnid[:, 0] == hinge)
                assert model.actuator_gear[motor].tolist() == pytest.approx([gear, 0, 0, 0, 0, 0], rel=1e-12)
                assert model.jnt_limited[hinge]
                np.testing.assert_allclose(np.rad2deg(model.jnt_range[hinge]), design.range[node], rtol=1e-12)


@pytest.mark.parametrize("name", TASKS)
def test_integrator_motors_and_autoreset(name: str) -> None:
    specification, task = SPECIFICATIONS[name], make_task(name)
    model = compiled(task, task.initial_design)
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    assert model.opt.timestep == specification.timestep
    assert (task.scene.frame_skip, task.dt) == (4, specification.dt)
    assert model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
    assert model.opt.gravity.tolist() == [0, 0, -9.81]
    assert model.actuator_ctrllimited.all()
    assert model.actuator_ctrlrange.tolist() == [[-1, 1]] * model.nu
    assert (model.ncam, model.nlight, model.ntex, model.nmat) == (0, 0, 0, 0)


@pytest.mark.parametrize("name", ["locomotion2d", "gap"])
def test_physics_of_planar_runners(name: str) -> None:
    task = make_task(name)
    model = compiled(task, task.initial_design)
    assert model.jnt_type.tolist() == [SLIDE, SLIDE, HINGE, HINGE]
    assert model.jnt_axis.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, -1, 0]]
    assert model.dof_armature.tolist() == [0, 0, 0, 1]
    assert model.dof_damping.ravel()[: model.nv].tolist() == [0, 0, 0, 1]
    assert model.jnt_limited.tolist() == [0, 0, 0, 1]
    assert model.jnt_stiffness.ravel()[: model.njnt].tolist() == [0, 0, 0, 0]
    assert model.qpos0.tolist() == [0, 1.25, 0, 0]
    assert (model.opt.density, model.opt.viscosity) == (0, 0)
    on_ground = model.geom_bodyid == 0
    assert set(model.geom_condim[on_ground]) == {3}
    assert set(model.geom_condim[~on_ground]) == {1}
    assert set(model.geom_contype) == set(model.geom_conaffinity) == {1}
    assert set(model.geom_margin) == {0.0005}
    np.testing.assert_array_equal(model.geom_solimp[:, :3], np.tile([0.8, 0.8, 0.01], (model.ngeom, 1)))
    np.testing.assert_array_equal(model.geom_solref, np.tile([0.02, 1], (model.ngeom, 1)))
    assert model.geom_friction[~on_ground].tolist() == [[0.9, 0.005, 0.0001], [2.0, 0.005, 0.0001]]
    np.testing.assert_array_equal(model.geom_friction[on_ground], np.tile([1, 0.005, 0.0001], (on_ground.sum(), 1)))
    kinds = {"locomotion2d": mujoco.mjtGeom.mjGEOM_PLANE, "gap": mujoco.mjtGeom.mjGEOM_BOX}
    assert set(model.geom_type[on_ground]) == {int(kinds[name])}


def test_physics_of_locomotion3d() -> None:
    task = make_task("locomotion3d")
    model = compiled(task, task.initial_design)
    assert model.jnt_type.tolist() == [FREE] + [HINGE] * 4
    assert model.dof_armature.tolist() == [0] * 6 + [1] * 4
    assert model.dof_damping.ravel()[: model.nv].tolist() == [0] * 6 + [1] * 4
    assert model.jnt_limited.tolist() == [0, 1, 1, 1, 1]
    on_ground = model.geom_bodyid == 0
    assert model.geom_type[on_ground].tolist() == [int(mujoco.mjtGeom.mjGEOM_PLANE)]
    assert set(model.geom_condim) == {3}
    assert set(model.geom_contype) == {1}
    assert set(model.geom_conaffinity[~on_ground]) == {0}
    assert set(model.geom_conaffinity[on_ground]) == {1}
    assert set(model.geom_margin) == {0.005}
    np.testing.assert_array_equal(model.geom_friction, np.tile([1, 0.5, 0.5], (model.ngeom, 1)))
    np.testing.assert_array_equal(model.geom_solref, np.tile([0.02, 1], (model.ngeom, 1)))
    np.testing.assert_array_equal(model.geom_solimp[:, :3], np.tile([0.9, 0.95, 0.001], (model.ngeom, 1)))
    sphere = 4 / 3 * np.pi * 0.25**3
    assert model.body_mass[1] == pytest.approx(5 * sphere, rel=1e-9)


def test_physics_of_swimmer() -> None:
    task = make_task("swimmer")
    model = compiled(task, task.initial_design)
    assert model.jnt_type.tolist() == [SLIDE, SLIDE, HINGE, HINGE]
    assert model.jnt_axis.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    assert model.dof_armature.tolist() == [0.1] * 4
    assert model.dof_damping.ravel()[: model.nv].tolist() == [0] * 4
    assert (model.opt.density, model.opt.viscosity) == (4000, 0.1)
    assert not (model.geom_bodyid == 0).any()
    capsule = np.pi * 0.08**2 * 1 + 4 / 3 * np.pi * 0.08**3
    assert model.body_mass[1:].tolist() == pytest.approx([1000 * capsule] * 2, rel=1e-9)


PUBLISHED_MARGIN = {"locomotion2d": 0.001, "gap": 0.001, "locomotion3d": 0.01}
"""Metres at which the published environments' contacts begin, between bones as between bones and ground."""


@pytest.mark.parametrize("name", PUBLISHED_MARGIN)
def test_contacts_begin_at_the_published_distance(name: str) -> None:
    """Robots in random poses, near the ground: those pairs are in contact that are nearer than the published margin."""
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(5)
    near = {"ground": 0, "bones": 0}
    for _ in range(150):
        model = compiled(task, random_design(task, specification, rng))
        data = mujoco.MjData(model)
        data.qpos[:] += rng.uniform(-1, 1, model.nq)
        mujoco.mj_kinematics(model, data)
        ground = [g for g in np.flatnonzero(model.geom_bodyid == 0) if abs(model.geom_pos[g, 0]) < 8]
        bones = np.flatnonzero(model.geom_bodyid > 0)
        data.qpos[2 if name == "locomotion3d" else 1] -= min(distance(model, data, g, b) for g in ground for b in bones) - rng.uniform(
            0, 0.02
        )
        mujoco.mj_forward(model, data)
        found = {frozenset(contact.geom.tolist()) for contact in data.contact}
        pairs = [("ground", g, b) for g in ground for b in bones]
        if specification.plane == "xz":
            pairs += [("bones", a, b) for a in bones for b in bones if a < b and not related(model, a, b)]
        for kind, a, b in pairs:
            apart = distance(model, data, a, b) - PUBLISHED_MARGIN[name]
            if abs(apart) > 1e-6:
                assert (frozenset((int(a), int(b))) in found) == (apart < 0), (kind, apart)
            near[kind] += 0 < abs(apart) < PUBLISHED_MARGIN[name]
    assert near["ground"] > 5
    assert near["bones"] > 5 or specification.plane == "xy"


def distance(model, data, a: int, b: int) -> float:
    return mujoco.mj_geomDistance(model, data, int(a), int(b), 3.0, np.zeros(6))


def related(model, a: int, b: int) -> bool:
    """Parents and children never collide."""
    bodies = int(model.geom_bodyid[a]), int(model.geom_bodyid[b])
    return bodies[0] == bodies[1] or bodies[0] == model.body_parentid[bodies[1]] or bodies[1] == model.body_parentid[bodies[0]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TASKS)
def test_masses_are_those_of_exact_capsules(name: str, way: str) -> None:
    density = 5 if name == "locomotion3d" else 1000
    task, specification, rng = make_task(name), SPECIFICATIONS[name], np.random.default_rng(3)
    design = random_design(task, specification, rng, bodies=6)
    model = WAYS[way](task, design)
    for node, body in enumerate(node_bodies(model, design)):
        x, y, _, radius, extension = physical(design.attributes[node].tolist(), specification)
        mass = density * np.pi * radius**2 * (np.hypot(x, y) + extension + 4 / 3 * radius)
        if node == 0 and name == "locomotion3d":
            mass = density * 4 / 3 * np.pi * 0.25**3
        assert model.body_mass[body] == pytest.approx(mass, rel=1e-9)


def folded(task, name: str):
    """A largest design in a pose where many bones overlap each other."""
    design = random_design(task, SPECIFICATIONS[name], np.random.default_rng(4), bodies=SPECIFICATIONS[name].max_bodies)
    model = compiled(task, design)
    data = mujoco.MjData(model)
    data.qpos[2 if name == "locomotion3d" else 1] = 20 if name != "swimmer" else 0
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("name", ["swimmer", "locomotion3d"])
def test_bones_do_not_collide_with_each_other(name: str) -> None:
    model, data = folded(make_task(name), name)
    segment = np.zeros(6)
    overlaps = [
        mujoco.mj_geomDistance(model, data, a, b, 1.0, segment) < 0
        for a in range(model.ngeom)
        for b in range(a)
        if 0 not in (model.geom_bodyid[a], model.geom_bodyid[b])
    ]
    assert sum(overlaps) > 5
    assert data.ncon == 0


@pytest.mark.parametrize("name", ["locomotion2d", "gap"])
def test_bones_of_planar_runners_collide_with_each_other(name: str) -> None:
    _, data = folded(make_task(name), name)
    assert data.ncon > 0


@pytest.mark.parametrize("name", TASKS)
def test_rendering_variant_moves_the_same(name: str) -> None:
    task, rng = make_task(name), np.random.default_rng(5)
    design = random_design(task, SPECIFICATIONS[name], rng, bodies=6)
    plain = compiled(task, design)
    drawn = mujoco.MjModel.from_xml_string(to_mjcf(design, task.space, task.scene, rendering=True))
    assert drawn.nlight > 0
    states = []
    for model in (plain, drawn):
        data = mujoco.MjData(model)
        for control in np.random.default_rng(6).uniform(-1, 1, (20, model.nu)):
            data.ctrl[:] = control
            mujoco.mj_step(model, data)
        states.append(np.concatenate([data.qpos, data.qvel]))
    assert np.isfinite(states[0]).all()
    np.testing.assert_array_equal(states[0], states[1])


@pytest.mark.parametrize("name", ["locomotion2d", "swimmer"])
def test_the_text_does_not_depend_on_what_was_written_before(name: str) -> None:
    """A bone without a start extension begins at 0.0 or -0.0, as it points; they are equal, so what is remembered for one is found for
    the other, and a run that was resumed would leave other files than one that was not."""
    task = make_task(name)
    space = replace(task.space, lower=(*task.space.lower[:4], 0.0))
    attributes = np.where(space.tunable(task.initial_design), np.array([0.5, 0.5, 0.0, 0.0, -1.0]), 0.0)
    one, other = (task.initial_design.with_attributes(attributes * sign) for sign in ([1, 1, 1, 1, 1], [-1, -1, 1, 1, 1]))
    alone = []
    for design in (one, other):
        mjcf._joined.cache_clear()
        alone.append(to_mjcf(design, space, task.scene))
    mjcf._joined.cache_clear()
    assert [to_mjcf(design, space, task.scene) for design in (one, other)] == alone
    assert "-0.0 " not in alone[0] + alone[1]


def test_indented_is_the_same_model() -> None:
    task = make_task("gap")
    text = to_mjcf(task.initial_design, task.space, task.scene)
    readable = indented(text)
    assert readable.count("\n") > text.count("<body") + text.count("<geom")
    first, second = (mujoco.MjModel.from_xml_string(each) for each in (text, readable))
    for name in ("body_mass", "body_pos", "geom_size", "jnt_range", "actuator_gear", "geom_friction"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
