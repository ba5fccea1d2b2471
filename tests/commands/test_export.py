"""codesign-bench export: small, complete for figures, and without the machine it came from."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from codesign_bench.analysis import export
from codesign_bench.analysis.champions import design_process
from codesign_bench.analysis.collect import collect
from codesign_bench.commands import export as command
from codesign_bench.errors import ConfigError, StorageError
from codesign_bench.own_files import checksum
from tests.experiment.tiny import folder_of, run, tiny


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A real run, its export, and its study's name."""
    root = tmp_path_factory.mktemp("export")
    config = tiny(root / "results")
    run(config)
    (folder_of(config) / "large.json").write_text("x" * 400_000)
    (folder_of(config) / "notes.txt").write_text("x")
    assert command.main([f"results={root / 'results'}", f"study={config['study']}", f"out={root / 'out' / 'demo'}"]) == 0
    return folder_of(config), root / "out" / "demo", config["study"]


def test_only_small_plain_files(exported: tuple[Path, Path, str]) -> None:
    _, out, _ = exported
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".csv", ".json", ".xml", ".yaml", ".md"}
    names = {path.name for path in files}
    assert {"progress.csv", "config.yaml", "manifest.json", "status.json", "final.xml", "final.json", "final_process.json"} <= names
    assert not any(name.startswith("at_") or name in ("large.json", "notes.txt") for name in names)
    assert "Less than the full protocol" in (out / "README.md").read_text()


def test_the_table_is_the_same(exported: tuple[Path, Path, str]) -> None:
    source, out, study = exported
    before, after = collect(source.parents[3], study), collect(out.parent, "demo")
    pd.testing.assert_frame_equal(before.table.drop(columns="study"), after.table.drop(columns="study"))
    assert set(after.table["study"]) == {"demo"}
    assert len(design_process(after.runs[0])) == 6


def test_no_trace_of_the_machine(exported: tuple[Path, Path, str]) -> None:
    source, out, _ = exported
    host = json.loads((source / "manifest.json").read_text())["host"]
    manifest = next(out.rglob("manifest.json")).read_text()
    assert "host" not in json.loads(manifest)
    assert host not in manifest
    assert not [word for word in json.loads(manifest)["command"] if word.startswith(("results", "study"))]
    config = yaml.safe_load(next(out.rglob("config.yaml")).read_text())
    assert (config["results"], config["study"]) == ("results", "demo")
    everything = "".join(path.read_text() for path in out.rglob("[!.]*") if path.is_file())
    assert str(source.parents[3]) not in everything


def test_an_export_is_replaced_and_other_folders_are_not(exported: tuple[Path, Path, str], tmp_path: Path) -> None:
    source, out, study = exported
    arguments = [f"results={source.parents[3]}", f"study={study}"]
    assert command.main([*arguments, f"out={out}", "largest=500"]) == 0
    assert command.main([*arguments, f"out={out}"]) == 0
    assert not list(out.rglob("large.json"))
    (tmp_path / "precious").write_text("")
    with pytest.raises(ConfigError, match="which holds precious, not written by export"):
        command.main([*arguments, f"out={tmp_path}"])
    with pytest.raises(ConfigError, match="the study itself"):
        command.main([*arguments, f"out={source.parents[2]}"])
    assert (tmp_path / "precious").exists()


def test_runs_in_an_export_are_not_deleted(exported: tuple[Path, Path, str]) -> None:
    """Somebody goes on in the study that an export made: neither new runs nor changed files are lost."""
    source, out, study = exported
    arguments = [f"results={source.parents[3]}", f"study={study}", f"out={out}"]
    mine = tiny(out.parent, "study=demo", "env=gap")
    run(mine)
    with pytest.raises(ConfigError, match=r"which holds gap/transform2act/seed_0/.*, not written by export"):
        command.main(arguments)
    assert (folder_of(mine) / "checkpoints").is_dir()
    shutil.rmtree(out / "gap")
    notes = out / "README.md"
    notes.write_text("My notes.")
    with pytest.raises(ConfigError, match=r"which holds README.md, not written by export"):
        command.main(arguments)
    assert notes.read_text() == "My notes."


@pytest.mark.parametrize("kind", ["empty folder", "link", "link to a folder", "pipe"])
def test_what_is_no_file_is_not_lost_either(exported: tuple[Path, Path, str], tmp_path: Path, kind: str) -> None:
    source, _, study = exported
    mine, place = tmp_path / "out", tmp_path / "out" / "mine"
    arguments = [f"results={source.parents[3]}", f"study={study}", f"out={mine}"]
    assert command.main(arguments) == 0
    if kind == "empty folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        (tmp_path / "precious").mkdir()
        place.symlink_to(tmp_path / ("precious" if kind == "link to a folder" else "nowhere"))
    with pytest.raises(ConfigError, match="which holds mine, not written by export"):
        command.main(arguments)
    assert place.is_symlink() or place.exists()


def test_a_list_that_names_files_elsewhere(exported: tuple[Path, Path, str], tmp_path: Path) -> None:
    """An export that a stranger sent: its list must not lead to the removal of anything outside of it."""
    source, _, study = exported
    out, precious = tmp_path / "out", tmp_path / "precious"
    arguments = [f"results={source.parents[3]}", f"study={study}", f"out={out}"]
    assert command.main(arguments) == 0
    precious.write_text("mine")
    listed = json.loads((out / "export.json").read_text())
    for name in ("../precious", str(precious)):
        listed[name] = checksum(precious)
    (out / "export.json").write_text(json.dumps(listed))
    assert command.main(arguments) == 0
    assert precious.read_text() == "mine"


def test_a_run_that_begins_while_an_export_is_replaced_is_kept(
    exported: tuple[Path, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, _, study = exported
    out = tmp_path / "out"
    arguments = [f"results={source.parents[3]}", f"study={study}", f"out={out}"]
    assert command.main(arguments) == 0
    readme = export._readme

    def meanwhile(*arguments: Any) -> str:
        (out / "gap").mkdir()
        (out / "gap" / "progress.csv").write_text("mine")
        return readme(*arguments)

    monkeypatch.setattr(export, "_readme", meanwhile)
    with pytest.raises(StorageError, match=r"something was put there meanwhile: it is now .*gap"):
        command.main(arguments)
    (kept,) = tmp_path.rglob("gap/progress.csv")
    assert kept.read_text() == "mine"
    assert (out / "export.json").is_file()
