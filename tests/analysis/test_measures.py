"""Measures of a study, worked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codesign_bench.analysis import compare, measures, statistics, tables
from codesign_bench.analysis.collect import collect
from codesign_bench.analysis.report import data
from codesign_bench.experiment.reevaluation import Reevaluation
from tests.analysis.study import VERSIONS, fresh_episodes, write_run


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


def test_final_numbers_are_of_the_last_five_percent_on_one_grid(tmp_path: Path) -> None:
    often = [1000.0] * 95 + [1.0, 2.0, 3.0, 4.0, 5.0]
    write_run(tmp_path, "transform2act", returns=often, every=400)
    write_run(tmp_path, "nge", returns=often[9::10], every=4000)  # one evaluation in the last 5 %
    collection = collect(tmp_path, "study")
    frame = measures.finals(collection).set_index("method")
    assert frame["final"].to_dict() == {"transform2act": 3.0, "nge": 5.0}
    assert frame.loc["transform2act", "train_return"] == pytest.approx(0.8 * 3.0), "of the same evaluations"
    assert frame.loc["transform2act", "designs"] == 400, "counted to the end"
    assert collection.final(collection.of("gap", "transform2act")[0], until=30_000) == 1000.0


def test_a_maximum_over_evaluations_is_compared_nowhere(tmp_path: Path) -> None:
    write_run(tmp_path)
    collection = collect(tmp_path, "study")
    assert "best_return" in collection.table
    assert "best_return" not in measures.finals(collection)
    assert "best_return" not in data.metrics(collection)


def test_numbers_of_fewer_seeds_than_their_neighbours_say_so(tmp_path: Path) -> None:
    for seed in range(3):
        folder = write_run(tmp_path, seed=seed, returns=[1.0, 2.0, 3.0, 4.0 + seed])
        if seed < 2:
            Reevaluation(fresh_episodes(5.0 + seed, 40_000), fresh_episodes(7.0) if seed == 0 else None).save(folder)
    table = tables.summary(collect(tmp_path, "study"))
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["Final return"] == "5.00 ± 1.00"
    assert (cells["Fresh"], cells["Retrained"]) == ("5.50 ± 0.71 (2 of 3)", "7.00 (1 of 3)")
    assert "(" not in cells["Mean over steps"]
    assert any("In round brackets: the number of seeds" in note for note in table.notes)


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
    assert np.isnan(frame.loc["gap", "low"]), "two seeds"


def test_normalised_by_the_best_method(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", "gap", returns=[8.0])
    write_run(tmp_path, "nge", "gap", returns=[2.0])
    write_run(tmp_path, "nge", "swimmer", returns=[-3.0])
    frame = measures.normalised(measures.finals(collect(tmp_path, "study")))
    assert dict(zip(frame["method"], frame["final"], strict=True)) == {"transform2act": 1.0, "nge": 0.25}
    assert set(frame["env"]) == {"gap"}


def test_reevaluation_joins_as_columns_of_its_own(tmp_path: Path) -> None:
    Reevaluation(fresh_episodes(5.0), None).save(write_run(tmp_path, seed=0, returns=[7.0]))
    (write_run(tmp_path, seed=1, returns=[7.0]) / "reevaluation.json").write_text("[")
    frame = measures.finals(collect(tmp_path, "study"))
    np.testing.assert_array_equal(frame["reevaluated"], [5.0, np.nan])
    np.testing.assert_array_equal(frame["retrained"], [np.nan, np.nan])
    assert measures.summary(collect(tmp_path, "study"))["reevaluated"].tolist() == [5.0]
    write_run(tmp_path, seed=0, returns=[7.0, 8.0])
    assert np.isnan(measures.finals(collect(tmp_path, "study"))["reevaluated"][0]), "the run has gone on since"


def test_reevaluations_of_unequal_effort_are_not_averaged(tmp_path: Path) -> None:
    for seed, (value, steps, episodes) in enumerate(((10.0, 20_000, 100), (20.0, 20_000, 100), (90.0, 2_000_000, 100), (50.0, 20_000, 1))):
        again = Reevaluation(fresh_episodes(value, 40_000, episodes), fresh_episodes(value + 1, steps, episodes))
        again.save(write_run(tmp_path, seed=seed))
        (tmp_path / f"study/gap/transform2act/seed_{seed}/reevaluation_incumbent.json").write_text("{}")
    collection = collect(tmp_path, "study")
    row = measures.summary(collection).iloc[0]
    assert (row["reevaluated"], row["retrained"]) == (40.0, 16.0)
    assert sorted(text.split(":")[0] for text in collection.reevaluations.left_out) == [
        "gap/transform2act/seed_2",
        "gap/transform2act/seed_3",
        "gap/transform2act/seed_3",
    ]
    assert (
        "(controller of 2,000,000 steps, 100 episodes, settings not recorded) is left out; the others have controller of 20,000 steps, "
        "100 episodes, settings not recorded." in " ".join(collection.reevaluations.left_out)
    )
    assert [row[6] for row in data.ledger(collection).rows] == ["20,000", "20,000", "2,000,000", "20,000"], "what was spent was spent"
    notes = " ".join(tables.summary(collection).notes)
    assert "Fresh: the final agents in 100 episodes" in notes
    assert "trained from scratch for 20,000 steps" in notes
    assert "3 re-evaluation(s)" in notes


def test_controllers_of_other_settings_are_not_averaged(tmp_path: Path) -> None:
    for seed, ppo in enumerate(("strong", "strong", "paper")):
        trained = fresh_episodes(10.0 + seed, 20_000, training=("method=transform2act", f"ppo@method.ppo={ppo}"))
        Reevaluation(fresh_episodes(1.0, 40_000), trained).save(write_run(tmp_path, seed=seed))
    collection = collect(tmp_path, "study")
    assert measures.finals(collection)["retrained"].tolist()[:2] == [10.0, 11.0]
    (said,) = collection.reevaluations.left_out
    assert said.startswith("gap/transform2act/seed_2: its re-evaluation (controller of 20,000 steps, 2 episodes, method=transform2act ppo@")
    assert any("alike for all: method=transform2act ppo@method.ppo=strong." in note for note in tables.summary(collection).notes)


def test_every_final_design_has_a_number_of_its_own(tmp_path: Path) -> None:
    for method, values in (("transform2act", (10.0, 20.0)), ("nge", (30.0, None))):
        for seed, value in enumerate(values):
            folder = write_run(tmp_path, method, seed=seed, returns=[1.0, 2.0, 3.0, 4.0 + seed])
            Reevaluation(fresh_episodes(5.0, 40_000), None if value is None else fresh_episodes(value, 20_000)).save(folder)
    write_run(tmp_path, "ess")
    table = tables.designs(collect(tmp_path, "study"))
    assert table.columns[2:] == ("Seed", "Bodies", "Final return", "Fresh", "Retrained", "Retrained, distance (m)")
    assert [row[1:] for row in table.rows] == [
        ("Transform2Act", "0", "7", "4.00", "5.00", "10.0", "1.00"),
        ("Transform2Act", "1", "7", "5.00", "5.00", "20.0", "1.00"),
        ("NGE", "0", "7", "4.00", "5.00", "30.0", "1.00"),
        ("NGE", "1", "7", "5.00", "5.00", "-", "-"),
    ]
    assert measures.summary(collect(tmp_path, "study")).set_index("method").loc["nge", "retrained_seeds"] == 1


def test_what_is_not_a_number_is_a_gap_and_moves_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0, returns=[1.0, np.nan, 3.0, 4.0])
    write_run(tmp_path, seed=1, returns=[5.0, np.inf, 7.0, 8.0])
    write_run(tmp_path, "nge", seed=0, returns=[1.0, 2.0, np.nan, 4.0])
    write_run(tmp_path, "nge", seed=1, returns=[3.0, 4.0, 5.0, np.nan])
    collection = collect(tmp_path, "study")
    at = measures.grid(collection, "gap")
    assert at.tolist() == [10_000, 20_000, 30_000, 40_000]
    np.testing.assert_array_equal(measures.curves(collection, "gap", "transform2act", at), [[1, np.nan, 3, 4], [5, np.nan, 7, 8]])
    runs = measures.curves(collection, "gap", "nge", at)
    np.testing.assert_array_equal(statistics.band(runs, "std")[0], [2, 3, 5, 4])
    assert measures.fewer(runs).tolist() == [False, False, True, True]
    said = measures.shortfall(collection)
    assert "With evaluations that are not a number: gap/nge/seed_0, gap/nge/seed_1, gap/transform2act/seed_0 and 1 more." in said
    assert "Dashed where seeds are missing." in said
    assert not any("Unfinished" in text for text in said), "all were charged the same steps"
    assert "Dashed where seeds are missing." not in measures.shortfall(collection, ["transform2act"])
    assert "Dashed where seeds are missing." not in measures.shortfall(collection, bands=False)


def test_a_long_record_is_thinned_to_steps_that_were_recorded(tmp_path: Path) -> None:
    write_run(tmp_path, returns=np.arange(4000.0), every=10)
    at = measures.grid(collect(tmp_path, "study"), "gap")
    assert (len(at), at[0], at[-1]) == (measures.MOST_POINTS, 10, 40_000)
    assert not np.any(at % 10)


def test_areas_begin_where_all_methods_have_been_evaluated(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", returns=[0.0, 10.0, 20.0, 30.0])
    write_run(tmp_path, "nge", returns=[10.0, 30.0], every=20_000)
    areas = measures.summary(collect(tmp_path, "study")).set_index("method")["area"]
    assert areas.to_dict() == {"transform2act": 20.0, "nge": 20.0}


def test_steps_to_a_level_of_unfinished_and_early_runs(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", seed=0, returns=[8.0, 8.0, 8.0, 8.0])
    for seed, returns in enumerate(([0.0, 8.0, 8.0, 8.0], [0.0, 0.0, 0.0, 0.0], [0.0])):
        write_run(tmp_path, "nge", seed=seed, returns=returns)
    write_run(tmp_path, "ess", returns=[0.0])
    write_run(tmp_path, "rgs", returns=[0.0, 0.0, 0.0, 0.0])
    frame = measures.summary(collect(tmp_path, "study")).set_index("method")
    assert {method: tables.level(row) for method, row in frame.iterrows()} == {
        "transform2act": "≤ 10 k (1 of 1)",
        "nge": "> 40 k (1 of 2)",
        "ess": "-",
        "rgs": "never (0 of 1)",
    }


@pytest.mark.parametrize(("seeds", "said"), [(2, ["Fewer than three seeds have no interval."]), (3, [])])
def test_intervals_from_few_seeds_are_cautioned(tmp_path: Path, seeds: int, said: list[str]) -> None:
    for seed in range(seeds):
        write_run(tmp_path, seed=seed)
        write_run(tmp_path, study="other", seed=seed)
    collection, other = collect(tmp_path, "study"), collect(tmp_path, "other")
    found = measures.cautions(collection)
    assert found == said
    frame = compare.differences(collection, other)
    for notes in (tables.summary(collection).notes, tables.pairwise(collection).notes, compare.table(frame, collection, other).notes):
        assert all(text in notes for text in found)


def test_other_commits_are_said(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0)
    file = write_run(tmp_path, seed=1, versions={**VERSIONS, "torch": "2.14.0"}) / "manifest.json"
    assert not any("commits" in text for text in measures.shortfall(collect(tmp_path, "study")))
    file.write_text(file.read_text().replace("0" * 40, "1" * 40))
    collection = collect(tmp_path, "study")
    for sentence in ("Runs of 2 git commits: 00000000, 11111111", "Runs of 2 torch versions: 2.13.0, 2.14.0"):
        assert f"{sentence}." in measures.shortfall(collection)
        assert sentence in collection.remarks


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
