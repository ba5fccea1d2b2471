"""One run, from its configuration to its last checkpoint. `run` is the whole flow; what follows it are its parts."""

from __future__ import annotations

import contextlib
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.experiment import checkpoint
from codesign_bench.experiment.design_process import process_json
from codesign_bench.experiment.evaluation import Evaluation, evaluate
from codesign_bench.experiment.method import Budget, Context, Iteration, Method, method_class
from codesign_bench.experiment.run_folder import RunFolder, Table, Tables, configuration_hash, write_atomically
from codesign_bench.experiment.seeds import Streams
from codesign_bench.experiment.signals import StopRequested, StopSignals
from codesign_bench.experiment.tracking import Display, Tracker
from codesign_bench.learning.memory import keep_freed_memory
from codesign_bench.learning.ppo import LearningError
from codesign_bench.paths import options_of
from codesign_bench.simulation.bodies import UNSTABLE
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.rehearsal import rehearse
from codesign_bench.simulation.workers import available_cores
from codesign_bench.structured import build
from codesign_bench.tasks import Task, task_from_config


@dataclass(frozen=True)
class RunConfig:
    """The content of conf/config.yaml besides env, method and budget."""

    seed: int
    study: str
    results: str
    evaluation: EvaluationConfig
    sampler: SamplerConfig
    workers: int | None
    device: str
    progress: bool
    tensorboard: bool
    wandb: str | None


@dataclass(frozen=True)
class EvaluationConfig:
    episodes: int


@dataclass(frozen=True)
class SamplerConfig:
    groups: int


def run(config: Mapping[str, Any], command: list[str] | None = None, setup: RunSetup | None = None, folder: RunFolder | None = None) -> str:
    """Runs a configuration to budget.until, or goes on where it stopped; returns "done" or "stopped". `setup` and `folder` stand
    in for those of the configuration, for a run with another task than it can name."""
    setup = setup or RunSetup.of(config)
    folder = folder or RunFolder.of(config)
    if folder.is_done(config):
        print(f"{folder.path} is done: {folder.status()['steps']} steps", file=sys.stderr)
        return "done"
    with contextlib.suppress(StopRequested), StopSignals() as signals, folder.locked():
        folder.check_configuration(config)
        with _reporting(folder, setup):
            state, warnings = checkpoint.load_latest(folder.checkpoints, setup.hash, LiveRun.STATE)
            folder.write_configuration(config, command or sys.argv)
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)
        if state is not None and state["ledger"]["charged"] >= setup.budget.until:
            if folder.status().get("status") != "done":
                folder.set_status("done", steps=state["ledger"]["charged"], until=setup.budget.until, seconds=state["seconds"])
            print(f"{folder.path} is done: {state['ledger']['charged']} steps", file=sys.stderr)
            return "done"
        with _reporting(folder, setup):
            folder.set_status("running", steps=state["ledger"]["charged"] if state else 0, until=setup.budget.until)
            with contextlib.closing(LiveRun(setup, folder, signals, state)) as live:
                while live.ledger.charged < setup.budget.until:
                    iteration = live.method.iterate()
                    live.note(iteration)
                    if live.evaluation_is_due():
                        live.record(evaluate(live.method.champion(), setup.settings.evaluation.episodes, live.evaluation_seed()))
                    live.save()
                live.finish()
                return "done"
    return "stopped"


@dataclass(frozen=True)
class RunSetup:
    """A configuration, checked and split into its parts."""

    settings: RunConfig
    budget: Budget
    task: Task
    method_class: type[Method]
    method_config: Any
    iteration_steps: int
    hash: str

    @staticmethod
    def of(config: Mapping[str, Any]) -> RunSetup:
        parts = {key: config.get(key) for key in ("env", "method", "budget")}
        for key, part in parts.items():
            if not isinstance(part, Mapping):
                raise ConfigError(f"{key} is {part!r}; allowed are {', '.join(options_of(key))}.")
        settings = build(RunConfig, {key: value for key, value in config.items() if key not in parts}, "the configuration")
        budget = build(Budget, parts["budget"], "budget")
        task = task_from_config(parts["env"] or {})
        method = dict(parts["method"] or {})
        name, plugin = method.pop("name", None), method.pop("plugin", None)
        if not isinstance(name, str) or not isinstance(plugin, str) or not _is_folder_name(name):
            raise ConfigError(f"method.name is {name!r} and method.plugin {plugin!r}; allowed are names.")
        if not _is_folder_name(task.name):
            raise ConfigError(f"env.name is {task.name!r}; allowed are names.")
        label, colour = method.pop("label", None), method.pop("colour", None)
        if not isinstance(label, str | None) or not (colour is None or re.fullmatch("#[0-9A-Fa-f]{6}", str(colour))):
            raise ConfigError(f"method.label is {label!r} and method.colour {colour!r}; allowed are a name and a colour such as '#0072B2'.")
        cls = method_class(plugin)
        steps = cls.iteration_steps(budget)
        _check(settings, budget, steps)
        return RunSetup(settings, budget, task, cls, build(cls.config_class, method, "method"), steps, configuration_hash(config))

    @property
    def workers(self) -> int:
        groups = self.settings.sampler.groups
        return min(groups, available_cores()) if self.settings.workers is None else self.settings.workers


