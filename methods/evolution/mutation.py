"""Mutations of designs: add nodes, add a copy of a subtree, delete a subtree, redraw an attribute, perturb attributes. Design -> Design.

Only legal designs come out: the limits of the task's design space hold, limbs of the root are neither added nor removed.
Attributes are drawn and perturbed in s = sin(pi p / 2), which is linear in the physical value and lies in [-1, 1].
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.design.graph import Design
from codesign_bench.design.space import DesignSpace
from codesign_bench.design.transform import ADD_JOINT, NO_CHANGE, skeleton_transform
from codesign_bench.errors import ConfigError
from codesign_bench.structured import Checked, PositiveShare, Share

Rng = np.random.Generator

NOISE = 1 / 6
"""Standard deviation of a perturbation in s, a twelfth of an attribute's range."""
QUANTUM = 1 / 3
"""Step of a quantised perturbation in s, a sixth of an attribute's range."""

Operator = Literal["add node", "add graph", "delete graph", "redraw", "perturb"]


@dataclass(frozen=True)
class MutationConfig(Checked):
    """How children differ from their parents.

    - add, delete, redraw, perturb: probabilities of the operators
    - add_graph: share of the additions that copy a subtree
    - node_rate: chance of each node to be added to, or to be perturbed; at least one always is
    - new_attributes: uniform, or copied from the node that a new one hangs on (parent)
    - noise: gaussian, or quantised to sixths of an attribute's range
    """

    add: Share
    delete: Share
    perturb: Share
    add_graph: Share
    node_rate: PositiveShare
    new_attributes: Literal["uniform", "parent"]
    noise: Literal["gaussian", "quantised"]
    redraw: Share = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        total = self.add + self.delete + self.redraw + self.perturb
        if abs(total - 1) > 1e-9:
            raise ConfigError(f"method.mutation.add, delete, redraw and perturb sum to {total:g}; allowed is a sum of 1.")


class Mutation(NamedTuple):
    """What came out, and the operator that was applied in the end."""

    design: Design
    operator: Operator


def mutate(design: Design, space: DesignSpace, config: MutationConfig, rng: Rng) -> Mutation:
    """One operator, drawn by its probability; where it has nothing legal to do, the design is perturbed instead."""
    choice = rng.random()
    found: Design | None = None
    operator: Operator = "perturb"
    if choice < config.add:
        operator = "add graph" if rng.random() < config.add_graph else "add node"
        found = add_graph(design, space, rng) if operator == "add graph" else add_nodes(design, space, config, rng)
    elif choice < config.add + config.delete:
        operator, found = "delete graph", delete_graph(design, space, rng)
    elif choice < config.add + config.delete + config.redraw:
        operator, found = "redraw", redraw(design, space, rng)
    if found is None:
        operator, found = "perturb", perturb(design, space, config, rng)
    return Mutation(found, operator)


# ---- the operators; None where nothing legal can be done ----------------------------------------------------------------


def add_nodes(design: Design, space: DesignSpace, config: MutationConfig, rng: Rng) -> Design | None:
    """A new node under each of the nodes that a sweep picks among those which may have one more child."""
    legal = np.flatnonzero(space.topology(design).can_add)
    if not len(legal):
        return None
    return attach(design, space, legal[sweep(len(legal), config.node_rate, rng)], None if config.new_attributes == "parent" else rng)


def add_graph(design: Design, space: DesignSpace, rng: Rng) -> Design | None:
    """A copy of a uniformly drawn subtree of the design, hung on a uniformly drawn node that may have it."""
    topology = space.topology(design)
    height = _heights(design)
    sites = [np.flatnonzero(topology.can_add & (topology.depth + 1 + height[node] <= space.max_depth)) for node in range(design.num_nodes)]
    sources = [node for node in range(1, design.num_nodes) if len(sites[node])]
    if not sources:
        return None
    source = int(rng.choice(sources))
    return graft(design, source, int(rng.choice(sites[source])))


def delete_graph(design: Design, space: DesignSpace, rng: Rng) -> Design | None:
    """Without a subtree: a uniform node with children that may go (those below the limbs of the root), a uniform one of them."""
    depth = space.topology(design).depth
    parents = np.unique(design.parents[depth >= 2])
    if not len(parents):
        return None
    child = rng.choice(np.flatnonzero(design.parents == rng.choice(parents)))
    return without(design, int(child))


