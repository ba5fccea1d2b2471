from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import codesign_bench
from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.paths import options_of
from codesign_bench.simulation.env import TransformAndActEnv
from codesign_bench.simulation.showing import random_design
from tests.simulation.drawing import needs_drawing

IDS = {
    "codesign/Locomotion2d-v2": "locomotion2d",
    "codesign/Locomotion3d-v2": "locomotion3d",
    "codesign/Swimmer-v1": "swimmer",
    "codesign/Gap-v2": "gap",
}
ADD = 1.0


def make(name: str = "codesign/Gap-v2", **kwargs: Any) -> gymnasium.Env[dict[str, Any], Any]:
    return gymnasium.make(name, **kwargs)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return bool(np.array_equal(a, b))


def episode(env: gymnasium.Env[dict[str, Any], Any], seed: int, actions: Any = None) -> list[tuple[Any, ...]]:
    """(observation, reward, terminated, truncated, info) of one episode with random actions."""
    env.reset(seed=seed)
    env.action_space.seed(seed)
    steps = []
    for _ in range(2000):
        steps.append(env.step(env.action_space.sample() if actions is None else actions(env)))
        if steps[-1][2] or steps[-1][3]:
            return steps
    raise AssertionError("the episode does not end")


def test_the_package_registers_its_environments() -> None:
    assert codesign_bench.__version__
    registered = {name for name in gymnasium.registry if name.startswith("codesign/")}
    assert registered >= set(IDS)
    assert len(registered) == len(options_of("env"))


@pytest.mark.parametrize("name", IDS)
def test_gymnasium_finds_no_fault(name: str) -> None:
    env = make(name).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Node features are positions and velocities without bounds, which the checker finds unusual.
        warnings.filterwarnings("ignore", message=".*Box observation space (minimum|maximum) value is -?infinity")
        check_env(env, skip_render_check=True)


