"""Populations against Transform2Act: steps per second of a whole generation at the same number of bodies, and memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import torch

from codesign_bench.configuration import load_config
from codesign_bench.experiment.method import Context, Method
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.experiment.seeds import Streams
from codesign_bench.learning.memory import keep_freed_memory
from codesign_bench.simulation.budget import Ledger
from codesign_bench.tasks import Task
from methods.evolution.training import train
from tests.perf.simulation import grown
from tests.perf.table import Table, heading, interleaved

BODIES = 8
SHAPES = {
    "paper": ("env.max_steps=100", "budget.batch=5_000", "budget.agent_batch=2_000", "budget.steps=400_000_000"),
    "pilot": ("env.max_steps=500", "budget=pilot", "budget.batch=5_000", "budget.agent_batch=2_000", "budget.steps=400_000_000"),
}
"""As many agents and slots as the budget of that name has, with shorter episodes: fewer steps in each slot."""


def make_method(name: str, env: str, task_of: Callable[[Task], Task], *overrides: str) -> Any:
    plan = RunSetup.of(load_config("config", [f"method={name}", f"env={env}", *overrides]))
    groups = plan.settings.sampler.groups
    context = Context(task_of(plan.task), plan.budget, Streams(0), Ledger(plan.budget.steps), groups, plan.workers, "cpu")
    return plan.method_class(plan.method_config, context)


def transform2act(env: str, *overrides: str) -> Any:
    """Transform2Act that keeps the design it is given, with as many bodies as the others have."""
    fixed = ("method.skeleton.steps=0", "method.attribute.steps=0")
    return make_method("transform2act", env, lambda t: t.starting_from(grown(t, BODIES, np.random.default_rng(0))), *fixed, *overrides)


def population(name: str, env: str, bodies: int, *overrides: str) -> Any:
    """A population whose designs all have that many bodies and stay."""
    keep = () if name == "rgs" else ("method.elimination=0",)
    method = make_method(name, env, lambda task: task, *keep, *overrides)
    rngs = [np.random.default_rng(i) for i in range(method.population.size)]
    method.population.species = [method.population.newborn(grown(method.context.task, bodies, rng), "random") for rng in rngs]
    return method


def measure_generations(table: Table, repeats: int = 2) -> None:
    heading(f"Whole generations at {BODIES} bodies against iterations of Transform2Act, sampled by two workers")
    for shape, env in (("paper", "locomotion2d"), ("paper", "swimmer"), ("pilot", "swimmer")):
        methods: dict[str, Method] = {"transform2act": transform2act(env, "workers=2", *SHAPES[shape])}
        methods |= {name: population(name, env, BODIES, "workers=2", *SHAPES[shape]) for name in ("nge", "ess", "rgs")}
        for method in methods.values():
            method.iterate()
        seconds = dict(zip(methods, interleaved(*[method.iterate for method in methods.values()], repeats=repeats), strict=True))
        steps = methods["nge"].iteration_steps(methods["nge"].context.budget)  # type: ignore[attr-defined]
        theirs = 5_000 / seconds.pop("transform2act")
        for name, needed in seconds.items():
            mine = steps / needed
            table.add(f"{env}, {shape}: {name} / transform2act", mine / theirs, 0.7, note=f"   {mine:.0f} of {theirs:.0f} steps/s")
        for method in methods.values():
            method.close()


def measure_memory(table: Table) -> None:
    """A cohort of the paper's size, all designs as large as they can be, of a population of 20. Each in a process of its own, as this one
    keeps what it has freed."""
    heading("Memory of a population of 20 agents with 29 bodies, locomotion3d")
    for name in ("nge", "rgs"):
        line = [sys.executable, "-m", "tests.perf.evolution", name]
        memory = float(subprocess.run(line, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        table.add(f"{name}: gigabytes, workers included", memory, 4, at_most=True)


def memory_of(name: str) -> float:
    """In gigabytes, of this process and its workers; what they share is counted once."""
    torch.set_num_threads(1)
    keep_freed_memory()
    me = psutil.Process(os.getpid())
    method = population(name, "locomotion3d", 29, "workers=2", "method.ppo.passes=1")
    train(method.population.species[: method.sampler.size], method.sampler, 0, 1)
    found = sum(process.memory_full_info().pss for process in [me, *me.children(recursive=True)]) / 1e9
    method.close()
    return found


def measure(table: Table) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    measure_generations(table)
    measure_memory(table)


if __name__ == "__main__":
    print(memory_of(sys.argv[1]))
