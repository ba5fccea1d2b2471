"""How species learn: each by itself, side by side in the processes that otherwise sample."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from codesign_bench.design.graph import Design
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.memory import keep_freed_memory
from codesign_bench.learning.ppo import PPO, LearningError, Losses
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.processes import Processes, SharedMemory
from codesign_bench.tasks.base import Task
from methods.evolution.config import PopulationConfig
from methods.evolution.controller import Controller


class Learner:
    """A controller, its optimisers and the shuffling of its minibatches."""

    def __init__(self, design: Design, task: Task, config: PopulationConfig, device: str, seed: int, shuffle: np.random.Generator) -> None:
        self.design, self.task, self.config, self.shuffle = design, task, config, shuffle
        self.controller = Controller(design, task, config.controller, config.value, seed)
        self.ppo = PPO(self.controller.actor, self.controller.critic, config.ppo, device)

    def learn(self, rollout: Rollout) -> Losses | None:
        """From one batch; None if it cannot, and then it never will again."""
        steps, bootstrap = steps_of_rollout(rollout, self.task.space)
        try:
            losses = self.ppo.learn(rollout, steps, bootstrap, self.shuffle)
        except LearningError:
            return None
        self.controller.update_normaliser(steps)
        return losses

    def state_dict(self) -> dict[str, Any]:
        return {"controller": self.controller.state_dict(), "ppo": self.ppo.state_dict(), "shuffle": self.shuffle.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.controller.load_state_dict(state["controller"])
        self.ppo.load_state_dict(state["ppo"])
        self.shuffle.bit_generator.state = state["shuffle"]


def learn_side_by_side(learners: Sequence[Learner], rollouts: Sequence[Rollout], processes: Processes) -> list[Losses | None]:
    """Each learner from its own batch. Where there are no processes, or learning is not on the CPU, one after the other."""
    if not processes.count or any(learner.ppo.device.type != "cpu" for learner in learners):
        return [learner.learn(rollout) for learner, rollout in zip(learners, rollouts, strict=True)]
    arguments = [(packed(learner.state_dict()), rollout) for learner, rollout in zip(learners, rollouts, strict=True)]
    processes.place(LEARNER, [partial(RemoteLearner, learner.design, learner.task, learner.config) for learner in learners])
    replies = processes.call("learn", LEARNER, arguments)
    for learner, (state, _) in zip(learners, replies, strict=True):
        learner.load_state_dict(unpacked(state))
    return [losses for _, losses in replies]


LEARNER = "learner"


class RemoteLearner:
    """A learner's double in another process: takes its state, learns, and gives back what it is then."""

    def __init__(self, design: Design, task: Task, config: PopulationConfig, memory: SharedMemory) -> None:
        keep_freed_memory()
        self.learner = Learner(design, task, config, "cpu", 0, np.random.default_rng())

    def learn(self, state: bytes, rollout: Rollout) -> tuple[bytes, Losses | None]:
        self.learner.load_state_dict(unpacked(state))
        losses = self.learner.learn(rollout)
        return packed(self.learner.state_dict()), losses


def packed(state: dict[str, Any]) -> bytes:
    """Tensors that are parts of one vector take its room once."""
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def unpacked(state: bytes) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(io.BytesIO(state), weights_only=True)
    return found