@pytest.mark.slow
@needs_drawing
def test_gymnasium_finds_no_fault_in_rendering() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*Box observation space (minimum|maximum) value is -?infinity")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="(OpenGL|mujoco|glfw).*")
        check_env(make("codesign/Swimmer-v1", render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_an_episode_with_random_actions_goes_through_all_stages(name: str) -> None:
    env = make(name, max_steps=40)
    first, info = env.reset(seed=1)
    assert (first["stage"], info) == (0, {})
    steps = episode(env, 1)
    stages = [int(first["stage"])] + [int(step[0]["stage"]) for step in steps]
    assert stages == [0] * 5 + [1] + [2] * (len(steps) - 5)
    for before, (observation, reward, terminated, truncated, info) in zip(stages, steps, strict=False):
        assert env.observation_space.contains(observation)
        if before < 2:
            assert (reward, terminated, truncated, info) == (0.0, False, False, {})
        else:
            assert info["reward_forward"] + info["reward_alive"] + info["reward_control"] == reward
            assert info["unstable"] is False
    assert {"net_displacement", "path"} <= steps[-1][4].keys()
    dt = env.unwrapped.task.dt
    displacement = sum(step[4]["reward_forward"] for step in steps[6:]) * dt
    assert steps[-1][4]["net_displacement"] == pytest.approx(displacement, abs=1e-12)
    assert steps[-1][4]["path"] >= abs(displacement) - 1e-12


@pytest.mark.parametrize("name", IDS)
def test_the_observation_describes_the_design(name: str) -> None:
    env = make(name, max_steps=3)
    observation, _ = env.reset(seed=0)
    env.action_space.seed(1)
    done, task, sizes = False, env.unwrapped.task, set()
    bodies = {"locomotion3d": 29}.get(IDS[name], 14)
    assert env.action_space.shape == (bodies, 7)
    assert observation["nodes"].shape == (bodies, task.feature_size)
    while not done:
        design: Design = env.unwrapped.design
        nodes = design.num_nodes
        sizes.add(nodes)
        assert observation["num_bodies"] == nodes
        child = [(i, int(p)) for i, p in enumerate(design.parents) if p >= 0]
        used = observation["edges"][:, : 2 * (nodes - 1)]
        assert sorted(map(tuple, used.T.tolist())) == sorted(child + [(p, i) for i, p in child])
        assert (observation["edges"][:, 2 * (nodes - 1) :] == -1).all()
        topology = task.space.topology(design)
        assert [task.space.index_names[i] for i in observation["joint_index"][:nodes]] == list(topology.names)
        assert (observation["joint_index"][nodes:] == -1).all()
        features = observation["nodes"]
        assert not features[nodes:].any()
        np.testing.assert_array_equal(features[:nodes, :4], np.eye(4)[topology.depth])
        np.testing.assert_array_equal(features[:nodes, -5:], design.attributes)
        state = features[:nodes, 4:-5]
        assert state.any() if observation["stage"] == 2 else not state.any()
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        done = terminated or truncated
    assert len(sizes) > 1, "the random actions must change the skeleton"


def test_only_the_columns_of_the_stage_and_the_rows_of_bodies_matter() -> None:
    columns = {0: [6], 1: [1, 2, 3, 4, 5], 2: [0]}

    def run(fill: float | None) -> list[tuple[Any, ...]]:
        env = make("codesign/Locomotion3d-v2", max_steps=15)
        rng, junk = np.random.default_rng(3), np.random.default_rng(4)

        def act(env: Any) -> np.ndarray:
            action = rng.uniform(env.action_space.low, env.action_space.high).astype(np.float32)
            if fill is not None:
                state, nodes = env.unwrapped._observation(), env.unwrapped.design.num_nodes
                ignored = np.ones(action.shape, dtype=bool)
                ignored[:nodes, columns[int(state["stage"])]] = False
                if state["stage"] == 2:
                    ignored[0] = True
                action[ignored] = junk.uniform(env.action_space.low, env.action_space.high).astype(np.float32)[ignored] * fill
            return action

        return episode(env, 5, act)

    plain, junk, zero = run(None), run(1.0), run(0.0)
    assert len(plain) > 7
    for other in (junk, zero):
        assert len(other) == len(plain)
        for a, b in zip(plain, other, strict=True):
            assert same(a[0], b[0])
            assert a[1:] == b[1:]


def test_junk_that_is_no_number_in_ignored_entries() -> None:
    env = TransformAndActEnv("swimmer", max_steps=5)
    env.reset(seed=0)
    action = np.full(env.action_space.shape, np.nan, dtype=np.float32)
    action[:2, 6] = 0
    for _ in range(5):
        env.step(action)
    action[:, 6], action[:2, 1:6] = np.nan, 0.1
    env.step(action)
    action[:2, 1:6], action[1, 0] = np.nan, 0.3
    observation, reward, _, _, info = env.step(action)
    assert not info["unstable"]
    assert np.isfinite(reward)
    assert np.isfinite(observation["nodes"]).all()


def test_the_skeleton_choice_is_rounded() -> None:
    def bodies(choice: float) -> int:
        env = TransformAndActEnv("gap")
        env.reset(seed=0)
        action = np.zeros(env.action_space.shape, dtype=np.float32)
        action[:, 6] = choice
        return int(env.step(action)[0]["num_bodies"])

    assert {choice: bodies(choice) for choice in (-0.5, 0.0, 0.4, 0.6, 1.0, 1.4, 1.6, 2.5)} == {
        -0.5: 2, 0.0: 2, 0.4: 2, 0.6: 3, 1.0: 3, 1.4: 3, 1.6: 2, 2.5: 2,
    }  # fmt: skip


def test_reset_to_another_design() -> None:
    env = make("codesign/Locomotion3d-v2", skeleton_steps=0, attribute_steps=0)
    task = env.unwrapped.task
    design = random_design(task, np.random.default_rng(1))
    observation, _ = env.reset(seed=0, options={"design": design})
    assert env.unwrapped.design == design != task.initial_design
    assert observation["num_bodies"] == design.num_nodes
    assert observation["stage"] == 2
    assert env.reset(seed=0)[0]["num_bodies"] == 5
    assert env.unwrapped.design == task.initial_design


def test_reset_refuses_a_design_of_another_task() -> None:
    env = make("codesign/Locomotion3d-v2")
    with pytest.raises(DesignError, match="root has 1 children; this task's root has exactly 4"):
        env.reset(options={"design": make("codesign/Gap-v2").unwrapped.task.initial_design})


def test_reset_refuses_what_is_no_design() -> None:
    env = make()
    with pytest.raises(DesignError, match="design"):
        env.reset(options={"design": "hopper"})


def test_reset_refuses_unknown_options() -> None:
    env = make()
    with pytest.raises(ConfigError, match="desing"):
        env.reset(options={"desing": env.unwrapped.task.initial_design})


def test_keyword_arguments_override_the_configuration() -> None:
    plain, bare = make(skeleton_steps=0, attribute_steps=0), make(skeleton_steps=0, attribute_steps=0, reward={"alive": 0.0})
    action = np.zeros(plain.action_space.shape, dtype=np.float32)
    plain.reset(seed=2)
    bare.reset(seed=2)
    with_bonus, without = plain.step(action), bare.step(action)
    assert without[1] == with_bonus[4]["reward_forward"] == pytest.approx(with_bonus[1] - 0.1)
    assert bare.unwrapped.task.config.reward.speed == "forward", "the other keys stay"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"foo": 1}, "unknown key 'foo'"),
        ({"reward": {"aliv": 1}}, "env.reward has an unknown key 'aliv'; allowed are speed, alive, control_cost"),
        ({"reward": {"alive": "x"}}, "env.reward.alive is 'x'; allowed is a finite number"),
        ({"reward": {"speed": "backward"}}, "'backward'; allowed are forward, absolute"),
        ({"time_limit": "never"}, "'never'; allowed are terminal, truncate"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"skeleton_steps": -1}, "skeleton steps is -1"),
        ({"attribute_steps": -1}, "attribute steps is -1"),
        ({"design": {"radius": [0.08, 0.03]}}, "radius is \\[0.08, 0.03\\]"),
        ({"start": {"noise": -1}}, "noise is -1"),
        pytest.param({"skeleton_steps": 2.5}, "2.5"),
        pytest.param({"skeleton_steps": "a"}, "'a'"),
        pytest.param({"end": {"min_height": 3.0}}, "3.0"),
    ],
)
def test_keyword_arguments_that_cannot_be(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, DesignError), match=message):
        make(**kwargs)


