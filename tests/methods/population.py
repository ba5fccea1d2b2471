"""Populations that take a second: configurations of NGE, ESS, RGS and DERL with small networks, and methods without a runner."""

from __future__ import annotations

import copy
import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codesign_bench.configuration import load_config
from codesign_bench.experiment import runner
from codesign_bench.experiment.equality import difference
from codesign_bench.experiment.method import Context
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.experiment.seeds import Streams
from codesign_bench.learning.ppo import PPO
from codesign_bench.simulation.budget import Ledger
from methods.evolution.controller import Controller
from methods.evolution.species import Species

OVERRIDES = (
    *("method.controller.mlp=[8]", "method.value.gnn=[8,8]", "method.value.mlp=[8]", "method.ppo.minibatch=64", "method.ppo.passes=2"),
    *("env.max_steps=40", "sampler.groups=2", "evaluation.episodes=2", "workers=0", "progress=false", "tensorboard=false", "products=mkl"),
    *("budget=smoke", "budget.population=4", "budget.agent_batch=80", "budget.batch=160", "budget.steps=960", "budget.evaluate_every=500"),
)
"""Three generations of four species with 80 steps each, in two cohorts; a species has two slots of 40 steps."""
GNN = ("method.controller.gnn=[8,8]",)
OF = {"nge": GNN, "derl": (*GNN, "method.cohort=2", "method.lifetime=240", "method.window=2")}
"""DERL: two cohorts of two that live for three batches, one and a half iterations; the first are random, the others their children."""


@cache
def _loaded(overrides: tuple[str, ...]) -> dict[str, Any]:
    return load_config("config", list(overrides))


def small(method: str, *overrides: str, env: str = "swimmer", results: Path = Path("unused")) -> dict[str, Any]:
    config = _loaded((f"method={method}", f"env={env}", *OVERRIDES, *OF.get(method, ()), *overrides))
    return {**copy.deepcopy(config), "results": str(results)}


def make(config: dict[str, Any], checkpoint: Callable[[], None] = lambda: None, workers: int = 0) -> Any:
    """The method of a configuration, with a ledger of its own."""
    plan = RunSetup.of(config)
    settings = plan.settings
    ledger = Ledger(plan.budget.steps)
    context = Context(plan.task, plan.budget, Streams(settings.seed), ledger, settings.sampler.groups, workers, settings.device, checkpoint)
    return plan.method_class(plan.method_config, context)


class Begun(Exception):
    pass


def begin(method: Any) -> list[Species]:
    """Lets a generation begin and stops it before anyone acts: the species that it would train."""
    collect = method.sampler.collect

    def stop(*_: Any) -> None:
        raise Begun

    method.sampler.collect = stop
    with pytest.raises(Begun):
        method.iterate()
    method.sampler.collect = collect
    assert method.population.trained == 0
    found: list[Species] = method.population.species
    return found


def weights(species: Species) -> dict[str, Any]:
    return copy.deepcopy(species.controller.state_dict())


def is_fresh(ppo: PPO) -> bool:
    """No step, no moments."""
    state = ppo.state_dict()
    moments = [state[network][name] for network in ("policy", "value") for name in ("mean", "square")]
    return ppo.updates == 0 and not any(bool(moment.any()) for moment in moments)


def untrained(species: Species) -> dict[str, Any]:
    """A fresh initialisation from the species' own seed."""
    config, context = species.config, species.context
    seed = context.streams.integer("networks", species.number, species.restarts)
    return Controller(species.design, context.task, config.controller, config.value, seed).state_dict()


def equal(a: Any, b: Any) -> bool:
    return difference(a, b) is None


def generations(method: Any, number: int) -> list[list[tuple[int, float]]]:
    """Numbers and fitness of the population after each of some generations."""
    history = []
    for _ in range(number):
        method.iterate()
        history.append([(species.number, species.fitness) for species in method.population.species])
    return history


def tables(config: dict[str, Any]) -> dict[str, list[dict[str, str]]]:
    """The tables of a run."""
    folder = RunFolder.of(config).path
    found = {}
    for name in ("genealogy", "species"):
        with open(folder / "tables" / f"{name}.csv", newline="") as file:
            found[name] = list(csv.DictReader(file))
    return found


class Stopped(Exception):
    pass


def stop_after(config: dict[str, Any], steps: int) -> None:
    """Runs until a checkpoint at so many steps is saved, and no further."""
    save = runner.LiveRun.save

    def stop(job: Any) -> None:
        save(job)
        if job.ledger.charged == steps:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner.LiveRun, "save", stop)
        with pytest.raises(Stopped):
            runner.run(config, [])
