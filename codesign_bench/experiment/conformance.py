"""What any method must keep to: codesign-bench check method=NAME env=NAME

Each check takes a configuration with a tiny budget (a few iterations) and a folder for its runs, and raises an
AssertionError with one sentence. Runs are idempotent, so the checks share the undisturbed run that they compare with.
"""

import contextlib
import copy
import io
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.errors import BudgetError, CodesignError
from codesign_bench.experiment import checkpoint
from codesign_bench.experiment.equality import Outcome, must_equal, outcome, require
from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.method import Method
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.runner import RunSetup, run
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.structured import merged

Config = Mapping[str, Any]


def equal_charging(config: Config, folder: Path) -> None:
    """Each iteration charges what the method says, the ledger ends exactly at the budget, and more is refused."""
    with _method(config) as (setup, method, ledger):
        finished = 0
        for number in range(1, setup.budget.steps // setup.iteration_steps + 1):
            before = ledger.charged
            finished += sum(episode.steps for episode in method.iterate().episodes)
            steps = ledger.charged - before
            require(steps == setup.iteration_steps, f"Iteration {number} charged {steps} steps; it must charge {setup.iteration_steps}.")
            require(finished <= ledger.charged, f"Episodes of {finished} steps have ended after {ledger.charged} charged steps.")
        require(ledger.left == 0, f"{ledger.left} steps of the budget are left after the last iteration.")
        try:
            method.iterate()
        except BudgetError:
            require(ledger.charged == setup.budget.steps, "A refused request was charged.")
        else:
            raise AssertionError("An iteration past the budget was not refused; methods must take their steps from Context.pool.")


def determinism(config: Config, folder: Path) -> None:
    """Two runs are equal, whatever the state of the global random generators."""
    reference = undisturbed(config, folder)
    for seed_anew in (random.seed, np.random.seed, torch.seed):
        seed_anew()
    reference.must_equal(_run(config, folder / "again"), "a second run with the same seed")


def resume_equality(config: Config, folder: Path) -> None:
    """Stopped after every iteration and resumed, a run equals the undisturbed one."""
    setup = RunSetup.of(config)
    for until in range(setup.iteration_steps, setup.budget.steps + 1, setup.iteration_steps):
        resumed = _run(config, folder / "resumed", budget={"until": until})
    undisturbed(config, folder).must_equal(resumed, "a run that was stopped after every iteration and resumed")


def state_survives(config: Config, folder: Path) -> None:
    """The state of a method, through a checkpoint into a fresh one: the same state, and the same next iteration."""
    with _method(config) as (setup, method, ledger), _method(config) as (_, fresh, fresh_ledger):
        method.iterate()
        target = folder / "state"
        target.mkdir(parents=True, exist_ok=True)
        try:
            checkpoint.save(target, ledger.charged, method.state_dict(), setup.hash)
            state, _ = checkpoint.load_latest(target, setup.hash)
        except checkpoint.CheckpointError as error:
            raise AssertionError(str(error)) from error
        fresh.load_state_dict(state or {})
        fresh_ledger.load_state_dict(ledger.state_dict())
        must_equal(method.state_dict(), fresh.state_dict(), "A state that was saved and loaded")
        if ledger.left:
            must_equal(method.iterate().episodes, fresh.iterate().episodes, "The episodes after a state was saved and loaded")
            must_equal(method.state_dict(), fresh.state_dict(), "The iteration after a state was saved and loaded")


def worker_independence(config: Config, folder: Path) -> None:
    """Runs with one and two worker processes equal the one without any."""
    for workers in (1, 2):
        other = _run(config, folder / f"workers_{workers}", workers=workers)
        undisturbed(config, folder).must_equal(other, f"a run with {workers} workers")


def legal_designs(config: Config, folder: Path) -> None:
    """The champion after every iteration has a design of the task's space that MuJoCo compiles."""
    with _method(config) as (setup, method, ledger):
        for number in range(setup.budget.steps // setup.iteration_steps):
            method.iterate()
            agent = method.champion()
            require(agent.task.name == setup.task.name, f"The champion acts in {agent.task.name}; the task is {setup.task.name}.")
            before = ledger.charged
            evaluation = evaluate(agent, 2, setup.streams.sequence("conformance", number))
            require(ledger.charged == before, "An evaluation was charged to the ledger.")
            try:
                agent.task.space.check(evaluation.design)
                mujoco.MjModel.from_xml_string(to_mjcf(evaluation.design, agent.task.space, agent.task.scene))
            except (CodesignError, ValueError) as error:
                raise AssertionError(f"The champion after iteration {number + 1} has an illegal design: {error}") from error


def champion_deterministic(config: Config, folder: Path) -> None:
    """The champion does the same again, also with other action noise on offer."""
    with _method(config) as (setup, method, _):
        method.iterate()
        before = copy.deepcopy(method.state_dict())
        starts = [setup.streams.sequence("conformance starts", i) for i in range(2)]
        played = []
        for noise in (0, 0, 1):
            agent = method.champion()
            sampler = Sampler(agent.task, 2, setup.streams.sequence("conformance noise", noise), agent.steps, reset_seeds=starts)
            played.append([(record, design.to_dict()) for record, design in sampler.play(agent.policy)])
        must_equal(played[0], played[1], "The champion's episodes, played twice")
        must_equal(played[0], played[2], "The champion's episodes with other action noise")
        must_equal(before, method.state_dict(), "The method's state after its champion has played")


def evaluation_apart(config: Config, folder: Path) -> None:
    """More, or fewer, evaluations leave training as it was."""
    setup = RunSetup.of(config)
    more = {"episodes": setup.settings.evaluation.episodes + 1}
    other = _run(config, folder / "evaluation", evaluation=more, budget={"evaluate_every": setup.budget.steps})
    must_equal(undisturbed(config, folder).state["method"], other.state["method"], "Training with other evaluations")


def writes_inside(config: Config, folder: Path) -> None:
    """A run writes nothing outside of its folder: neither through Python, nor a library into the working directory."""
    target, elsewhere = folder / "writes", folder / "elsewhere"
    elsewhere.mkdir(parents=True, exist_ok=True)
    inside = RunFolder.of(_quiet(config, target, {})).path.resolve()
    _writes().append(set())
    try:
        with contextlib.chdir(elsewhere):
            _run(config, target)
    finally:
        written = _writes().pop()
    written = {path for path in written if path.parts[1] != "dev" and "__pycache__" not in path.parts}
    outside = {path for path in written if not path.is_relative_to(inside) and not inside.is_relative_to(path)}
    outside.update(elsewhere.rglob("*"))
    require(not outside, f"A run wrote outside of its folder {inside}: {', '.join(map(str, sorted(outside)))}.")


CHECKS: tuple[Callable[[Config, Path], None], ...] = (
    equal_charging,
    determinism,
    state_survives,
    resume_equality,
    worker_independence,
    legal_designs,
    champion_deterministic,
    evaluation_apart,
    writes_inside,
)


def check(config: Config, tmp_path: Path) -> None:
    for each in CHECKS:
        each(config, tmp_path)


def undisturbed(config: Config, folder: Path) -> Outcome:
    """The run in one go and one process that the others are compared with."""
    return _run(config, folder / "undisturbed")


def _quiet(config: Config, folder: Path, changes: Mapping[str, Any]) -> dict[str, Any]:
    own = {"results": str(folder.resolve()), "workers": 0, "progress": False, "tensorboard": False, "wandb": None}
    own["products"] = "mkl" if config["products"] == "auto" else config["products"]  # on a busy machine auto may not be the same twice
    return merged(merged(config, {**own, "budget": {"until": config["budget"]["steps"]}}), changes)


def _run(config: Config, folder: Path, **changes: Any) -> Outcome:
    changed = _quiet(config, folder, changes)
    with contextlib.redirect_stderr(io.StringIO()):
        require(run(changed, []) == "done", "The run was stopped.")
    return outcome(changed)


@contextlib.contextmanager
def _method(config: Config) -> Iterator[tuple[RunSetup, Method, Ledger]]:
    setup = RunSetup.of(config)
    ledger = Ledger(setup.budget.steps)
    with contextlib.closing(setup.new_method(ledger)) as method:
        yield setup, method, ledger


@cache
def _writes() -> list[set[Path]]:
    """Paths that Python code writes to, noted in the last set while there is one. An audit hook cannot be removed."""
    watching: list[set[Path]] = []
    paths = {"os.mkdir": 1, "os.remove": 1, "os.rmdir": 1, "os.truncate": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2}

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and (event in paths or (event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))):
            for path in arguments[: paths.get(event, 1)]:
                if isinstance(path, (str, bytes, os.PathLike)):
                    watching[-1].add(Path(os.path.abspath(os.fsdecode(path))))

    sys.addaudithook(note)
    return watching
