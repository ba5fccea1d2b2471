"""Transform2Act against its limits: bare physics for sampling, the rate of a large matrix product for learning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import psutil
import torch

from codesign_bench.configuration import load_config
from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.method import Context
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.experiment.seeds import Streams
from codesign_bench.learning import products
from codesign_bench.learning.batch import Steps, steps_of_rollout
from codesign_bench.learning.memory import keep_freed_memory
from codesign_bench.learning.ppo import PPO, minibatches
from codesign_bench.simulation.body import Body
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import NO_TRANSFORM
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.sampler import Sampler
from codesign_bench.tasks import Task, make_task
from methods.transform2act.method import Transform2Act, Transform2ActConfig
from tests.perf.simulation import grown
from tests.perf.table import Table, heading, interleaved
from tests.reference import slow_transform2act as slow

SLOTS, BODIES, BATCH = 25, 8, 50_000


def make_method(env: str, *overrides: str) -> Transform2Act:
    """Learns by the fastest route of products, like a run."""
    plan = RunSetup.of(load_config("config", [f"env={env}", "method=transform2act", "workers=0", *overrides]))
    products.use(plan.route(None))
    context = Context(plan.task, plan.budget, Streams(0), Ledger(plan.budget.steps), plan.settings.sampler.groups, plan.workers, "cpu")
    method = plan.method_class(plan.method_config, context)
    assert isinstance(method, Transform2Act)
    return method


def rollout_of(task: Task, method: Transform2Act, bodies: int, steps: int) -> Rollout:
    """Execution steps of random designs of that size under the real policy."""
    designs = [grown(task, bodies, np.random.default_rng(i)) for i in range(SLOTS)]
    return Sampler(task, SLOTS, np.random.SeedSequence(1), NO_TRANSFORM, designs).collect(method.policy.acting(), steps)


# ---- acting ----------------------------------------------------------------------------------------------------------


def measure_acting(table: Table, steps: int = 100) -> None:
    heading(f"Acting with the real policy, {SLOTS} slots in one process, against bare mj_step of the same designs")
    for env in ("locomotion2d", "swimmer", "gap", "locomotion3d"):
        task, method = make_task(env), make_method(env)
        designs = [grown(task, BODIES, np.random.default_rng(i)) for i in range(SLOTS)]
        bodies = [Body(design, task) for design in designs]
        controls = np.random.default_rng(0).normal(0, 1, (steps, SLOTS, BODIES - 1))
        sampler, policy = Sampler(task, SLOTS, np.random.SeedSequence(1), NO_TRANSFORM, designs), method.policy.acting()

        def ours(sampler: Sampler = sampler, policy: Any = policy) -> None:
            sampler.collect(policy, steps)

        def bare(bodies: list[Body] = bodies, controls: Any = controls, task: Task = task) -> None:
            rng = np.random.default_rng(0)
            for now in controls:
                for body, control in zip(bodies, now, strict=True):
                    body.data.ctrl[:] = control
                    mujoco.mj_step(body.model, body.data, task.scene.frame_skip)
                    if body.ended():
                        body.reset(rng)

        for body in bodies:
            body.reset(np.random.default_rng(0))
        mine, theirs = interleaved(ours, bare, repeats=4)
        table.add(f"{env}: acting / bare physics at {BODIES} bodies", theirs / mine, 0.5, note=f"   {SLOTS * steps / mine:.0f} steps/s")


# ---- learning --------------------------------------------------------------------------------------------------------


def product_rates(rows: int = 2048) -> dict[str, float]:
    """Floating-point operations per second on two threads: of a large square float32 product by MKL, as in 0.1.0, and the best of any
    route on that or on the shapes in use."""
    before = products.in_use()
    rates = {}
    torch.set_num_threads(2)
    for route in ("mkl", "onednn"):
        products.use(route)  # type: ignore[arg-type]
        for shape in ((rows, rows, rows), (2 * rows, 64, 128), (rows, 512, 256)):
            a, b = torch.randn(shape[0], shape[1]), torch.randn(shape[1], shape[2])
            (seconds,) = interleaved(lambda a=a, b=b: a @ b, repeats=8)
            rates[route, shape] = 2 * float(np.prod(shape)) / seconds
    torch.set_num_threads(1)
    products.use(before)
    return {"MKL, large": rates["mkl", (rows, rows, rows)], "best": max(rates.values())}


def needed_operations(steps: Steps, config: Transform2ActConfig, features: int) -> float:
    """Floating-point operations of the products that one pass needs: forward, gradient of the weights, gradient of the
    inputs (but not of the features). All steps are execution steps; the value is needed at the root only."""
    gnn, mlp, value_gnn, value_mlp = config.execution.gnn or (), config.execution.mlp, config.value.gnn, config.value.mlp
    depth = steps.space.joint_depths[steps.joint_index]
    nodes = len(depth)
    total = 2.0 * nodes * features * gnn[0]
    for a, b in zip((gnn[0], *gnn[:-1]), gnn, strict=True):
        total += 3.0 * nodes * 2 * a * b
    for a, b in zip((gnn[-1], *mlp), (*mlp, 1), strict=True):
        total += 3.0 * nodes * a * b
    reach = len(value_gnn)
    total += 2.0 * np.count_nonzero(depth <= reach) * (features + 3) * value_gnn[0]
    for layer, (a, b) in enumerate(zip((value_gnn[0], *value_gnn[:-1]), value_gnn, strict=True)):
        total += 3.0 * np.count_nonzero(depth <= reach - 1 - layer) * 2 * a * b
    for a, b in zip((value_gnn[-1], *value_mlp), (*value_mlp, 1), strict=True):
        total += 3.0 * steps.num_steps * a * b
    return 2.0 * total


def measure_learning(table: Table) -> None:
    heading(f"A learning pass over {BATCH} steps in two processes, as a share of the limit of float32 products on two cores")
    for env, bodies in (("locomotion2d", 4), ("locomotion2d", 8), ("locomotion3d", 8)):
        for minibatch, bar in ((2048, 0.45), (512, None)):
            _learning_pass(table, env, bodies, minibatch, bar)


def _learning_pass(table: Table, env: str, bodies: int, minibatch: int, bar: float | None) -> None:
    task = make_task(env)
    method = make_method(env, "method.ppo.passes=1", f"method.ppo.minibatch={minibatch}", "workers=2")
    part = rollout_of(task, method, bodies, 100)
    rollout = Rollout.concatenate([part] * (BATCH // part.num_steps))
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    before = product_rates()
    mine = _seconds_of_a_pass(method.ppo, rollout, steps, bootstrap)
    rate = {name: max(rate, before[name]) for name, rate in product_rates().items()}
    operations = needed_operations(steps, method.config, task.feature_size)
    shares = {name: operations / rate[name] / mine for name in rate}
    note = f"   {BATCH / mine:.0f} steps/s a pass; {operations / mine / 1e9:.0f} of {rate['best'] / 1e9:.0f} GFLOP/s"
    note += f" ({shares['MKL, large']:.2f} of MKL's large products); products by {products.in_use()}"
    table.add(f"{env}, {bodies} bodies, minibatch {minibatch}: share of the limit", shares["best"], bar, note=note)
    if bodies == BODIES and bar is not None:
        theirs = _slow_pass(method, part, task) * BATCH / part.num_steps
        table.add(f"{env}: slow reference (on {part.num_steps} of the steps) / ours", theirs / mine, 8)
    method.close()


def _seconds_of_a_pass(ppo: PPO, rollout: Rollout, steps: Steps, bootstrap: Steps) -> float:
    """Two passes over a batch less one pass: what is done once for a batch (values, advantages) is left out, as it is for the slow
    implementation. The best of each, as the limit is the best rate that was seen."""
    config, learn = ppo.config, []
    for passes in (1, 2):

        def with_passes(passes: int = passes) -> None:
            ppo.config = replace(config, passes=passes)
            ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))

        learn.append(with_passes)
    one, two = interleaved(*learn, repeats=4)
    ppo.config = config
    return two - one


def _slow_pass(method: Transform2Act, rollout: Rollout, task: Task) -> float:
    """Seconds of one pass of the slow obvious implementation in float64, on two threads, over a smaller rollout."""
    config, double = method.config.ppo, torch.float64
    networks = slow.slow_policy(method.policy, task, double), slow.slow_value(method.value, double)
    optimisers = slow.adam(networks[0], config.policy_lr), slow.adam(networks[1], config.value_lr)
    steps, _ = slow.steps_of(rollout, task, double)
    old = torch.from_numpy(rollout.log_prob.ravel()).double()
    advantage = torch.randn(len(steps), dtype=double)
    parts = minibatches(rollout.stage.ravel(), config.minibatch, np.random.default_rng(0))
    torch.set_num_threads(2)
    start = time.perf_counter()
    slow.slow_learning_pass(networks, optimisers, steps, old, advantage, advantage, parts, config.clip, config.policy_gradient_clip)
    seconds = time.perf_counter() - start
    torch.set_num_threads(1)
    return seconds


# ---- whole iterations ------------------------------------------------------------------------------------------------


PUBLISHED = {"locomotion2d": 204, "swimmer": 244, "gap": 184, "locomotion3d": 80}
"""Steps/s of the published implementation on a machine of two cores."""


def measure_iterations(table: Table) -> None:
    """Each environment in a process of its own, as this one keeps what it has freed."""
    heading(f"Whole iterations of {BATCH} steps: sample, learn, evaluate")
    for env, published in PUBLISHED.items():
        line = [sys.executable, "-m", "tests.perf.learning", env]
        found = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        split = ", ".join(f"{name} {share:.0%}" for name, share in found["split"].items())
        note = f"   {found['rate']:.0f} steps/s: {split}; products by {found['products']}"
        table.add(f"{env}: steps/s over the published implementation's {published}", found["rate"] / published, note=note)
        table.add(f"{env}: hours for 50 million steps at this rate", 50e6 / found["rate"] / 3600)
        table.add(f"{env}: gigabytes of memory, workers included", found["memory"], 3, at_most=True)


def iterations(env: str, count: int = 2) -> dict[str, Any]:
    """Steps per second, the shares of what they are spent on, and gigabytes of memory. What is shared is counted once."""
    method = make_method(env, "workers=2")
    seconds = {"sample": 0.0, "learn": 0.0, "evaluate": 0.0}
    collect, learn = method.pool.collect, method.ppo.learn
    method.pool.collect = _timed(collect, seconds, "sample")  # type: ignore[method-assign]
    method.ppo.learn = _timed(learn, seconds, "learn")  # type: ignore[method-assign]
    start = time.perf_counter()
    for i in range(count):
        method.iterate()
        now = time.perf_counter()
        evaluate(method.champion(), 10, np.random.SeedSequence(i))
        seconds["evaluate"] += time.perf_counter() - now
    total = time.perf_counter() - start
    me = psutil.Process(os.getpid())
    memory = sum(process.memory_full_info().pss for process in [me, *me.children(recursive=True)]) / 1e9
    method.close()
    split = {name: value / total for name, value in seconds.items()}
    return {"rate": count * BATCH / total, "split": split, "memory": memory, "products": products.in_use()}


def _timed(function: Any, seconds: dict[str, float], name: str) -> Any:
    def wrapped(*arguments: Any) -> Any:
        start = time.perf_counter()
        result = function(*arguments)
        seconds[name] += time.perf_counter() - start
        return result

    return wrapped


def measure_growth(table: Table) -> None:
    heading("Cost of a step: learning one pass over 5,000 steps, by bodies and by iterations done")
    task = make_task("locomotion2d")
    method = make_method("locomotion2d", "method.ppo.passes=1")
    cost = {}
    for bodies in (4, 14):
        rollout = rollout_of(task, method, bodies, 200)
        steps, bootstrap = steps_of_rollout(rollout, task.space)
        (cost[bodies],) = interleaved(
            lambda r=rollout, s=steps, b=bootstrap: method.ppo.learn(r, s, b, np.random.default_rng(0)), repeats=3
        )
    table.add("time at 14 bodies / time at 4 bodies", cost[14] / cost[4], 14 / 4, at_most=True)
    for _ in range(15):
        method.ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0))
    (later,) = interleaved(lambda: method.ppo.learn(rollout, steps, bootstrap, np.random.default_rng(0)), repeats=3)
    table.add("time after 15 more updates / time before", later / cost[14], 1.3, at_most=True)


def measure(table: Table) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    measure_acting(table)
    measure_learning(table)
    measure_growth(table)
    measure_iterations(table)


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep_freed_memory()
    print(json.dumps(iterations(sys.argv[1])))
