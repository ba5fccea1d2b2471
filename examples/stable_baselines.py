"""A library from elsewhere learns to drive one design, and our evaluation says how far it came.

    pip install 'codesign-bench[sb3]'
    python examples/stable_baselines.py --env gap --steps 100_000
    python examples/stable_baselines.py --env gap --design results/demo/gap/transform2act/seed_0/designs/final.json

The Gymnasium environments speak of graphs: padded dictionaries, seven numbers for each node. Stable-Baselines3 wants vectors. For a design
that does not change a vector is enough: what its nodes observe, one after the other, and one control for each motor.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3 import PPO

from codesign_bench.design.graph import Design
from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.method import Agent
from codesign_bench.simulation.env import TransformAndActEnv
from codesign_bench.simulation.episode import ACTION_SIZE, CONTROL, NO_TRANSFORM
from codesign_bench.simulation.graphs import GraphBatch
from codesign_bench.simulation.showing import choose_design
from codesign_bench.tasks import Task, make_task


class OneDesign(gymnasium.Env[Any, Any]):
    """The environment of a design that does not change, in vectors."""

    def __init__(self, task: Task, design: Design) -> None:
        self.design = design
        self.env = TransformAndActEnv(task, skeleton_steps=0, attribute_steps=0)
        self.observation_space = spaces.Box(-np.inf, np.inf, (design.num_nodes * task.feature_size,), np.float32)
        self.action_space = spaces.Box(-1, 1, (design.num_nodes - 1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options={"design": self.design})
        return self._vector(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        actions = np.zeros(self.env.action_space.shape, np.float32)
        actions[1 : self.design.num_nodes, CONTROL] = action
        observation, reward, terminated, truncated, info = self.env.step(actions)
        return self._vector(observation), reward, terminated, truncated, info

    def _vector(self, observation: dict[str, Any]) -> Any:
        return observation["nodes"][: self.design.num_nodes].astype(np.float32).ravel()


class Driver:
    """What was learned, as a policy of the benchmark: from a batch of graphs, all of this design, to actions of their nodes."""

    def __init__(self, model: PPO, nodes: int) -> None:
        self.model, self.nodes = model, nodes

    def __call__(self, graphs: GraphBatch) -> Any:
        controls, _ = self.model.predict(graphs.features.reshape(graphs.num_graphs, -1), deterministic=True)
        actions = np.zeros((graphs.num_graphs, self.nodes, ACTION_SIZE))
        actions[:, 1:, CONTROL] = controls
        return actions.reshape(-1, ACTION_SIZE)


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO of Stable-Baselines3 on one design, evaluated as every method here is.")
    parser.add_argument("--env", default="gap")
    parser.add_argument("--design", default="initial", help="initial, expert, or the path of a design's JSON")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    design, task = choose_design(make_task(given.env), given.design, np.random.default_rng(given.seed))
    model = PPO("MlpPolicy", OneDesign(task, design), gamma=task.config.discount, seed=given.seed, device="cpu")
    model.learn(given.steps)
    agent = Agent(task.starting_from(design, task.space), Driver(model, design.num_nodes), NO_TRANSFORM)
    evaluation = evaluate(agent, 10, np.random.SeedSequence(given.seed))
    columns = evaluation.columns
    print(f"{task.name}, {design.num_nodes} bodies, {model.num_timesteps} steps; means over ten episodes, deterministic:")
    print(f"return {columns['return_mean']:.1f}, {columns['net_displacement']:.2f} m, {columns['episode_length']:.0f} steps long")


if __name__ == "__main__":
    main()
