"""A refitted model against a fresh compilation of the same design: every field, and the motion."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from codesign_bench.design.graph import Design
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.transform import attribute_transform
from codesign_bench.simulation.body import Body, BodyPool
from codesign_bench.tasks import TASKS, Task, make_task
from tests.perf.simulation import grown
from tests.tasks.playground import any_task

VISUAL = {"stat.extent", "stat.meansize", "stat.center"}
"""Statistics that only the visualiser reads; the training model is never drawn."""
HINTS = {"body_sameframe"}
"""Says which frames coincide by chance; a refitted model claims less, which is always right."""


def fields(model: mujoco.MjModel) -> dict[str, Any]:
    names = [name for name in dir(model) if not name.startswith("_")]
    arrays = {name: getattr(model, name) for name in names if isinstance(getattr(model, name), np.ndarray)}
    statistics = {
        f"stat.{name}": np.asarray(getattr(model.stat, name)) for name in ("meaninertia", "meanmass", "extent", "meansize", "center")
    }
    return {**arrays, **statistics}


@pytest.mark.parametrize("expert", [False, True])
@pytest.mark.parametrize("name", TASKS)
def test_every_field_equals_a_fresh_compilation(name: str, expert: bool) -> None:
    compare_with_compilation(make_task(name).with_expert() if expert else make_task(name), expert)


def compare_with_compilation(task: Task, expert: bool) -> None:
    rng = np.random.default_rng(7)
    for _ in range(25):
        old = (
            task.initial_design if expert else grown(task, int(rng.integers(task.initial_design.num_nodes, task.space.max_nodes + 1)), rng)
        )
        new = attribute_transform(old, rng.normal(0, 0.6, old.attributes.shape), task.space)
        pool = BodyPool(task)
        pool.discard(pool.build(old))
        refitted = fields(pool.build(new).model)
        compiled = fields(mujoco.MjModel.from_xml_string(to_mjcf(new, task.space, task.scene)))
        assert refitted.keys() == compiled.keys()
        assert len(compiled) > 300
        for field in compiled.keys() - VISUAL - HINTS:
            if compiled[field].dtype.kind == "f":
                np.testing.assert_allclose(refitted[field], compiled[field], rtol=1e-9, atol=1e-12, err_msg=field)
            else:
                np.testing.assert_array_equal(refitted[field], compiled[field], err_msg=field)


@pytest.mark.parametrize("name", ["stairs", "push"])
def test_so_with_parts_and_objects_in_the_scene(name: str) -> None:
    compare_with_compilation(any_task(name), False)


@pytest.mark.parametrize("name", TASKS)
def test_what_is_simulated_does_not_depend_on_which_model_was_at_hand(name: str) -> None:
    task, rng = make_task(name), np.random.default_rng(8)
    old = grown(task, 8, rng)
    new = attribute_transform(old, rng.normal(0, 0.6, old.attributes.shape), task.space)
    pool = BodyPool(task)
    pool.discard(pool.build(old))
    states = []
    for body in (Body(new, task), pool.build(new)):
        body.reset(np.random.default_rng(9))
        for control in np.random.default_rng(10).uniform(-1, 1, (60, new.num_nodes)):
            body.step(control)
        states.append(body.snapshot())
    np.testing.assert_array_equal(states[0], states[1])


def test_the_pool_keeps_a_bounded_number_of_bodies() -> None:
    task, rng = make_task("swimmer"), np.random.default_rng(11)
    pool = BodyPool(task, spares=3)
    bodies = [pool.build(grown(task, size, rng)) for size in (2, 3, 4, 5, 6, 2, 3)]
    for body in bodies:
        pool.discard(body)
    assert len(pool._spares) == 3
    assert [body for _, body in pool._spares.values()] == bodies[-3:]
    assert sum(map(len, pool._by_skeleton.values())) == 3


@pytest.mark.parametrize("name", TASKS)
def test_nodes_in_another_order_share_the_model_and_move_the_same(name: str) -> None:
    """The same robot, grown in another order: node by node the same controls give the same states."""
    task, rng = make_task(name), np.random.default_rng(12)
    one = grown(task, 10, rng)
    topology = task.space.topology(one)
    order, place = topology.order, topology.place
    assert order.tolist() != list(range(10))
    other = Design(
        parents=np.concatenate([[-1], place[one.parents[order[1:]]]]),
        attributes=one.attributes[order],
        axis=one.axis[order],
        range=one.range[order],
        friction=one.friction[order],
        joint_offset=one.joint_offset[order],
        root_bone=one.root_bone,
        root_geoms=one.root_geoms,
    )
    pool = BodyPool(task)
    first = pool.build(one)
    controls = rng.uniform(-1, 1, (40, 10))

    def states(body: Body, controls: np.ndarray) -> np.ndarray:
        body.reset(np.random.default_rng(13))
        result = []
        for control in controls:
            body.step(control)
            result.append(body.state())
        return np.array(result)

    moved = states(first, controls)
    pool.discard(first)
    second = pool.build(other)
    assert second is first
    np.testing.assert_array_equal(states(second, controls[:, order]), moved[:, order])
