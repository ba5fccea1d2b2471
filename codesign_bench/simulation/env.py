"""The transform-and-act MDP as a Gymnasium environment, for people and for tests. Learning uses `sampler.py`."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.simulation.body import BodyPool
from codesign_bench.simulation.episode import ACTION_SIZE, SKELETON, Episode, TransformSteps
from codesign_bench.tasks import make_task
from codesign_bench.tasks.base import Task


class TransformAndActEnv(gymnasium.Env[dict[str, Any], Array]):
    """An episode designs a robot and then drives it: skeleton steps, attribute steps, execution steps.

    Action, Box(max_bodies, 7), one row per body in the order of the observation; rows past `num_bodies` are ignored and
    each stage reads only its own columns:

    - 0: control of the body's motor (the root's is ignored)
    - 1 to 5: change of the five normalised attributes
    - 6: skeleton choice, rounded: 0 NoChange, 1 AddJoint, 2 DelJoint

    Observation, Dict, padded to the task's largest design:

    - nodes, Box(max_bodies, features): depth one-hot, simulator state (zeros while transforming), attributes
    - num_bodies, Discrete: how many rows of `nodes` are in use
    - edges, Box(2, 2 (max_bodies - 1)): both ways between parent and child; unused columns are -1
    - joint_index, Box(max_bodies): which joint a row is, across designs; unused entries are -1
    - stage, Discrete(3): 0 skeleton, 1 attribute, 2 execution

    The reward is 0 while transforming; then the task's, whose parts are in `info` (reward_NAME) beside the task's metrics.
    `options={"design": Design}` at reset starts from another design than the task's initial one.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 25}

    def __init__(
        self, task: str | Task, skeleton_steps: int = 5, attribute_steps: int = 1, render_mode: str | None = None, **overrides: Any
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode is {render_mode!r}; allowed are None and 'rgb_array'.")
        self.task = make_task(task, **overrides) if isinstance(task, str) else task
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": max(1, round(1 / self.task.dt))}
        bodies, space = self.task.space.max_nodes, self.task.space
        self.observation_space = spaces.Dict(
            {
                "nodes": spaces.Box(-np.inf, np.inf, (bodies, self.task.feature_size), np.float64),
                "num_bodies": spaces.Discrete(bodies + 1),
                "edges": spaces.Box(-1, bodies - 1, (2, 2 * (bodies - 1)), np.int64),
                "joint_index": spaces.Box(-1, len(space.index_names) - 1, (bodies,), np.int64),
                "stage": spaces.Discrete(3),
            }
        )
        low = np.array([-1.0] * 6 + [-0.5], dtype=np.float32)
        high = np.array([1.0] * 6 + [2.5], dtype=np.float32)
        self.action_space = spaces.Box(np.tile(low, (bodies, 1)), np.tile(high, (bodies, 1)), (bodies, ACTION_SIZE), np.float32)
        self._episode = Episode(self.task, TransformSteps(skeleton_steps, attribute_steps), BodyPool(self.task))
        self._picture: Any = None

    @property
    def design(self) -> Design:
        """The design as it is now."""
        return self._episode.design

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        unknown = set(options or {}) - {"design"}
        if unknown:
            raise ConfigError(f"reset has unknown options {', '.join(sorted(map(str, unknown)))}; allowed is design.")
        design = (options or {}).get("design", self.task.initial_design)
        if not isinstance(design, Design):
            raise DesignError(f"The option design is {design!r}; allowed is a Design.")
        self.task.space.check(design)
        self._episode.begin(design, self.np_random)
        return self._observation(), {}

    def step(self, action: Array) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """One transform or control step."""
        actions = np.asarray(action, dtype=np.float64)[: self._episode.design.num_nodes].copy()
        actions[:, SKELETON] = np.rint(actions[:, SKELETON])
        self._episode.last_step = None
        reward, terminated, truncated = self._episode.act(actions)
        info: dict[str, Any] = {}
        step = self._episode.last_step
        if step is not None:
            info = {f"reward_{name}": value for name, value in step.parts.items()} | step.metrics | {"unstable": bool(step.problem)}
        if terminated or truncated:
            info["net_displacement"], info["path"] = self._episode.net, self._episode.path
        return self._observation(), reward, terminated, truncated, info

    def render(self) -> Any:
        """The robot as it is now, [480, 640, 3] uint8."""
        from codesign_bench.simulation.rendering import Picture

        if self.render_mode is None:
            return None
        if self._picture is None or self._picture.design is not self._episode.design:
            if self._picture is not None:
                self._picture.close()
            self._picture = Picture(self._episode.design, self.task, width=640, height=480)
        body = self._episode.body
        acting = body is not None and self._episode.state() is not None
        return self._picture.frame(body.data.qpos if body is not None and acting else None)

    def close(self) -> None:
        if self._picture is not None:
            self._picture.close()
            self._picture = None

    def _observation(self) -> dict[str, Any]:
        episode, space = self._episode, self.task.space
        nodes, design = episode.design.num_nodes, episode.design
        features = np.zeros((space.max_nodes, self.task.feature_size))
        features[:nodes] = self.task.features.features(episode.topology.depth, design.attributes, episode.state(), np.float64)
        edges = np.full((2, 2 * (space.max_nodes - 1)), -1, dtype=np.int64)
        edges[:, : 2 * (nodes - 1)] = episode.topology.edges
        joint_index = np.full(space.max_nodes, -1, dtype=np.int64)
        joint_index[:nodes] = episode.topology.joint_index
        return {
            "nodes": features,
            "num_bodies": np.int64(nodes),
            "edges": edges,
            "joint_index": joint_index,
            "stage": np.int64(episode.stage),
        }
