"""What any task must keep to: codesign-bench check task=NAME

Each check takes a task and raises an AssertionError with one sentence. The same function states a task everywhere; these checks find
the ways in which such a function can still depend on what it should not: other bodies of its batch, hidden state, the clock.
"""

from collections.abc import Callable, Iterator

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.errors import CodesignError
from codesign_bench.experiment.equality import must_equal, require
from codesign_bench.simulation.bodies import UNSTABLE, Bodies
from codesign_bench.simulation.body import Body, StepResult
from codesign_bench.simulation.env import TransformAndActEnv
from codesign_bench.simulation.episode import ACTION_SIZE
from codesign_bench.simulation.graphs import GraphBatch
from codesign_bench.simulation.rehearsal import rehearse
from codesign_bench.simulation.sampler import Sampler, random_policy
from codesign_bench.simulation.showing import random_design
from codesign_bench.tasks.base import Task

DESIGNS, STEPS = 8, 40


def can_be_used(task: Task) -> None:
    """The initial design can be built, started, observed and stepped, and observations have their size."""
    try:
        rehearse(task)
    except CodesignError as error:
        raise AssertionError(str(error)) from error


def deterministic(task: Task) -> None:
    """The same design, seed and controls give the same states, observations and rewards."""
    for number, design in enumerate(_designs(task)):
        first, second = (list(_played(Body(design, task), number)) for _ in range(2))
        must_equal(first, second, f"An episode of design {number}, played twice")


def snapshots(task: Task) -> None:
    """An episode that is stopped, saved and restored into another body goes on as if it had not been."""
    for number, design in enumerate(_designs(task)):
        body, other = Body(design, task), Body(design, task)
        other.reset(np.random.default_rng(1000 + number))
        whole = []
        for played, *record in _played(body, number):
            whole.append(record)
            if played == STEPS // 2:
                saved = body.snapshot()
        if len(whole) > STEPS // 2 + 1:
            other.restore(saved)
            rest = [record for _, *record in _played(other, number, first=STEPS // 2 + 1)]
            must_equal(whole[STEPS // 2 + 1 :], rest, f"An episode of design {number} after a snapshot")


def batch_equals_single(task: Task) -> None:
    """Many bodies at once are observed and rewarded as each of them alone."""
    designs = _designs(task)
    alone, together = ([Body(design, task) for design in designs] for _ in range(2))
    for bodies in (alone, together):
        for number, body in enumerate(bodies):
            body.reset(np.random.default_rng(number))
    ends = np.cumsum([design.num_nodes for design in designs])
    rows = [slice(int(end) - design.num_nodes, int(end)) for end, design in zip(ends, designs, strict=True)]
    batch, rng = Bodies(task, together, rows), np.random.default_rng(0)
    for time in range(STEPS):
        seen = np.zeros((ends[-1], task.state_size))
        batch.observe(seen)
        must_equal(seen, np.concatenate([body.state() for body in alone]), f"Observations of a batch after {time} steps")
        control = rng.normal(0, 1, ends[-1])
        results = [body.step(control[mine]) for body, mine in zip(alone, rows, strict=True)]
        must_equal(batch.step(control).each(), [result[:4] for result in results], f"Rewards and ends of a batch after {time + 1} steps")
        for number, result in enumerate(results):
            if result.ended or result.problem:
                for body in (alone[number], together[number]):
                    body.reset(np.random.default_rng([time, number]))
                batch.reread(number)


def sampler_equals_environment(task: Task) -> None:
    """The same actions give the same observations, rewards and ends in the sampler and in the Gymnasium environment."""
    seed = np.random.SeedSequence(0)

    def stored_as_they_are(graphs: GraphBatch) -> Array:
        return random_policy(graphs).astype(np.float32)

    rollout = Sampler(task, 1, seed, reset_seeds=[seed]).collect(stored_as_they_are, 5 * STEPS)
    env = TransformAndActEnv(task)
    env.np_random = np.random.default_rng(seed)
    observation, _ = env.reset()
    counts = np.diff(rollout.designs.offsets)[rollout.design[:, 0]]
    for time, (first, count) in enumerate(zip(rollout.node_offset[:, 0], counts, strict=True)):
        mine = slice(first, first + count)
        seen = observation["nodes"][:count, task.features.state].astype(np.float32)
        must_equal(seen, rollout.state[mine], f"What the environment shows at step {time}")
        actions = np.zeros((task.space.max_nodes, ACTION_SIZE))
        actions[:count] = rollout.actions[mine]
        observation, *outcome, _ = env.step(actions)
        sampled = [float(rollout.reward[time, 0]), bool(rollout.terminated[time, 0]), bool(rollout.truncated[time, 0])]
        must_equal(outcome, sampled, f"Reward and end of the environment's step {time}")
        if outcome[1] or outcome[2]:
            observation, _ = env.reset()


def finite_rewards(task: Task) -> None:
    """Over random designs, rewards are finite, their parts have the same names in every step, and the task never fails."""
    names = None
    for number, design in enumerate(_designs(task)):
        for time, _, _, result in _played(Body(design, task), number):
            require(result.problem in ("", UNSTABLE), f"Design {number} after {time + 1} steps: {result.problem}.")
            if not result.problem:
                names = names or tuple(result.parts)
                require(
                    tuple(result.parts) == names, f"The reward has the parts {tuple(result.parts)} after {names}; they must not change."
                )
                require(set(result.metrics) == set(task.metrics), f"The metrics are {set(result.metrics)}, not {set(task.metrics)}.")


def spaces(task: Task) -> None:
    """Observations lie in the Gymnasium environment's space from the first transform to the end."""
    env = TransformAndActEnv(task)
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(STEPS):
        require(observation in env.observation_space, "An observation is outside of the observation space.")
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            observation, _ = env.reset()


CHECKS: tuple[Callable[[Task], None], ...] = (
    can_be_used,
    deterministic,
    snapshots,
    batch_equals_single,
    sampler_equals_environment,
    finite_rewards,
    spaces,
)


def _designs(task: Task) -> list[Design]:
    rng = np.random.default_rng(0)
    return [task.initial_design, *(random_design(task, rng) for _ in range(DESIGNS - 1))]


def _played(body: Body, number: int, first: int = 0) -> Iterator[tuple[int, list[float], list[float], StepResult]]:
    """(time, state, observation, result) of the steps of one episode from `first` on, under controls that depend on the time alone."""
    if first == 0:
        body.reset(np.random.default_rng(number))
    for time in range(first, STEPS):
        result = body.step(np.random.default_rng([number, time]).normal(0, 1, body.design.num_nodes))
        if result.problem:
            yield time, [], [], result
            return
        yield time, body.snapshot().tolist(), body.state().ravel().tolist(), result
        if result.ended:
            return
