"""The simulation core against bare MuJoCo: the same designs, steps and controls, in one run."""

from __future__ import annotations

import gc
import multiprocessing
import sys
import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from codesign_bench.design.graph import Design
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.transform import ADD_JOINT, attribute_transform, skeleton_transform
from codesign_bench.simulation import body as body_module
from codesign_bench.simulation.body import Body, BodyPool
from codesign_bench.simulation.episode import NO_TRANSFORM, Stage
from codesign_bench.simulation.graphs import Rollout
from codesign_bench.simulation.sampler import Sampler, child_seed, random_policy
from codesign_bench.simulation.workers import Group, WorkerPool
from codesign_bench.tasks import TASKS, Task, make_task
from tests.perf.table import Table, heading, interleaved

SIZES = (2, 4, 8, 14)
SLOTS = 25


def grown(task: Task, bodies: int, rng: np.random.Generator) -> Design:
    """A random design with that many bodies."""
    design = task.initial_design
    while design.num_nodes < bodies:
        actions = np.zeros(design.num_nodes, dtype=int)
        actions[rng.choice(np.flatnonzero(task.space.topology(design).can_add))] = ADD_JOINT
        design = skeleton_transform(design, actions, task.space)
    return attribute_transform(design, rng.normal(0, 0.3, design.attributes.shape), task.space)


def sizes(task: Task) -> list[int]:
    return sorted({max(size, task.initial_design.num_nodes) for size in SIZES})


def measure_bodies(table: Table) -> None:
    heading("One body: building and stepping, against bare MuJoCo")
    for name in TASKS:
        task, rng = make_task(name), np.random.default_rng(0)
        for size in sizes(task):
            designs = [grown(task, size, rng) for _ in range(25)]
            stream, cold, warm = _building(designs, task)
            note = f"   first of a skeleton {cold:.2f}, later {warm:.2f}"
            table.add(f"{name}, {size} bodies: build / (compile + MjData)", stream, 1.5, at_most=True, note=note)
            rate, bare = _stepping(designs[0], task)
            bar = 0.35 if size == 8 else None  # of one body; the functions of a task are made for many (sampler rate, below)
            table.add(f"{name}, {size} bodies: step rate / bare mj_step rate", rate, bar, note=f"   bare {bare:.0f} us a step")


def _building(designs: list[Design], task: Task) -> tuple[float, float, float]:
    """Time of building a stream of designs as the sampler does, from nothing kept; of the first design of each skeleton; and
    of later ones; all relative to bare compilation of the same designs."""
    texts = [to_mjcf(design, task.space, task.scene) for design in designs]
    pool = BodyPool(task)

    def bare() -> None:
        for text in texts:
            mujoco.MjData(mujoco.MjModel.from_xml_string(text))

    def stream() -> None:
        body_module._compiled.clear()
        fresh = BodyPool(task)
        for design in designs:
            fresh.discard(fresh.build(design))

    def first() -> None:
        for design in designs:
            body_module._compiled.clear()
            Body(design, task)

    def later() -> None:
        for design in designs:
            pool.discard(pool.build(design))

    theirs, *mine = interleaved(bare, stream, first, later, repeats=12)
    in_stream, cold, warm = (seconds / theirs for seconds in mine)
    return in_stream, cold, warm


def _stepping(design: Design, task: Task, steps: int = 80) -> tuple[float, float]:
    body = Body(design, task)
    controls = np.random.default_rng(1).uniform(-0.3, 0.3, (steps, design.num_nodes))

    def bare() -> None:
        body.reset(np.random.default_rng(2))
        model, data, skip = body.model, body.data, task.scene.frame_skip
        for control in controls:
            data.ctrl[:] = control[1:]
            mujoco.mj_step(model, data, skip)

    def ours() -> None:
        body.reset(np.random.default_rng(2))
        for control in controls:
            body.step(control)
            body.state()

    theirs, mine = interleaved(bare, ours, repeats=20)
    return theirs / mine, theirs / steps * 1e6


def replay(rollout: Rollout, task: Task, seed: np.random.SeedSequence) -> Callable[[], None]:
    """The bare cost of what a sampler did from its beginning: compile the same designs, take the same steps with the same
    controls from the same starts, and nothing else."""
    plans = []
    for slot in range(rollout.design.shape[1]):
        noise = np.random.default_rng(child_seed(seed, 1 + slot))
        episodes: list[tuple[str, Any, list[Any]]] = []
        fresh = True
        for t in range(rollout.design.shape[0]):
            if rollout.stage[t, slot] == Stage.EXECUTION:
                table, row = rollout.designs, rollout.design[t, slot]
                nodes = table.offsets[row + 1] - table.offsets[row]
                first = rollout.node_offset[t, slot]
                if fresh:
                    design = _design_of(rollout, int(row), task)
                    body = Body(design, task)
                    body.reset(noise)
                    episodes.append((to_mjcf(design, task.space, task.scene), body.snapshot(), []))
                    fresh = False
                order = task.space.topology(design).order[1:]
                episodes[-1][2].append(rollout.actions[first : first + nodes, 0][order].astype(np.float64))
            fresh = fresh or bool(rollout.terminated[t, slot])
        plans.append(episodes)
    skip, full = task.scene.frame_skip, mujoco.mjtState.mjSTATE_INTEGRATION

    def work() -> None:
        for episodes in plans:
            for text, state, controls in episodes:
                model = mujoco.MjModel.from_xml_string(text)
                data = mujoco.MjData(model)
                mujoco.mj_setState(model, data, state, full)
                for control in controls:
                    data.ctrl[:] = control
                    mujoco.mj_step(model, data, skip)

    return work


