"""Transform2Act's networks and its update, written down as the paper says them, to compare the fast ones with.

PyTorch Geometric's GraphConv, a mask for every joint index, the value head on all nodes of which the root's is read, autograd
for all gradients, in float64 (or any other type). Nothing is shared with codesign_bench.learning but the weights, which
`slow_policy` and `slow_value` copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import GraphConv, global_add_pool

SKELETON, ATTRIBUTE, EXECUTION = 0, 1, 2
ACTION_COLUMNS = {SKELETON: [6], ATTRIBUTE: [1, 2, 3, 4, 5], EXECUTION: [0]}


@dataclass(frozen=True)
class Step:
    """One graph: features [nodes, size], edge_index [2, edges], joint_index [nodes], actions [nodes, 7], illegal choices [nodes, 3]."""

    stage: Any
    features: Tensor
    edge_index: Tensor
    joint_index: Tensor
    actions: Tensor
    illegal: Tensor


@dataclass(frozen=True)
class Graphs(Step):
    """Steps side by side, as PyTorch Geometric does it: nodes concatenated, edges shifted; `batch` [nodes] says whose a node is,
    `root` [steps] is the row of each step's root, and the stage is a Tensor [steps]."""

    batch: Tensor
    root: Tensor


def collate(steps: Sequence[Step]) -> Graphs:
    sizes = [len(step.features) for step in steps]
    root = np.cumsum([0, *sizes[:-1]])
    return Graphs(
        stage=torch.tensor([step.stage for step in steps]),
        features=torch.cat([step.features for step in steps]),
        edge_index=torch.cat([step.edge_index + int(first) for step, first in zip(steps, root, strict=True)], dim=1),
        joint_index=torch.cat([step.joint_index for step in steps]),
        actions=torch.cat([step.actions for step in steps]),
        illegal=torch.cat([step.illegal for step in steps]),
        batch=torch.repeat_interleave(torch.arange(len(steps)), torch.tensor(sizes)),
        root=torch.from_numpy(root),
    )


def steps_of(rollout: Any, task: Any, dtype: torch.dtype = torch.float64) -> tuple[list[Step], list[Step]]:
    """The steps of a rollout, [time, slots] flattened, and the states that bootstrap it: the slots' last, then those cut by a
    time limit (their actions are zeros)."""
    nodes = np.diff(rollout.designs.offsets)

    def build(designs: Any, stages: Any, states: Any, actions: Any) -> list[Step]:
        return [_step(rollout, task, *each, dtype) for each in zip(designs, stages, states, actions, strict=True)]

    def split(rows: Any, designs: Any) -> list[Any]:
        return np.split(rows, np.cumsum(nodes[designs])[:-1])

    design, last, cut = rollout.design.ravel(), rollout.last_design, rollout.truncations
    taken = build(design, rollout.stage.ravel(), split(rollout.state, design), split(rollout.actions, design))
    ends = [*last, *[c.design for c in cut]]
    states = [*split(rollout.last_state, last), *[c.state for c in cut]]
    return taken, build(ends, [*rollout.last_stage, *[EXECUTION] * len(cut)], states, [np.zeros((nodes[d], 7)) for d in ends])


def _step(rollout: Any, task: Any, design: int, stage: int, state: Any, actions: Any, dtype: torch.dtype) -> Step:
    table = rollout.designs
    nodes = slice(table.offsets[design], table.offsets[design + 1])
    parents = table.parents[nodes]
    edges = [(int(p), i) for i, p in enumerate(parents) if p >= 0]
    edges += [(child, parent) for parent, child in edges]
    depth = np.eye(task.space.num_depths)[table.depth[nodes]]
    nothing = np.zeros(len(parents), dtype=bool)
    features = np.concatenate([depth, state, table.attributes[nodes].astype(np.float32)], axis=1)  # as all features
    return Step(
        stage=int(stage),
        features=torch.tensor(features, dtype=dtype),
        edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t(),
        joint_index=torch.tensor(table.joint_index[nodes]),
        actions=torch.tensor(actions, dtype=dtype),
        illegal=torch.tensor(np.stack([nothing, ~table.can_add[nodes], ~table.can_delete[nodes]], axis=1)),
    )


class Normalise(nn.Module):
    """(x - mean) / std within +-5; 0 where a feature does not vary; the identity before anything was seen."""

    def __init__(self, normaliser: Any) -> None:
        super().__init__()
        self.seen = normaliser.count > 0
        self.mean = torch.tensor(normaliser.mean)
        self.std = torch.tensor(np.sqrt(normaliser.squares / max(normaliser.count, 1)))

    def forward(self, x: Tensor) -> Tensor:
        if not self.seen:
            return x
        return torch.where(self.std < 1e-4, 0.0, (x - self.mean) / self.std).clamp(-5, 5).to(x.dtype)


class SlowGNN(nn.Module):
    def __init__(self, inputs: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, sizes[0])
        self.convs = nn.ModuleList(GraphConv(a, b, aggr="add") for a, b in zip([sizes[0], *sizes[:-1]], sizes, strict=True))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.embed(x)
        for conv in self.convs:
            x = torch.relu(conv(x, edge_index))
        return x


class SlowMLP(nn.Module):
    """Tanh layers and a linear output, with weights [joints, in, out] of which a node uses its joint's; one joint: all nodes share."""

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
        super().__init__()
        self.weights = nn.ParameterList(torch.empty_like(w) for w in weights)
        self.biases = nn.ParameterList(torch.empty_like(b) for b in biases)

    def forward(self, x: Tensor, joint_index: Tensor) -> Tensor:
        weights, biases = [w.unbind() for w in self.weights], [b.unbind() for b in self.biases]
        if len(weights[0]) == 1:
            joint_index = torch.zeros_like(joint_index)
        out = x.new_zeros(len(x), self.weights[-1].shape[2])
        for joint in joint_index.unique().tolist():
            mask = joint_index == joint
            h = x[mask]
            for layer in range(len(weights)):
                h = (torch.tanh(h) if layer > 0 else h) @ weights[layer][joint] + biases[layer][joint]
            out[mask] = h
        return out