def redraw(design: Design, space: DesignSpace, rng: Rng) -> Design:
    """A uniformly drawn attribute, drawn anew: of one node or, as often, of all that have it, each its own value."""
    tunable = space.tunable(design)
    attribute = rng.choice(np.flatnonzero(tunable.any(axis=0)))
    nodes = np.flatnonzero(tunable[:, attribute])
    chosen = nodes if rng.random() < 0.5 else rng.choice(nodes, 1)
    attributes = design.attributes.copy()
    attributes[chosen, attribute] = from_linear(rng.uniform(-1, 1, len(chosen)))
    return design.derived(attributes=attributes)


def perturb(design: Design, space: DesignSpace, config: MutationConfig, rng: Rng) -> Design:
    """Noise on all attributes of the nodes that a sweep picks; the root counts where it has attributes."""
    tunable = space.tunable(design)
    nodes = np.flatnonzero(tunable.any(axis=1))
    chosen = nodes[sweep(len(nodes), config.node_rate, rng)]
    noise = rng.standard_normal((len(chosen), tunable.shape[1]))
    change = np.zeros(tunable.shape)
    change[chosen] = np.round(noise) * QUANTUM if config.noise == "quantised" else noise * NOISE
    changed = tunable & (change != 0)
    s = np.clip(to_linear(design.attributes) + change, -1, 1)
    return design.derived(attributes=np.where(changed, from_linear(s), design.attributes))


# ---- their parts --------------------------------------------------------------------------------------------------------


def sweep(nodes: int, rate: float, rng: Rng) -> Array:
    """[nodes]: each is chosen with probability `rate`, again and again until at least one is."""
    while True:
        chosen: Array = rng.random(nodes) < rate
        if chosen.any():
            return chosen


def attach(design: Design, space: DesignSpace, parents: Array, rng: Rng | None) -> Design:
    """One new node under each of `parents`, which come in the order of the nodes, with uniform attributes or, without
    `rng`, those of its parent. New nodes come last."""
    actions = np.full(design.num_nodes, NO_CHANGE)
    actions[parents] = ADD_JOINT
    grown = skeleton_transform(design, actions, space)
    if rng is None:
        return grown
    attributes = grown.attributes.copy()
    attributes[design.num_nodes :] = from_linear(rng.uniform(-1, 1, (len(parents), attributes.shape[1])))
    return grown.derived(attributes=attributes)


def graft(design: Design, source: int, site: int) -> Design:
    """With a copy of the subtree at `source` under the node `site`."""
    copied = np.flatnonzero(_in_subtree(design, source))
    position = np.full(design.num_nodes, -1)
    position[copied] = design.num_nodes + np.arange(len(copied))
    parents = np.concatenate([design.parents, [site], position[design.parents[copied[1:]]]])
    return _rows(design, np.concatenate([np.arange(design.num_nodes), copied]), parents)


def without(design: Design, node: int) -> Design:
    """Without the subtree at `node`."""
    kept = ~_in_subtree(design, node)
    position = np.cumsum(kept) - 1
    return _rows(design, np.flatnonzero(kept), np.concatenate([[-1], position[design.parents[kept][1:]]]))


def to_linear(p: Array) -> Array:
    return np.sin(np.pi / 2 * p)


def from_linear(s: Array) -> Array:
    return np.arcsin(s) * (2 / np.pi)


def _rows(design: Design, rows: Array, parents: Array) -> Design:
    arrays = {name: getattr(design, name)[rows] for name in ("attributes", "axis", "range", "friction", "joint_offset")}
    return design.derived(parents=parents.astype(np.int64), **arrays)


def _in_subtree(design: Design, node: int) -> Array:
    """[nodes]; parents come before their children."""
    inside = np.zeros(design.num_nodes, dtype=bool)
    inside[node] = True
    for child in range(node + 1, design.num_nodes):
        inside[child] = inside[design.parents[child]]
    return inside


def _heights(design: Design) -> Array:
    """[nodes]: how many levels lie below each node."""
    height = np.zeros(design.num_nodes, dtype=np.int64)
    for child in range(design.num_nodes - 1, 0, -1):
        parent = design.parents[child]
        height[parent] = max(height[parent], height[child] + 1)
    return height
