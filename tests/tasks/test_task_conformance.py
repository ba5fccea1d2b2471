"""The conformance suite of tasks: it passes for our tasks and for a third party's, and finds what it is there to find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from codesign_bench.errors import ConfigError
from codesign_bench.experiment import task_conformance
from codesign_bench.simulation.bodies import UNSTABLE
from codesign_bench.simulation.body import Body
from codesign_bench.simulation.episode import NO_TRANSFORM
from codesign_bench.simulation.rehearsal import rehearse
from codesign_bench.simulation.sampler import Sampler, random_policy
from codesign_bench.simulation.showing import random_design
from codesign_bench.tasks import TASKS, Task, make_task
from codesign_bench.tasks.state import State, Step
from codesign_bench.tasks.swimmer import Swimmer
from tests.reference.sentences import assert_one_sentence
from tests.tasks.playground import PLAYGROUND, any_task


@pytest.mark.parametrize("check", task_conformance.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", [*TASKS, *PLAYGROUND])
def test_every_task_keeps_to_it(name: str, check: Any) -> None:
    check(any_task(name))


def broken(**functions: Any) -> Task:
    """Swimmer with other functions."""
    cls = type("Broken", (Swimmer,), functions)
    return cls(make_task("swimmer").config)


class TestWhatItFinds:
    def test_hidden_state(self) -> None:
        calls = iter(range(10**6))
        task = broken(reward=lambda self, step: {"forward": step.dx / step.dt + next(calls)})
        with pytest.raises(AssertionError, match="played twice"):
            task_conformance.deterministic(task)

    def test_an_eye_on_the_other_bodies(self) -> None:
        task = broken(reward=lambda self, step: {"forward": step.dx - step.dx.mean()})
        with pytest.raises(AssertionError, match="Rewards and ends of a batch"):
            task_conformance.batch_equals_single(task)

    def test_memory_outside_of_the_body(self) -> None:
        seen: dict[int, float] = {}

        def reward(self: Task, step: Step) -> Mapping[str, Any]:
            total = np.array([seen.get(id(body), 0.0) if body.data.time > self.dt * 1.5 else 0.0 for body in step.after.bodies]) + step.dx
            seen.update({id(body): value for body, value in zip(step.after.bodies, total.tolist(), strict=True)})
            return {"travelled": total}

        with pytest.raises(AssertionError, match="after a snapshot"):
            task_conformance.snapshots(broken(reward=reward))

    def test_parts_that_come_and_go(self) -> None:
        task = broken(reward=lambda self, step: {"even": step.dx} if round(float(step.after.time[0]) / self.dt) % 2 else {"odd": step.dx})
        with pytest.raises(AssertionError, match="they must not change"):
            task_conformance.finite_rewards(task)

    def test_an_observation_that_is_too_short(self) -> None:
        def observe(self: Task, state: State) -> Any:
            return [state.root[:, 2]], [state.angle]

        with pytest.raises(AssertionError, match="observes 1 numbers of a root and 1 of a joint; its state_size is 4"):
            task_conformance.can_be_used(broken(observe=observe))


def late(bad: Any) -> Any:
    """A reward that is well for ten steps and then bad."""

    def reward(self: Task, step: Step) -> Mapping[str, Any]:
        late = step.after.time > 10.5 * self.dt
        return bad(self, step) if late.any() else {"forward": step.dx}

    return reward


def test_an_observation_that_returns_to_zero() -> None:
    """One number for all bodies, which was something else before, is zero again in a batch that is kept from step to step."""

    def observe(self: Task, state: State) -> Any:
        late = float(state.time.max() > 3.5 * self.dt) * float(state.time.max() < 6.5 * self.dt)
        return [late, 0, 0, 0], [0, 0, 0, late]

    rollout = Sampler(broken(observe=observe), 2, np.random.SeedSequence(0), NO_TRANSFORM).collect(random_policy, 10)
    shown = rollout.state.reshape(10, 2, 2, 4)
    assert shown[:, :, 0, 0].tolist() == [[float(4 <= time <= 6)] * 2 for time in range(10)]
    assert (shown[:, :, 1, 3] == shown[:, :, 0, 0]).all()


def test_a_metric_that_fails_in_an_evaluation() -> None:
    def measure(self: Task, step: Step) -> Mapping[str, Any]:
        return {"depth": {}["missing"]} if step.after.time.max() > 5 * self.dt else {"depth": 2.0}

    task = broken(measure=measure, metrics={"depth": "sum"})
    records = [record for record, _ in Sampler(task, 2, np.random.SeedSequence(0), NO_TRANSFORM).play(random_policy)]
    for record in records:
        assert "KeyError: 'missing'" in record.problem
        assert record.measured["depth"] == pytest.approx(2.0 * (record.execution_steps - 1))
    assert not Sampler(task, 2, np.random.SeedSequence(0), NO_TRANSFORM).collect(random_policy, 20).episodes, "training does not measure"


FAULTS = {
    "not a number": (lambda self, step: {"forward": step.dx, "bonus": np.full(len(step.dx), np.nan)}, "the part 'bonus' of the reward"),
    "wrong shape": (lambda self, step: {"forward": np.zeros((len(step.dx), 2))}, "the reward's part 'forward' has shape"),
    "raises": (lambda self, step: {"forward": {}["missing"]}, "KeyError: 'missing'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_task_that_fails_ends_the_episode_and_says_why(fault: str) -> None:
    bad, fragment = FAULTS[fault]
    task = broken(reward=late(bad))
    sampler = Sampler(task, 3, np.random.SeedSequence(0))
    rollout = sampler.collect(random_policy, 30)
    assert len(rollout.episodes) == 3
    for record in rollout.episodes:
        assert fragment in record.problem
        assert task.name in record.problem
        assert (record.unstable, record.execution_steps) == (True, 11)
    assert np.isfinite(rollout.reward).all()


def test_a_fault_of_one_body_spares_the_others() -> None:
    """The batch is judged one by one where the whole cannot be."""

    def reward(self: Task, step: Step) -> Mapping[str, Any]:
        if any(body.design.num_nodes == 2 for body in step.after.bodies):
            raise RuntimeError("two nodes are too few")
        return {"forward": step.dx / step.dt}

    rng, task = np.random.default_rng(0), broken(reward=reward)
    big = next(design for design in iter(lambda: random_design(task, rng), None) if design.num_nodes > 3)
    steps = NO_TRANSFORM
    rollout = Sampler(task, 2, np.random.SeedSequence(0), steps, [task.initial_design, big]).collect(random_policy, 20)
    plain = make_task("swimmer", reward={"control_cost": 0.0})
    alone = Sampler(plain, 2, np.random.SeedSequence(0), steps, [task.initial_design, big]).collect(random_policy, 20)
    assert {record.slot for record in rollout.episodes} == {0}
    assert all("two nodes are too few" in record.problem for record in rollout.episodes)
    assert (rollout.reward[:, 0] == 0).all()
    assert rollout.reward[0, 1] == alone.reward[0, 1] != 0


def test_an_unstable_body_is_shown_to_the_task_as_it_was() -> None:
    """A task never meets a state that is not finite, whatever its functions make of numbers."""
    seen = []

    def reward(self: Task, step: Step) -> Mapping[str, Any]:
        seen.append(step.after.values.copy())
        return {"forward": step.dx / step.dt}

    task = broken(reward=reward)
    body = Body(task.initial_design, task)
    body.reset(np.random.default_rng(0))
    body.data.qvel[0] = 9e9  # the medium's drag makes infinities of it
    result = body.step(np.zeros(2))
    assert result.problem == UNSTABLE
    assert not np.isfinite(body.data.qvel).all()
    assert np.isfinite(seen[0]).all()


def test_a_task_that_cannot_be_used_says_so_before_anything_is_charged() -> None:
    with pytest.raises(ConfigError) as error:
        rehearse(broken(start=lambda self, body, rng: body.no_such_thing()))
    assert_one_sentence(error.value, "swimmer", "no_such_thing")