class SlowSubPolicy(nn.Module):
    def __init__(self, sub: Any, task: Any, masked: bool) -> None:
        super().__init__()
        self.stage, self.masked = int(sub.stage), masked
        self.depths, self.state_size = task.space.num_depths, task.state_size
        self.normalise = Normalise(sub.normaliser)
        gnn = sub.network.gnn
        self.log_std = None if sub.log_std is None else nn.Parameter(torch.empty_like(sub.log_std))
        self.gnn = None if gnn is None else SlowGNN(gnn.embed.in_features, [layer.out_channels for layer in gnn.layers])
        self.head = SlowMLP(sub.network.head.weights, sub.network.head.biases)

    def inputs(self, features: Tensor) -> Tensor:
        """The transform policies see no simulator state."""
        if self.stage != EXECUTION:
            features = torch.cat([features[:, : self.depths], features[:, self.depths + self.state_size :]], dim=1)
        return self.normalise(features)

    def output(self, graphs: Graphs) -> Tensor:
        x = self.inputs(graphs.features)
        return self.head(x if self.gnn is None else self.gnn(x, graphs.edge_index), graphs.joint_index)

    def log_prob(self, graphs: Graphs) -> Tensor:
        output, taken = self.output(graphs), graphs.actions[:, ACTION_COLUMNS[self.stage]]
        if self.stage == SKELETON:
            output = output.masked_fill(graphs.illegal, -math.inf) if self.masked else output
            per_node = torch.distributions.Categorical(logits=output).log_prob(taken[:, 0].long())
        else:
            per_node = torch.distributions.Normal(output, self.log_std.exp()).log_prob(taken).sum(1)
        return global_add_pool(per_node, graphs.batch, len(graphs.stage))


class SlowPolicy(nn.Module):
    def __init__(self, policy: Any, task: Any) -> None:
        super().__init__()
        masked = task.config.design.mask_illegal_actions
        self.stages = nn.ModuleList(SlowSubPolicy(sub, task, masked) for sub in (policy.skeleton, policy.attribute, policy.execution))

    def log_prob(self, steps: Sequence[Step]) -> Tensor:
        result = steps[0].features.new_zeros(len(steps))
        for stage, sub in enumerate(self.stages):
            mine = [i for i, step in enumerate(steps) if step.stage == stage]
            if mine:
                result[mine] = sub.log_prob(collate([steps[i] for i in mine]))
        return result


class SlowValue(nn.Module):
    def __init__(self, value: Any) -> None:
        super().__init__()
        gnn = value.network.gnn
        self.normalise = Normalise(value.normaliser)
        self.gnn = SlowGNN(gnn.embed.in_features, [layer.out_channels for layer in gnn.layers])
        self.head = SlowMLP(value.network.head.weights, value.network.head.biases)

    def inputs(self, graphs: Graphs) -> Tensor:
        stage = torch.nn.functional.one_hot(graphs.stage[graphs.batch], 3)
        return self.normalise(torch.cat([graphs.features, stage.to(graphs.features.dtype)], dim=1))

    def values(self, graphs: Graphs) -> Tensor:
        of_all_nodes = self.head(self.gnn(self.inputs(graphs), graphs.edge_index), graphs.joint_index)
        return of_all_nodes[graphs.root, 0]


def slow_policy(policy: Any, task: Any, dtype: torch.dtype = torch.float64) -> SlowPolicy:
    return _with_weights(SlowPolicy(policy, task).to(dtype), policy)


def slow_value(value: Any, dtype: torch.dtype = torch.float64) -> SlowValue:
    return _with_weights(SlowValue(value).to(dtype), value)


def _with_weights(slow: Any, fast: nn.Module) -> Any:
    """Both list their parameters in the same order: log std, embedding, GraphConv layers, the head's weights, its biases."""
    for a, b in zip(slow.parameters(), fast.parameters(), strict=True):
        assert a.shape == b.shape
        a.data.copy_(b.data)
    return slow


def adam(module: nn.Module, lr: float) -> torch.optim.Adam:
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return torch.optim.Adam(module.parameters(), lr=lr)


def slow_learning_pass(
    networks: tuple[SlowPolicy, SlowValue], optimisers: tuple[torch.optim.Optimizer, torch.optim.Optimizer], steps: Sequence[Step],
    old_log_prob: Tensor, advantage: Tensor, target: Tensor, minibatches: Sequence[Any], clip: float = 0.2, gradient_clip: float = 40.0
) -> None:  # fmt: skip
    """One pass of PPO over a batch: `minibatches` lists the steps of each, the three before it are [steps]."""
    (policy, value), (policy_optimiser, value_optimiser) = networks, optimisers
    for minibatch in minibatches:
        chosen = [steps[i] for i in minibatch]
        ratio = torch.exp(policy.log_prob(chosen) - old_log_prob[minibatch])
        surrogate = torch.min(ratio * advantage[minibatch], ratio.clamp(1 - clip, 1 + clip) * advantage[minibatch])
        policy_optimiser.zero_grad(set_to_none=False)
        (-surrogate.mean()).backward()
        nn.utils.clip_grad_norm_(policy.parameters(), gradient_clip)
        policy_optimiser.step()

        value_optimiser.zero_grad(set_to_none=False)
        ((value.values(collate(chosen)) - target[minibatch]) ** 2).mean().backward()
        value_optimiser.step()
