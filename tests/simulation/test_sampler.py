from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import numpy as np
import pytest

from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError
from codesign_bench.simulation.body import Body, BodyPool
from codesign_bench.simulation.episode import NO_TRANSFORM, TransformSteps
from codesign_bench.simulation.graphs import GraphBatch, Rollout
from codesign_bench.simulation.sampler import Sampler, SlotState, child_seed, random_policy
from codesign_bench.simulation.showing import random_design
from codesign_bench.tasks import make_task
from codesign_bench.tasks.base import Task
from tests.reference.specification import TASKS
from tests.simulation import policies
from tests.simulation.slow_sampler import SlowSlot, SlowStep

SEED = np.random.SeedSequence(7)


def random_designs(task: Task, count: int, seed: int = 3) -> list[Design]:
    rng = np.random.default_rng(seed)
    return [random_design(task, rng) for _ in range(count)]


def rows_of(rollout: Rollout, t: int, s: int) -> slice:
    """The rows of a step in `state` and `actions`."""
    design = rollout.design[t, s]
    nodes = rollout.designs.offsets[design + 1] - rollout.designs.offsets[design]
    return slice(rollout.node_offset[t, s], rollout.node_offset[t, s] + nodes)


def design_rows(rollout: Rollout, design: int) -> slice:
    return slice(rollout.designs.offsets[design], rollout.designs.offsets[design + 1])


def features_of(rollout: Rollout, t: int, s: int, task: Task) -> np.ndarray:
    """What the policy saw, put together from the design table and the stored states."""
    nodes = design_rows(rollout, rollout.design[t, s])
    depth = np.eye(task.space.num_depths)[rollout.designs.depth[nodes]]
    return np.hstack([depth, rollout.state[rows_of(rollout, t, s)], rollout.designs.attributes[nodes]]).astype(np.float32)


def assert_equal(a: Any, b: Any, where: str = "rollout") -> None:
    """Bit-equality of (nested) dataclasses, tuples, arrays and numbers."""
    assert type(a) is type(b), where
    if dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_equal(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, tuple | list):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_equal(x, y, f"{where}[{i}]")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        np.testing.assert_array_equal(a, b, err_msg=where)
    else:
        assert a == b, where


