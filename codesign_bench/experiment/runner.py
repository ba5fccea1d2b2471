"""One run, from its configuration to its last checkpoint. `run` is the whole flow; what follows it are its parts."""

from __future__ import annotations

import contextlib
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch

from codesign_bench.configuration import has_settings
from codesign_bench.design.mjcf import indented, to_mjcf
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.experiment import checkpoint
from codesign_bench.experiment.design_process import process_json
from codesign_bench.experiment.evaluation import Evaluation, evaluate
from codesign_bench.experiment.limits import Episodes, Groups, check_sizes
from codesign_bench.experiment.method import Budget, Context, Iteration, Method, method_class
from codesign_bench.experiment.run_folder import RunFolder, RunMoved, Table, Tables, configuration_hash, write_atomically
from codesign_bench.experiment.seeds import Streams
from codesign_bench.experiment.signals import StopRequested, StopSignals
from codesign_bench.experiment.tracking import Display, Pace, Tracker
from codesign_bench.learning import products
from codesign_bench.learning.memory import keep_freed_memory
from codesign_bench.learning.ppo import LearningError
from codesign_bench.paths import options_of
from codesign_bench.simulation.bodies import UNSTABLE
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.processes import available_cores
from codesign_bench.simulation.rehearsal import rehearse
from codesign_bench.structured import Allowed, FolderName, Natural, build
from codesign_bench.tasks import Task, task_from_config

LEARNING = "learning"
"""The table of every iteration's metrics, such as losses."""


@dataclass(frozen=True)
class EvaluationConfig:
    episodes: Episodes


@dataclass(frozen=True)
class SamplerConfig:
    groups: Groups


@dataclass(frozen=True)
class RunConfig:
    """The content of conf/config.yaml besides env, method and budget."""

    seed: Natural
    study: FolderName
    track: FolderName
    results: Annotated[str, Allowed("are folders", bool)]
    evaluation: EvaluationConfig
    sampler: SamplerConfig
    workers: Natural | None
    device: Literal["cpu", "cuda"]
    products: Literal["auto", "mkl", "onednn"]
    progress: bool
    tensorboard: bool
    wandb: str | None


@dataclass(frozen=True)
class MethodNames:
    """What every conf/method/NAME.yaml has besides its plug-in's own configuration."""

    name: FolderName
    plugin: str
    label: str | None = None
    colour: Annotated[str, Allowed("are colours such as '#0072B2'", re.compile("#[0-9A-Fa-f]{6}").fullmatch)] | None = None


def run(config: Mapping[str, Any], command: list[str] | None = None, setup: RunSetup | None = None, folder: RunFolder | None = None) -> str:
    """Runs a configuration to budget.until, or goes on where it stopped; returns "done" or "stopped". `setup` and `folder` stand
    in for those of the configuration, for a run with another task than it can name."""
    torch.set_num_threads(1)
    setup = setup or RunSetup.of(config)
    folder = folder or RunFolder.of(config)
    if folder.is_done(config):
        print(f"{folder.path} is done: {folder.status()['steps']} steps", file=sys.stderr)
        return "done"
    track, names = setup.settings.track, (config["method"]["name"], config["method"]["plugin"])
    if not any(has_settings(track, name) for name in names):
        print(f"{names[0]} has no settings of its own on track={track}; it runs with its defaults", file=sys.stderr)
    # The route of products is this run's own: whoever calls gets back the one that was in use.
    with contextlib.suppress(StopRequested), StopSignals() as signals, folder.locked(), products.using(products.in_use()):
        folder.check_configuration(config)
        with _reporting(folder, setup):
            state, warnings = checkpoint.load_latest(folder.checkpoints, setup.hash, LiveRun.STATE)
            products.use(setup.route(state))
            folder.write_configuration(config, command or sys.argv, products.in_use())
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
                with live.writing():
                    folder.set_status("done", steps=live.ledger.charged, until=setup.budget.until, seconds=live.seconds)
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
        settings = build(RunConfig, {key: value for key, value in config.items() if key not in parts})
        budget = build(Budget, parts["budget"], "budget")
        task = task_from_config(parts["env"] or {})
        own = [field.name for field in fields(MethodNames)]
        method = parts["method"] or {}
        names = build(MethodNames, {key: value for key, value in method.items() if key in own}, "method")
        cls = method_class(names.plugin)
        method_config: Any = build(cls.config_class, {key: value for key, value in method.items() if key not in own}, "method")
        steps = cls.iteration_steps(budget)
        _check_budget(budget, steps)
        check_sizes(budget, task.config.max_steps, task.scene.frame_skip, method_config)
        cls.check(method_config, budget, task)
        if settings.device == "cuda" and not torch.cuda.is_available():
            raise ConfigError("device is cuda, but this machine has none that torch can use; allowed here is cpu.")
        return RunSetup(settings, budget, task, cls, method_config, steps, configuration_hash(config))

    @property
    def workers(self) -> int:
        groups = self.settings.sampler.groups
        return min(groups, available_cores()) if self.settings.workers is None else self.settings.workers

    def route(self, state: Mapping[str, Any] | None) -> products.Route:
        """By which products are computed: as the run began; a new one as it is told, or the fastest."""
        if state is None:
            return products.fastest() if self.settings.products == "auto" else self.settings.products
        if state["products"] == "onednn" and not products.is_exact("onednn"):
            print(
                "warning: the run began with oneDNN's products, which are not float32 on this processor; it goes on with MKL's",
                file=sys.stderr,
            )
            return "mkl"
        route: products.Route = state["products"]
        return route

    @property
    def streams(self) -> Streams:
        return Streams(self.settings.seed)

    def new_method(self, ledger: Ledger, **given: Any) -> Method:
        """The method before its first iteration, without workers; `given` replaces parts of its context."""
        settings = self.settings
        context = Context(self.task, self.budget, self.streams, ledger, settings.sampler.groups, workers=0, device=settings.device)
        return self.method_class(self.method_config, replace(context, **given))


