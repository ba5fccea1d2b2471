"""Controllers of one species: a graph network that fits any design, or a plain MLP that fits one skeleton.

Both are a policy, a value network and one normaliser of what they see. The root has no motor, so it has no action.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.learning.actor_critic import GraphController, GraphCritic
from codesign_bench.learning.batch import Steps
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.gaussian import log_density
from codesign_bench.learning.networks import JointMLP, NetworkConfig, Sizes, ValueConfig
from codesign_bench.learning.normaliser import Normaliser
from codesign_bench.learning.value_scale import ValueScale
from codesign_bench.simulation.episode import CONTROL
from codesign_bench.tasks.base import Task


@dataclass(frozen=True, kw_only=True)
class ControllerConfig(NetworkConfig):
    """Without a gnn, an MLP that reads all nodes of its skeleton."""

    where = "method.controller"
    log_std: float


class Controller:
    """What a species learns: `actor` and `critic` as PPO wants them, and the normaliser that they share.

    The normaliser gets the statistics of a batch when the next one is about to be sampled, not when the batch was learned from: in
    between the controller is evaluated, and it must be the one that learned. This matters most after a first batch, which is
    sampled and learned from without normalisation; for strict ESS there is no other.
    """

    def __init__(self, design: Design, task: Task, config: ControllerConfig, value: ValueConfig, seed: int) -> None:
        torch.manual_seed(seed)
        self.actor: GraphController | FlatActor
        self.critic: GraphCritic | FlatCritic
        if config.gnn is not None:
            self.normaliser = Normaliser(task.features.size)
            self.actor = GraphController(self.normaliser, 1, config, "mlp", "linear", config.log_std)
            self.critic = GraphCritic(self.normaliser, value)
        else:
            view = FlatView(design, task)
            self.normaliser = Normaliser(view.size)
            self.actor = FlatActor(view, self.normaliser, config.mlp, config.log_std)
            self.critic = FlatCritic(view, self.normaliser, value.mlp)
        self.statistics = Normaliser(len(self.normaliser.mean))
        """Of all batches so far."""

    def note(self, steps: Steps) -> None:
        """Adds a batch to the statistics."""
        self.statistics.update(self.actor.features(steps))

    def renew_normaliser(self) -> None:
        """To the statistics of all batches so far; before the next one is sampled."""
        self.normaliser.set_extra_state(self.statistics.get_extra_state())

    def state_dict(self) -> dict[str, Any]:
        return {"actor": self.actor.state_dict(), "critic": self.critic.state_dict(), "statistics": self.statistics.get_extra_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copies; nothing is shared with where the state came from."""
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])
        self.statistics.set_extra_state(state["statistics"])


# ---- an MLP on all nodes of one skeleton --------------------------------------------------------------------------------


class FlatView:
    """The nodes of a design side by side, depth first, children in the order in which they came to be."""

    def __init__(self, design: Design, task: Task) -> None:
        self.order = np.array(task.space.topology(design).order)
        self.nodes = design.num_nodes
        self.size = self.nodes * task.features.size

    def flat(self, features: Array) -> Array:
        """[steps * nodes, features] of steps with this skeleton -> [steps, size]"""
        return features.reshape(-1, self.nodes, features.shape[1])[:, self.order].reshape(-1, self.size)

    def step_of(self, forest: Forest, rows: Tensor) -> Tensor:
        """[graphs]: which step each graph of a forest is; its root is the first node of the step."""
        return rows[: forest.num_graphs] // self.nodes


class FlatActor(nn.Module):
    """[steps, nodes * features] -> means of all controls."""

    def __init__(self, view: FlatView, normaliser: Normaliser, mlp: Sizes, log_std: float) -> None:
        super().__init__()
        self.view, self.normaliser = view, normaliser
        self.network = JointMLP(view.size, mlp, view.nodes - 1, joints=1, init="linear")
        self.log_std = nn.Parameter(torch.full((view.nodes - 1,), log_std))

    def features(self, steps: Steps) -> Array:
        return self.view.flat(steps.features)

    def prepare(self, steps: Steps) -> list[Tensor]:
        return [torch.from_numpy(self.normaliser(self.features(steps)))]

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.network(x, ())
        return result

    def log_prob(self, prepared: list[Tensor], steps: Steps, actions: Tensor, chosen: Array, forest: Forest, rows: Tensor) -> Tensor:
        which = torch.from_numpy(chosen).to(actions.device)
        joints = torch.from_numpy(self.view.order[1:]).to(actions.device)
        taken = actions[:, CONTROL].view(-1, self.view.nodes)[which][:, joints]
        mean = self(prepared[0].index_select(0, which))
        each: Tensor = log_density((taken - mean) * torch.exp(-self.log_std), self.log_std)
        return each.sum(1)


class FlatCritic(nn.Module):
    def __init__(self, view: FlatView, normaliser: Normaliser, mlp: Sizes) -> None:
        super().__init__()
        self.view, self.normaliser = view, normaliser
        self.network = JointMLP(view.size, mlp, 1, joints=1, init="linear")
        self.scale = ValueScale()

    @property
    def outputs(self) -> list[tuple[Tensor, Tensor]]:
        return [self.network.output]

    def prepare(self, steps: Steps) -> Tensor:
        return torch.from_numpy(self.normaliser(self.view.flat(steps.features)))

    def values(self, prepared: Tensor, forest: Forest, rows: Tensor) -> Tensor:
        result: Tensor = self.network(prepared.index_select(0, self.view.step_of(forest, rows)), ())[:, 0]
        return result
