"""Run folders into one table: what is read, and what is left out and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codesign_bench.analysis import measures, reading
from codesign_bench.analysis.collect import Collection, collect
from codesign_bench.analysis.comparable import differing
from codesign_bench.analysis.reading import read_progress
from codesign_bench.errors import ConfigError
from tests.analysis.study import COLUMNS, VERSIONS, write_run
from tests.experiment.tiny import run, tiny


def reasons(collection: Collection) -> dict[str, str]:
    return {"/".join(item.path.parts[-3:]): item.reason for item in collection.left_out}


def test_table_is_tidy(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", "gap", 0, returns=[1.5, 2.5])
    write_run(tmp_path, "nge", "swimmer", 1, returns=[3.5])
    table = collect(tmp_path, "study").table
    assert list(table.columns) == ["study", "env", "method", "seed", *COLUMNS]
    assert table[["env", "method", "seed", "steps", "return_mean"]].to_numpy().tolist() == [
        ["gap", "transform2act", 0, 10_000, 1.5],
        ["gap", "transform2act", 0, 20_000, 2.5],
        ["swimmer", "nge", 1, 10_000, 3.5],
    ]
    assert table["steps"].dtype == np.int64
    assert set(table["study"]) == {"study"}


def test_a_real_run_is_read_to_the_bit(tmp_path: Path) -> None:
    config = tiny(tmp_path)
    rows = run(config).rows
    found = collect(tmp_path, config["study"]).table
    assert [repr(v) for v in found["return_mean"]] == [row["return_mean"] for row in rows]
    assert [str(v) for v in found["steps"]] == [row["steps"] for row in rows]


def test_curve_skips_what_is_not_a_number(tmp_path: Path) -> None:
    write_run(tmp_path, returns=[1.0, np.nan, 3.0, np.inf])
    collection = collect(tmp_path, "study")
    steps, values = collection.curve(collection.runs[0])
    assert steps.tolist() == [10_000, 30_000]
    assert values.tolist() == [1.0, 3.0]
    assert (collection.runs[0].steps, collection.runs[0].charged, collection.runs[0].complete) == (30_000, 40_000, True)
    assert any("2 evaluation(s) are not a number" in remark for remark in collection.remarks)


# ---- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "rows", "dropped"),
    [
        ("", 2, 0),
        ("3,30000,1.0", 2, 1),  # half a line
        ("3,30000," + ",".join(["1.0"] * 14), 2, 1),  # looks whole, but its end was never written
        ("3,30000," + ",".join(["1.0"] * 14) + "\r\n", 3, 0),
        ("3,30000," + ",".join(["x"] * 14) + "\r\n", 2, 1),
        ("3,20000," + ",".join(["1.0"] * 14) + "\r\n", 2, 1),  # steps that do not grow
        ("3,nan," + ",".join(["1.0"] * 14) + "\r\n", 2, 1),
        ("\r\n\r\n3,30000," + ",".join(["1.0"] * 14) + "\r\n", 3, 2),
        ("\x00\xff\r\n", 2, 1),
    ],
)
def test_half_written_rows_are_dropped_and_counted(tmp_path: Path, tail: str, rows: int, dropped: int) -> None:
    write_run(tmp_path, returns=[1.0, 2.0], tail=tail)
    collection = collect(tmp_path, "study")
    assert len(collection.table) == rows
    assert collection.runs[0].half_rows == dropped
    assert any("left out" in remark for remark in collection.remarks) == (dropped > 0)


def test_numbers_are_read_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    values = np.column_stack([np.arange(50), 10 * np.arange(50), rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-300, 300, (50, 3))])
    values[3, 2:] = np.nan, np.inf, -np.inf
    lines = [",".join(repr(float(v)) for v in row) for row in values]
    rows, dropped = read_progress(("iteration,steps,return_mean,a,b\r\n" + "\r\n".join(lines) + "\r\n").encode())
    assert dropped == 0
    np.testing.assert_array_equal(rows.to_numpy(), values)


@pytest.mark.parametrize("content", [b"", b"\n", b"iteration,steps\n1,2\n", b"steps,steps,iteration,return_mean\n", b"\xff\xfe\n\n"])
def test_files_without_the_columns_are_left_out(tmp_path: Path, content: bytes) -> None:
    (write_run(tmp_path) / "progress.csv").write_bytes(content)
    collection = collect(tmp_path, "study")
    assert not collection.runs
    assert "progress.csv cannot be read" in reasons(collection)["gap/transform2act/seed_0"]


# ---- which runs may be compared --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"budget": "pilot"}, "unequal budget: name pilot instead of smoke, steps 2000000 instead of 40000"),
        ({"versions": {**VERSIONS, "mujoco": "3.3.0"}}, "unequal mujoco version: 3.3.0 instead of 4.0.0"),
        ({"versions": {**VERSIONS, "codesign-bench": "9"}}, "unequal codesign-bench version: 9 instead of 0.1.0"),
        ({"edit": ("alive: 0.1", "alive: 7.0")}, "unequal configuration: env.reward.alive 7 instead of 0.1"),
        ({"evaluation": {"episodes": 3}}, "unequal configuration: evaluation.episodes 3 instead of 10"),
        ({"edit": ("clip: 0.2", "clip: 0.9")}, "unequal configuration: method.ppo.clip 0.9 instead of 0.2"),
    ],
)
def test_unlike_runs_are_left_out_by_name_or_mixed_with_a_mark(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    for seed in range(2):
        write_run(tmp_path, seed=seed)
    options = dict(change)
    before, after = options.pop("edit", ("", ""))
    folder = write_run(tmp_path, seed=2, **options)
    text = (folder / "config.yaml").read_text()
    assert before in text
    (folder / "config.yaml").write_text(text.replace(before, after) if before else text)
    collection = collect(tmp_path, "study")
    assert [run.seed for run in collection.runs] == [0, 1]
    assert reasons(collection)["gap/transform2act/seed_2"].startswith(reason)
    assert not collection.forced
    forced = collect(tmp_path, "study", force=True)
    assert [run.seed for run in forced.runs] == [0, 1, 2]
    assert not forced.left_out
    assert forced.forced[0].startswith(reason)


@pytest.mark.parametrize("force", [False, True])
def test_runs_of_different_tracks_are_never_averaged(tmp_path: Path, force: bool) -> None:
    for seed, track in enumerate((None, "paper", "strong", "strong", "strong")):
        options = {} if track is None else {"track": track}
        write_run(tmp_path, "nge", seed=seed, returns=[1.0, 2.0, 3.0, 10.0 if seed < 2 else 100.0], **options)
    collection = collect(tmp_path, "study", force=force)
    assert not collection.left_out
    assert not collection.forced
    assert collection.methods == ("nge", "nge track=strong")
    assert [collection.label(method) for method in collection.methods] == ["NGE", "NGE (strong)"]
    assert [[run.seed for run in collection.of("gap", method)] for method in collection.methods] == [[0, 1], [2, 3, 4]]
    frame = measures.summary(collection).set_index("method")
    assert (frame["mean"].to_dict(), frame["seeds"].to_dict()) == (
        {"nge": 10.0, "nge track=strong": 100.0},
        {"nge": 2, "nge track=strong": 3},
    )
    assert {run.name for run in collection.runs} == {f"gap/nge/seed_{seed}" for seed in range(5)}, "names are those of folders"


def test_within_a_track_configurations_must_agree(tmp_path: Path) -> None:
    for seed in range(3):
        folder = write_run(tmp_path, seed=seed, track="strong")
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text().replace("clip: 0.2", "clip: 0.9"))
    write_run(tmp_path, seed=3)
    collection = collect(tmp_path, "study")
    assert [run.seed for run in collection.runs] == [3, 0, 1]
    assert reasons(collection) == {"gap/transform2act/seed_2": "unequal configuration: method.ppo.clip 0.9 instead of 0.2"}


def test_how_far_to_run_and_where_do_not_matter(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0)
    write_run(tmp_path, seed=1, workers=7, device="cuda")
    until = write_run(tmp_path, seed=2) / "config.yaml"
    until.write_text(until.read_text().replace("until: 40000", "until: 20000"))
    assert len(collect(tmp_path, "study").runs) == 3


def test_methods_may_differ_from_each_other(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act")
    write_run(tmp_path, "transform2act_no_gnn")
    assert len(collect(tmp_path, "study").runs) == 2


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("config.yaml", None, "its config.yaml is missing or cannot be read"),
        ("config.yaml", "a: [", "its config.yaml cannot be read as YAML"),
        ("config.yaml", "- 1", "its config.yaml holds no configuration"),
        ("config.yaml", "seed: 1", "its config.yaml lacks env.name"),
        ("progress.csv", None, "it has no progress.csv yet"),
        ("progress.csv", "iteration,steps,return_mean\n1,50000,1\n", "goes to 50000 steps, beyond its budget of 40000"),
        ("progress.csv", "iteration,steps,return_mean\n", "it has no evaluation yet"),
        ("progress.csv", "iteration,steps,return_mean\n1,10,nan\n", "none of its evaluations is a number"),
    ],
)
def test_broken_runs_are_left_out_with_the_reason(tmp_path: Path, file: str, content: str | None, reason: str) -> None:
    write_run(tmp_path, seed=0)
    broken = write_run(tmp_path, seed=1) / file
    broken.unlink() if content is None else broken.write_text(content)
    collection = collect(tmp_path, "study")
    assert [run.seed for run in collection.runs] == [0]
    assert reason in reasons(collection)["gap/transform2act/seed_1"]


def test_a_copied_folder_does_not_pass_for_another_seed(tmp_path: Path) -> None:
    folder = write_run(tmp_path, seed=0)
    shutil.copytree(folder, folder.with_name("seed_1"))
    assert (
        reasons(collect(tmp_path, "study"))["gap/transform2act/seed_1"] == "its config.yaml is of gap/transform2act/seed_0, another place"
    )


def test_a_lost_manifest_is_a_version_of_its_own(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path, seed=seed)
    (tmp_path / "study/gap/transform2act/seed_0/manifest.json").write_text("{")
    (tmp_path / "study/gap/transform2act/seed_1/status.json").unlink()
    collection = collect(tmp_path, "study")
    assert [run.seed for run in collection.runs] == [1, 2]
    assert "mujoco version: unknown instead of 4.0.0" in reasons(collection)["gap/transform2act/seed_0"]


def test_empty_and_missing_studies(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    collection = collect(tmp_path, "nothing")
    assert collection.runs == ()
    assert list(collection.table.columns) == ["study", "env", "method", "seed", *reading.NEEDED]
    with pytest.raises(ConfigError, match=r"There is no study 'x' in .*; there are nothing\."):
        collect(tmp_path, "x")
    with pytest.raises(ConfigError, match=r"there are none\."):
        collect(tmp_path / "nowhere", "x")


def test_unfinished_and_failed_runs_are_remarked(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0, returns=[1.0], status="stopped")
    folder = write_run(tmp_path, seed=1, returns=[1.0, 2.0])
    (folder / "status.json").write_text(json.dumps({"status": "failed", "reason": "the loss is not finite"}))
    remarks = collect(tmp_path, "study").remarks
    assert "gap/transform2act/seed_0: 10000 of 40000 steps" in remarks
    assert "gap/transform2act/seed_1: failed at 20000 steps (the loss is not finite)" in remarks


def test_unlike_says_in_what_two_studies_differ(tmp_path: Path) -> None:
    write_run(tmp_path, study="a")
    write_run(tmp_path, study="b", method="mine")
    write_run(tmp_path, study="c", budget="pilot")
    a, b, c = (collect(tmp_path, name) for name in "abc")
    assert differing(a.runs, b.runs) == []
    (text,) = differing(a.runs, c.runs)
    assert text.startswith("unequal budget: name smoke instead of pilot, steps 40000 instead of 2000000, ")
