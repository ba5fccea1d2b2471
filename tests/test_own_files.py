"""No command deletes or overwrites what it did not write itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codesign_bench import own_files
from codesign_bench.errors import ConfigError, StorageError
from codesign_bench.simulation.rendering import MADE_BY, open_for_writing
from tests.experiment.tiny import ROOT


def publish(folder: Path, **files: str) -> None:
    with own_files.published(folder) as fresh:
        for name, text in files.items():
            (fresh / name).write_text(text)


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_files_are_replaced_and_others_stay(tmp_path: Path) -> None:
    publish(tmp_path / "a", x="1", y="1")
    (tmp_path / "a" / "mine").write_text("mine")
    publish(tmp_path / "a", y="2", z="2")
    found = content(tmp_path / "a")
    assert {name: found[name] for name in ("x", "y", "z", "mine")} == {"x": "1", "y": "2", "z": "2", "mine": "mine"}
    assert {name for name, _ in own_files.made(tmp_path / "a")} == {"x", "y", "z"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("kind", ["another's", "changed", "link", "folder"])
def test_what_is_not_its_own_is_refused_by_name_and_nothing_is_written(tmp_path: Path, kind: str) -> None:
    folder, elsewhere = tmp_path / "a", tmp_path / "b"
    publish(folder, x="1")
    if kind == "changed":
        (folder / "x").write_text("mine")
    elif kind == "another's":
        (folder / "y").write_text("mine")
    elif kind == "link":
        elsewhere.write_text("mine")
        (folder / "y").symlink_to(elsewhere)
    else:
        (folder / "y").mkdir()
    before = content(tmp_path)
    with pytest.raises(ConfigError, match=r"was not made by this command, or was changed since"):
        publish(folder, x="2", y="2", z="2")
    assert content(tmp_path) == before


def test_an_end_between_the_list_and_the_files_leaves_them_replaceable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "a", x="1", y="1")
    replace, replaced = os.replace, []

    def full(source: Path, target: Path) -> None:
        replaced.append(target)
        if len(replaced) == 3:  # the list and one file
            raise OSError(28, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(StorageError, match="No space left"):
            publish(tmp_path / "a", x="2", y="2")
    publish(tmp_path / "a", x="3", y="3")
    assert {name: text for name, text in content(tmp_path / "a").items() if name in "xy"} == {"x": "3", "y": "3"}


def test_an_error_while_drawing_leaves_nothing(tmp_path: Path) -> None:
    def draw() -> None:
        with own_files.published(tmp_path / "a") as fresh:
            (fresh / "x").write_text("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        draw()
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_that_somebody_has_is_not_removed(tmp_path: Path) -> None:
    taken = tmp_path / f".a.{os.getpid()}.tmp"
    taken.mkdir()
    (taken / "mine").write_text("mine")
    with pytest.raises(StorageError, match="File exists"):
        publish(tmp_path / "a", x="1")
    assert (taken / "mine").read_text() == "mine"


@pytest.mark.parametrize("kind", ["text", "folder", "pipe"])
def test_out_is_never_something_else(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.png"
    if kind == "text":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(ConfigError, match="was not made by this codesign-bench"):
        open_for_writing(path)
    assert [each.name for each in tmp_path.iterdir()] == ["a.png"]


def test_out_may_be_new_or_ours(tmp_path: Path) -> None:
    (tmp_path / "ours.svg").write_text(f"<svg>{MADE_BY}</svg>")
    for name in ("new.svg", "ours.svg"):
        assert open_for_writing(tmp_path / name) == tmp_path / name
    assert [path.name for path in tmp_path.iterdir()] == ["ours.svg"]


@pytest.mark.parametrize("target", ["setup", "clean"])
def test_make_clears_no_folder_that_is_not_an_installation(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    done = subprocess.run(["make", target, f"VENV={folder}", "PYTHON=true"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "which holds no Python environment" in done.stdout
    assert (folder / "mine").exists()
