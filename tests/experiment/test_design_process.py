"""How an agent designs itself, as a run records it."""

from __future__ import annotations

from typing import Any

import numpy as np

from codesign_bench.design.mjcf import indented, to_mjcf
from codesign_bench.design.stored import StoredDesign
from codesign_bench.design.transform import skeleton_transform
from codesign_bench.experiment.design_process import design_process
from codesign_bench.experiment.load import load_champion
from codesign_bench.simulation.episode import SKELETON, Stage
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks import make_task
from tests.experiment.tiny import folder_of


def test_process_on_disk_ends_with_the_final_design(undisturbed: Any) -> None:
    config, _ = undisturbed
    designs = folder_of(config) / "designs"
    stages = StoredDesign.load_all(designs / "final_process.json")
    assert len(stages) == 1 + config["method"]["skeleton"]["steps"]
    assert stages[-1] == StoredDesign.load(designs / "final.json")
    task = make_task(config["env"]["name"])
    assert indented(to_mjcf(stages[-1].design, stages[-1].space, task.scene)) == (designs / "final.xml").read_text()


def test_skeletons_are_those_of_the_episode_with_the_final_attributes(undisturbed: Any) -> None:
    config, _ = undisturbed
    agent, _ = load_champion(folder_of(config))
    seed = np.random.SeedSequence(3)
    process = design_process(agent, seed)
    design, skeletons = agent.task.initial_design, [agent.task.initial_design.parents.tolist()]
    for episode, actions in Sampler(agent.task, 1, seed, agent.steps).watch(agent.policy):
        if episode.stage is not Stage.SKELETON:
            break
        design = skeleton_transform(design, actions[:, SKELETON], agent.task.space)
        skeletons.append(design.parents.tolist())
    assert [stage.parents.tolist() for stage in process] == skeletons
    finished = {row.tobytes() for row in process[-1].attributes}
    assert process[0].attributes[0].tobytes() in finished  # the root stays, with the attributes it ends up with
