"""Same design, seed and controls give bit-equal states, on fresh bodies, reused ones and restored ones."""

from __future__ import annotations

import numpy as np
import pytest

from codesign_bench.simulation.body import Body, BodyPool
from codesign_bench.tasks import make_task
from tests.reference.designs import random_design
from tests.reference.specification import SPECIFICATIONS, TASKS

STEPS = 30


def controls(design, seed: int = 1, steps: int = STEPS) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, (steps, design.num_nodes))


def trajectory(body: Body, seed: int = 0) -> np.ndarray:
    """Everything that a simulation consists of, after every step."""
    body.reset(np.random.default_rng(seed))
    rows = []
    for control in controls(body.design):
        step = body.step(control)
        rows.append(np.concatenate([body.snapshot(), body.state().ravel(), [step.reward, step.dx, step.ended, bool(step.problem)]]))
    return np.array(rows)


def designs(name: str, count: int, seed: int = 51):
    task, rng = make_task(name), np.random.default_rng(seed)
    return task, [random_design(task, SPECIFICATIONS[name], rng) for _ in range(count)]


@pytest.mark.parametrize("name", TASKS)
def test_same_design_seed_and_controls(name: str) -> None:
    task, drawn = designs(name, 10)
    for design in drawn:
        first, second = Body(design, task), Body(design, make_task(name))
        run = trajectory(first)
        np.testing.assert_array_equal(trajectory(second), run)
        np.testing.assert_array_equal(trajectory(first), run)
        assert not np.array_equal(trajectory(first, seed=1), run)


@pytest.mark.parametrize("name", TASKS)
def test_a_reused_body_runs_like_a_fresh_one(name: str) -> None:
    task, drawn = designs(name, 10)
    rng = np.random.default_rng(52)
    pool = BodyPool(task)
    for design in drawn:
        other = design.with_attributes(np.where(design.attributes != 0, rng.uniform(-1, 1, design.attributes.shape), 0))
        used = pool.build(other)
        trajectory(used, seed=9)
        used.data.qvel[:] = np.nan
        used.step(np.ones(design.num_nodes))
        data = used.data
        pool.discard(used)
        again = pool.build(design)
        assert again.data is data
        np.testing.assert_array_equal(trajectory(again), trajectory(Body(design, task)))
        pool.discard(again)


def test_the_pool_does_not_mix_skeletons_and_forgets_the_oldest() -> None:
    task, _ = designs("locomotion2d", 0)
    rng = np.random.default_rng(53)
    small, large = (random_design(task, SPECIFICATIONS["locomotion2d"], rng, bodies=n) for n in (3, 5))
    pool = BodyPool(task, spares=1)
    first, second = pool.build(small), pool.build(large)
    first_data, second_data = first.data, second.data
    pool.discard(first)
    pool.discard(second)
    assert pool.build(small).data is not first_data
    assert pool.build(large).data is second_data
    assert pool.build(large).data is not second_data


@pytest.mark.parametrize("name", TASKS)
def test_a_restored_snapshot_goes_on_bit_equally(name: str) -> None:
    task, drawn = designs(name, 5)
    for design in drawn:
        body = Body(design, task)
        body.reset(np.random.default_rng(0))
        actions = controls(design)
        for control in actions[:10]:
            body.step(control)
        snapshot = body.snapshot()
        rest = [(body.step(control), body.snapshot()) for control in actions[10:]]
        fresh = Body(design, task)
        fresh.restore(snapshot.copy())
        for target in (fresh, body):
            target.restore(snapshot)
            np.testing.assert_array_equal(target.snapshot(), snapshot)
            for control, (step, after) in zip(actions[10:], rest, strict=True):
                assert target.step(control) == step
                np.testing.assert_array_equal(target.snapshot(), after)


@pytest.mark.parametrize("offset", [0.0, 1e-12, 1e-7])
@pytest.mark.parametrize("name", TASKS)
def test_a_bone_of_almost_no_length_runs_the_same_on_a_fresh_and_a_reused_body(name: str, offset: float) -> None:
    task = make_task(name)
    attributes = np.array(task.initial_design.attributes)
    attributes[1] = [offset, 0.0, 0.0, 0.0, -1.0]
    design = task.initial_design.with_attributes(attributes)
    pool = BodyPool(task)
    pool.discard(pool.build(task.initial_design))
    np.testing.assert_array_equal(trajectory(pool.build(design)), trajectory(Body(design, task)))
