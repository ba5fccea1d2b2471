"""Graph mutation with uncertainty (GM-UC): more mutants than places, and a graph network that guesses which ones to train.

The network sees designs only. Its dropout, fixed for a generation, makes it one sample of what it could believe (Thompson
sampling). It learns the latest fitness of every species that was ever trained, standardised within the generation that
measured it: fitness drifts upwards as controllers learn, and that is no merit of a design.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.design.space import DesignSpace
from codesign_bench.learning.batch import Steps, steps_of
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.memory import without_compiler_folder
from codesign_bench.learning.networks import GNN
from codesign_bench.simulation.graphs import DesignTable
from codesign_bench.structured import Count, NotNegative, Positive
from codesign_bench.tasks.features import FeatureLayout

WIDTH = 64
LAYERS = 3
DROPOUT = 0.5
ROUNDING = 1e-9
"""Deviations of fitness below this share of it are rounding, and no merit of a design."""


@dataclass(frozen=True)
class GMUCConfig:
    """pool: candidates for each child; steps, batch, lr: of the surrogate's training in every generation; temperature: of
    Gumbel noise on the predictions, 0 for none."""

    enabled: bool
    pool: Count
    steps: Count
    batch: Count
    lr: Positive
    temperature: NotNegative


@dataclass(frozen=True)
class Record:
    """The latest label of a species."""

    design: Design
    label: float


class Network(nn.Module):
    """Depth and attributes of the nodes -> GraphConv layers -> at the root, an MLP with a linear output."""

    def __init__(self, space: DesignSpace) -> None:
        super().__init__()
        self.gnn = GNN(FeatureLayout(space.num_depths, 0).size, (WIDTH,) * LAYERS)
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)])

    def forward(self, x: Tensor, forest: Forest, masks: Sequence[Tensor]) -> Tensor:
        """[nodes, features] -> [graphs]; a mask for the input of each of the three output layers."""
        h = self.gnn(x, forest, depth=0)
        for i, (layer, mask) in enumerate(zip(self.layers, masks, strict=True)):
            h = layer(h * mask)
            if i < LAYERS - 1:
                h = torch.tanh(h)
        result: Tensor = h[:, 0]
        return result


class Surrogate:
    """The network, its optimiser and what it learns from."""

    def __init__(self, space: DesignSpace, config: GMUCConfig, seed: int) -> None:
        self.space, self.config = space, config
        torch.manual_seed(seed)
        self.network = Network(space)
        with without_compiler_folder():
            self.optimiser = torch.optim.Adam(self.network.parameters(), lr=config.lr)
        self.records: dict[int, Record] = {}

    def note(self, measured: Sequence[tuple[int, Design, float]]) -> None:
        """One generation's species, with their fitness. A dead one counts as the worst living one."""
        fitness = np.array([value for _, _, value in measured])
        alive = np.isfinite(fitness)
        fitness = np.where(alive, fitness, fitness[alive].min() if alive.any() else 0.0)
        deviation = fitness.std()
        varies = deviation > ROUNDING * np.abs(fitness).max()  # the mean of equal numbers need not equal them
        labels = (fitness - fitness.mean()) / deviation if varies else np.zeros(len(fitness))
        for (number, design, _), label in zip(measured, labels.tolist(), strict=True):
            self.records[number] = Record(design, label)

    def train(self, rng: np.random.Generator) -> None:
        """Some steps of Adam on the squared error, with ordinary dropout."""
        records = list(self.records.values())
        steps = _steps([record.design for record in records], self.space)
        labels = torch.tensor([record.label for record in records])
        for _ in range(self.config.steps):
            chosen = rng.integers(len(records), size=min(self.config.batch, len(records)))
            masks = [torch.from_numpy((rng.random((len(chosen), WIDTH)) >= DROPOUT) / (1 - DROPOUT)).float() for _ in range(LAYERS)]
            x, forest = _inputs(steps, chosen)
            loss = ((self.network(x, forest, masks) - labels[torch.from_numpy(chosen)]) ** 2).mean()
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()

    @torch.no_grad()
    def predict(self, designs: Sequence[Design], masks: Sequence[Tensor]) -> Array:
        """[designs]: one sample of the fitness that each may have."""
        x, forest = _inputs(_steps(designs, self.space), np.arange(len(designs)))
        result: Array = self.network(x, forest, masks).numpy().astype(np.float64)
        return result

    def state_dict(self) -> dict[str, Any]:
        records = {number: {"design": r.design.to_dict(), "label": r.label} for number, r in self.records.items()}
        return {"network": self.network.state_dict(), "optimiser": self.optimiser.state_dict(), "records": records}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.records = {number: Record(Design.from_dict(r["design"]), r["label"]) for number, r in state["records"].items()}


def _steps(designs: Sequence[Design], space: DesignSpace) -> Steps:
    """Designs as graphs without any simulator state."""
    table = DesignTable.from_designs(designs, space)
    stateless = np.zeros((int(table.offsets[-1]), 0), dtype=np.float32)
    return steps_of(table, np.arange(len(designs)), np.zeros(len(designs), dtype=np.int64), stateless, space)


def _inputs(steps: Steps, chosen: Array) -> tuple[Tensor, Forest]:
    forest, rows = steps.forest(chosen)
    return torch.from_numpy(steps.features[rows]), forest


def half_masks(rng: np.random.Generator) -> list[Tensor]:
    """One mask for each output layer: exactly half of the units on, doubled."""
    masks = []
    for _ in range(LAYERS):
        mask = np.zeros(WIDTH, dtype=np.float32)
        mask[rng.permutation(WIDTH)[: WIDTH // 2]] = 1 / DROPOUT
        masks.append(torch.from_numpy(mask))
    return masks


def top(predictions: Array, number: int, temperature: float, rng: np.random.Generator) -> list[int]:
    """Positions of the best ones, in increasing order; with a temperature, a sample without replacement from the softmax of
    prediction / temperature."""
    score = predictions if temperature == 0 else predictions / temperature + rng.gumbel(size=len(predictions))
    return sorted(np.argsort(-score, kind="stable")[:number].tolist())
