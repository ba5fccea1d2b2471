"""Files that a stranger may have sent, in place of each file of a run folder. corpus/<file>/ holds them; the largest are made here."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.folders import ESCAPES, FILES, MARKUP, NAME, harmless, heavy, light, limited, look, replaced, study, tree
from tests.simulation.drawing import needs_drawing

CORPUS = Path(__file__).with_name("corpus")
TARGETS = {name.replace("/", "__"): name for name in FILES}
CASES = sorted((path.parent.name, path.name) for path in CORPUS.glob("*/*"))
GENEALOGY = b"generation,species,parent,born,mutation,fitness,bodies,champion\n"
LARGE: dict[str, Callable[[], bytes]] = {
    "config.yaml": lambda: b"a: [" + b"1," * 600_000 + b"]",
    "manifest.json": lambda: b"[" * 5_000_000,
    "status.json": lambda: b'{"status":' * 500_000,
    "progress.csv": lambda: b"iteration,steps,return_mean\n" + b"".join(b"1,%d,1\n" % i for i in range(40_000)) * 3,
    "motion.json": lambda: b'{"poses": [' + b"[" * 2_000_000,
    "reevaluation.json": lambda: b'{"agent": ' + b"1" * 3_000_000,
    "designs/final.json": lambda: b"[" * 9_000_000,
    "designs/final_process.json": lambda: b"[" + b"{}," * 500_000 + b"{}]",
    "designs/at_000010000.json": lambda: b" " * 9_000_000,
    "tables/genealogy.csv": lambda: (
        b"generation,species,parent,born,mutation,fitness,bodies,champion\n"
        + b"".join(b"%d,%d,%d,0,x,1,2,1\n" % (i, i, i - 1) for i in range(70_000))
    ),
    "tables/species.csv": lambda: b"species,design\n" + b"0,x\n" * 500_000,
    "tables/design_distribution.csv": lambda: b"iteration,steps,part,attribute,mu,sigma,value\n" + b"0,0,torso,length,0,1,1\n" * 500_000,
}
READERS = {
    "manifest.json": ("tables", "report", "export"),
    "status.json": ("status", "report"),
    "progress.csv": ("tables", "report", "figures", "gallery"),
    "motion.json": ("report", "film", "play"),
    "reevaluation.json": ("tables", "report"),
    "designs/final.json": ("report", "figures", "gallery"),
    "designs/final_process.json": ("report", "figures", "play"),
    "designs/at_000010000.json": ("report",),
    "tables/genealogy.csv": ("report", "genealogy"),
    "tables/species.csv": ("genealogy",),
    "tables/design_distribution.csv": ("distribution",),
}
"""The commands that look into a file; all of them look into config.yaml."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("hostile")
    return root, study(root / "results")


@pytest.fixture
def victim(place: tuple[Path, Path]) -> Iterator[Path]:
    """The stranger's run, put back afterwards."""
    root, victim = place
    kept = root / "kept"
    shutil.copytree(victim, kept)
    yield victim
    shutil.rmtree(victim)
    kept.rename(victim)


def test_every_file_has_its_strangers() -> None:
    """And none is there for a file that nobody reads."""
    counts = Counter(folder for folder, _ in CASES)
    assert counts.keys() == TARGETS.keys() >= {name.replace("/", "__") for name in READERS}
    assert min(counts.values()) >= 8
    assert LARGE.keys() == set(FILES)


@pytest.mark.parametrize("folder", TARGETS)
def test_the_rest_of_the_study_is_looked_at(victim: Path, place: tuple[Path, Path], folder: str) -> None:
    """Without the commands around it: what they call, for every file of the corpus."""
    results = place[0] / "results"
    for _, name in [case for case in CASES if case[0] == folder]:
        replaced(victim / TARGETS[folder], (CORPUS / folder / name).read_bytes())
        before = tree(results)
        with limited(name):
            look(results, victim, f"{folder}/{name}")
        assert tree(results) == before


@needs_drawing
@pytest.mark.slow
@pytest.mark.parametrize(("folder", "name"), CASES)
def test_commands(victim: Path, place: tuple[Path, Path], tmp_path: Path, capsys: Any, folder: str, name: str) -> None:
    file = TARGETS[folder]
    replaced(victim / file, (CORPUS / folder / name).read_bytes())
    commands(victim, place, tmp_path, capsys, file)


@needs_drawing
@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("kind", ["large", "pipe", "folder", "device", "dangling link", "link to itself"])
def test_files_that_are_large_or_none(victim: Path, place: tuple[Path, Path], tmp_path: Path, capsys: Any, file: str, kind: str) -> None:
    target = victim / file
    target.unlink()
    if kind == "large":
        target.write_bytes(LARGE[file]())
    elif kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to({"device": Path("/dev/zero"), "dangling link": victim / "nowhere", "link to itself": target}[kind])
    commands(victim, place, tmp_path, capsys, file)


def commands(victim: Path, place: tuple[Path, Path], tmp_path: Path, capsys: Any, file: str) -> None:
    wanted = READERS.get(file)
    out = tmp_path / "out"
    out.mkdir()
    harmless(
        place[0] / "results",
        victim,
        out,
        lambda *paths: {name: line for name, line in heavy(*paths).items() if wanted is None or name in wanted},
        capsys,
    )


@pytest.mark.parametrize("what", ["env", "method", "study"])
def test_names_of_folders(tmp_path: Path, capsys: Any, what: str) -> None:
    """They are in the configuration, too."""
    results, out = tmp_path / "results", tmp_path / "out"
    out.mkdir()
    victim = study(results)
    name = (MARKUP + ESCAPES).replace("/", "")
    config = (victim / "config.yaml").read_text()
    if what == "env":
        moved = results / "study" / name / "nge" / "seed_0"
        config = config.replace("name: gap", f"name: {json.dumps(name)}")
    elif what == "method":
        moved = results / "study" / "gap" / name / "seed_0"
        config = config.replace("name: nge", f"name: {json.dumps(name)}")
    else:
        moved = results / name / "gap" / "nge" / "seed_0"
    moved.parent.mkdir(parents=True)
    victim.rename(moved)
    (moved / "config.yaml").write_text(config)
    harmless(results, moved, out, light, capsys)


@pytest.mark.parametrize("name", ["plan.json", "export.json", ".made", "gallery.mp4"])
@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b"{}", b'{"a/b/seed_0": {"until": 1e400}}', b'{"\x1b/b/seed_0": {"until": 5}}', NAME.encode()]
)
def test_files_of_the_study(tmp_path: Path, capsys: Any, name: str, content: bytes) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    out.mkdir()
    victim = study(results)
    (results / "study" / name).write_bytes(content)
    wanted = ("status",) if name == "plan.json" else ("status", "report")
    harmless(results, victim, out, lambda *paths: {key: line for key, line in light(*paths).items() if key in wanted}, capsys)
