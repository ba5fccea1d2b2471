"""Two studies against each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codesign_bench.analysis import compare, measures
from codesign_bench.analysis.collect import collect
from codesign_bench.commands import figures as command
from codesign_bench.errors import ConfigError
from tests.analysis.study import write_run


def test_differences_by_hand(tmp_path: Path) -> None:
    for seed, (a, b) in enumerate(((5.0, 1.0), (7.0, 3.0), (9.0, 2.0))):
        write_run(tmp_path / "mine", "my_method", seed=seed, study="new", returns=[1.0, a])
        write_run(tmp_path / "mine", "nge", seed=seed, study="new", returns=[1.0, b])
        write_run(tmp_path / "theirs", "nge", seed=seed, study="old", returns=[1.0, b, 50.0])
        write_run(tmp_path / "theirs", "ess", seed=seed, study="old", returns=[0.0, 0.0, 50.0])
    mine = collect(tmp_path / "mine", "new")
    frame = compare.differences(mine, collect(tmp_path / "theirs", "old"))
    rows = {(row["method"], row["other"]): row for row in frame.to_dict("records")}
    assert set(rows) == {("nge", "nge"), ("my_method", "nge"), ("my_method", "ess")}
    assert rows["nge", "nge"]["difference"] == 0.0
    assert rows["my_method", "nge"]["difference"] == 5.0  # at 20,000 steps, which both have
    assert rows["my_method", "nge"]["steps"] == 20_000
    assert rows["my_method", "nge"]["improvement"] == 1.0
    assert 0 < rows["my_method", "nge"]["low"] < 5 < rows["my_method", "nge"]["high"]
    assert rows["my_method", "ess"]["difference"] == 7.0


def test_returns_are_the_final_ones_of_what_both_have(tmp_path: Path) -> None:
    """One has been evaluated each 400 steps to 20,000, the other to 40,000: the last 5 % of 20,000 steps count in both."""
    for seed in range(3):
        write_run(tmp_path, study="a", seed=seed, returns=[*[9.0] * 47, 1.0, 2.0, 3.0], every=400)
        write_run(tmp_path, study="b", seed=seed, returns=[*[9.0] * 47, 5.0, 6.0, 7.0, *[99.0] * 50], every=400)
    (row,) = compare.differences(collect(tmp_path, "a"), collect(tmp_path, "b")).to_dict("records")
    assert (row["mean"], row["other_mean"]) == (2.0, 6.0)


def test_a_method_on_another_track_is_compared_with_itself(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path, "nge", seed=seed, study="strong", track="strong", returns=[1.0, 9.0])
        for method in ("nge", "ess"):
            write_run(tmp_path, method, seed=seed, study="paper", returns=[1.0, 4.0])
    mine, theirs = collect(tmp_path, "strong"), collect(tmp_path, "paper")
    (row,) = compare.differences(mine, theirs).to_dict("records")
    assert (row["method"], row["other"], row["difference"]) == ("nge track=strong", "nge", 5.0)
    table = compare.table(compare.differences(mine, theirs), mine, theirs)
    assert table.rows[0][1:3] == ("NGE (strong)", "NGE")
    assert mine.joined(theirs).methods == ("nge", "nge track=strong", "ess")


def test_unlike_studies_are_refused_unless_forced(tmp_path: Path) -> None:
    write_run(tmp_path, study="a")
    write_run(tmp_path, study="b", budget="pilot", returns=[1.0])
    a, b = collect(tmp_path, "a"), collect(tmp_path, "b")
    with pytest.raises(ConfigError, match=r"not comparable \(unequal budget: name smoke instead of pilot, steps 40000 instead of 2000000"):
        compare.differences(a, b)
    frame = compare.differences(a, b, force=True)
    assert len(frame) == 1 or frame.empty
    assert any("Forced: unequal budget" in note for note in compare.table(frame, a, b).notes)


def test_a_forced_picture_of_two_studies_says_in_what_they_differ(tmp_path: Path) -> None:
    write_run(tmp_path, "mine", study="a")
    write_run(tmp_path, study="b", budget="pilot", returns=[1.0])
    joined = collect(tmp_path, "a").joined(collect(tmp_path, "b"))
    (mark,) = joined.forced
    assert mark.startswith("unequal budget: name smoke instead of pilot")
    assert any(text.startswith("Forced: unequal budget") for text in measures.shortfall(joined))


def test_a_method_under_two_configurations_is_said(tmp_path: Path) -> None:
    for study in ("a", "b"):
        for env in ("gap", "swimmer"):
            write_run(tmp_path, env=env, study=study)
            write_run(tmp_path, "nge", env, study=study)
    for file in (tmp_path / "a").glob("*/transform2act/seed_0/config.yaml"):
        file.write_text(file.read_text().replace("clip: 0.2", "clip: 0.9"))
    a, b = collect(tmp_path, "a"), collect(tmp_path, "b")
    notes = compare.table(compare.differences(a, b), a, b).notes
    assert [text for text in notes if "alike" in text] == ["Not configured alike: transform2act, method.ppo.clip 0.9 instead of 0.2."]
    assert not [text for text in compare.table(compare.differences(b, b), b, b).notes if "alike" in text]


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    write_run(tmp_path, study="a", returns=[3.0])
    write_run(tmp_path, study="b", returns=[1.0])
    frame = compare.differences(collect(tmp_path, "a"), collect(tmp_path, "b"))
    assert frame["difference"].tolist() == [2.0]
    assert np.isnan(frame["low"]).all()


def test_the_command_writes_figures_and_tables(tmp_path: Path) -> None:
    for study in ("mine", "theirs"):
        for seed in range(2):
            write_run(tmp_path, "transform2act" if study == "theirs" else "my_method", seed=seed, study=study)
    out = tmp_path / "out"
    arguments = [f"results={tmp_path}", "study=mine", f"out={out}", "only=[against]", "against=theirs"]
    assert command.main(arguments) == 0
    for name in ("against.pdf", "against.svg", "against.png", "against_curves.png", "against.md", "against.tex", "against.csv"):
        assert (out / name).stat().st_size > 100
    assert "my\\_method" in (out / "against.md").read_text()
    odd = tmp_path / "a=b, c'd"
    write_run(odd, study="theirs")
    assert command.main([*arguments[:-1], f"against={odd / 'theirs'}"]) == 0


def test_studies_without_a_common_evaluation(tmp_path: Path) -> None:
    write_run(tmp_path, study="a", returns=[1.0])
    write_run(tmp_path, study="b", budget="pilot")
    a, b = collect(tmp_path, "a"), collect(tmp_path, "b")
    figure = compare.figure(compare.differences(a, b, force=True).iloc[:0], a, b)
    assert figure.axes[0].get_title() == "no evaluation in common"


def test_studies_without_a_common_environment(tmp_path: Path) -> None:
    write_run(tmp_path, env="gap", study="a")
    write_run(tmp_path, env="swimmer", study="b")
    a, b = collect(tmp_path, "a"), collect(tmp_path, "b")
    frame = compare.differences(a, b)
    assert frame.empty
    assert "no environment in common" in compare.figure(frame, a, b).axes[0].get_title()
