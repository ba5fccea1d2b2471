"""How an agent designs itself: the skeleton after each skeleton transform, with the attributes of the finished design."""

import json
from collections.abc import Sequence

import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.design.stored import StoredDesign
from codesign_bench.design.transform import ADD_JOINT, kept_nodes
from codesign_bench.experiment.method import Agent
from codesign_bench.simulation.episode import SKELETON, Stage
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks.base import Task


def design_process(agent: Agent, seed: np.random.SeedSequence, final: Design | None = None) -> tuple[Design, ...]:
    """The initial skeleton and the one after each skeleton transform of an episode. Nodes keep their identity on the way, so
    that an unfinished skeleton is given with the attributes that its joints end up with (as in the paper's figures). Empty for agents
    without a skeleton stage. No control step is taken. `final` is the design that the same agent came to among other episodes, where
    products of another shape may have rounded its attributes otherwise: the process ends with that one."""
    if agent.steps.skeleton == 0:
        return ()
    stages: list[tuple[Design, list[int]]] = []
    newest = agent.task.initial_design.num_nodes
    identity = list(range(newest))
    for episode, actions in Sampler(agent.task, 1, seed, agent.steps).watch(agent.policy):
        if episode.stage is Stage.EXECUTION:
            break
        if episode.stage is Stage.SKELETON:
            stages.append((episode.design, list(identity)))
            choices, space = actions[:, SKELETON], agent.task.space
            kept = kept_nodes(episode.design, choices, space)
            grown = int(np.count_nonzero((choices == ADD_JOINT) & space.topology(episode.design).can_add))
            identity = [name for name, stays in zip(identity, kept, strict=True) if stays] + list(range(newest, newest + grown))
            newest += grown
    finished = final if final is not None and np.array_equal(final.parents, episode.design.parents) else episode.design
    stages.append((finished, identity))
    attributes = dict(zip(identity, finished.attributes, strict=True))
    return tuple(
        design.with_attributes([attributes.get(n, own) for n, own in zip(names, design.attributes, strict=True)])
        for design, names in stages
    )


def stage_titles(process: Sequence[object]) -> list[str]:
    if len(process) == 1:
        return ["final design"]
    return ["initial skeleton", *(f"after skeleton transform {i}" for i in range(1, len(process)))][: len(process)]


def process_json(process: tuple[Design, ...], task: Task) -> str:
    """The content of final_process.json: a list of stored designs."""
    return json.dumps([StoredDesign(design, task.space).to_dict() for design in process])