def test_unknown_task_and_render_mode() -> None:
    with pytest.raises(ConfigError, match=r"no environment 'mars'; allowed are .*gap, .*locomotion2d, locomotion3d, .*swimmer"):
        TransformAndActEnv("mars")
    with pytest.raises(ValueError, match="'human'; allowed are None and 'rgb_array'"):
        TransformAndActEnv("gap", render_mode="human")


@pytest.mark.parametrize("name", IDS)
def test_seeding(name: str) -> None:
    first, again, other = (episode(make(name, max_steps=10), seed) for seed in (3, 3, 4))
    assert len(first) == len(again)
    for a, b in zip(first, again, strict=True):
        assert same(a[0], b[0])
        assert a[1:] == b[1:]
    fixed = [make(name, skeleton_steps=0, attribute_steps=0).reset(seed=seed)[0] for seed in (3, 3, 4)]
    assert same(fixed[0], fixed[1])
    assert not same(fixed[0], fixed[2])
    assert [step[1] for step in first] != [step[1] for step in other]


def test_the_second_episode_without_a_seed_differs() -> None:
    env = make("codesign/Swimmer-v1", skeleton_steps=0, attribute_steps=0)
    assert not same(env.reset(seed=3)[0], env.reset()[0])


def test_an_unstable_step() -> None:
    env = make("codesign/Locomotion2d-v2", skeleton_steps=0, attribute_steps=0)
    env.reset(seed=0)
    env.unwrapped._episode.body.data.qvel[:] = 1e30
    observation, reward, terminated, truncated, info = env.step(np.zeros(env.action_space.shape, dtype=np.float32))
    assert (reward, terminated, truncated, info["unstable"]) == (0.0, True, False, True)
    assert info["reward_forward"] == info["reward_alive"] == info["reward_control"] == 0.0
    assert env.observation_space.contains(observation)
    assert np.isfinite(observation["nodes"]).all()
    env.reset()
    assert not env.step(np.zeros(env.action_space.shape, dtype=np.float32))[4]["unstable"], "the next episode is sound"


def assert_shows_something(frame: np.ndarray) -> None:
    assert frame.shape == (480, 640, 3)
    assert frame.dtype == np.uint8
    assert frame.std() > 10
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 100


@needs_drawing
@pytest.mark.parametrize("name", IDS)
def test_render(name: str) -> None:
    env = make(name, render_mode="rgb_array", skeleton_steps=0, attribute_steps=0)
    env.reset(seed=0)
    assert_shows_something(env.render())
    env.close()
    assert make(name).unwrapped.render() is None


@needs_drawing
def test_render_follows_the_episode() -> None:
    env = make("codesign/Locomotion2d-v2", render_mode="rgb_array", skeleton_steps=1, attribute_steps=0)
    env.reset(seed=0)
    action = np.zeros(env.action_space.shape, dtype=np.float32)
    action[:, 6] = ADD
    frames = [env.render()]
    env.step(action)
    frames.append(env.render())
    for _ in range(10):
        env.step(action)
    frames.append(env.render())
    env.close()
    for frame in frames:
        assert_shows_something(frame)
    assert not np.array_equal(frames[0], frames[1]), "the new limb is in the picture"
    assert not np.array_equal(frames[1], frames[2]), "the simulation moved"


@needs_drawing
def test_render_after_an_unstable_step() -> None:
    env = make("codesign/Locomotion2d-v2", render_mode="rgb_array", skeleton_steps=0, attribute_steps=0)
    env.reset(seed=0)
    env.unwrapped._episode.body.data.qvel[:] = 1e30
    env.step(np.zeros(env.action_space.shape, dtype=np.float32))
    frame = env.render()
    env.close()
    assert_shows_something(frame)
