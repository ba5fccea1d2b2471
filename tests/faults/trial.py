"""A trial: a run, some faults on its way to its end, and what must be true after each of them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from codesign_bench.commands import status as status_command
from codesign_bench.experiment import checkpoint
from codesign_bench.experiment.equality import require
from codesign_bench.experiment.run_folder import RunFolder, configuration_hash
from tests.faults.case import MARK, Case, Finished, complete
from tests.faults.faults import Fault
from tests.faults.runs import Twin, config_of, rows_of, twin_of

SHARED = re.compile(r"psm_|torch_|sem\.|codesign")
"""Names of shared memory and semaphores, if somebody makes such."""

STOP = "stop"
"""A file of this name in the folder of trials: they are to come to an end."""
LAST_MOMENT = 20.0
"""Seconds that the workers of a run that was killed have to go, on a machine that is busy."""


@dataclass
class Found:
    """After one fault: rows that are gone, where the run is not bit-equal, which other promise is broken."""

    fault: str
    lost: int = 0
    unequal: str = ""
    broken: str = ""

    @property
    def bad(self) -> bool:
        return bool(self.lost or self.unequal or self.broken)


@dataclass
class Verdict:
    """Of a trial. `folder` is where its run still lies, if something is wrong with it."""

    number: int
    method: str
    found: list[Found] = field(default_factory=list)
    folder: str = ""

    @property
    def bad(self) -> bool:
        return any(each.bad for each in self.found)


def attempt(method: str, faults: Sequence[Fault], seed: Sequence[int], folder: Path) -> Verdict:
    """Disturbs a run of the method by each of the faults, as far as it lasts, brings it to its end, and looks at it after each. `folder` is
    for this and other trials; those of one method share a twin."""
    root = folder / "_".join(map(str, seed))
    (root / "results").mkdir(parents=True)
    case = Case(config_of(method, root / "results"), np.random.default_rng(seed), root)
    verdict, known, shared = Verdict(seed[-1], method), 0, named_memory()
    try:
        twin = twin_of(case.config, folder / "twins", complete)
        for number, fault in enumerate(faults):
            if (folder / STOP).exists():
                break
            case.rng = np.random.default_rng([*seed, number])
            found = Found(fault.__name__)
            verdict.found.append(found)
            try:
                fault(case)
            except Finished:
                verdict.found.pop()
                break
            finally:
                case.close()
            known = look(case, twin, known, found)
        verdict.found = verdict.found or [Found("none")]
        finish(case, case.config, twin, known, verdict.found[-1])
        for other in case.others:
            finish(case, other, twin_of(other, folder / "twins", complete), 0, verdict.found[-1])
        nothing_left(case, shared)
    except Exception:
        verdict.found = verdict.found or [Found("none")]
        verdict.found[-1].broken = traceback.format_exc(limit=-3)
    finally:
        case.close()
    if verdict.bad:
        verdict.folder = str(root)
    else:
        shutil.rmtree(root)
    return verdict


def look(case: Case, twin: Twin, known: int, found: Found) -> int:
    """After a fault, when nothing of the case runs. `known` rows were safe before, the result are now."""
    no_process_left(case)
    rows = rows_of(case.folder / "progress.csv")
    now = rows_by_ledger(case.config)
    found.lost += max(0, max(known, now) - len(rows))
    found.unequal = twin.differs_so_far(case.config) or ""
    status_is_true(case.config)
    return now


def finish(case: Case, config: dict[str, Any], twin: Twin, known: int, found: Found) -> None:
    """The same command, to the end; nothing may be different then."""
    case.config = config
    process = case.start()
    said = process.end()
    require(process.code == 0, said)
    look(case, twin, known, found)
    found.unequal = found.unequal or twin.differs_from(Twin.of(config)) or ""
    folder, budget = RunFolder.of(config), config["budget"]["steps"]
    require(folder.status()["status"] == "done", f"the status of a finished run is {folder.status()}")
    last = rows_of(folder.progress)[-1]
    require(int(last["steps"]) == budget, f"the last row has {last['steps']} steps, of {budget}")
    require(len(list(folder.checkpoints.iterdir())) == checkpoint.KEPT, "there are other files than the two latest checkpoints")


def rows_by_ledger(config: dict[str, Any]) -> int:
    """How many rows the newest whole checkpoint knows of. As far as they are there, they must say what its ledger says."""
    folder = RunFolder.of(config)
    state, _ = checkpoint.load_latest(folder.checkpoints, configuration_hash(config))
    if state is None:
        return 0
    known, ledger = int(state["evaluations"]), state["ledger"]
    rows = rows_of(folder.progress)[:known]
    steps = [int(row["steps"]) for row in rows]
    require(steps == sorted(set(steps)), f"rows are doubled: {steps}")
    if known and len(rows) == known:
        last = rows[-1]
        require(steps[-1] <= ledger["charged"], f"the last row has {steps[-1]} steps, the ledger {ledger['charged']}")
        metered = (int(last["eval_steps"]), ledger["evaluation"])
        require(metered[0] == metered[1], f"the last row has {metered[0]} steps of evaluations, the ledger {metered[1]}")
    return known


def status_is_true(config: dict[str, Any]) -> None:
    """`codesign-bench status` on runs that nobody works on: how far they are, and that they are not running."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status_command.main([f"results={config['results']}", "json=true"])
    for each in json.loads(said.getvalue()):
        saved = sorted(int(path.stem) for path in Path(each["path"], "checkpoints").glob("*.ckpt"))
        allowed = saved if len(saved) > 1 else [0, *saved]
        require(each["steps"] in allowed, f"status says {each['steps']} steps, and checkpoints have {allowed}")
        done = each["steps"] == config["budget"]["steps"]
        require(each["state"] in (("done", "stopped") if done else ("stopped", "failed", "missing")), f"status says {each}")


def no_process_left(case: Case) -> None:
    deadline = time.monotonic() + LAST_MOMENT
    while left := marked(case.root):
        require(time.monotonic() < deadline, f"the processes {[each.pid for each in left]} are left")
        time.sleep(0.05)


def marked(root: Path) -> list[psutil.Process]:
    """Processes that a case's began: they have its mark in their environment."""
    found = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if each.environ().get(MARK) == str(root) and each.status() != psutil.STATUS_ZOMBIE:
                found.append(each)
    return found


def nothing_left(case: Case, before: set[str]) -> None:
    """No temporary file, no traceback, no shared memory that nobody has mapped any more."""
    files = [path for path in Path(case.config["results"]).rglob("*") if ".tmp" in path.name or path.name in ("error.txt", "dump.pt")]
    files += list((case.root / "tmp").iterdir())
    require(not files, f"there are {', '.join(map(str, files))} left")
    if new := named_memory() - before:
        mapped = "".join(_maps(process.pid) for process in psutil.process_iter())
        left = [name for name in new & named_memory() if f"/dev/shm/{name}" not in mapped]
        require(not left, f"the shared memory {', '.join(left)} is left")


def named_memory() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if SHARED.match(name)} if os.path.isdir("/dev/shm") else set()


def _maps(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/maps").read_text()
    return ""
