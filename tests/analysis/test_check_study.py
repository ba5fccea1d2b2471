"""codesign-bench check study=...: every kind of unequal, unfinished or changed run is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from codesign_bench.analysis import check_study
from codesign_bench.commands import check
from codesign_bench.errors import ConfigError
from tests.analysis.study import VERSIONS, write_run
from tests.analysis.test_archive import PARTS


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for seed in (0, 1, 2):
        write_run(tmp_path, seed=seed, more=PARTS)
    return tmp_path


def checked(results: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    return check.main([f"results={results}", "study=study"]), capsys.readouterr().out


def test_a_sound_study_passes(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(results, capsys) == (0, "study: 3 of 3 runs may be compared\n")


def rows(old: str, new: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        text = (run / "progress.csv").read_text()
        assert old in text
        (run / "progress.csv").write_text(text.replace(old, new))

    return change


def settings(**changes: object) -> Callable[[Path], None]:
    """Changes values of config.yaml, a__b for a.b."""

    def change(run: Path) -> None:
        config = yaml.safe_load((run / "config.yaml").read_text())
        for key, value in changes.items():
            part, name = key.split("__")
            config[part][name] = value
        (run / "config.yaml").write_text(yaml.safe_dump(config))

    return change


def status(value: str) -> Callable[[Path], None]:
    return lambda run: (run / "status.json").write_text(json.dumps({"status": value, "steps": 40_000})) and None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rows("2,20000,2.0", "2,20000,2.5"), "best_return is not the largest return_mean so far: rows were changed"),
        (rows("1,10000,1.0,0.0,1.0", "1,10000,1.5,0.0,1.5"), "the parts of the return do not add up to return_mean: rows were changed"),
        (rows("4,40000", "4,39000"), "it is done, with 39,000 of 40000 steps"),
        (rows("3,30000", "3,29000"), "its steps are not those of its iterations, 10,000 each"),
        (rows("2,20000,2.0", "2,x,2.0"), "1 row(s) of progress.csv are not whole"),
        (status("stopped"), "it is stopped, with 40,000 of 40000 steps"),
        (settings(budget__steps=80_000), "unequal budget"),
        (settings(env__version=1), "unequal configuration"),
        (settings(method__inner_iterations=2), "unequal configuration"),
    ],
)
def test_a_run_that_may_not_be_compared_is_named(
    results: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], None], said: str
) -> None:
    change(results / "study/gap/transform2act/seed_1")
    code, text = checked(results, capsys)
    assert code == 1
    assert said in next(line for line in text.splitlines() if line.startswith("gap/transform2act/seed_1: "))
    assert text.endswith("study: 2 of 3 runs may be compared\n")


def test_a_configuration_that_all_changed(results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only of runs of this version, as others may count other keys."""
    for run in results.glob("study/*/*/*"):
        settings(method__inner_iterations=2)(run)
    assert checked(results, capsys)[0] == 0
    monkeypatch.setattr(check_study, "__version__", VERSIONS["codesign-bench"])
    code, text = checked(results, capsys)
    assert code == 1
    assert text.count("its config.yaml is not the one it began with") == 3


def test_other_environments(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in results.glob("study/*/*/*"):
        settings(env__version=1)(run)
    assert "its environment is version 1, here it is 2" in checked(results, capsys)[1]
    for run in results.glob("study/*/*/*"):
        settings(env__name="mars")(run)
    (results / "study/gap").rename(results / "study/mars")
    assert "the environment mars is not known here" in checked(results, capsys)[1]


def test_seeds_and_lengths_are_remarked(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(results, "transform2act_no_gnn", seed=0, more={name: values[:2] for name, values in PARTS.items()}, returns=[1.0, 2.0])
    settings(budget__until=20_000)(results / "study/gap/transform2act_no_gnn/seed_0")
    code, text = checked(results, capsys)
    assert code == 0
    assert "lacks seed 1, 2" in text
    assert "runs of unequal length (1 with 20,000, 3 with 40,000 steps)" in text


def test_a_study_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no study 'nothing'"):
        check.main([f"results={tmp_path}", "study=nothing"])
