"""A study as one file: what comes out is what went in, and nothing that a stranger put there gets further than its name."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from codesign_bench.analysis import archive, studies
from codesign_bench.analysis.collect import collect
from codesign_bench.commands import check, export, figures
from codesign_bench.errors import ConfigError
from tests.analysis.study import VERSIONS, write_run

PARTS = {"reward_forward": [0.25, 1.0, 1.5, 2.0], "reward_alive": [0.75, 1.0, 1.5, 2.0]}
Files = dict[str, bytes]


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Four runs of two methods, exported as a file."""
    for method in ("transform2act", "transform2act_no_gnn"):
        for seed in (0, 1):
            write_run(tmp_path / "results", method, seed=seed, more=PARTS)
    out = tmp_path / "mine.zip"
    assert export.main([f"results={tmp_path / 'results'}", "study=study", f"out={out}"]) == 0
    return out


def rewritten(path: Path, change: Callable[[Files], None]) -> Path:
    """The same archive with other files in it."""
    with zipfile.ZipFile(path) as old:
        files = {name: old.read(name) for name in old.namelist()}
    change(files)
    other = path.with_name(f"changed_{path.name}")
    with zipfile.ZipFile(other, "w") as new:
        for name, content in files.items():
            new.writestr(name, content)
    return other


def test_what_comes_out_is_what_went_in(packed: Path, tmp_path: Path) -> None:
    root, name = studies.find_study("results", str(packed))
    before, after = collect(tmp_path / "results", "study"), collect(root, name)
    assert name == "mine"
    pd.testing.assert_frame_equal(before.table.drop(columns="study"), after.table.drop(columns="study"))
    about = json.loads((root / name / archive.ABOUT).read_text())
    assert about["versions"]["mujoco"] == [VERSIONS["mujoco"]]
    assert [(run["method"], run["seed"], run["steps"]) for run in about["runs"]] == [
        (method, seed, 40_000) for method in ("transform2act", "transform2act_no_gnn") for seed in (0, 1)
    ]


def test_equal_studies_are_equal_files(packed: Path, tmp_path: Path) -> None:
    content = packed.read_bytes()
    assert export.main([f"results={tmp_path / 'results'}", "study=study", f"out={packed}"]) == 0
    assert packed.read_bytes() == content


def test_only_archives_are_written_over(packed: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious.zip"
    precious.write_text("mine")
    changed = rewritten(packed, lambda files: files.update({"study.json": files["study.json"] + b" "}))
    for out in (precious, changed):
        before = out.read_bytes()
        with pytest.raises(ConfigError, match="which export did not write, or which was changed since"):
            export.main([f"results={tmp_path / 'results'}", "study=study", f"out={out}"])
        assert out.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_figures_read_it(packed: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    words = [f"study={packed}", "only=tables", f"out={out}"]
    assert figures.main(words) == 0
    assert "Transform2Act" in (out / "final_returns.md").read_text()
    against = [f"results={tmp_path / 'results'}", "study=study", f"against={packed}", "only=against", "formats=png"]
    assert figures.main([*against, f"out={tmp_path / 'other'}"]) == 0
    assert (tmp_path / "other" / "against.csv").is_file()


def test_a_run_with_a_damaged_file_is_left_out_by_name(packed: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name = "gap/transform2act/seed_1/progress.csv"
    changed = rewritten(packed, lambda files: files.update({name: files[name].replace(b"4.0", b"9.0")}))
    assert figures.main([f"study={changed}", "only=tables", f"out={tmp_path / 'figures'}"]) == 0
    said = capsys.readouterr().err
    assert "gap/transform2act/seed_1: progress.csv is not as it was exported." in said
    assert check.main([f"study={changed}"]) == 1
    assert "mine: 3 of 4 runs may be compared" in capsys.readouterr().out


def test_a_missing_file_is_noticed(packed: Path) -> None:
    changed = rewritten(packed, lambda files: files.pop("gap/transform2act/seed_0/config.yaml") and None)
    found = archive.unpacked(changed)
    assert not found.whole
    (left_out,) = collect(found.root, found.name).left_out
    assert left_out.reason == "config.yaml is missing"
    assert not (left_out.path / "progress.csv").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda files: files.update({"../../escaped.csv": b"x"}), "holds '../../escaped.csv', which no export writes"),
        (lambda files: files.update({"/tmp/escaped.csv": b"x"}), "which no export writes"),
        (lambda files: files.update({"gap/x/seed_0/run.py": b"x"}), "run.py', which no export writes"),
        (lambda files: files.update({"gap/x/seed_0/checkpoints/.hidden.json": b"x"}), "which no export writes"),
        (lambda files: files.pop("study.json") and None, "it has no study.json"),
        (lambda files: files.update({"study.json": b"["}), "study.json cannot be read as JSON"),
        (lambda files: files.update({"study.json": b'{"format": 2, "study": "x"}'}), "is of format 2; this version reads 1"),
        (lambda files: files.update({"study.json": b'{"format": 1, "study": "../x"}'}), "study is '../x'"),
        (lambda files: files.update({"README.md": b"x"}), "is damaged: README.md is not as it was exported"),
        (lambda files: files.update({"export.json": b"[]"}), "list of files"),
        (lambda files: files.update({"study.json": b'{"format": 1, "study": "\\ud800"}'}), "the study's name cannot be printed"),
    ],
)
def test_what_no_export_wrote_is_refused(packed: Path, change: Callable[[Files], None], said: str, tmp_path: Path) -> None:
    changed = rewritten(packed, change)
    with pytest.raises(ConfigError, match="(?s)" + said.replace(".", r"\.").replace("[", r"\[")):
        archive.unpacked(changed)
    assert not list(tmp_path.rglob("*escaped*"))


