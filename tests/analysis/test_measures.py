"""Measures of a study, worked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from codesign_bench.analysis import measures
from codesign_bench.analysis.collect import collect
from tests.analysis.study import write_run


def test_summary_by_hand(tmp_path: Path) -> None:
    for seed, returns in enumerate(([0.0, 10.0, 20.0, 40.0], [0.0, 10.0, 30.0, 60.0])):
        write_run(tmp_path, "transform2act", seed=seed, returns=returns)
        write_run(tmp_path, "nge", seed=seed, returns=[0.5 * value for value in returns])
    frame = measures.summary(collect(tmp_path, "study")).set_index("method")
    best, nge = frame.loc["transform2act"], frame.loc["nge"]
    assert (best["mean"], best["std"]) == (50.0, pytest.approx(np.sqrt(200)))
    assert (best["seeds"], best["runs"], best["complete"]) == (2, 2, True)
    assert best["area"] == pytest.approx(np.mean([(5 + 15 + 30) / 3, (5 + 20 + 45) / 3]))
    # the level is half of 50: reached at 32,500 and at 27,500 steps; nge's second run gets there, its first does not
    assert best["steps_to_level"] == pytest.approx(30_000)
    assert best["reached_level"] == 2
    assert nge["reached_level"] == 1
    assert nge["steps_to_level"] == np.inf


def test_runs_that_did_not_get_as_far_do_not_count_as_final(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", seed=0, returns=[1.0, 2.0, 3.0, 4.0])
    write_run(tmp_path, "transform2act", seed=1, returns=[1.0, 99.0])
    write_run(tmp_path, "nge", seed=0, returns=[50.0])
    collection = collect(tmp_path, "study")
    frame = measures.summary(collection).set_index("method")
    assert frame.loc["transform2act", "mean"] == 4.0
    assert (frame.loc["transform2act", "seeds"], frame.loc["transform2act", "runs"]) == (1, 2)
    assert not frame.loc["nge", "complete"]
    assert (frame.loc["nge", "mean"], frame.loc["nge", "steps"]) == (50.0, 10_000)
    assert measures.levels(measures.finals(collection)) == {"gap": 4.0}
    assert len(measures.pairwise(measures.finals(collection))) == 0


def test_pairs_by_hand(tmp_path: Path) -> None:
    for env, mine, theirs in (("gap", (4.0, 6.0), (1.0, 5.0)), ("swimmer", (1.0, 1.0), (1.0, 2.0))):
        for seed in range(2):
            write_run(tmp_path, "transform2act", env, seed, returns=[mine[seed]], every=40_000)
            write_run(tmp_path, "nge", env, seed, returns=[theirs[seed]], every=40_000)
    frame = measures.pairwise(measures.finals(collect(tmp_path, "study"))).set_index("env")
    assert frame.loc["gap", "difference"] == 2.0
    assert frame.loc["gap", "improvement"] == 0.75
    assert frame.loc["swimmer", "improvement"] == 0.25
    assert frame.loc["all", "improvement"] == 0.5
    assert np.isnan(frame.loc["all", "difference"])
    assert frame.loc["gap", "low"] <= 2.0 <= frame.loc["gap", "high"]


def test_normalised_by_the_best_method(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", "gap", returns=[8.0])
    write_run(tmp_path, "nge", "gap", returns=[2.0])
    write_run(tmp_path, "nge", "swimmer", returns=[-3.0])
    frame = measures.normalised(measures.finals(collect(tmp_path, "study")))
    assert dict(zip(frame["method"], frame["final"], strict=True)) == {"transform2act": 1.0, "nge": 0.25}
    assert set(frame["env"]) == {"gap"}


def test_reevaluation_joins_as_columns_of_its_own(tmp_path: Path) -> None:
    folder = write_run(tmp_path, seed=0, returns=[7.0])
    (folder / "reevaluation.json").write_text(json.dumps({"agent": {"return_mean": 5.0, "steps": 10_000}, "controller": None}))
    (write_run(tmp_path, seed=1, returns=[7.0]) / "reevaluation.json").write_text("[")
    frame = measures.finals(collect(tmp_path, "study"))
    np.testing.assert_array_equal(frame["reevaluated"], [5.0, np.nan])
    np.testing.assert_array_equal(frame["retrained"], [np.nan, np.nan])
    assert measures.summary(collect(tmp_path, "study"))["reevaluated"].tolist() == [5.0]
    write_run(tmp_path, seed=0, returns=[7.0, 8.0])
    assert np.isnan(measures.finals(collect(tmp_path, "study"))["reevaluated"][0]), "the run has gone on since"


def test_curves_of_unlike_lengths_share_a_grid(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", returns=[1.0, 2.0, 3.0, 4.0])
    write_run(tmp_path, "nge", returns=[10.0, 20.0], every=20_000)
    collection = collect(tmp_path, "study")
    at = measures.grid(collection, "gap")
    assert at.tolist() == [10_000, 20_000, 30_000, 40_000]
    np.testing.assert_array_equal(measures.curves(collection, "gap", "nge", at), [[np.nan, 10, 15, 20]])
    assert measures.curves(collection, "gap", "rgs", at).shape == (0, 4)
    assert len(measures.grid(collection, "swimmer")) == 0


def test_what_is_less_than_the_protocol_is_said(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0)
    one = " ".join(measures.shortfall(collect(tmp_path, "study")))
    assert "1 seed (6 in the full protocol), 40 k steps (50 M in the full protocol)" in one
    assert "A single seed has no band." in one
    write_run(tmp_path, seed=1, returns=[1.0])
    two = " ".join(measures.shortfall(collect(tmp_path, "study")))
    assert "2 seeds (6 in the full protocol), 10 k to 40 k steps" in two
    assert "gap/transform2act/seed_1" in two
    for seed in range(6):
        write_run(tmp_path, seed=seed, study="full", budget="paper", returns=[1.0], every=50_000_000)
    assert measures.shortfall(collect(tmp_path, "full")) == []