def _check_budget(budget: Budget, steps: int) -> None:
    for name, value in (("steps", budget.steps), ("until", budget.until)):
        if value < 1 or value % steps:
            below = value // steps * steps
            near = f"{below} and {below + steps}" if below > 0 else f"{steps}"
            raise ConfigError(f"budget.{name} is {value}; allowed are whole numbers of iterations of {steps} steps, nearest {near}.")
    if budget.until > budget.steps:
        raise ConfigError(f"budget.until is {budget.until}; allowed is at most budget.steps, {budget.steps}.")


@dataclass
class Counts:
    """What a run counts from its beginning on; its checkpoints hold it under these names. `seconds` are those of earlier sessions."""

    iteration: int = 0
    evaluations: int = 0
    best_return: float = -np.inf
    designs: int = 0
    unstable: int = 0
    train_returns: list[float] = field(default_factory=list)
    seconds: float = 0.0


class LiveRun:
    """What is alive during a run: the method, the ledger, and what the records need."""

    STATE = ("method", "ledger", "products", *(field.name for field in fields(Counts)), "progress_length", "tables")
    """What a checkpoint holds."""

    def __init__(self, setup: RunSetup, folder: RunFolder, signals: StopSignals, state: dict[str, Any] | None) -> None:
        keep_freed_memory()
        self.setup, self.folder, self.signals = setup, folder, signals
        self.ledger, self.counts = Ledger(setup.budget.steps), Counts()
        self.measured = rehearse(setup.task)
        self.method = setup.new_method(self.ledger, workers=setup.workers, checkpoint=self.save)
        self.explained_variance = float("nan")
        self.problem_said = False
        self.started = time.monotonic()
        if state is not None:
            self.method.load_state_dict(state["method"])
            self.ledger.load_state_dict(state["ledger"])
            self.counts = Counts(**{field.name: state[field.name] for field in fields(Counts)})
        self.progress = Table(folder.progress, state["progress_length"] if state is not None else 0)
        self.tables = Tables(folder.tables, state["tables"] if state is not None else {})
        self.steps_at_start = self.ledger.charged
        self.pace = Pace(self.ledger.charged)
        self.tracker = Tracker(folder.path, setup.settings.tensorboard, setup.settings.wandb, self.ledger.charged)
        self.display = Display(setup.settings.progress, self.pace, setup.budget.until, folder.path)

    # ---- the loop's steps --------------------------------------------------------------------------------------------

    def note(self, iteration: Iteration) -> None:
        self.counts.iteration += 1
        self.counts.train_returns += [episode.total_return for episode in iteration.episodes]
        problems = [episode.problem for episode in iteration.episodes if episode.problem]
        self.counts.unstable += len(problems)
        self._say_problem(next((problem for problem in problems if problem != UNSTABLE), None))
        self.counts.designs += iteration.new_designs
        self.explained_variance = iteration.metrics.get("explained_variance", float("nan"))
        self.tracker.log(self.ledger.charged, iteration.metrics)
        with self.writing():
            self.tables.append({LEARNING: self._learning(iteration.metrics), **iteration.tables})

    def _learning(self, metrics: Mapping[str, float]) -> list[dict[str, float | None]]:
        """An iteration's metrics as a row of its table, whose columns are those of the first one."""
        row = {"iteration": self.counts.iteration, "steps": self.ledger.charged, **metrics}
        return [{name: row.get(name) for name in self.tables.columns(LEARNING) or row}] if metrics else []

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
        return self.setup.streams.sequence("evaluation", self.counts.evaluations)

    def record(self, evaluation: Evaluation) -> None:
        """One row of progress.csv, and the design if it is the best so far. The critic's explained variance is the latest iteration's, as
        far as a method reports it among its metrics."""
        counts, session = self.counts, self.session
        counts.evaluations += 1
        self.ledger.meter_evaluation(evaluation.steps)
        if unknown := sorted(evaluation.measured.keys() - set(self.measured)):
            self._say_problem(f"the task {evaluation.task.name} has {', '.join(unknown)} in some steps only, so it is not recorded")
        better = evaluation.return_mean > counts.best_return
        counts.best_return = max(counts.best_return, evaluation.return_mean)
        row = {
            "iteration": counts.iteration,
            "steps": self.ledger.charged,
            **evaluation.columns,
            **{name: evaluation.measured.get(name, 0.0) for name in self.measured},
            "best_return": counts.best_return,
            "train_return": float(np.mean(counts.train_returns)) if counts.train_returns else float("nan"),
            "explained_variance": self.explained_variance,
            "designs": counts.designs,
            "unstable": counts.unstable,
            "eval_steps": self.ledger.evaluation,
            "steps_per_second": (self.ledger.charged - self.steps_at_start) / session if session > 0 else 0.0,
            "seconds": counts.seconds + session,
        }
        counts.train_returns = []
        with self.writing():
            self.progress.append(row)
            self._save_design("final", evaluation)
            if evaluation.process:
                write_atomically(self.folder.designs / "final_process.json", process_json(evaluation.process, evaluation.task))
            if better:
                self._save_design("best", evaluation)
            if counts.evaluations & (counts.evaluations - 1) == 0:  # snapshots at evaluations 1, 2, 4, 8, ...
                self._save_design(f"at_{self.ledger.charged:09d}", evaluation)
        self.display.show(self.ledger.charged, evaluation.return_mean, counts.best_return)
        self.tracker.log(
            self.ledger.charged, {key: value for key, value in row.items() if key not in ("iteration", "steps", "explained_variance")}
        )

    def save(self) -> None:
        state = self.state_dict()
        self.pace.note(self.session, self.ledger.charged)
        with self.writing():
            checkpoint.save(self.folder.checkpoints, self.ledger.charged, state, self.setup.hash)
            self.folder.set_status("running", steps=self.ledger.charged, until=self.setup.budget.until, **self.pace.recent())
            self.display.update(self.ledger.charged)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """What is written inside is written whole, and into this run's own folder."""
        with self.signals.protected():
            self.folder.check_place()
            yield

    def close(self) -> None:
        self.display.close()
        self.tracker.close()
        self.method.close()

    # ---- stop and go on ----------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Wall time of the run, over all its sessions."""
        return self.counts.seconds + self.session

    @property
    def session(self) -> float:
        """Of this session: by a clock that nobody sets. One that stands still, or goes back, counts as no time at all."""
        return max(0.0, time.monotonic() - self.started)

    def state_dict(self) -> dict[str, Any]:
        return {
            "method": self.method.state_dict(),
            "ledger": self.ledger.state_dict(),
            "products": products.in_use(),
            **vars(self.counts),
            "seconds": self.seconds,
            "progress_length": self.progress.length,
            "tables": self.tables.lengths,
        }

    def _save_design(self, name: str, evaluation: Evaluation) -> None:
        task = evaluation.task
        write_atomically(self.folder.designs / f"{name}.json", StoredDesign(evaluation.design, task.space).to_json())
        write_atomically(self.folder.designs / f"{name}.xml", indented(to_mjcf(evaluation.design, task.space, task.scene)))


@contextlib.contextmanager
def _reporting(folder: RunFolder, setup: RunSetup) -> Iterator[None]:
    """Turns how a run ends into its status: stopped by the user, or failed and why."""

    def charged() -> int:
        return int(folder.status().get("steps", 0))

    try:
        yield
    except StopRequested:
        folder.check_place()
        folder.set_status("stopped", steps=charged(), until=setup.budget.until, reason="stopped by a signal")
        print(f"\nstopped at {charged()} steps; the same command goes on from there", file=sys.stderr)
        raise
    except (checkpoint.CheckpointDiffers, RunMoved):  # nothing is wrong with what lies there
        raise
    except BaseException as error:
        folder.check_place()
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
