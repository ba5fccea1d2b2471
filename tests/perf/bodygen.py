"""BodyGen against its limits: bare physics for acting, the rate of a large matrix product for learning."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from codesign_bench.configuration import load_config
from codesign_bench.experiment.method import Context
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.experiment.seeds import Streams
from codesign_bench.learning import products
from codesign_bench.learning.batch import Steps, steps_of_rollout
from codesign_bench.learning.credit import Taken
from codesign_bench.learning.memory import keep_freed_memory
from codesign_bench.simulation.body import Body
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import NO_TRANSFORM
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.sampler import Sampler
from methods.bodygen.method import BodyGen
from tests.perf.simulation import grown
from tests.perf.table import Table, heading, interleaved

SLOTS, ENV, MINIBATCH = 25, "walker_medium", 2048


def make_method(name: str = "bodygen", workers: int = 0) -> BodyGen:
    plan = RunSetup.of(load_config("config", [f"env={ENV}", f"method={name}", f"workers={workers}"]))
    context = Context(plan.task, plan.budget, Streams(0), Ledger(plan.budget.steps), plan.settings.sampler.groups, plan.workers, "cpu")
    method = plan.method_class(plan.method_config, context)
    assert isinstance(method, BodyGen)
    return method


def sampler_of(method: BodyGen, bodies: int) -> Sampler:
    designs = [grown(method.task, bodies, np.random.default_rng(i)) for i in range(SLOTS)]
    return Sampler(method.task, SLOTS, np.random.SeedSequence(1), NO_TRANSFORM, designs)


def needed_operations(method: BodyGen, steps: Steps) -> float:
    """Floating-point operations of the products that control steps need: forward, gradient of the weights, gradient of the inputs (but
    not of the features). Of the last block of the value only the roots are needed beyond keys and values."""
    config, features = method.config, method.task.features.size
    width, hidden, blocks = config.mosat.width, config.mosat.hidden, config.mosat.blocks
    nodes, bodies, pairs = float(steps.count.sum()), float(steps.num_steps), float((steps.count.astype(np.float64) ** 2).sum())
    block = nodes * (3 * width * width + 2 * width * hidden) + 2 * pairs * width
    last = nodes * 2 * width * width + bodies * (width * width + 2 * width * hidden) + 2 * nodes * width
    head = sum(a * b for a, b in zip((width, *config.value.mlp), (*config.value.mlp, 1), strict=True))
    policy = 2 * nodes * features * width + 3 * (blocks * block + nodes * width)
    value = 2 * nodes * features * width + 3 * ((blocks - 1) * block + last + bodies * head)
    return 2 * (policy + value)


def measure_acting(table: Table, method: BodyGen, bodies: int = 8, steps: int = 60) -> None:
    task, sampler, policy = method.task, sampler_of(method, bodies), method.policy.acting()
    robots = [Body(grown(task, bodies, np.random.default_rng(i)), task) for i in range(SLOTS)]
    controls = np.random.default_rng(0).normal(0, 1, (steps, SLOTS, bodies - 1))

    def bare() -> None:
        rng = np.random.default_rng(0)
        for now in controls:
            for body, control in zip(robots, now, strict=True):
                body.data.ctrl[:] = control
                mujoco.mj_step(body.model, body.data, task.scene.frame_skip)
                if body.ended():
                    body.reset(rng)

    for body in robots:
        body.reset(np.random.default_rng(0))
    mine, theirs = interleaved(lambda: sampler.collect(policy, steps), bare, repeats=4)
    table.add(f"{ENV}: acting / bare physics at {bodies} bodies", theirs / mine, 0.4, note=f"   {SLOTS * steps / mine:.0f} steps/s")


def measure_learning(table: Table, method: BodyGen, bodies: int) -> None:
    part = sampler_of(method, bodies).collect(method.policy.acting(), 32)
    rollout = Rollout.concatenate([part] * -(-MINIBATCH // part.num_steps))
    steps, _ = steps_of_rollout(rollout, method.task.space)
    method.ppo._load(Taken(steps, rollout.actions, rollout.log_prob.ravel()))
    chosen, a, b = np.arange(MINIBATCH), torch.randn(1024, 1024), torch.randn(1024, 1024)

    def minibatch() -> None:
        method.ppo.shards.gradients(chosen)
        method.ppo.shards.step((1.0, 1.0), (1e-9, 1e-9), 1)

    mine, product = interleaved(minibatch, lambda: a @ b, repeats=10)
    operations, rate = needed_operations(method, steps.select(chosen)), 2 * 1024**3 / product
    note = f"   {operations / mine / 1e9:.0f} of {rate / 1e9:.0f} GFLOP/s, one core"
    table.add(f"{ENV}: limit of matrix products / minibatch of {bodies} bodies", operations / rate / mine, 0.35, note=note)


def measure_leader(table: Table) -> None:
    heading("A leader's price: whole iterations of Stackelberg PPO against BodyGen's, two workers")
    methods = [make_method(name, workers=2) for name in ("stackelberg", "bodygen")]
    mine, theirs = interleaved(*[method.iterate for method in methods], repeats=2)
    for method in methods:
        method.close()
    rates = " and ".join(f"{methods[0].steps_per_slot * methods[0].pool.slots / seconds:.0f}" for seconds in (mine, theirs))
    table.add(f"{ENV}: time of an iteration / BodyGen's", mine / theirs, 2, at_most=True, note=f"   {rates} steps/s")


def measure(table: Table) -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    method = make_method()
    for route in ("mkl", "onednn"):
        if route == "onednn" and not products.is_exact("onednn"):
            continue
        heading(f"BodyGen, {SLOTS} slots in one process, products by {route}")
        with products.using(route):  # type: ignore[arg-type]
            measure_acting(table, method)
            for bodies in (5, 14):
                measure_learning(table, method, bodies)
    measure_leader(table)


if __name__ == "__main__":
    measure(Table())
