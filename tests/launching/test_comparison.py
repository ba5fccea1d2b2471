"""The comparison of a study that is still running: nobody is ahead for having been run longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from codesign_bench import own_files
from codesign_bench.analysis.collect import collect
from codesign_bench.launching.comparison import in_common, main
from tests.analysis.study import write_run


def study(results: Path) -> None:
    """In steps of 10,000: one method has 4 and 2, one 3, one a single generation of 20,000 with both seeds."""
    write_run(results, "transform2act", seed=0, returns=[1, 2, 3, 4], designs=False)
    write_run(results, "transform2act", seed=1, returns=[1, 5], designs=False)
    write_run(results, "nge", seed=0, returns=[1, 2, 9], designs=False)
    for seed in (0, 1):
        write_run(results, "ess", seed=seed, returns=[7], every=20_000, designs=False)
    write_run(results, "rgs", env="swimmer", returns=[1, 2, 3], designs=False)


def test_as_far_as_all_methods_have_come(tmp_path: Path) -> None:
    study(tmp_path)
    found = in_common(collect(tmp_path, "study"))
    assert (found.horizon("gap"), found.horizon("swimmer")) == (20_000, 30_000)
    gap = found.table[found.table["env"] == "gap"]
    rows = {(method, seed): list(values["return_mean"]) for (method, seed), values in gap.groupby(["method", "seed"])}
    assert rows == {("transform2act", 0): [1, 2], ("transform2act", 1): [1, 5], ("nge", 0): [1, 2], ("ess", 0): [7], ("ess", 1): [7]}
    assert found.notes == (
        "Compared at 30,000 steps on swimmer, 20,000 steps on gap: as far as all methods have come.",
        "One iteration or generation so far, and so no selection yet: ess.",
    )


def test_a_seed_that_is_behind_is_left_out_by_name(tmp_path: Path) -> None:
    study(tmp_path)
    write_run(tmp_path, "nge", seed=1, returns=[1], designs=False)
    write_run(tmp_path, "nge", seed=2, returns=[], designs=False)
    found = in_common(collect(tmp_path, "study"))
    assert [run.seed for run in found.of("gap", "nge")] == [0]
    assert {(item.path.name, item.path.parent.name) for item in found.left_out} >= {("seed_1", "nge")}
    assert "It has 10,000 steps; the comparison is at 20,000." in [item.reason for item in found.left_out]


def test_all_seeds_stay_when_one_of_each_method_is_ahead(tmp_path: Path) -> None:
    for method in ("nge", "transform2act"):
        for seed in range(3):
            write_run(tmp_path, method, seed=seed, returns=[1, 2, 3, 4][: 4 if seed == 0 else 2], designs=False)
    collection = collect(tmp_path, "study")
    together, ahead = in_common(collection), in_common(collection, ahead=True)
    assert (together.horizon("gap"), len(together.runs)) == (20_000, 6)
    assert (ahead.horizon("gap"), [run.seed for run in ahead.runs]) == (40_000, [0, 0])
    assert ahead.notes == ("Compared at 40,000 steps on gap: as far as all methods have come with at least one seed.",)
    main([str(tmp_path), "study"])
    figures = tmp_path / "study" / "figures"
    assert "Compared at 20,000 steps" in (figures / "final_returns.md").read_text()
    assert "Compared at 40,000 steps" in (figures / "comparison_ahead_returns.md").read_text()
    assert (figures / "comparison_ahead.png").exists()
    (figures / "comparison_ahead_of_time.txt").write_text("mine")
    for method in ("nge", "transform2act"):
        write_run(tmp_path, method, seed=0, returns=[1, 2], designs=False)
    main([str(tmp_path), "study"])
    assert [path.name for path in figures.glob("comparison_ahead*")] == ["comparison_ahead_of_time.txt"]


def test_a_run_that_failed_keeps_nobody_waiting(tmp_path: Path) -> None:
    for method in ("nge", "transform2act"):
        for seed in range(3):
            write_run(tmp_path, method, seed=seed, designs=False)
    write_run(tmp_path, "nge", seed=1, returns=[1], status="failed", designs=False)
    with own_files.published(tmp_path / "study" / "figures") as fresh:
        (fresh / "comparison_ahead.png").write_text("of an earlier moment")
    found = in_common(collect(tmp_path, "study"))
    assert (found.horizon("gap"), len(found.runs)) == (40_000, 5)
    assert "It has 10,000 steps; the comparison is at 40,000." in [item.reason for item in found.left_out]
    main([str(tmp_path), "study"])
    assert not list(tmp_path.rglob("comparison_ahead*"))


def test_methods_that_are_to_come_are_named(tmp_path: Path) -> None:
    write_run(tmp_path, "nge", returns=[1, 2], designs=False)
    found = in_common(collect(tmp_path, "study"), planned=["nge", "rgs", "ess"])
    assert found.notes == ("Compared at 20,000 steps on gap: as far as these methods have come.", "Not there yet: ess, rgs.")


def test_figure_and_table_say_how_far(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study(tmp_path)
    assert main([str(tmp_path), "study"]) == 0
    *table, said = capsys.readouterr().out.splitlines()
    assert table[:2] == ["Final returns", "Method          Swimmer        Gap Crosser"]
    assert said.startswith("Compared at 30,000 steps on swimmer, 20,000 steps on gap")
    figures = tmp_path / "study" / "figures"
    assert (figures / "comparison.png").stat().st_size > 1000
    assert "20,000 steps on gap" in (figures / "final_returns.md").read_text()
    assert "no selection yet: ess" in (figures / "comparison.svg").read_text().replace("\n", " ")


def test_evaluations_that_are_not_in_common(tmp_path: Path) -> None:
    """One method is evaluated every 20,000 steps and has 40,000, the other every 10,000 and has 30,000: compared at 20,000."""
    write_run(tmp_path, "nge", returns=[1, 2], every=20_000, designs=False)
    write_run(tmp_path, "transform2act", returns=[1, 2, 3], designs=False)
    found = in_common(collect(tmp_path, "study"))
    assert found.horizon("gap") == 20_000
    assert found.table.groupby("method")["return_mean"].apply(list).to_dict() == {"nge": [1.0], "transform2act": [1.0, 2.0]}


def test_a_method_that_is_not_there_yet_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Population methods are evaluated where their first generation ends; a method that is still on its way is named."""
    for method in ("rgs", "ess"):
        write_run(tmp_path, method, returns=[5], every=40_000, designs=False)
    write_run(tmp_path, "nge", returns=[1, 2, 3, 4], designs=False)
    write_run(tmp_path, "transform2act", returns=[1, 2, 3], designs=False)
    found = in_common(collect(tmp_path, "study"))
    assert (found.horizon("gap"), set(found.methods)) == (40_000, {"rgs", "ess", "nge"})
    assert found.notes[:2] == ("Compared at 40,000 steps on gap: as far as these methods have come.", "Not there yet: transform2act.")
    assert "It has 30,000 steps; the comparison is at 40,000." in [item.reason for item in found.left_out]


def test_nothing_to_compare_yet(tmp_path: Path) -> None:
    write_run(tmp_path, "rgs", returns=[], designs=False)
    found = in_common(collect(tmp_path, "study"))
    assert (found.runs, found.notes) == ((), ("There is nothing to compare yet: no run has been evaluated.",))
    assert main([str(tmp_path), "study"]) == 0
