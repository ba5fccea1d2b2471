"""One episode: how many steps each stage takes, how it ends, and what an unstable simulation does to it."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from codesign_bench.errors import ConfigError
from codesign_bench.simulation.body import Body, BodyPool
from codesign_bench.simulation.episode import Episode, Stage, TransformSteps
from codesign_bench.simulation.graphs import GraphBatch
from codesign_bench.simulation.sampler import Sampler, random_policy
from codesign_bench.tasks import make_task
from codesign_bench.tasks.base import Task
from tests.simulation import policies

NO_LIMITS = {"min_height": None, "max_height": None, "max_angle": None}


def begin(task: Task, skeleton: int = 0, attribute: int = 0) -> Episode:
    episode = Episode(task, TransformSteps(skeleton, attribute), BodyPool(task))
    episode.begin(task.initial_design, np.random.default_rng(0))
    return episode


def idle(episode: Episode) -> np.ndarray:
    return np.zeros((episode.design.num_nodes, 7))


def run(episode: Episode) -> tuple[list[int], Any]:
    """The stage of every step, and the last outcome."""
    stages = []
    while True:
        stages.append(int(episode.stage))
        outcome = episode.act(idle(episode))
        if outcome.terminated or outcome.truncated:
            return stages, outcome


@pytest.mark.parametrize(("skeleton", "attribute"), [(5, 1), (0, 0), (0, 2), (3, 0)])
@pytest.mark.parametrize("time_limit", ["terminal", "truncate"])
def test_steps_of_each_stage_and_the_time_limit(skeleton: int, attribute: int, time_limit: str) -> None:
    episode = begin(make_task("swimmer", max_steps=7, time_limit=time_limit), skeleton, attribute)
    stages, outcome = run(episode)
    assert stages == [0] * skeleton + [1] * attribute + [2] * 7
    assert (outcome.terminated, outcome.truncated) == (time_limit == "terminal", time_limit == "truncate")
    record = episode.record()
    assert (record.steps, record.execution_steps, record.unstable) == (skeleton + attribute + 7, 7, False)


def test_the_published_episode_has_five_one_and_at_most_a_thousand_steps() -> None:
    episode = begin(make_task("swimmer"), **{"skeleton": TransformSteps().skeleton, "attribute": TransformSteps().attribute})
    stages, outcome = run(episode)
    assert [stages.count(stage) for stage in Stage] == [5, 1, 1000]
    assert (outcome.terminated, outcome.truncated) == (True, False)


@pytest.mark.parametrize("time_limit", ["terminal", "truncate"])
def test_a_fall_in_the_last_step_is_an_end_and_not_a_time_limit(time_limit: str) -> None:
    episode = begin(make_task("locomotion2d", max_steps=1, time_limit=time_limit))
    episode.body.data.qpos[1] = 5.0
    outcome = episode.act(idle(episode))
    assert (outcome.terminated, outcome.truncated) == (True, False)


@pytest.mark.parametrize(
    ("name", "coordinate", "value", "ends"),
    [
        ("locomotion2d", 1, 2.01, True),
        ("locomotion2d", 1, 1.95, False),
        ("locomotion2d", 2, np.radians(20.5), True),
        ("locomotion2d", 2, np.radians(-20.5), True),
        ("locomotion2d", 2, np.radians(19), False),
        ("gap", 1, 0.95, True),
        ("gap", 2, np.radians(-20.5), True),
        ("locomotion3d", 2, 2.05, True),
        ("locomotion3d", 2, -0.5, True),
        ("swimmer", 1, 50.0, False),
        ("swimmer", 2, 50.0, False),
    ],
)
def test_where_an_episode_ends(name: str, coordinate: int, value: float, ends: bool) -> None:
    episode = begin(make_task(name))
    episode.body.data.qpos[coordinate] = value
    episode.body.data.qvel[:] = 0
    assert episode.act(idle(episode)).terminated is ends


@pytest.mark.parametrize(("degrees", "ends"), [(55, False), (65, True), (180, True)])
def test_tilt_ends_a_3d_episode_and_heading_does_not(degrees: float, ends: bool) -> None:
    episode = begin(make_task("locomotion3d"))
    half = np.radians(degrees) / 2
    for axis, expected in ((1, ends), (2, ends), (3, False)):
        episode.begin(episode.design, np.random.default_rng(0))
        data = episode.body.data
        data.qpos[2], data.qpos[3:7], data.qvel[:] = 1.0, 0.0, 0.0
        data.qpos[3], data.qpos[3 + axis] = np.cos(half), np.sin(half)
        assert episode.act(idle(episode)).terminated is expected


def test_negative_numbers_of_steps() -> None:
    with pytest.raises(ConfigError, match="skeleton steps is -1; allowed are whole numbers from 0 up"):
        TransformSteps(-1, 1)


# ---- unstable simulations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["locomotion2d", "locomotion3d", "swimmer", "gap"])
@pytest.mark.parametrize("array", ["qpos", "qvel"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_a_state_that_is_no_number_ends_the_episode_with_reward_zero(name: str, array: str, value: float) -> None:
    episode = begin(make_task(name, time_limit="truncate", max_steps=1))
    getattr(episode.body.data, array)[-1] = value
    assert episode.act(idle(episode)) == (0.0, True, False)
    assert episode.record().unstable
    assert episode.record().total_return == 0.0


def test_a_control_that_is_no_number() -> None:
    episode = begin(make_task("swimmer"))
    actions = idle(episode)
    actions[0, 0] = np.nan
    assert not episode.act(actions).terminated, "the root has no motor"
    actions[1, 0] = np.nan
    assert episode.act(actions) == (0.0, True, False)
    assert episode.record().unstable


def test_the_motor_clips_the_control_and_the_cost_does_not() -> None:
    outcomes = []
    for control in (1.0, 1000.0):
        episode = begin(make_task("swimmer"))
        actions = idle(episode)
        actions[1, 0] = control
        outcomes.append((episode.act(actions), episode.last_step))
    assert outcomes[0][1].parts["forward"] == outcomes[1][1].parts["forward"]
    assert outcomes[1][1].parts["control"] == pytest.approx(-1e-4 * 1000.0**2)
    assert outcomes[1][0].reward == pytest.approx(outcomes[1][1].parts["forward"] - 100.0)


def test_an_infinite_control_gives_no_infinite_reward() -> None:
    episode = begin(make_task("swimmer"))
    actions = idle(episode)
    actions[1, 0] = np.inf
    assert np.isfinite(episode.act(actions).reward)


def test_an_error_of_the_simulator_ends_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise mujoco.FatalError("mj_stackAlloc: out of memory, stack overflow")

    episode = begin(make_task("gap"))
    with monkeypatch.context() as patch:
        patch.setattr(mujoco, "mj_step", fail)
        assert episode.act(idle(episode)) == (0.0, True, False)
        assert episode.record().unstable
    episode.begin(episode.design, np.random.default_rng(0))
    assert not episode.act(idle(episode)).terminated


def test_a_model_that_mujoco_refuses_ends_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task("gap")
    sampler = Sampler(task, 2, np.random.SeedSequence(0))

    def refuse(self: BodyPool, design: Any) -> Body:
        raise ValueError("mass and inertia of moving bodies must be larger than mjMINVAL")

    with monkeypatch.context() as patch:
        patch.setattr(BodyPool, "build", refuse)
        rollout = sampler.collect(random_policy, 14)
    assert [(e.unstable, e.execution_steps, e.total_return) for e in rollout.episodes] == [(True, 1, 0.0)] * 4
    assert not rollout.state.any()
    after = sampler.collect(random_policy, 14)
    assert after.reward.any()


def bang(graphs: GraphBatch) -> np.ndarray:
    actions = policies.zeros(graphs)
    actions[:, 0] = graphs.rng.choice([-1.0, 1.0], graphs.num_nodes)
    return actions


@pytest.mark.parametrize(("name", "timestep"), [("swimmer", 0.5), ("locomotion2d", 0.2), ("locomotion3d", 0.5), ("gap", 0.5)])
def test_simulations_that_diverge_never_stop_the_sampler(name: str, timestep: float) -> None:
    task = make_task(name, scene={"timestep": timestep}, end=NO_LIMITS)
    rollout = Sampler(task, 3, np.random.SeedSequence(0)).collect(bang, 60)
    ends = rollout.terminated | rollout.truncated
    assert len(rollout.episodes) == ends.sum() >= 6
    assert all(e.unstable for e in rollout.episodes)
    assert not rollout.reward[ends].any()
    assert np.isfinite(rollout.reward).all()
    assert np.isfinite(rollout.state).all()


def test_no_reward_for_the_step_that_leaves_the_limits_of_the_simulator() -> None:
    task = make_task("gap", scene={"timestep": 0.5}, end=NO_LIMITS)
    rollout = Sampler(task, 3, np.random.SeedSequence(0)).collect(bang, 200)
    assert np.abs(rollout.reward * task.dt).max() < 1e10


def test_an_unstable_slot_does_not_touch_the_others() -> None:
    task = make_task("swimmer", max_steps=20)
    calm = Sampler(task, 3, np.random.SeedSequence(1)).collect(policies.each_graph_alone, 60)
    sampler = Sampler(task, 3, np.random.SeedSequence(1))

    def spoils_the_first(graphs: GraphBatch) -> np.ndarray:
        actions = policies.each_graph_alone(graphs)
        actions[: graphs.offsets[1], 0] = np.nan
        return actions

    spoiled = sampler.collect(spoils_the_first, 60)
    assert [e.unstable for e in spoiled.episodes if e.slot == 0] == [True] * (60 // 7)
    assert not any(e.unstable for e in spoiled.episodes if e.slot > 0)
    np.testing.assert_array_equal(calm.reward[:, 1:], spoiled.reward[:, 1:])
