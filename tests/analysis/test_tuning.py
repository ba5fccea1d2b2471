"""The search behind track=strong: hand-worked shares, and what takes part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codesign_bench.analysis.collect import collect
from codesign_bench.analysis.tuning import searched, shares, table
from codesign_bench.commands import figures as command
from tests.analysis.study import write_run

CURVES = {("nge", "paper"): (10.0, 2.0), ("nge", "values"): (6.0, 4.0), ("ess", "paper"): (1.0, -1.0), ("ess", "updates"): (2.0, -2.0)}
"""By method and track: the constant return in gap and in swimmer."""


def tuned(results: Path, method: str, track: str, env: str, returns: list[float]) -> None:
    path = write_run(results, f"{method}_{track}", env, study="tuning", returns=returns, track=track) / "config.yaml"
    path.write_text(path.read_text().replace("plugin: transform2act", f"plugin: {method}"))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for (method, track), levels in CURVES.items():
        for env, level in zip(("gap", "swimmer"), levels, strict=True):
            tuned(tmp_path, method, track, env, [level] * 4)
    return tmp_path


def test_shares_by_hand(results: Path) -> None:
    """In swimmer no setting of ESS is above zero, so that gap decides."""
    frame = shares(collect(results, "tuning")).set_index(["plugin", "setting"])
    assert frame["share"].to_dict() == {
        ("nge", "paper"): pytest.approx((10 / 10 + 2 / 4) / 2),
        ("nge", "values"): pytest.approx((6 / 10 + 4 / 4) / 2),
        ("ess", "paper"): pytest.approx(1 / 2),
        ("ess", "updates"): pytest.approx(2 / 2),
    }
    assert set(frame.index[frame["chosen"]]) == {("nge", "values"), ("ess", "updates")}
    assert frame.loc[("nge", "paper"), "area_gap"] == pytest.approx(10)
    (row,) = [cells for cells in table(collect(results, "tuning")).rows if cells[:2] == ("nge", "values")]
    assert row[-1] == "0.80"


def test_who_is_not_at_the_end_does_not_take_part(results: Path) -> None:
    tuned(results, "nge", "minibatches", "gap", [99.0] * 2)
    frame = shares(collect(results, "tuning")).set_index(["plugin", "setting"])
    assert np.isnan(frame.loc[("nge", "minibatches"), "share"])
    assert not frame.loc[("nge", "minibatches"), "chosen"]


def test_a_study_of_one_track_was_no_search(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", "gap", study="plain")
    assert searched(collect(tmp_path, "plain")) == []


def test_the_figures_of_a_search_have_its_table(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["study=tuning", f"results={results}", "only=tuning", "out=made"]) == 0
    assert "**0.80**" in (tmp_path / "made" / "tuning.md").read_text()
    assert (tmp_path / "made" / "tuning.csv").is_file()
