"""A policy that designs and then controls: three sub-policies that share no weights, one for each stage of an episode."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array
from codesign_bench.design.space import DesignSpace
from codesign_bench.design.transform import ADD_JOINT, DEL_JOINT, NUM_SKELETON_ACTIONS
from codesign_bench.learning.acting import ForestCache, acting_network
from codesign_bench.learning.batch import NUM_STAGES, Steps
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.gaussian import log_density
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.vectors import Stretch, halves
from codesign_bench.simulation.episode import ACTION_SIZE, ATTRIBUTES, CONTROL, SKELETON, Stage
from codesign_bench.simulation.graphs import Decision, GraphBatch
from codesign_bench.tasks.base import Task

COLUMNS = {Stage.SKELETON: slice(SKELETON, SKELETON + 1), Stage.ATTRIBUTE: ATTRIBUTES, Stage.EXECUTION: slice(CONTROL, CONTROL + 1)}
"""Which columns of a node's action a stage reads."""


class SubPolicy(nn.Module):
    """One stage's policy: normalised node features -> one distribution per node, a categorical one without `log_std`.

    `normaliser`: of the columns that it reads, its own, or of all features, which it then shares.
    """

    def __init__(self, stage: Stage, columns: Array, network: nn.Module, log_std: Tensor | None, normaliser: Normaliser) -> None:
        super().__init__()
        self.stage, self.columns = stage, columns
        self.normaliser = normaliser
        self.network = network
        self.log_std = None if log_std is None else nn.Parameter(log_std)
        self.action_columns = COLUMNS[stage]

    def inputs(self, features: Array) -> Array:
        return normalised_columns(features, self.columns, self.normaliser)

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        """[nodes, columns] -> logits or means [nodes, outputs]"""
        result: Tensor = self.network(x, forest)
        return result


def normalised_columns(features: Array, columns: Array, normaliser: Normaliser) -> Array:
    """[nodes, columns] float32"""
    if len(normaliser.mean) == len(columns):
        own: Array = normaliser(features[:, columns])
        return own
    shared: Array = normaliser(features)[:, columns]
    return shared


def node_log_probs(output: Tensor, actions: Tensor, log_std: Tensor | None, columns: slice, illegal: Tensor | None) -> Tensor:
    """[nodes]: log-probability of each node's action ([nodes, 7]) under its categorical (no log_std) or Gaussian."""
    taken = actions[:, columns]
    if log_std is None:
        logits = output if illegal is None else output.masked_fill(illegal, -math.inf)
        return torch.log_softmax(logits, dim=1).gather(1, taken.long())[:, 0]
    z = (taken - output) * torch.exp(-log_std)
    return log_density(z, log_std, joint=True)


def illegal_choices(can_add: Array, can_delete: Array) -> Array:
    """[nodes, 3]: skeleton choices that would be taken for NoChange."""
    illegal = np.zeros((len(can_add), NUM_SKELETON_ACTIONS), dtype=bool)
    illegal[:, ADD_JOINT], illegal[:, DEL_JOINT] = ~can_add, ~can_delete
    return illegal


