"""A study in which one run came from a stranger, the commands that read it, and what none of them may do."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codesign_bench import cli
from codesign_bench.analysis import champions, hyperparameters, tables
from codesign_bench.analysis.collect import collect
from codesign_bench.analysis.design_distribution import read_distribution
from codesign_bench.analysis.genealogy import read_genealogy
from codesign_bench.analysis.report import bodies, commands, data
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError
from codesign_bench.experiment.motion import Motion
from codesign_bench.experiment.reevaluation import Reevaluation
from codesign_bench.launching.status import statuses
from codesign_bench.simulation.showing import random_design, starting_pose
from codesign_bench.tasks import make_task
from tests.analysis.study import fresh_episodes, write_run

LIMIT = 120
"""Seconds of computing after which a command counts as one that hangs."""
STARTS = {"os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "subprocess.Popen", "pty.spawn", "ctypes.dlopen"}
"""Audit events of other programs being run."""
WRITES = {"os.mkdir": 1, "os.remove": 1, "os.rmdir": 1, "os.truncate": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.chmod": 1}

FILES = (
    *("config.yaml", "manifest.json", "status.json", "progress.csv", "motion.json", "reevaluation.json"),
    *("designs/final.json", "designs/final_process.json", "designs/at_000010000.json"),
    *("tables/genealogy.csv", "tables/species.csv", "tables/design_distribution.csv"),
)
"""Of a run folder, all that commands read but the checkpoints."""
MARKUP = "<script>alert('hostile')</script>"
LATEX = r"\input{/etc/passwd}"
ESCAPES = "\x1b[2J\x07\x9b31m\u202e\u2028"
NAME = MARKUP + LATEX + ESCAPES + "$\\frac{1}{0}$ %s {0} &amp; `x` |"
"""What a label may be."""


def study(results: Path) -> Path:
    """Two good runs, and the folder of a third, which has every file that a run can have."""
    for seed in (0, 1):
        write_run(results, seed=seed)
    victim = write_run(results, "nge", seed=0)
    task = make_task("gap")
    stored = StoredDesign.load(victim / "designs" / "final.json")
    text = stored.design.to_json()
    (victim / "designs" / "at_000010000.json").write_text(stored.to_json())
    process = [random_design(task, np.random.default_rng(i)) for i in range(2)]
    (victim / "designs" / "final_process.json").write_text(json.dumps([StoredDesign(each, task.space).to_dict() for each in process]))
    pose = starting_pose(stored.design, task, np.random.default_rng(0))
    Motion(stored.design, task.space, np.stack([pose] * 4), 0.04, 4.0, True).save(victim)
    Reevaluation(fresh_episodes(3.0, 40_000), None).save(victim)
    (victim / "tables").mkdir()
    quoted = '"' + text.replace('"', '""') + '"'
    (victim / "tables" / "species.csv").write_text(f"species,design\n0,{quoted}\n1,{quoted}\n2,{quoted}\n")
    (victim / "tables" / "genealogy.csv").write_text(
        "generation,species,parent,born,mutation,fitness,bodies,champion\n"
        "0,0,,0,initial,1.5,2,1\n0,1,,0,initial,0.5,2,0\n1,0,,0,initial,2.5,2,0\n1,2,0,1,add node,3.5,3,1\n"
    )
    (victim / "tables" / "design_distribution.csv").write_text(
        "iteration,steps,part,attribute,mu,sigma,value\n0,0,torso,length,0,0.1,0.4\n1,10000,torso,length,0.1,0.1,0.41\n"
    )
    return victim


def replaced(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# ---- commands --------------------------------------------------------------------------------------------------------


def light(results: Path, victim: Path, out: Path) -> dict[str, list[str]]:
    """Those that take a second or less."""
    return {
        "status": ["status", f"results={results}"],
        "tables": ["figures", f"results={results}", "study=study", f"out={out / 'figures'}", "only=tables"],
        "report": ["report", f"results={results}", "study=study", f"out={out / 'report.html'}"],
        "export": ["export", f"results={results}", "study=study", f"out={out / 'export'}"],
    }


def heavy(results: Path, victim: Path, out: Path) -> dict[str, list[str]]:
    """All of them."""
    return {
        **light(results, victim, out),
        "figures": ["figures", f"results={results}", "study=study", f"out={out / 'all'}", "formats=svg"],
        "genealogy": ["plot", f"run={victim}", "table=genealogy", f"out={out / 'genealogy.svg'}"],
        "distribution": ["plot", f"run={victim}", "table=design_distribution", f"out={out / 'distribution.svg'}"],
        "gallery": ["gallery", f"results={results}", "study=study", "seed=all", f"out={out / 'gallery.png'}", "width=96", "height=64"],
        "film": ["gallery", f"results={results}", "study=study", f"out={out / 'film.mp4'}", "width=96", "height=64", "seconds=0.2"],
        "play": ["play", f"run={victim}", f"out={out / 'play.png'}", "width=96", "height=64"],
        "reevaluate": ["reevaluate", f"run={victim}", "episodes=1", "workers=0"],
        "against": [
            "figures",
            f"results={results}",
            "study=study",
            "against=study",
            f"out={out / 'against'}",
            "only=against",
            "formats=svg",
        ],
    }


def harmless(results: Path, victim: Path, out: Path, commands: Callable[[Path, Path, Path], dict[str, list[str]]], capsys: Any) -> None:
    """Runs commands on a study: each ends in time with an exit code and printable text, starts nothing, and writes into `out` only."""
    before = tree(results)
    for name, line in commands(results, victim, out).items():
        with watched() as seen, limited(name), pytest.raises(SystemExit) as ended:
            cli.main(line)
        said = "".join(capsys.readouterr())
        assert ended.value.code in (0, 2), f"{name}: {said}"
        assert "Traceback" not in said, f"{name}: {said}"
        assert printable(said), f"{name}: {said!r}"
        assert not (strange := [event for event in seen if not allowed(event, out, victim)]), f"{name}: {strange}"
        written = [path for path in out.rglob("*") if path.suffix in (".html", ".svg", ".md", ".tex")]
        for path in written:
            escaped(path, path.read_text(encoding="utf-8"))
        if name in ("tables", "report", "export", "figures"):
            assert ended.value.code == 0, f"{name}: the good runs are not shown: {said}"
    assert tree(results) == before


def tree(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_size for path in folder.rglob("*") if path.name != ".lock"}


def printable(text: str) -> bool:
    return all(c.isprintable() or c in "\n\r\t" for c in text)


def escaped(path: Path, text: str) -> None:
    assert MARKUP not in text, path
    if path.suffix == ".tex":
        assert LATEX not in text, path
    assert "\x1b" not in text, path
    assert "\x9b" not in text, path
    assert "\u202e" not in text or path.suffix in (".html",), path


# ---- what is watched -------------------------------------------------------------------------------------------------


Event = tuple[str, str]


@cache
def _watching() -> list[list[Event]]:
    """Lists of what is going on, the last of which is added to. An audit hook cannot be removed."""
    watching: list[list[Event]] = []

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if not watching:
            return
        if event in STARTS:
            watching[-1].append((event, str(arguments[0])))
        elif event in WRITES or (event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            for path in arguments[: WRITES.get(event, 1)]:
                if isinstance(path, (str, bytes, os.PathLike)):
                    watching[-1].append((event, os.path.abspath(os.fsdecode(path))))

    sys.addaudithook(note)
    return watching


@contextlib.contextmanager
def watched() -> Iterator[list[Event]]:
    seen: list[Event] = []
    _watching().append(seen)
    try:
        yield seen
    finally:
        _watching().pop()


def allowed(event: Event, out: Path, victim: Path) -> bool:
    """What is written lies in or beside `out`, in a temporary folder of its own, or is what `reevaluate` leaves; what is run is ffmpeg."""
    kind, what = event
    if kind in STARTS:
        return kind == "ctypes.dlopen" or "ffmpeg" in what
    if kind == "os.mkdir" and Path(what).exists():
        return True
    own = Path(what).is_relative_to(out.parent) and not Path(what).is_relative_to(victim.parents[3])
    left = Path(what).parent == victim and Path(what).name.lstrip(".").startswith(("reevaluation.json", "motion.json"))
    return own or left or what.startswith("/dev/") or "__pycache__" in what


@contextlib.contextmanager
def limited(what: str) -> Iterator[None]:
    """Ends what takes longer than LIMIT of this process's own time, or, if it only waits, ten times as long."""

    def late(*_: object) -> None:
        raise AssertionError(f"{what} took more than {LIMIT} s")

    before = {number: signal.signal(number, late) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    signal.alarm(10 * LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)


# ---- without commands ------------------------------------------------------------------------------------------------


def look(results: Path, victim: Path, what: str) -> None:
    """What the commands on a study call, without drawing: nothing but sentences may come out, and the good runs are all there."""
    collection = collect(results, "study")
    shown = {(run.method, run.seed) for run in collection.runs}
    assert {("transform2act", 0), ("transform2act", 1)} <= shown, what
    assert len(shown) + len(collection.left_out) == 3, what
    for left_out in collection.left_out:
        assert len(left_out.reason) < 500, what
    missing: list[str] = []
    made = [kind(collection) for kind in KINDS]
    made += [tables.summary(collection, env) for env in collection.envs]
    made += hyperparameters.tables(collection)
    made += [data.ledger(collection), data.versions(collection)]
    for table in made:
        escaped(Path(f"{what}.md"), table.markdown())
        escaped(Path(f"{what}.tex"), table.latex())
    values = {
        "designs": bodies.designs(collection, missing),
        "lineages": bodies.lineages(collection, missing),
        "curves": [data.curves(collection, env) for env in collection.envs],
        "methods": data.method_entries(collection),
        "commands": [commands.command_of(run) for run in collection.runs],
        "sweeps": commands.sweeps(collection),
        "gaps": data.gaps(collection),
    }
    json.dumps(values, allow_nan=False)
    champions.symmetries(collection, collection.methods)
    statuses(results)
    for read in (read_genealogy, read_distribution):
        with contextlib.suppress(CodesignError):
            read(victim)


KINDS = (tables.methods, tables.final_returns, tables.overall, tables.pairwise, tables.cost, tables.exploration)
