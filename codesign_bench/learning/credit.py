"""Credit of design steps, as BodyGen assigns it (Lu et al., ICLR 2025).

What a design is worth is known when its episode ends. A design step is credited with the whole undiscounted return to come, against the
value that was expected there; only control steps are credited by GAE. Both kinds are standardised by themselves, so that the few design
steps are not lost among the many of control.

Batches are cut by steps, not by episodes: design steps whose episode goes on beyond the batch wait, and are learned from with the batch in
which it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from codesign_bench.arrays import Array
from codesign_bench.design.space import DesignSpace
from codesign_bench.learning.batch import Steps
from codesign_bench.learning.gae import advantages
from codesign_bench.simulation.episode import Stage
from codesign_bench.simulation.graphs import Rollout


@dataclass(frozen=True)
class Taken:
    """Steps with what was done in them: actions [nodes, 7], log_prob [steps]."""

    steps: Steps
    actions: Array
    log_prob: Array

    def select(self, steps: Array) -> Taken:
        rows, _ = self.steps.rows(steps)
        return Taken(self.steps.select(steps), self.actions[rows], self.log_prob[steps])

    def followed_by(self, other: Taken) -> Taken:
        pairs = ((self.actions, other.actions), (self.log_prob, other.log_prob))
        return Taken(self.steps.followed_by(other.steps), *(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class Waiting:
    """Design steps of episodes that have not ended: their slots and their rewards so far [steps]."""

    taken: Taken
    slot: Array
    so_far: Array


@dataclass(frozen=True)
class Settled:
    """A batch, and after it the steps that had waited for it.

    - design: positions of the design steps whose episodes have ended; returns: theirs, undiscounted, from there on
    - learned: positions of all steps to learn from: these, and the control steps
    - episode: number of each step's episode; one that was under way before keeps its number for the steps that had waited
    """

    taken: Taken
    design: Array
    returns: Array
    learned: Array
    episode: Array


class DesignCredit:
    """Keeps the design steps that wait."""

    def __init__(self) -> None:
        self.waiting: Waiting | None = None

    def settle(self, rollout: Rollout, taken: Taken) -> Settled:
        """`taken`: the rollout's steps in the order [time, slots]."""
        ended = rollout.terminated | rollout.truncated
        nothing = np.zeros(rollout.reward.shape)
        to_go = advantages(rollout.reward, nothing, nothing, ended, 1.0, 1.0)  # up to the end of the episode, or of the batch
        ends = np.logical_or.accumulate(ended[::-1])[::-1]  # whether the episode ends in this batch
        is_design = rollout.stage != Stage.EXECUTION
        design, control = np.flatnonzero(is_design & ends), np.flatnonzero(~is_design)
        returns = to_go.ravel()[design]
        time, slots = ended.shape
        episode = (np.vstack([np.zeros((1, slots), int), np.cumsum(ended, axis=0)[:-1]]) + np.arange(slots) * (time + 1)).ravel()
        waiting = self._new(taken, to_go, np.flatnonzero(is_design & ~ends))
        before, count = self.waiting, taken.steps.num_steps
        if before is not None:
            done, so_far = ends[0, before.slot], before.so_far + to_go[0, before.slot]
            taken, returns = taken.followed_by(before.taken.select(np.flatnonzero(done))), np.concatenate([returns, so_far[done]])
            design = np.concatenate([design, np.arange(count, taken.steps.num_steps)])
            episode = np.concatenate([episode, episode[before.slot[done]]])
            waiting = _joined(_kept(replace(before, so_far=so_far), np.flatnonzero(~done)), waiting)
        self.waiting = waiting
        return Settled(taken, design, returns, np.sort(np.concatenate([design, control])), episode)

    @staticmethod
    def _new(taken: Taken, to_go: Array, steps: Array) -> Waiting:
        return Waiting(taken.select(steps), steps % to_go.shape[1], to_go.ravel()[steps])

    def state_dict(self) -> dict[str, Any]:
        if self.waiting is None:
            return {}
        taken = self.waiting.taken
        steps = {name: array for name, array in vars(taken.steps).items() if name != "space"}
        rest = {"actions": taken.actions, "log_prob": taken.log_prob, "slot": self.waiting.slot, "so_far": self.waiting.so_far}
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in (steps | rest).items()}

    def load_state_dict(self, state: dict[str, Any], space: DesignSpace | None) -> None:
        if not state:
            self.waiting = None
            return
        assert space is not None
        arrays = {name: tensor.numpy() for name, tensor in state.items()}
        actions, log_prob, slot, so_far = (arrays.pop(name) for name in ("actions", "log_prob", "slot", "so_far"))
        self.waiting = Waiting(Taken(Steps(space, **arrays), actions, log_prob), slot, so_far)


def _kept(waiting: Waiting, steps: Array) -> Waiting:
    return Waiting(waiting.taken.select(steps), waiting.slot[steps], waiting.so_far[steps])


def _joined(one: Waiting, other: Waiting) -> Waiting:
    taken = one.taken.followed_by(other.taken)
    return Waiting(taken, np.concatenate([one.slot, other.slot]), np.concatenate([one.so_far, other.so_far]))


def standardised(advantage: Array) -> Array:
    """To mean 0 and standard deviation 1; zeros where all are equal."""
    centred = advantage - advantage.mean() if len(advantage) else advantage
    deviation = advantage.std(ddof=1) if len(advantage) > 1 else 0.0
    return centred / deviation if deviation > 0 else np.zeros_like(centred)