@pytest.mark.parametrize("name", ["../../victim/x.csv", "{victim}/x.csv", "..", "", "gap/../../victim", "gap/x/../../../victim/x.csv", "/"])
def test_a_name_in_the_list_reaches_nothing_outside(packed: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, what was missing was removed by its name."""
    (tmp_path / "unpacked").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "unpacked"))
    victim = tmp_path / "unpacked" / "victim"
    victim.mkdir()
    (victim / "x.csv").write_text("precious")

    def change(files: Files) -> None:
        listed = json.loads(files["export.json"])
        files["export.json"] = json.dumps(listed | {name.format(victim=victim): "0"}).encode()

    with pytest.raises(ConfigError, match="which no export writes"):
        archive.unpacked(rewritten(packed, change))
    assert (victim / "x.csv").read_text() == "precious"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_is_refused_before_it_is_unpacked(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", method) as bomb:
        bomb.writestr("study.json", b"0" * 50_000_000)
    with pytest.raises(ConfigError, match="compressed in another way"):
        archive.unpacked(tmp_path / "bomb.zip")


def test_a_part_is_not_put_over_the_whole(packed: Path) -> None:
    before = packed.read_bytes()
    with pytest.raises(ConfigError, match="the study itself"):
        export.main([f"study={packed}", "method=transform2act", f"out={packed}"])
    assert packed.read_bytes() == before


def test_what_would_not_be_read_is_not_written(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 100)
    with pytest.raises(ConfigError, match="does not fit into an archive"):
        export.main([f"results={tmp_path / 'results'}", "study=study", f"out={tmp_path / 'other.zip'}"])
    assert not (tmp_path / "other.zip").exists()


def test_what_is_no_archive_is_refused(tmp_path: Path, packed: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        studies.find_study("results", str(tmp_path / "nowhere.zip"))
    (tmp_path / "text.zip").write_text("text")
    with pytest.raises(ConfigError, match="is not an archive of a study"):
        studies.find_study("results", str(tmp_path / "text.zip"))
    content = packed.read_bytes()
    (tmp_path / "half.zip").write_bytes(content[: len(content) // 2])
    with pytest.raises(ConfigError, match="is not an archive of a study"):
        studies.find_study("results", str(tmp_path / "half.zip"))


def test_flipped_bits_lose_runs_and_never_more(packed: Path, tmp_path: Path) -> None:
    """Wherever a bit flips: the study without the run, or one sentence."""
    content = packed.read_bytes()
    with zipfile.ZipFile(packed) as whole:
        rows = {name.removesuffix("/progress.csv"): whole.read(name) for name in whole.namelist() if name.endswith("progress.csv")}
    for place in range(40, len(content), len(content) // 60):
        (tmp_path / "flipped.zip").write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        archive._unpacked.clear()
        try:
            found = archive.unpacked(tmp_path / "flipped.zip")
        except ConfigError:
            continue
        well = {"/".join(run.path.parts[-3:]) for run in collect(found.root, found.name).runs}
        assert len(well) >= 3
        assert all((found.root / found.name / run / "progress.csv").read_bytes() == rows[run] for run in well)