def _design_of(rollout: Rollout, row: int, task: Task) -> Design:
    """A row of the design table as a design (axis, range and friction are those of the limb it grew from)."""
    rows = slice(rollout.designs.offsets[row], rollout.designs.offsets[row + 1])
    parents = rollout.designs.parents[rows]
    limb = np.arange(len(parents))
    for node in range(len(parents)):
        if rollout.designs.depth[rows][node] > 1:
            limb[node] = limb[parents[node]]
    initial = task.initial_design
    return Design(
        parents=parents,
        attributes=rollout.designs.attributes[rows],
        axis=initial.axis[limb],
        range=initial.range[limb],
        friction=initial.friction[limb],
        joint_offset=np.zeros((len(parents), 3)),
        root_bone=initial.root_bone,
        root_geoms=initial.root_geoms,
    )


def measure_sampler(table: Table, steps: int = 120) -> None:
    heading(f"The sampler: {SLOTS} slots, random designs, episodes restarting, against the bare cost of the same work")
    for name in TASKS:
        task, seed = make_task(name), np.random.SeedSequence(5)
        rollout = Sampler(task, SLOTS, seed).collect(random_policy, steps)

        def ours(task: Task = task, seed: np.random.SeedSequence = seed) -> None:
            body_module._compiled.clear()
            Sampler(task, SLOTS, seed).collect(random_policy, steps)

        mine, theirs = interleaved(ours, replay(rollout, task, seed), repeats=6)
        bodies = np.diff(rollout.designs.offsets)[rollout.design].mean()
        note = f"   {rollout.num_steps / mine:.0f} steps/s, {len(rollout.episodes)} episodes ended, {bodies:.1f} bodies"
        table.add(f"{name}: sampler rate / bare rate", theirs / mine, 0.6, note=note)


def measure_workers(table: Table, steps: int = 100) -> None:
    """Two processes on two cores rarely do twice the work of one, whatever they run; workers must not lose more than that."""
    heading("What a second worker process adds, against what a second bare-physics process adds (fixed designs of 8 bodies)")
    scaling = []
    for name in TASKS:
        task, rng = make_task(name), np.random.default_rng(3)
        designs = tuple(grown(task, 8, rng) for _ in range(SLOTS))
        groups = [Group(task, SLOTS, child_seed(np.random.SeedSequence(6), i), NO_TRANSFORM, designs) for i in range(2)]
        with WorkerPool(groups[:1], workers=1) as one, WorkerPool(groups, workers=2) as two, _BareProcesses(task, designs, steps) as bare:
            work = (
                lambda pool=one: pool.collect(random_policy, steps),
                lambda pool=two: pool.collect(random_policy, steps),
                lambda bare=bare: bare.run(1),
                lambda bare=bare: bare.run(2),
            )
            one_worker, two_workers, one_bare, two_bare = interleaved(*work, repeats=6)
        mine, theirs = 2 * one_worker / two_workers, 2 * one_bare / two_bare
        scaling.append(mine / theirs)
        note = f"   {2 * SLOTS * steps / two_workers:.0f} steps/s; a second process: x{mine:.2f}, bare x{theirs:.2f}"
        table.add(f"{name}: rate of two workers / two bare processes", two_bare / two_workers, note=note)
    table.add("all: scaling of workers / scaling of bare processes", float(np.exp(np.mean(np.log(scaling)))), 0.9)


class _BareProcesses:
    """Two processes that only call mj_step, on command."""

    def __init__(self, task: Task, designs: tuple[Design, ...], steps: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._ends = []
        for i in range(2):
            mine, theirs = context.Pipe()
            context.Process(target=_bare_physics, args=(theirs, task, designs, steps, i), daemon=True).start()
            self._ends.append(mine)
        for end in self._ends:
            end.recv()

    def run(self, count: int) -> None:
        for end in self._ends[:count]:
            end.send("go")
        for end in self._ends[:count]:
            end.recv()

    def __enter__(self) -> _BareProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for end in self._ends:
            end.close()


def _bare_physics(pipe: Any, task: Task, designs: tuple[Design, ...], steps: int, seed: int) -> None:
    bodies = [Body(design, task) for design in designs]
    rng = np.random.default_rng(seed)
    for body in bodies:
        body.reset(rng)
    pipe.send("ready")
    try:
        while pipe.recv() == "go":
            for control in rng.uniform(-0.3, 0.3, (steps, bodies[0].model.nu)):
                for body in bodies:
                    body.data.ctrl[:] = control
                    mujoco.mj_step(body.model, body.data, task.scene.frame_skip)
                    if body.ended():
                        body.reset(rng)
            pipe.send("done")
    except EOFError:
        return


def resident_megabytes() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def measure_memory(table: Table) -> None:
    heading("Memory of a worker that holds 25 slots, above its imports")
    for name in TASKS:
        task = make_task(name)
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(target=_grow_memory, args=(theirs, task), daemon=True)
        process.start()
        before, after, heavy = mine.recv()
        process.join()
        table.add(f"{name}: megabytes above imports", after - before, 100, at_most=True, note=f"   imports {before:.0f} MB")
        table.add(f"{name}: torch_geometric imported by a worker", float(heavy), 0, at_most=True)


def _grow_memory(pipe: Any, task: Task) -> None:
    import codesign_bench.simulation.workers  # noqa: F401 (what a worker imports)

    gc.collect()
    before = resident_megabytes()
    sampler = Sampler(task, SLOTS, np.random.SeedSequence(0))
    for _ in range(10):
        sampler.collect(random_policy, 100)
    pipe.send((before, resident_megabytes(), "torch_geometric" in sys.modules))
    time.sleep(0.1)


def measure(table: Table) -> None:
    measure_bodies(table)
    measure_sampler(table)
    measure_workers(table)
    measure_memory(table)