def _is_folder_name(name: str) -> bool:
    return bool(name) and "/" not in name and name not in (".", "..") and "\0" not in name


def _check(settings: RunConfig, budget: Budget, steps: int) -> None:
    if settings.workers is not None and settings.workers < 0:
        raise ConfigError(f"workers is {settings.workers}; allowed are whole numbers from 0 up.")
    if not settings.results or not _is_folder_name(settings.study):
        raise ConfigError(f"study is {settings.study!r} and results {settings.results!r}; allowed are names of folders.")
    if settings.seed < 0:
        raise ConfigError(f"seed is {settings.seed}; allowed are whole numbers from 0 up.")
    for name in ("batch", "population", "agent_batch", "evaluate_every"):
        if getattr(budget, name) < 1:
            raise ConfigError(f"budget.{name} is {getattr(budget, name)}; allowed are whole numbers from 1 up.")
    for name, value in (("steps", budget.steps), ("until", budget.until)):
        if value < 1 or value % steps:
            below = value // steps * steps
            near = f"{below} and {below + steps}" if below > 0 else f"{steps}"
            raise ConfigError(f"budget.{name} is {value}; allowed are whole numbers of iterations of {steps} steps, nearest {near}.")
    if budget.until > budget.steps:
        raise ConfigError(f"budget.until is {budget.until}; allowed is at most budget.steps, {budget.steps}.")
    if settings.evaluation.episodes < 1 or settings.sampler.groups < 1:
        raise ConfigError("evaluation.episodes and sampler.groups must be at least 1.")
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device is cuda, but this machine has none that torch can use; allowed here is cpu.")
    if settings.device not in ("cpu", "cuda"):
        raise ConfigError(f"device is {settings.device!r}; allowed are cpu and cuda.")


