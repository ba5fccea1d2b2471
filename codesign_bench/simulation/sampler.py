"""Many episodes at once in one process: a group of slots that acts in one batched call of the policy per time step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError
from codesign_bench.simulation.bodies import Bodies
from codesign_bench.simulation.body import Body, BodyPool
from codesign_bench.simulation.episode import ACTION_SIZE, CONTROL, Episode, EpisodeRecord, Outcome, Stage, TransformSteps
from codesign_bench.simulation.graphs import Decision, DesignTable, GraphBatch, Policy, Rollout, Truncation
from codesign_bench.tasks.base import Task


@dataclass(frozen=True)
class SlotState:
    """All that makes a slot go on, as plain values: an agent keeps its slots so while others use the sampler.

    - design: what the slot's episodes begin with
    - starts: state of its stream of simulator starts
    - episode: the open episode, as `Episode.state_dict` has it; None before the first one has begun
    """

    design: Design
    starts: Mapping[str, Any]
    episode: dict[str, Any] | None = None

    @staticmethod
    def fresh(design: Design, seed: np.random.SeedSequence) -> SlotState:
        return SlotState(design, np.random.default_rng(seed).bit_generator.state)

    @property
    def time(self) -> int:
        """Steps of the open episode so far."""
        return 0 if self.episode is None else int(self.episode["time"])

    def to_dict(self) -> dict[str, Any]:
        return {"design": self.design.to_dict(), "starts": self.starts, "episode": self.episode}

    @staticmethod
    def from_dict(state: dict[str, Any]) -> SlotState:
        return SlotState(Design.from_dict(state["design"]), state["starts"], state["episode"])


class Sampler:
    """A group of slots. Each slot runs one episode after the other, from its own starting design, with its own stream of
    simulator starts; the group has one stream of action noise. What is sampled depends on the group alone, not on where
    it runs.
    """

    def __init__(
        self,
        task: Task,
        slots: int,
        seed: np.random.SeedSequence,
        steps: TransformSteps | None = None,
        designs: Sequence[Design] | None = None,
        reset_seeds: Sequence[np.random.SeedSequence] | None = None,
    ) -> None:
        if slots < 1:
            raise ConfigError(f"A sampler was asked for {slots} slots; allowed are whole numbers from 1 up.")
        self.task, self.slots = task, slots
        self.rng = np.random.default_rng(child_seed(seed, 0))
        own_seeds = [child_seed(seed, 1 + slot) for slot in range(slots)]
        self._reset_rngs = [np.random.default_rng(s) for s in (reset_seeds or own_seeds)]
        self._designs = list(designs) if designs is not None else [task.initial_design] * slots
        if len(self._designs) != slots or len(self._reset_rngs) != slots:
            raise ConfigError(f"A sampler with {slots} slots needs as many designs and seeds.")
        pool = BodyPool(task)
        self._episodes = [Episode(task, steps or TransformSteps(), pool, slot) for slot in range(slots)]
        self._static: GraphBatch | None = None
        self._bodies = Bodies(task, [], [])
        self._place: dict[int, int] = {}
        self._active: list[int] = []
        self._measuring = False
        self._state_columns = task.features.state
        self._begin_all()

    def collect(self, policy: Policy, steps: int) -> Rollout:
        """Takes `steps` steps in every slot; episodes that are still open go on in the next call."""
        recorder = _Recorder(self.slots)
        for slot, episode in enumerate(self._episodes):
            recorder.new_design(slot, episode.design)
        for time in range(steps):
            graphs, decision = self._decide(policy)
            recorder.before_step(graphs, graphs.features[:, self._state_columns], decision)
            designs = [episode.design for episode in self._episodes]
            outcomes = self._act(decision)
            recorder.outcome += outcomes
            for slot, (_, terminated, truncated) in enumerate(outcomes):
                episode = self._episodes[slot]
                if truncated:
                    recorder.truncate(time, slot, episode.state())
                if terminated or truncated:
                    recorder.episodes.append(episode.record())
                    self._begin(slot)
                if episode.design is not designs[slot]:
                    recorder.new_design(slot, episode.design)
        final = self._observe()
        return recorder.rollout(self.task, final.stage, final.features[:, self._state_columns])

    def play(self, policy: Policy, after_step: Callable[[], None] = lambda: None) -> list[tuple[EpisodeRecord, Design]]:
        """One whole episode in every slot from its beginning, in the order of the slots, with the design that acted; slots
        that have ended wait for the others. Their records tell what was measured on the way."""
        records: dict[int, tuple[EpisodeRecord, Design]] = {}
        self._begin_all()
        self._measuring = True
        while self._active:
            _, decision = self._decide(policy)
            for slot, outcome in zip(self._active, self._act(decision), strict=True):
                if outcome.terminated or outcome.truncated:
                    records[slot] = self._episodes[slot].record(), self._episodes[slot].design
                    self._static = None
            self._active = [slot for slot in self._active if slot not in records]
            after_step()
        self._measuring = False
        self._begin_all()
        return [records[slot] for slot in range(self.slots)]

    def watch(self, policy: Policy) -> Iterator[tuple[Episode, Array]]:
        """One episode in the first slot, step by step: the episode as it is, and the actions that it takes next."""
        self._begin_all()
        self._active, episode, ended = [0], self._episodes[0], False
        while not ended:
            _, decision = self._decide(policy)
            yield episode, decision.of_slot[0]
            outcome = episode.act(decision.of_slot[0])
            ended, self._static = outcome.terminated or outcome.truncated, None
        self._begin_all()

    def _begin(self, slot: int) -> None:
        episode = self._episodes[slot]
        before = episode.stage, episode.design, episode.body
        episode.begin(self._designs[slot], self._reset_rngs[slot])
        self._note_change(slot, before)

    def _act(self, decision: _Actions) -> list[Outcome]:
        """One step in every active slot. Bodies that execute do so together."""
        together = self._bodies.step(decision.control, self._measuring) if self._place else None
        executed = together.each() if together is not None else []
        if together is not None and self._measuring:
            for slot, place in self._place.items():
                self._episodes[slot].measure(*together.of(place))
        outcomes = []
        for slot, actions in zip(self._active, decision.of_slot, strict=True):
            episode = self._episodes[slot]
            if slot in self._place:
                outcomes.append(episode.executed(*executed[self._place[slot]]))
            else:
                before = episode.stage, episode.design, episode.body
                outcomes.append(episode.act(actions))
                self._note_change(slot, before)
        return outcomes

    def _note_change(self, slot: int, before: tuple[Stage, Design, Body | None]) -> None:
        """The batch is gathered anew if a slot has another graph, stage or body; an old body may have been reset."""
        episode = self._episodes[slot]
        stage, design, body = before
        if episode.stage is not stage or episode.design is not design or episode.body is not body:
            self._static = None
        elif self._static is not None and slot in self._place:
            self._bodies.reread(self._place[slot])

    def _begin_all(self) -> None:
        for slot in range(self.slots):
            self._begin(slot)
        self._active, self._static = list(range(self.slots)), None

    def _decide(self, policy: Policy) -> tuple[GraphBatch, _Actions]:
        graphs = self._observe()
        decision = policy(graphs)
        actions, log_prob = decision if isinstance(decision, Decision) else (decision, None)
        if actions.shape != (graphs.num_nodes, ACTION_SIZE):
            raise ValueError(f"The policy returned actions of shape {actions.shape}; expected {(graphs.num_nodes, ACTION_SIZE)}.")
        control, bounds = np.asarray(actions, dtype=np.float64), graphs.offsets.tolist()
        of_slot = [control[first:last] for first, last in itertools.pairwise(bounds)]
        return graphs, _Actions(actions, log_prob, of_slot, np.ascontiguousarray(control[:, CONTROL]))

    def _observe(self) -> GraphBatch:
        """The graphs of all slots. What only depends on the designs and stages is kept until one of them changes."""
        if self._static is None:
            self._static = self._gather()
        graphs = self._static
        if self._place:
            self._bodies.observe(graphs.features[:, self._state_columns])
        graphs.time[:] = [self._episodes[slot].time for slot in self._active]
        return graphs

    def _gather(self) -> GraphBatch:
        active = [self._episodes[slot] for slot in self._active]
        table = DesignTable.of([episode.design for episode in active], [episode.topology for episode in active])
        bounds = table.offsets.tolist()
        bodies = {i: body for i, episode in enumerate(active) if (body := episode.acting_body) is not None}
        self._bodies = Bodies(self.task, list(bodies.values()), [slice(bounds[i], bounds[i + 1]) for i in bodies])
        self._place = {self._active[i]: place for place, i in enumerate(bodies)}
        return GraphBatch(
            features=self.task.features.features(table.depth, table.attributes),
            stage=np.array([episode.stage for episode in active], dtype=np.int64),
            time=np.zeros(len(active), dtype=np.int64),
            slot=np.array(self._active, dtype=np.int64),
            rng=self.rng,
            **vars(table),
        )

    # ---- stop and go on ----------------------------------------------------------------------------------------------

    def lend(self, slots: Sequence[SlotState]) -> None:
        """Gives every slot to an agent: it goes on with that agent's design, stream of starts and open episode, or begins its
        first one. The action noise stays the group's own."""
        if len(slots) != self.slots:
            raise ConfigError(f"A sampler of {self.slots} slots cannot lend {len(slots)}.")
        self._designs, self._static = [state.design for state in slots], None
        for slot, (state, rng) in enumerate(zip(slots, self._reset_rngs, strict=True)):
            rng.bit_generator.state = state.starts
            if state.episode is None:
                self._begin(slot)
            else:
                self._episodes[slot].load_state_dict(state.episode, state.design, rng)

    def take_back(self) -> list[SlotState]:
        """The slots as they are now, for `lend`."""
        parts = zip(self._designs, self._reset_rngs, self._episodes, strict=True)
        return [SlotState(design, rng.bit_generator.state, episode.state_dict()) for design, rng, episode in parts]

    def state_dict(self) -> dict[str, Any]:
        """Random streams and open episodes, as plain values."""
        return {"rng": self.rng.bit_generator.state, "slots": [slot.to_dict() for slot in self.take_back()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.lend([SlotState.from_dict(slot) for slot in state["slots"]])
        self.rng.bit_generator.state = state["rng"]


def child_seed(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """A numbered child of a seed. Unlike `seed.spawn` it always gives the same one."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))


class _Actions(NamedTuple):
    """A policy's decision, its actions [nodes, 7] slot by slot, and the controls [nodes] of all."""

    actions: Array
    log_prob: Array | None
    of_slot: list[Array]
    control: Array


class _Recorder:
    """Collects what happens and lays it out as a Rollout."""

    def __init__(self, slots: int) -> None:
        self.designs: list[Design] = []
        self.current = [0] * slots
        self.design: list[list[int]] = []
        self.stage: list[Array] = []
        self.node_offset: list[Array] = []
        self.nodes = 0
        self.state: list[Array] = []
        self.actions: list[Array] = []
        self.log_prob: list[Array] = []
        self.outcome: list[Outcome] = []
        self.truncations: list[Truncation] = []
        self.episodes: list[EpisodeRecord] = []
        self.slots = slots

    def new_design(self, slot: int, design: Design) -> None:
        self.current[slot] = len(self.designs)
        self.designs.append(design)

    def before_step(self, graphs: GraphBatch, state: Array, decision: _Actions) -> None:
        self.design.append(list(self.current))
        self.stage.append(graphs.stage.copy())
        self.node_offset.append(graphs.offsets[:-1] + self.nodes)
        self.nodes += graphs.num_nodes
        self.state.append(state.copy())
        self.actions.append(np.array(decision.actions, dtype=np.float32))
        given = decision.log_prob
        self.log_prob.append(np.zeros(self.slots, dtype=np.float32) if given is None else np.array(given, dtype=np.float32))

    def truncate(self, time: int, slot: int, state: Array | None) -> None:
        if state is not None:
            self.truncations.append(Truncation(time, slot, self.current[slot], state.astype(np.float32)))

    def rollout(self, task: Task, last_stage: Array, last_state: Array) -> Rollout:
        shape = (len(self.stage), self.slots)
        reward, terminated, truncated = np.array(self.outcome, dtype=np.float64).reshape(*shape, 3).transpose(2, 0, 1)
        return Rollout(
            designs=DesignTable.from_designs(self.designs, task.space),
            design=np.array(self.design, dtype=np.int64).reshape(shape),
            stage=np.array(self.stage, dtype=np.int64).reshape(shape),
            node_offset=np.array(self.node_offset, dtype=np.int64).reshape(shape),
            reward=reward.copy(),
            terminated=terminated.astype(bool),
            truncated=truncated.astype(bool),
            log_prob=np.array(self.log_prob, dtype=np.float32).reshape(shape),
            state=np.concatenate([np.zeros((0, task.state_size), np.float32), *self.state]),
            actions=np.concatenate([np.zeros((0, ACTION_SIZE), np.float32), *self.actions]),
            last_design=np.array(self.current, dtype=np.int64),
            last_stage=last_stage.copy(),
            last_state=last_state.copy(),
            truncations=tuple(self.truncations),
            episodes=tuple(self.episodes),
        )


def random_policy(graphs: GraphBatch) -> Array:
    """Uniform skeleton choices, small attribute changes and small controls: for tests, pictures and measurements."""
    actions = np.empty((graphs.num_nodes, ACTION_SIZE))
    actions[:, :6] = graphs.rng.uniform(-0.3, 0.3, (graphs.num_nodes, 6))
    actions[:, 6] = graphs.rng.integers(0, 3, graphs.num_nodes)
    return actions


__all__ = ["Sampler", "SlotState", "Stage", "random_policy"]