class StagePolicy(nn.Module):
    """A conditional policy: which sub-policy acts depends on the stage that a graph is in."""

    def __init__(self, task: Task, skeleton: SubPolicy, attribute: SubPolicy, execution: SubPolicy) -> None:
        super().__init__()
        self.space = task.space
        self.mask_illegal_actions = task.config.design.mask_illegal_actions
        self.skeleton, self.attribute, self.execution = skeleton, attribute, execution

    def of_stage(self, stage: int) -> SubPolicy:
        return (self.skeleton, self.attribute, self.execution)[stage]

    @property
    def stretches(self) -> tuple[Stretch, Stretch]:
        """Of the vector of its parameters: those of the design, and those of control."""
        return halves(self, self.execution)

    def acting(self, deterministic: bool = False) -> ActingPolicy:
        """A snapshot of the policy that acts."""
        return ActingPolicy(self, deterministic)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def prepare(self, steps: Steps) -> list[Tensor]:
        """Normalised inputs of every sub-policy, [nodes, columns]; rows of other stages are left at zero."""
        node_stage = np.repeat(steps.stage, steps.count)
        prepared = []
        for stage in range(NUM_STAGES):
            sub, mine = self.of_stage(stage), np.flatnonzero(node_stage == stage)
            x = np.zeros((len(node_stage), len(sub.columns)), dtype=np.float32)
            x[mine] = sub.inputs(steps.features[mine])
            prepared.append(torch.from_numpy(x))
        return prepared

    def log_prob(self, prepared: list[Tensor], steps: Steps, actions: Tensor, chosen: Array, forest: Forest, rows: Tensor) -> Tensor:
        stage = int(steps.stage[chosen[0]])
        sub = self.of_stage(stage)
        output = sub.forward(prepared[stage].index_select(0, rows), forest)
        return self.graph_log_prob(stage, output, steps, actions, forest, rows)

    def graph_log_prob(self, stage: int, output: Tensor, steps: Steps, actions: Tensor, forest: Forest, rows: Tensor) -> Tensor:
        """[graphs]: from the output of a sub-policy."""
        sub, illegal = self.of_stage(stage), self._illegal(stage, steps, rows)
        node_log_prob = node_log_probs(output, actions.index_select(0, rows), sub.log_std, sub.action_columns, illegal)
        return node_log_prob.new_zeros(forest.num_graphs).index_add(0, forest.graph, node_log_prob)

    def _illegal(self, stage: int, steps: Steps, rows: Tensor) -> Tensor | None:
        """[nodes, 3]: skeleton choices that may not be made, if the task says so."""
        if stage != Stage.SKELETON or not self.mask_illegal_actions:
            return None
        where = rows.cpu().numpy()
        return torch.from_numpy(illegal_choices(steps.can_add[where], steps.can_delete[where])).to(rows.device)

    def update_normalisers(self, steps: Steps) -> None:
        """Adds a batch to the statistics of sub-policies that have their own."""
        node_stage = np.repeat(steps.stage, steps.count)
        for stage in range(NUM_STAGES):
            sub = self.of_stage(stage)
            sub.normaliser.update(steps.features[node_stage == stage][:, sub.columns])


class ActingPolicy:
    """The policy as it acts, from a copy of its weights; picklable, so that workers can have it.

    Deterministic: the most likely skeleton choice, the mean attributes and controls.
    """

    def __init__(self, policy: StagePolicy, deterministic: bool) -> None:
        self.space, self.deterministic, self.masked = policy.space, deterministic, policy.mask_illegal_actions
        self._stages = [_ActingStage(policy.of_stage(stage), policy.space) for stage in Stage]

    @torch.inference_mode()
    def __call__(self, graphs: GraphBatch) -> Decision:
        actions = np.zeros((graphs.num_nodes, ACTION_SIZE), dtype=np.float32)
        log_prob = np.zeros(graphs.num_graphs, dtype=np.float32)
        for stage, part in enumerate(self._stages):
            chosen = np.flatnonzero(graphs.stage == stage)
            if len(chosen):
                table, rows = part.forests.get(graphs, chosen)
                inputs = normalised_columns(graphs.features[rows], part.columns, part.normaliser)
                output: Array = part.network(torch.from_numpy(inputs), table).numpy()
                if self.masked and stage == Stage.SKELETON:
                    output[illegal_choices(graphs.can_add[rows], graphs.can_delete[rows])] = -np.inf
                taken, node_log_prob = part.choose(output, None if self.deterministic else graphs.rng)
                actions[rows, part.action_columns] = taken
                log_prob[chosen] = np.bincount(table.graph, weights=node_log_prob, minlength=len(chosen))
        return Decision(actions, log_prob)


class _ActingStage:
    """One sub-policy's share of an ActingPolicy."""

    def __init__(self, sub: SubPolicy, space: DesignSpace) -> None:
        self.columns, self.action_columns = sub.columns, sub.action_columns
        self.normaliser = copy.deepcopy(sub.normaliser)
        self.network = acting_network(sub.network)
        self.log_std: Array | None = None if sub.log_std is None else sub.log_std.detach().cpu().numpy().copy()
        self.forests = ForestCache(space)

    def choose(self, output: Array, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Actions [nodes, columns of the stage] and their log-probabilities [nodes]; without `rng` the most likely ones."""
        if self.log_std is None:
            noise = 0.0 if rng is None else rng.gumbel(size=output.shape)
            choice = (output + noise).argmax(axis=1, keepdims=True)
            shifted = output - output.max(axis=1, keepdims=True)
            log_prob = np.take_along_axis(shifted, choice, axis=1)[:, 0] - np.log(np.exp(shifted).sum(axis=1))
            return choice, log_prob
        z = np.zeros_like(output) if rng is None else rng.standard_normal(output.shape, dtype=np.float32)
        return output + z * np.exp(self.log_std), log_density(z, self.log_std, joint=True)
