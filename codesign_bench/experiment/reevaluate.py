"""Final re-evaluation: fresh episodes of a run's final agent, and a controller trained from scratch on its frozen design.

The first says how good the agent is without the luck of the evaluations that picked it; the second separates how good the
design is from how well its controller was learned: one setting of PPO, one batch, the same networks and steps for every design, whatever
method and track it came from.
Nothing here is charged to the run: its ledger, its checkpoints and progress.csv stay as they are.
"""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codesign_bench.bars import counted
from codesign_bench.configuration import load_config
from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError, nearest
from codesign_bench.experiment import runner
from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.limits import Episodes
from codesign_bench.experiment.load import champion_in, load_config_of, load_state
from codesign_bench.experiment.method import Agent
from codesign_bench.experiment.motion import record
from codesign_bench.experiment.reevaluation import FreshEpisodes, Reevaluation, Which
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.signals import StopRequested
from codesign_bench.paths import options_of
from codesign_bench.structured import Count, Natural, NotNegative
from codesign_bench.tasks.base import Task

FOLDER = "reevaluation"
"""Of the runs that train controllers, inside the run folder."""


@dataclass(frozen=True)
class ReevaluateConfig:
    """The content of conf/reevaluate.yaml, for one run."""

    run: str
    agent: Which
    episodes: Episodes
    seed: Natural
    train: Natural
    seconds: NotNegative
    workers: int | None
    controller: tuple[str, ...]
    ppo: str
    batch: Count

    def __post_init__(self) -> None:
        known = options_of("ppo")
        if self.ppo not in known:
            raise ConfigError(f"ppo is '{self.ppo}'{nearest(self.ppo, known)}; allowed are the files of conf/ppo: {', '.join(known)}.")

    @property
    def training(self) -> tuple[str, ...]:
        """What decides on a new controller besides its design, as words of the command line."""
        return (*self.controller, f"ppo@method.ppo={self.ppo}", f"budget.batch={self.batch}")


def reevaluate(config: ReevaluateConfig, command: list[str]) -> Reevaluation:
    """Writes reevaluation.json and motion.json into the run folder; of the incumbent, a file of its own and no motion. A controller
    that was trained for this design before is kept. StopRequested if the training of one was stopped, which goes on the next time."""
    path, which, seed, before = Path(config.run), config.agent, config.seed, None
    with contextlib.suppress(ConfigError):  # a damaged file is about to be replaced
        before = Reevaluation.load(path, which)
    run_config = load_config_of(path)
    setup = runner.RunSetup.of(run_config)
    state, streams = load_state(setup, RunFolder(path)), setup.streams
    agent, charged = champion_in(state, setup, which), int(state["ledger"]["charged"])
    training = controller_config(run_config, config, streams.integer("controller", seed)) if config.train else None
    if training is not None:
        runner.RunSetup.of(training)  # what is impossible is said before the episodes are played
    with counted(f"{config.episodes} fresh episodes: step", agent.longest) as after_step:
        evaluation = evaluate(agent, config.episodes, streams.sequence("reevaluation", seed), after_step)
    kept = before.controller if before is not None and before.agent.steps == charged else None
    result = Reevaluation(FreshEpisodes.of(evaluation, charged, seed), kept)
    result.save(path, which)
    motion = record(agent, streams.sequence("motion", seed), config.seconds) if which == "champion" else None
    if motion is not None:
        motion.save(path)
    if training is not None:
        controller = train_controller(path, agent.task, evaluation.design, training, command)
        with counted(f"{config.episodes} episodes of the new controller: step", controller.longest) as after_step:
            fresh = evaluate(controller, config.episodes, streams.sequence("reevaluation of the controller", seed), after_step)
        result = replace(result, controller=FreshEpisodes.of(fresh, config.train, seed, config.training))
        result.save(path, which)
    return result


def train_controller(path: Path, task: Task, design: Design, config: Mapping[str, Any], command: list[str]) -> Agent:
    """A run of its own inside the run folder, with its own ledger, which goes on where it was stopped."""
    setup = runner.RunSetup.of(config)
    # Another design is another run, though the configuration cannot name it.
    text = json.dumps([setup.hash, design.to_dict()])
    setup = replace(setup, task=task.starting_from(design, task.space), hash=hashlib.sha256(text.encode()).hexdigest()[:16])
    folder = RunFolder(path / FOLDER / setup.hash)
    if runner.run(config, command, setup, folder) != "done":
        raise StopRequested
    return champion_in(load_state(setup, folder), setup)


def controller_config(run: Mapping[str, Any], config: ReevaluateConfig, seed: int) -> dict[str, Any]:
    """The method that trains a controller, in the run's own environment."""
    chosen = load_config("config", [*config.training, f"env.discount={run['env']['discount']}"])["method"]
    return {
        **run,
        "method": {**chosen, "name": "controller"},
        "budget": {**run["budget"], "name": "reevaluation", "steps": config.train, "until": config.train, "batch": config.batch},
        "seed": seed,
        "workers": run["workers"] if config.workers is None else config.workers,
        "tensorboard": False,
        "wandb": None,
    }
