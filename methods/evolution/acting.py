"""Many species that act in one batch: their networks are stacked, so that each layer is one batched product.

The species of a batch differ in weights, and in how many rows they have; shorter ones are padded, and what comes out of a
padding is never read. Action noise comes from a stream for each species, whoever acts beside it.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from codesign_bench.arrays import Array
from codesign_bench.learning import products
from codesign_bench.learning.acting import MLPLayers, graph_conv_weights, mlp_layers, stacked_mlp
from codesign_bench.learning.actor_critic import GraphController
from codesign_bench.learning.gaussian import log_density
from codesign_bench.learning.networks import GNN, JointMLP
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.simulation.episode import ACTION_SIZE, CONTROL
from codesign_bench.simulation.graphs import Decision, GraphBatch
from methods.evolution.controller import Controller, FlatActor

Seeds = Sequence[np.random.SeedSequence] | None
"""Of the action noise of each species; None: no noise."""


def stacked_policy(controllers: Sequence[Controller], slots: Sequence[int], seeds: Seeds) -> StackedPolicy:
    """The controllers acting side by side in a sampler whose first slots[0] slots belong to the first one, and so on, from a
    copy of their weights. Without seeds they act deterministically, with the mean of their controls."""
    actors = [controller.actor for controller in controllers]
    normaliser = [controller.normaliser for controller in controllers]
    graph = [actor for actor in actors if isinstance(actor, GraphController)]
    flat = [actor for actor in actors if isinstance(actor, FlatActor)]
    if len(graph) == len(actors):
        return GraphPolicy(graph, normaliser, slots, seeds)
    assert len(flat) == len(actors)
    return FlatPolicy(flat, normaliser, slots, seeds)


def single_policy(controller: Controller) -> StackedPolicy:
    """One controller, deterministic, for any number of graphs."""
    return stacked_policy([controller], [1], None)


@dataclass(frozen=True)
class _Layout:
    """What follows from the designs of a batch of graphs alone.

    - joints: [joints], rows of the nodes with a motor
    - graph: [joints], which graph each belongs to
    - counts: [species], how many each species has
    - log_std: [joints]
    - rows: of each species in the stack, padding included
    - inputs: where in the stack the rows of the batch go (graphs), or which row stands in each place of it (flat views)
    - outputs: [joints], where in the result the mean of each joint stands
    - neighbours, offsets: of every row of the stack, in compressed rows (graphs)
    """

    joints: Array
    graph: Array
    counts: list[int]
    log_std: Array
    rows: int
    inputs: Array
    outputs: Array
    neighbours: Tensor = field(default_factory=Tensor)
    offsets: Tensor = field(default_factory=Tensor)


class StackedPolicy(ABC):
    """Species side by side; see `stacked_policy`."""

    def __init__(self, species: int, slots: Sequence[int], seeds: Seeds) -> None:
        self.species, self.slots = species, list(slots)
        self._rngs = None if seeds is None else [np.random.default_rng(seed) for seed in seeds]
        self._graphs: GraphBatch | None = None
        self._layout: _Layout | None = None

    @torch.inference_mode()
    @products.using("mkl")
    def __call__(self, graphs: GraphBatch) -> Decision:
        if graphs is not self._graphs or self._layout is None:
            self._graphs, self._layout = graphs, self._arrange(graphs, self._species_of_graph(graphs))
        layout = self._layout
        control = self._means(graphs, layout)
        z = np.zeros_like(control)
        if self._rngs is not None:
            z = np.concatenate([rng.standard_normal(n, dtype=np.float32) for rng, n in zip(self._rngs, layout.counts, strict=True)])
        actions = np.zeros((graphs.num_nodes, ACTION_SIZE), dtype=np.float32)
        actions[layout.joints, CONTROL] = control + z * np.exp(layout.log_std)
        log_prob = np.bincount(layout.graph, weights=log_density(z, layout.log_std), minlength=graphs.num_graphs)
        return Decision(actions, log_prob)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_graphs": None, "_layout": None}

    def _species_of_graph(self, graphs: GraphBatch) -> Array:
        if self.species == 1:
            return np.zeros(graphs.num_graphs, dtype=np.int64)
        return np.repeat(np.arange(self.species), self.slots)

    @abstractmethod
    def _arrange(self, graphs: GraphBatch, species: Array) -> _Layout: ...

    @abstractmethod
    def _means(self, graphs: GraphBatch, layout: _Layout) -> Array:
        """[joints] float32"""


class GraphPolicy(StackedPolicy):
    """Graph networks: the rows of a species are the nodes of all its graphs."""

    def __init__(self, actors: Sequence[GraphController], normalisers: Sequence[Normaliser], slots: Sequence[int], seeds: Seeds) -> None:
        super().__init__(len(actors), slots, seeds)
        self._normalise = _Normalisers(normalisers)
        gnns = [actor.network.gnn for actor in actors if actor.network.gnn is not None]
        self._gnn = _StackedGNN(gnns) if all(gnn.plain for gnn in gnns) else _GNNs(gnns)
        self._head = _stacked_layers([actor.network.head for actor in actors])
        self._log_std: Array = _stack([actor.log_std for actor in actors]).numpy()[:, 0]

    def _arrange(self, graphs: GraphBatch, species: Array) -> _Layout:
        count = np.diff(graphs.offsets)
        graph_of_row = np.repeat(np.arange(graphs.num_graphs), count)
        species_of_row = species[graph_of_row]
        rows_of_species = np.bincount(species_of_row, minlength=self.species)
        rows = int(rows_of_species.max())
        first = np.cumsum(rows_of_species) - rows_of_species
        place = species_of_row * rows + np.arange(len(species_of_row)) - first[species_of_row]
        joints = np.flatnonzero(graphs.parents >= 0)
        target, source = place[graphs.edges]
        order = np.argsort(target, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=self.species * rows))])
        return _Layout(
            joints=joints,
            graph=graph_of_row[joints],
            counts=np.bincount(species_of_row[joints], minlength=self.species).tolist(),
            log_std=self._log_std[species_of_row[joints]],
            rows=rows,
            inputs=place,
            outputs=place[joints],
            neighbours=torch.from_numpy(source[order]),
            offsets=torch.from_numpy(offsets),
        )

    def _means(self, graphs: GraphBatch, layout: _Layout) -> Array:
        padded = np.zeros((self.species * layout.rows, graphs.features.shape[1]), dtype=np.float32)
        padded[layout.inputs] = graphs.features
        x = torch.from_numpy(self._normalise(padded.reshape(self.species, layout.rows, -1)))
        means: Array = stacked_mlp(self._gnn(x, layout), self._head).numpy().reshape(-1)[layout.outputs]
        return means


class FlatPolicy(StackedPolicy):
    """MLPs on flat views: the rows of a species are its graphs, padded to the longest view."""

    def __init__(self, actors: Sequence[FlatActor], normalisers: Sequence[Normaliser], slots: Sequence[int], seeds: Seeds) -> None:
        super().__init__(len(actors), slots, seeds)
        self._orders = [actor.view.order for actor in actors]
        self._nodes = max(actor.view.nodes for actor in actors)
        self._normalise = _Normalisers(normalisers)
        self._head = _stacked_layers([actor.network for actor in actors])
        self._log_std: list[Array] = [actor.log_std.detach().cpu().numpy().copy() for actor in actors]

    def _arrange(self, graphs: GraphBatch, species: Array) -> _Layout:
        rows = int(np.bincount(species, minlength=self.species).max())
        inputs = np.full((self.species, rows, self._nodes), graphs.num_nodes)
        joints, outputs, log_std, which = [], [], [], []
        used = [0] * self.species
        for graph, (mine, first) in enumerate(zip(species.tolist(), graphs.offsets[:-1].tolist(), strict=True)):
            order, row = self._orders[mine], used[mine]
            used[mine] += 1
            inputs[mine, row, : len(order)] = first + order
            joints.append(first + order[1:])
            outputs.append((mine * rows + row) * (self._nodes - 1) + np.arange(len(order) - 1))
            log_std.append(self._log_std[mine])
            which.append(np.full(len(order) - 1, graph))
        graph_of_joint = np.concatenate(which)
        return _Layout(
            joints=np.concatenate(joints),
            graph=graph_of_joint,
            counts=np.bincount(species[graph_of_joint], minlength=self.species).tolist(),
            log_std=np.concatenate(log_std),
            rows=rows,
            inputs=inputs,
            outputs=np.concatenate(outputs),
        )

    def _means(self, graphs: GraphBatch, layout: _Layout) -> Array:
        with_padding = np.concatenate([graphs.features, np.zeros((1, graphs.features.shape[1]), dtype=np.float32)])
        views = with_padding[layout.inputs].reshape(self.species, layout.rows, -1)
        means: Array = stacked_mlp(torch.from_numpy(self._normalise(views)), self._head).numpy().reshape(-1)[layout.outputs]
        return means


# ---- stacks -------------------------------------------------------------------------------------------------------------


class _Normalisers:
    """Normalisers side by side: [species, rows, size], each species with its own statistics, as Normaliser computes it."""

    def __init__(self, normalisers: Sequence[Normaliser]) -> None:
        size = max(len(n.mean) for n in normalisers)
        self._mean, self._scale = np.zeros((len(normalisers), 1, size)), np.zeros((len(normalisers), 1, size))
        self._clip = np.array([n.clip for n in normalisers])[:, None, None]
        for i, n in enumerate(normalisers):
            self._mean[i, 0, : len(n.mean)], self._scale[i, 0, : len(n.mean)] = n.mean, n.scale

    def __call__(self, features: Array) -> Array:
        out = (features - self._mean) * self._scale
        return np.clip(out, -self._clip, self._clip, out=out).astype(np.float32)


class _StackedGNN:
    """GNNs of GraphConv layers side by side: [species, rows, in] -> [species, rows, out]."""

    def __init__(self, gnns: Sequence[GNN]) -> None:
        self._embed = _stack([gnn.embed.bias for gnn in gnns])[:, None], _stack([gnn.embed.weight.t() for gnn in gnns])
        self._layers = []
        for convs in zip(*[gnn.layers for gnn in gnns], strict=True):
            bias, neighbour, own = (_stack(parts) for parts in zip(*map(graph_conv_weights, convs), strict=True))
            self._layers.append((bias[:, None], neighbour, own))

    def __call__(self, x: Tensor, layout: _Layout) -> Tensor:
        x = torch.baddbmm(self._embed[0], x, self._embed[1])
        for bias, neighbour, own in self._layers:
            summed = torch.embedding_bag(x.flatten(0, 1), layout.neighbours, layout.offsets, False, 0, False, None, True)[0]
            x = torch.baddbmm(bias, summed.view_as(x), neighbour).baddbmm_(x, own).relu_()
        return x


class _GNNs:
    """GNNs of any other layers, one after the other, through copies of their modules."""

    def __init__(self, gnns: Sequence[GNN]) -> None:
        self._gnns = [copy.deepcopy(gnn).cpu() for gnn in gnns]

    def __call__(self, x: Tensor, layout: _Layout) -> Tensor:
        degree = layout.offsets.diff().view(len(x), layout.rows)
        neighbours = layout.neighbours.split(degree.sum(1).tolist())
        results = []
        for i, gnn in enumerate(self._gnns):
            edge_index = torch.stack([neighbours[i] - i * layout.rows, torch.arange(layout.rows).repeat_interleave(degree[i])])
            results.append(gnn(x[i], edge_index))
        return torch.stack(results)


def _stacked_layers(mlps: Sequence[JointMLP]) -> MLPLayers:
    """MLPs of the same depth side by side, padded to the same widths."""
    layers = zip(*map(mlp_layers, mlps), strict=True)
    return [(_stack([weight[0] for weight, _ in layer]), _stack([shift[0] for _, shift in layer])) for layer in layers]


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    """[species, ...] on the CPU, padded with zeros at the end of each dimension."""
    parts = [tensor.detach().cpu() for tensor in tensors]
    shape = [max(part.shape[i] for part in parts) for i in range(parts[0].dim())]
    result = torch.zeros(len(parts), *shape)
    for target, part in zip(result, parts, strict=True):
        target[tuple(slice(0, size) for size in part.shape)] = part
    return result