class LiveRun:
    """What is alive during a run: the method, the ledger, and what the records need."""

    STATE = (
        *("method", "ledger", "iteration", "evaluations", "best_return", "designs", "unstable", "train_returns", "seconds"),
        *("progress_length", "tables"),
    )
    """What a checkpoint holds."""

    def __init__(self, setup: RunSetup, folder: RunFolder, signals: StopSignals, state: dict[str, Any] | None) -> None:
        torch.set_num_threads(1)
        keep_freed_memory()
        self.setup, self.folder, self.signals = setup, folder, signals
        self.ledger = Ledger(setup.budget.steps)
        self.streams = Streams(setup.settings.seed)
        groups, device = setup.settings.sampler.groups, setup.settings.device
        context = Context(setup.task, setup.budget, self.streams, self.ledger, groups, setup.workers, device, self.save)
        self.measured = rehearse(setup.task)
        self.method = setup.method_class(setup.method_config, context)
        self.iteration, self.evaluations = 0, 0
        self.problem_said = False
        self.best_return = -np.inf
        self.designs, self.unstable = 0, 0
        self.train_returns: list[float] = []
        self.seconds_before, self.started = 0.0, time.monotonic()
        self.progress = Table(folder.progress, self._resume(state) if state is not None else 0)
        self.tables = Tables(folder.tables, state["tables"] if state is not None else None)
        self.steps_at_start = self.ledger.charged
        self.display = Display(setup.settings.progress, self.ledger.charged, setup.budget.until, folder.path)
        self.tracker = Tracker(folder.path, setup.settings.tensorboard, setup.settings.wandb, self.ledger.charged)

    # ---- the loop's steps --------------------------------------------------------------------------------------------

    def note(self, iteration: Iteration) -> None:
        self.iteration += 1
        self.train_returns += [episode.total_return for episode in iteration.episodes]
        problems = [episode.problem for episode in iteration.episodes if episode.problem]
        self.unstable += len(problems)
        self._say_problem(next((problem for problem in problems if problem != UNSTABLE), None))
        self.designs += iteration.new_designs
        self.display.update(self.ledger.charged)
        self.tracker.log(self.ledger.charged, iteration.metrics)
        with self.signals.protected():
            self.tables.append(iteration.tables)

    def _say_problem(self, problem: str | None) -> None:
        """The first time that an episode was ended for another reason than its simulation: the task itself has a fault."""
        if problem is not None and not self.problem_said:
            self.problem_said = True
            print(f"warning: {problem}. Episodes that a task's fault ends count as unstable in progress.csv.", file=sys.stderr)

    def evaluation_is_due(self) -> bool:
        every, charged = self.setup.budget.evaluate_every, self.ledger.charged
        if self.method.evaluate_each_iteration:
            return True
        return charged // every > (charged - self.setup.iteration_steps) // every or charged >= self.setup.budget.steps

    def evaluation_seed(self) -> np.random.SeedSequence:
        return self.streams.sequence("evaluation", self.evaluations)

    def record(self, evaluation: Evaluation) -> None:
        """One row of progress.csv, and the design if it is the best so far."""
        self.evaluations += 1
        self.ledger.meter_evaluation(evaluation.steps)
        if unknown := sorted(evaluation.measured.keys() - set(self.measured)):
            self._say_problem(f"the task {evaluation.task.name} has {', '.join(unknown)} in some steps only, so it is not recorded")
        better = evaluation.return_mean > self.best_return
        self.best_return = max(self.best_return, evaluation.return_mean)
        seconds = time.monotonic() - self.started
        row = {
            "iteration": self.iteration,
            "steps": self.ledger.charged,
            **evaluation.columns,
            **{name: evaluation.measured.get(name, 0.0) for name in self.measured},
            "best_return": self.best_return,
            "train_return": float(np.mean(self.train_returns)) if self.train_returns else float("nan"),
            "designs": self.designs,
            "unstable": self.unstable,
            "eval_steps": self.ledger.evaluation,
            "steps_per_second": (self.ledger.charged - self.steps_at_start) / seconds,
            "seconds": self.seconds_before + seconds,
        }
        self.train_returns = []
        with self.signals.protected():
            self.progress.append(row)
            self._save_design("final", evaluation)
            if evaluation.process:
                write_atomically(self.folder.designs / "final_process.json", process_json(evaluation.process, evaluation.task))
            if better:
                self._save_design("best", evaluation)
            if self.evaluations & (self.evaluations - 1) == 0:  # snapshots at evaluations 1, 2, 4, 8, ...
                self._save_design(f"at_{self.ledger.charged:09d}", evaluation)
        self.display.show(evaluation.return_mean, self.best_return)
        self.tracker.log(self.ledger.charged, {key: value for key, value in row.items() if key not in ("iteration", "steps")})

    def save(self) -> None:
        self.display.update(self.ledger.charged)
        state = self.state_dict()
        with self.signals.protected():
            checkpoint.save(self.folder.checkpoints, self.ledger.charged, state, self.setup.hash)
            self.folder.set_status("running", steps=self.ledger.charged, until=self.setup.budget.until)

    def finish(self) -> None:
        with self.signals.protected():
            self.folder.set_status("done", steps=self.ledger.charged, until=self.setup.budget.until, seconds=self.seconds)

    def close(self) -> None:
        self.display.close()
        self.tracker.close()
        self.method.close()

    # ---- stop and go on ----------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Wall time of the run, over all its sessions."""
        return self.seconds_before + time.monotonic() - self.started

    def state_dict(self) -> dict[str, Any]:
        return {
            "method": self.method.state_dict(),
            "ledger": self.ledger.state_dict(),
            "iteration": self.iteration,
            "evaluations": self.evaluations,
            "best_return": float(self.best_return),
            "designs": self.designs,
            "unstable": self.unstable,
            "train_returns": self.train_returns,
            "seconds": self.seconds,
            "progress_length": self.progress.length,
            "tables": self.tables.lengths,
        }

    def _resume(self, state: dict[str, Any]) -> int:
        """Length of progress.csv."""
        self.method.load_state_dict(state["method"])
        self.ledger.load_state_dict(state["ledger"])
        self.iteration, self.evaluations = state["iteration"], state["evaluations"]
        self.best_return, self.designs, self.unstable = state["best_return"], state["designs"], state["unstable"]
        self.train_returns, self.seconds_before = list(state["train_returns"]), state["seconds"]
        return int(state["progress_length"])

    def _save_design(self, name: str, evaluation: Evaluation) -> None:
        task = evaluation.task
        write_atomically(self.folder.designs / f"{name}.json", StoredDesign(evaluation.design, task.space).to_json())
        write_atomically(self.folder.designs / f"{name}.xml", to_mjcf(evaluation.design, task.space, task.scene))


@contextlib.contextmanager
def _reporting(folder: RunFolder, setup: RunSetup) -> Iterator[None]:
    """Turns how a run ends into its status: stopped by the user, or failed and why."""

    def charged() -> int:
        return int(folder.status().get("steps", 0))

    try:
        yield
    except StopRequested:
        folder.set_status("stopped", steps=charged(), until=setup.budget.until, reason="stopped by a signal")
        print(f"\nstopped at {charged()} steps; the same command goes on from there", file=sys.stderr)
        raise
    except checkpoint.CheckpointDiffers:
        raise
    except BaseException as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        with contextlib.suppress(OSError):  # a full disk must not hide the error that is on its way
            if isinstance(error, LearningError):
                reason += (
                    f" This was in the iteration after {charged()} steps; the minibatch and the weights are in {folder.path / 'dump.pt'}."
                )
                error.args = (reason,)
                torch.save(error.dump, folder.path / "dump.pt")
            folder.set_status("failed", steps=charged(), until=setup.budget.until, reason=reason)
            if not isinstance(error, CodesignError):
                write_atomically(folder.path / "error.txt", traceback.format_exc())
        raise
