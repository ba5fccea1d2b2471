"""Final re-evaluation: fresh episodes of a run's final agent, and a controller trained from scratch on its frozen design.

The first says how good the agent is without the luck of the evaluations that picked it; the second separates how good the
design is from how well its controller was learned, with the same controller and the same steps for every method.
Nothing here is charged to the run: its ledger, its checkpoints and progress.csv stay as they are.
"""

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codesign_bench.configuration import load_config
from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError
from codesign_bench.experiment import runner
from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.load import champion_in, load_config_of, load_state
from codesign_bench.experiment.method import Agent
from codesign_bench.experiment.motion import record
from codesign_bench.experiment.reevaluation import FreshEpisodes, Reevaluation, Which
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.seeds import Streams
from codesign_bench.tasks.base import Task

FOLDER = "reevaluation"
"""Of the runs that train controllers, inside the run folder."""


def reevaluate(
    path: Path,
    episodes: int,
    seed: int,
    train: int,
    seconds: float,
    workers: int | None,
    command: list[str],
    method: Sequence[str],
    which: Which = "champion",
) -> Reevaluation:
    """Writes reevaluation.json and motion.json into the run folder; of the incumbent, a file of its own and no motion. A controller
    that was trained for this design before is kept. `method` are the overrides that name what trains it."""
    before = None
    with contextlib.suppress(ConfigError):  # a damaged file is about to be replaced
        before = Reevaluation.load(path, which)
    setup = runner.RunSetup.of(load_config_of(path))
    state = load_state(setup, RunFolder(path))
    agent, charged = champion_in(state, setup, which), int(state["ledger"]["charged"])
    streams = Streams(setup.settings.seed)
    training = controller_config(load_config_of(path), method, train, streams.integer("controller", seed), workers) if train else None
    if training is not None:
        runner.RunSetup.of(training)  # what is impossible is said before the episodes are played
    evaluation = evaluate(agent, episodes, streams.sequence("reevaluation", seed))
    kept = before.controller if before is not None and before.agent.steps == charged else None
    result = Reevaluation(FreshEpisodes.of(evaluation, charged, seed), kept)
    result.save(path, which)
    motion = record(agent, streams.sequence("motion", seed), seconds) if which == "champion" else None
    if motion is not None:
        motion.save(path)
    if training is not None:
        controller = train_controller(path, agent.task, evaluation.design, training, command)
        if controller is not None:
            fresh = evaluate(controller, episodes, streams.sequence("reevaluation of the controller", seed))
            result = replace(result, controller=FreshEpisodes.of(fresh, train, seed))
            result.save(path, which)
    return result


def train_controller(path: Path, task: Task, design: Design, config: Mapping[str, Any], command: list[str]) -> Agent | None:
    """A run of its own inside the run folder, with its own ledger, which goes on where it was stopped; None if it is stopped now."""
    setup = runner.RunSetup.of(config)
    # Another design is another run, though the configuration cannot name it.
    text = json.dumps([setup.hash, design.to_dict()])
    setup = replace(setup, task=task.starting_from(design, task.space), hash=hashlib.sha256(text.encode()).hexdigest()[:16])
    folder = RunFolder(path / FOLDER / setup.hash)
    if runner.run(config, command, setup, folder) != "done":
        return None
    return champion_in(load_state(setup, folder), setup)


def controller_config(config: Mapping[str, Any], method: Sequence[str], steps: int, seed: int, workers: int | None) -> dict[str, Any]:
    """The method that trains a controller (conf/reevaluate.yaml), in the run's own environment and batch size."""
    chosen = load_config("config", [*method, f"method.ppo.gamma={config['env']['discount']}"])["method"]
    return {
        **config,
        "method": {**chosen, "name": "controller"},
        "budget": {**config["budget"], "name": "reevaluation", "steps": steps, "until": steps},
        "seed": seed,
        "workers": config["workers"] if workers is None else workers,
        "tensorboard": False,
        "wandb": None,
    }