class Recording:
    """Remembers what the policy was shown."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.batches = policy, []

    def __call__(self, graphs: GraphBatch) -> Any:
        names = {f.name for f in dataclasses.fields(graphs)} - {"rng"} | {"edges"}
        self.batches.append({name: np.copy(getattr(graphs, name)) for name in names})
        return self.policy(graphs)


def close(found: Any, expected: Any) -> None:
    """A model that is compiled afresh and one that was given new attributes may differ in the last digits."""
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


# ---- against the slow sampler ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("time_limit", ["terminal", "truncate"])
@pytest.mark.parametrize("name", TASKS)
def test_equals_one_slot_at_a_time(name: str, time_limit: str) -> None:
    task = make_task(name, max_steps=20, time_limit=time_limit)
    slots, length = 4, 90
    designs = random_designs(task, slots)
    rollout = Sampler(task, slots, SEED, TransformSteps(3, 1), designs).collect(policies.each_graph_alone, length)
    records = {slot: [e for e in rollout.episodes if e.slot == slot] for slot in range(slots)}
    truncations = {(t.time, t.slot): t for t in rollout.truncations}
    assert len(rollout.episodes) >= 2 * slots, "the comparison must see episodes end"
    for s in range(slots):
        slow = SlowSlot(task, designs[s], np.random.default_rng(child_seed(SEED, 1 + s)), 3, 1)
        open_steps: list[SlowStep] = []
        for t in range(length):
            expected = slow.step(policies.one_graph)
            nodes = design_rows(rollout, rollout.design[t, s])
            np.testing.assert_array_equal(rollout.designs.parents[nodes], expected.design.parents)
            np.testing.assert_array_equal(rollout.designs.attributes[nodes], expected.design.attributes)
            assert rollout.stage[t, s] == expected.stage
            close(rollout.state[rows_of(rollout, t, s)], expected.state)
            close(features_of(rollout, t, s, task), expected.features)
            close(rollout.actions[rows_of(rollout, t, s)], expected.action)
            close(rollout.reward[t, s], expected.reward)
            assert (rollout.terminated[t, s], rollout.truncated[t, s]) == (expected.terminated, expected.truncated)
            assert ((t, s) in truncations) == expected.truncated
            open_steps.append(expected)
            if expected.terminated or expected.truncated:
                record, executed = records[s].pop(0), [step for step in open_steps if step.stage == 2]
                close(record.total_return, sum(step.reward for step in executed))
                close(record.net_displacement, sum(step.dx for step in executed))
                close(record.path, sum(abs(step.dx) for step in executed))
                assert (record.steps, record.execution_steps) == (len(open_steps), len(executed))
                assert (record.bodies, record.unstable) == (expected.design.num_nodes, False)
                open_steps = []
        assert not records[s]
        last = design_rows(rollout, rollout.last_design[s])
        np.testing.assert_array_equal(rollout.designs.attributes[last], slow.design.attributes)
        assert rollout.last_stage[s] == slow.stage
        begin = sum(len(rollout.designs.parents[design_rows(rollout, d)]) for d in rollout.last_design[:s])
        close(rollout.last_state[begin : begin + slow.design.num_nodes], slow.state())


def test_a_truncation_holds_the_state_in_which_the_episode_was_cut() -> None:
    cut = make_task("swimmer", max_steps=5, time_limit="truncate")
    whole = make_task("swimmer", max_steps=6)
    short = Sampler(cut, 2, SEED).collect(policies.each_graph_alone, 11)
    long = Sampler(whole, 2, SEED).collect(policies.each_graph_alone, 12)
    assert [(t.time, t.slot) for t in short.truncations] == [(10, 0), (10, 1)]
    for truncation in short.truncations:
        np.testing.assert_array_equal(truncation.state, long.state[rows_of(long, 11, truncation.slot)])
        assert truncation.design == short.design[10, truncation.slot]


def test_absolute_speed_and_no_alive_bonus() -> None:
    signed = Sampler(make_task("swimmer", reward={"control_cost": 0.0}), 3, SEED, NO_TRANSFORM).collect(policies.each_graph_alone, 30)
    task = make_task("swimmer", reward={"control_cost": 0.0, "speed": "absolute"})
    absolute = Sampler(task, 3, SEED, NO_TRANSFORM).collect(policies.each_graph_alone, 30)
    assert (signed.reward < 0).any()
    np.testing.assert_array_equal(absolute.reward, np.abs(signed.reward))


# ---- what a rollout stores -------------------------------------------------------------------------------------------


def test_the_table_and_offsets_give_back_what_the_policy_saw() -> None:
    task = make_task("locomotion3d", max_steps=12)
    policy = Recording(random_policy)
    rollout = Sampler(task, 5, SEED).collect(policy, 60)
    per_node = {f.name for f in dataclasses.fields(rollout.designs)} & policy.batches[0].keys() - {"offsets"}
    assert per_node >= {"joint_index", "can_add", "can_delete"}
    for t in range(60):
        batch, first = policy.batches[t], 0
        for s in range(5):
            nodes = design_rows(rollout, rollout.design[t, s])
            seen = slice(batch["offsets"][s], batch["offsets"][s + 1])
            np.testing.assert_array_equal(features_of(rollout, t, s, task), batch["features"][seen])
            for name in per_node:
                np.testing.assert_array_equal(getattr(rollout.designs, name)[nodes], batch[name][seen], err_msg=name)
            assert rollout.stage[t, s] == batch["stage"][s]
            parents = rollout.designs.parents[nodes]
            pairs = {(first + i, first + p) for i, p in enumerate(parents) if p >= 0}
            inside = (batch["edges"] >= seen.start).all(axis=0) & (batch["edges"] < seen.stop).all(axis=0)
            edges = batch["edges"][:, inside].T.tolist()
            assert {tuple(e) for e in edges} == pairs | {(b, a) for a, b in pairs}
            assert len(edges) == 2 * (len(parents) - 1)
            first += len(parents)
        assert batch["edges"].shape[1] == 2 * (len(batch["features"]) - 5)
    assert rollout.node_offset[-1, -1] + len(rollout.designs.parents[nodes]) == len(rollout.state) == len(rollout.actions)


def test_log_probabilities_are_stored_and_default_to_zero() -> None:
    task = make_task("gap")
    given = Sampler(task, 3, SEED).collect(policies.with_log_prob, 8)
    nodes = np.diff(np.append(given.node_offset.ravel(), len(given.state))).reshape(8, 3)
    np.testing.assert_array_equal(given.log_prob, np.cumsum(nodes, axis=1).astype(np.float32))
    assert not Sampler(task, 3, SEED).collect(random_policy, 8).log_prob.any()


def test_episode_records_follow_from_the_rewards() -> None:
    task = make_task("locomotion2d", max_steps=30)
    rollout = Sampler(task, 6, SEED).collect(random_policy, 150)
    ends = rollout.terminated | rollout.truncated
    assert len(rollout.episodes) == ends.sum() > 6
    for s in range(6):
        last = -1
        records = [e for e in rollout.episodes if e.slot == s]
        for t, record in zip(np.flatnonzero(ends[:, s]), records, strict=True):
            span = slice(last + 1, t + 1)
            assert record.total_return == pytest.approx(rollout.reward[span, s].sum(), rel=1e-12)
            assert record.steps == t - last
            assert record.execution_steps == (rollout.stage[span, s] == 2).sum()
            assert record.net_displacement == pytest.approx((rollout.reward[span, s][rollout.stage[span, s] == 2] - 1).sum() * 0.008)
            assert record.path >= abs(record.net_displacement)
            last = t


def test_rewards_are_zero_while_transforming() -> None:
    rollout = Sampler(make_task("locomotion2d"), 4, SEED).collect(random_policy, 60)
    assert set(rollout.stage.ravel()) == {0, 1, 2}
    assert not rollout.reward[rollout.stage < 2].any()
    assert rollout.reward[rollout.stage == 2].all()


# ---- seeds, and going on ---------------------------------------------------------------------------------------------


def test_same_seed_same_rollout_other_seed_other_rollout() -> None:
    task = make_task("gap")
    first, second = (Sampler(task, 3, np.random.SeedSequence(5)).collect(random_policy, 40) for _ in range(2))
    other = Sampler(task, 3, np.random.SeedSequence(6)).collect(random_policy, 40)
    assert_equal(first, second)
    assert not np.array_equal(first.actions[: len(other.actions)], other.actions[: len(first.actions)])


def test_slots_start_from_different_noise_and_reset_seeds_replace_it() -> None:
    task = make_task("swimmer")
    state = Sampler(task, 2, SEED, NO_TRANSFORM).collect(policies.zeros, 1).state.reshape(2, 2, -1)
    assert not np.array_equal(state[0], state[1])
    same = np.random.SeedSequence(1)
    state = Sampler(task, 2, SEED, NO_TRANSFORM, reset_seeds=[same, same]).collect(policies.zeros, 1).state.reshape(2, 2, -1)
    np.testing.assert_array_equal(state[0], state[1])


@pytest.mark.parametrize("name", TASKS)
def test_open_episodes_go_on_in_the_next_call(name: str) -> None:
    task = make_task(name, max_steps=33)
    whole = Sampler(task, 4, SEED).collect(random_policy, 100)
    sampler = Sampler(task, 4, SEED)
    first, second = sampler.collect(random_policy, 50), sampler.collect(random_policy, 50)
    for field in ("stage", "reward", "terminated", "truncated", "log_prob", "state", "actions"):
        joined = np.concatenate([getattr(first, field), getattr(second, field)])
        np.testing.assert_array_equal(joined, getattr(whole, field), err_msg=field)
    assert_equal(first.episodes + second.episodes, whole.episodes)
    assert any(e.steps > 1 for e in second.episodes)
    for t in range(100):
        part, u = (first, t) if t < 50 else (second, t - 50)
        for s in range(4):
            np.testing.assert_array_equal(features_of(part, u, s, task), features_of(whole, t, s, task))
    for s in range(4):  # what the first call left is what the second began with
        a, b = design_rows(first, first.last_design[s]), design_rows(second, second.design[0, s])
        np.testing.assert_array_equal(first.designs.attributes[a], second.designs.attributes[b])
    np.testing.assert_array_equal(first.last_stage, second.stage[0])
    np.testing.assert_array_equal(first.last_state, second.state[: len(first.last_state)])


@pytest.mark.parametrize("stop", [3, 6, 47])
@pytest.mark.parametrize("name", TASKS)
def test_resumes_bit_equally_in_a_new_sampler_after_a_json_round_trip(name: str, stop: int) -> None:
    task = make_task(name, max_steps=25)
    designs = random_designs(task, 4)
    sampler = Sampler(task, 4, SEED, None, designs)
    sampler.collect(random_policy, stop)
    text = json.dumps(sampler.state_dict())
    expected = sampler.collect(random_policy, 60)
    again = Sampler(task, 4, np.random.SeedSequence(99))
    again.collect(random_policy, 11)
    again.load_state_dict(json.loads(text))
    assert json.dumps(again.state_dict()) == text
    assert_equal(again.collect(random_policy, 60), expected)


def test_a_state_dict_is_not_touched_by_going_on() -> None:
    sampler = Sampler(make_task("gap"), 2, SEED)
    sampler.collect(random_policy, 20)
    state = sampler.state_dict()
    text = json.dumps(state)
    sampler.collect(random_policy, 20)
    assert json.dumps(state) == text


def test_resumes_bit_equally_with_frozen_designs() -> None:
    task = make_task("locomotion2d", max_steps=20)
    sampler = Sampler(task, 3, SEED, NO_TRANSFORM, random_designs(task, 3))
    sampler.collect(random_policy, 10)
    again = Sampler(task, 3, SEED, NO_TRANSFORM)
    again.load_state_dict(sampler.state_dict())
    expected, resumed = sampler.collect(random_policy, 60), again.collect(random_policy, 60)
    assert len(expected.episodes) >= 3
    for field in ("stage", "reward", "terminated", "state", "actions"):
        assert_equal(getattr(resumed, field), getattr(expected, field), field)
    for t in range(60):
        for s in range(3):
            np.testing.assert_array_equal(features_of(resumed, t, s, task), features_of(expected, t, s, task))


def test_resuming_frozen_designs_gives_the_same_table() -> None:
    task = make_task("locomotion2d", max_steps=20)
    sampler = Sampler(task, 3, SEED, NO_TRANSFORM)
    again = Sampler(task, 3, SEED, NO_TRANSFORM)
    again.load_state_dict(sampler.state_dict())
    assert_equal(again.collect(random_policy, 60), sampler.collect(random_policy, 60))


# ---- slots that are lent ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_two_agents_in_turn_in_one_sampler_are_as_each_in_a_sampler_of_its_own(name: str) -> None:
    """Fresh slots and open episodes; slots change places, and plain values survive JSON."""
    task = make_task(name, max_steps=13)
    shared = Sampler(task, 3, np.random.SeedSequence(99), NO_TRANSFORM)
    seeds = {agent: [np.random.SeedSequence([agent, slot]) for slot in range(3)] for agent in (0, 1)}
    designs = {agent: random_designs(task, 3, seed=agent) for agent in (0, 1)}
    own = {agent: Sampler(task, 3, SEED, NO_TRANSFORM, designs[agent], seeds[agent]) for agent in (0, 1)}
    slots = {agent: [SlotState.fresh(d, s) for d, s in zip(designs[agent], seeds[agent], strict=True)] for agent in (0, 1)}
    assert all(slot.time == 0 and slot.episode is None for slot in slots[0])
    order, rewards = [0, 1, 2], {0: [], 1: []}
    for steps in (5, 20, 7):
        for agent in (0, 1):
            shared.lend([slots[agent][slot] for slot in order])
            rollout, expected = shared.collect(policies.each_graph_alone, steps), own[agent].collect(policies.each_graph_alone, steps)
            np.testing.assert_array_equal(rollout.reward, expected.reward[:, order])
            for reward, ended in zip(expected.reward[:, 0], expected.terminated[:, 0], strict=True):
                rewards[agent] = [] if ended else [*rewards[agent], reward]
            back = [SlotState.from_dict(json.loads(json.dumps(slot.to_dict()))) for slot in shared.take_back()]
            for slot, state in zip(order, back, strict=True):
                slots[agent][slot] = state
            assert slots[agent][0].time == len(rewards[agent])
            assert slots[agent][0].episode["total_return"] == pytest.approx(sum(rewards[agent]), abs=1e-9)
            assert json.dumps([slot.to_dict() for slot in slots[agent]]) == json.dumps([slot.to_dict() for slot in own[agent].take_back()])
        order = order[1:] + order[:1]


def test_all_slots_are_lent_or_none() -> None:
    sampler = Sampler(make_task("gap"), 2, SEED)
    with pytest.raises(ConfigError, match="A sampler of 2 slots cannot lend 1"):
        sampler.lend(sampler.take_back()[:1])


# ---- reuse of bodies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_a_reused_body_is_as_good_as_a_new_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(name, max_steps=8)
    reused = Sampler(task, 4, SEED, TransformSteps(2, 1)).collect(random_policy, 100)
    built = []

    def always_new(pool: BodyPool, design: Design) -> Body:
        built.append(design)
        return Body(design, pool.task)

    monkeypatch.setattr(BodyPool, "build", always_new)
    assert_equal(Sampler(task, 4, SEED, TransformSteps(2, 1)).collect(random_policy, 100), reused)
    assert len(built) >= len(reused.episodes) >= 36


@pytest.mark.parametrize("name", TASKS)
def test_an_unstable_episode_leaves_no_trace_in_the_next(name: str) -> None:
    task, steps = make_task(name, max_steps=10), TransformSteps(0, 1)
    sampler = Sampler(task, 3, SEED, steps)
    sampler.collect(random_policy, 11)
    sampler.load_state_dict(Sampler(task, 3, SEED, steps).state_dict())
    spoiled = sampler.collect(policies.nan_controls, 4)
    assert [e.unstable for e in spoiled.episodes] == [True] * 6
    fresh = Sampler(task, 3, SEED, steps)
    fresh.load_state_dict(sampler.state_dict())
    assert_equal(sampler.collect(random_policy, 40), fresh.collect(random_policy, 40))


def test_slots_together_give_what_each_gives_alone() -> None:
    task = make_task("gap", max_steps=8)
    designs = random_designs(task, 5)
    together = Sampler(task, 5, SEED, TransformSteps(1, 1), designs).collect(policies.each_graph_alone, 120)
    assert len(together.episodes) > 40
    for s in range(5):
        seeds = [child_seed(SEED, 1 + s)]
        alone = Sampler(task, 1, SEED, TransformSteps(1, 1), designs[s : s + 1], seeds).collect(policies.each_graph_alone, 120)
        np.testing.assert_array_equal(alone.reward[:, 0], together.reward[:, s])
        np.testing.assert_array_equal(alone.state, np.concatenate([together.state[rows_of(together, t, s)] for t in range(120)]))


# ---- side by side ----------------------------------------------------------------------------------------------------


def test_rollouts_side_by_side() -> None:
    task = make_task("swimmer", max_steps=9, time_limit="truncate")
    parts = [Sampler(task, slots, np.random.SeedSequence(slots)).collect(random_policy, 40) for slots in (2, 3, 1)]
    whole = Rollout.concatenate(parts)
    assert whole.num_steps == 40 * 6
    first, truncations, last = 0, iter(whole.truncations), 0
    for part in parts:
        slots = part.reward.shape[1]
        columns = slice(first, first + slots)
        for field in ("stage", "reward", "terminated", "truncated", "log_prob"):
            np.testing.assert_array_equal(getattr(whole, field)[:, columns], getattr(part, field))
        for t in range(40):
            for s in range(slots):
                np.testing.assert_array_equal(features_of(whole, t, first + s, task), features_of(part, t, s, task))
                np.testing.assert_array_equal(whole.actions[rows_of(whole, t, first + s)], part.actions[rows_of(part, t, s)])
                a, b = design_rows(whole, whole.design[t, first + s]), design_rows(part, part.design[t, s])
                for name in ("parents", "joint_index", "can_add", "can_delete"):
                    np.testing.assert_array_equal(getattr(whole.designs, name)[a], getattr(part.designs, name)[b])
        for expected in part.truncations:
            found = next(truncations)
            assert (found.time, found.slot) == (expected.time, expected.slot + first)
            assert found.design == whole.design[found.time, found.slot]
            np.testing.assert_array_equal(found.state, expected.state)
        nodes = [len(whole.designs.parents[design_rows(whole, d)]) for d in whole.last_design[columns]]
        np.testing.assert_array_equal(whole.last_state[last : last + sum(nodes)], part.last_state)
        np.testing.assert_array_equal(whole.last_stage[columns], part.last_stage)
        first, last = first + slots, last + sum(nodes)
    assert next(truncations, None) is None
    assert len(whole.episodes) == sum(len(p.episodes) for p in parts) > 0


def test_some_slots_of_a_rollout() -> None:
    """Step by step what the whole one has in their columns, while designs change."""
    task = make_task("swimmer", max_steps=9, time_limit="truncate")
    whole = Sampler(task, 5, SEED, TransformSteps(2, 1)).collect(random_policy, 40)
    columns = np.array([3, 0, 4])
    part = whole.of_slots(columns)
    for t in range(40):
        for s, column in enumerate(columns):
            for field in ("stage", "reward", "terminated", "truncated", "log_prob"):
                assert getattr(part, field)[t, s] == getattr(whole, field)[t, column]
            np.testing.assert_array_equal(features_of(part, t, s, task), features_of(whole, t, column, task))
            np.testing.assert_array_equal(part.actions[rows_of(part, t, s)], whole.actions[rows_of(whole, t, column)])
    theirs = np.split(whole.last_state, np.cumsum(np.diff(whole.designs.offsets)[whole.last_design])[:-1])
    np.testing.assert_array_equal(part.last_state, np.concatenate([theirs[column] for column in columns]))
    np.testing.assert_array_equal(part.last_stage, whole.last_stage[columns])
    ended = [[dataclasses.replace(e, slot=s) for e in whole.episodes if e.slot == column] for s, column in enumerate(columns)]
    assert part.episodes == tuple(itertools.chain(*ended))
    cut = [(t.time, s, t.design) for s, column in enumerate(columns) for t in whole.truncations if t.slot == column]
    assert [t[:3] for t in part.truncations] == cut
    assert len(part.episodes) == len(cut) > 6


def test_episode_records_name_their_column_after_concatenation() -> None:
    task = make_task("swimmer", max_steps=5)
    parts = [Sampler(task, 2, np.random.SeedSequence(i)).collect(random_policy, 11) for i in range(2)]
    assert [e.slot for e in Rollout.concatenate(parts).episodes] == [0, 1, 2, 3]


# ---- what may go wrong -----------------------------------------------------------------------------------------------


def test_a_policy_with_the_wrong_shape() -> None:
    sampler = Sampler(make_task("gap"), 2, SEED)
    with pytest.raises(ValueError, match=r"shape \(4, 3\); expected \(4, 7\)"):
        sampler.collect(policies.wrong_shape, 1)


@pytest.mark.parametrize(("arguments", "message"), [({"slots": 0}, "0 slots"), ({"slots": 2, "designs": []}, "as many designs")])
def test_impossible_samplers(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sampler(task=make_task("gap"), seed=SEED, **arguments)


def test_nan_controls_end_the_episode_and_are_counted() -> None:
    rollout = Sampler(make_task("gap"), 3, SEED).collect(policies.nan_controls, 21)
    assert [e.unstable for e in rollout.episodes] == [True] * 9
    assert {(e.execution_steps, e.total_return, e.net_displacement) for e in rollout.episodes} == {(1, 0.0, 0.0)}
    assert not rollout.reward.any()
    assert np.isfinite(rollout.state).all()


@pytest.mark.parametrize("policy", [policies.nan_attributes, policies.infinite_attributes])
def test_attribute_changes_that_are_no_numbers_change_nothing(policy: Any) -> None:
    task = make_task("gap")
    rollout = Sampler(task, 3, SEED, TransformSteps(0, 1)).collect(policy, 21)
    for attributes in np.split(rollout.designs.attributes, rollout.designs.offsets[1:-1]):
        np.testing.assert_array_equal(attributes, task.initial_design.attributes)
    assert np.isfinite(rollout.state).all()
    assert not any(e.unstable for e in rollout.episodes)


def test_a_state_after_attribute_changes_that_are_no_numbers_can_be_loaded() -> None:
    sampler = Sampler(make_task("gap"), 1, SEED)
    sampler.collect(policies.nan_attributes, 6)
    again = Sampler(make_task("gap"), 1, SEED)
    again.load_state_dict(json.loads(json.dumps(sampler.state_dict())))
    assert_equal(again.collect(random_policy, 20).reward, sampler.collect(random_policy, 20).reward)
