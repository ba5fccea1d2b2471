"""Bodies stepped together against the same bodies stepped one by one."""

from __future__ import annotations

import numpy as np
import pytest

from codesign_bench.simulation.bodies import Bodies
from codesign_bench.simulation.body import Body
from codesign_bench.tasks import TASKS, make_task
from tests.perf.simulation import grown


@pytest.mark.parametrize("name", TASKS)
def test_equals_one_body_at_a_time(name: str) -> None:
    task, rng = make_task(name), np.random.default_rng(0)
    designs = [grown(task, int(rng.integers(task.initial_design.num_nodes, task.space.max_nodes + 1)), rng) for _ in range(12)]
    together, alone = ([Body(design, task) for design in designs] for _ in range(2))
    rows, first = [], 3  # other slots' nodes come before
    for design in designs:
        rows.append(slice(first, first + design.num_nodes))
        first += design.num_nodes
    for bodies in (together, alone):
        for i, body in enumerate(bodies):
            body.reset(np.random.default_rng(i))
    batch = Bodies(task, together, rows)
    ends = 0
    for time in range(120):
        seen = np.zeros((first, task.state_size))
        batch.observe(seen)
        np.testing.assert_array_equal(seen[3:], np.concatenate([body.state() for body in alone]))
        assert not seen[:3].any()
        control = rng.normal(0, 1, first)
        if time == 50:
            control[rows[3]] = np.nan
        if time == 60:
            for body in (together[5], alone[5]):
                body.data.qvel[0] = 1e30
        results = batch.step(control).each()
        for i, (mine, body) in enumerate(zip(results, alone, strict=True)):
            step = body.step(control[rows[i]])
            assert mine == (step.reward, step.dx, step.ended, step.problem)
            assert step.problem or time not in (50, 60) or i != {50: 3, 60: 5}[time]
            if step.ended or step.problem:
                ends += 1
                for each in (together[i], body):
                    each.reset(np.random.default_rng(1000 * time + i))
                batch.reread(i)
    assert ends >= 2


def test_a_batch_of_none() -> None:
    assert Bodies(make_task("gap"), [], []).step(np.zeros(4)).each() == []
