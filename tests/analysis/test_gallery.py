"""Champions side by side: which, at what scale, and what is written where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from codesign_bench.analysis.collect import collect
from codesign_bench.analysis.gallery import Tile, chosen_runs, motion_frames, tile_of
from codesign_bench.commands import gallery as command
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.motion import Motion
from codesign_bench.simulation.rendering import Picture
from codesign_bench.simulation.showing import starting_pose
from codesign_bench.tasks import make_task
from tests.analysis.study import write_run
from tests.simulation.drawing import needs_drawing

SMALL = ("width=96", "height=64")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods in gap, one of them also in swimmer; seed 1 of nge is the better one and has a motion."""
    results = tmp_path_factory.mktemp("results")
    write_run(results, "transform2act", "gap", 0)
    write_run(results, "transform2act", "swimmer", 0)
    write_run(results, "nge", "gap", 0, returns=[1.0, 2.0, 3.0, 3.0])
    folder = write_run(results, "nge", "gap", 1)
    task = make_task("gap")
    design = StoredDesign.load(folder / "designs" / "final.json").design
    pose = starting_pose(design, task, np.random.default_rng(0))
    poses = pose + 0.05 * np.arange(8)[:, None] * np.eye(len(pose))[0]
    Motion(design, task.space, poses, 0.04, 4.0, True).save(folder)
    return results


def pixels(path: Path) -> Any:
    with Image.open(path) as image:
        return np.array(image)


def test_the_best_run_of_each_is_chosen(results: Path) -> None:
    collection = collect(results, "study")
    (swimmer, first), (gap, second) = chosen_runs(collection, ["best"])
    assert (swimmer, gap) == ("Swimmer, best of 1 seeds, 40 k steps", "Gap Crosser, best of 1 to 2 seeds, 40 k steps")
    assert {method: run.seed for method, run in first.items()} == {"transform2act": 0}
    assert {method: run.seed for method, run in second.items()} == {"transform2act": 0, "nge": 1}
    rows = chosen_runs(collection, ["all"])
    assert [title for title, _ in rows] == ["Swimmer, seed 0", "Gap Crosser, seed 0", "Gap Crosser, seed 1"]
    assert [title for title, _ in chosen_runs(collection, [1])] == ["Gap Crosser, seed 1"]


@needs_drawing
def test_a_picture(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "gallery.png"
    assert command.main([f"results={results}", "study=study", f"out={out}", *SMALL]) == 0
    assert "3 champions of 'study'" in capsys.readouterr().out
    sheet = pixels(out)
    assert sheet.shape[1] == 2 * 96
    bottom = sheet[-64:]
    assert bottom[:, :96].std() > 10
    assert bottom[:, 96:].std() > 10
    top = sheet[-64 - 24 - 64 : -64 - 24]
    assert len(np.unique(top[:, 96 + 60 : -4].reshape(-1, 3), axis=0)) == 1, "nge has no run in swimmer"


@needs_drawing
def test_all_champions_of_a_row_are_drawn_from_the_same_distance(results: Path) -> None:
    from codesign_bench.analysis.gallery import common_distance

    collection = collect(results, "study")
    runs = chosen_runs(collection, ["best"])[1][1]
    tiles = [tile_of(run, collection, 0.0) for run in runs.values()]
    distance = common_distance(tiles, 96, 64)
    own = []
    for tile in tiles:
        assert isinstance(tile, Tile)
        picture = Picture(tile.task.initial_design, tile.task, 96, 64)
        own.append(picture.distance(tile.poses[0]))
        picture.close()
    assert distance == max(own)


@needs_drawing
def test_a_video_moves_what_was_recorded(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "gallery.mp4"
    assert command.main([f"results={results}", "study=study", f"out={out}", "env=gap", "seconds=2", *SMALL]) == 0
    assert "2 champions of 'study', 1 without a recorded motion" in capsys.readouterr().out
    reader = imageio_ffmpeg.read_frames(str(out))
    width, height = next(reader)["size"]
    frames = [np.frombuffer(frame, dtype=np.uint8).reshape(height, width, 3).astype(int) for frame in reader]
    assert len(frames) == 8
    moved = np.abs(frames[0] - frames[-1]).mean(axis=(0, 2))
    assert moved[96:].mean() > 4 * moved[:96].mean()


def test_frames_are_those_of_the_video(results: Path) -> None:
    motion = Motion.load(results / "study" / "gap" / "nge" / "seed_1")
    assert motion is not None
    np.testing.assert_array_equal(motion_frames(motion, 10.0), motion.poses)
    slow = Motion(motion.design, motion.space, motion.poses, 0.08, 0.0, False)
    np.testing.assert_array_equal(motion_frames(slow, 0.32), motion.poses[[0, 0, 1, 1, 2, 2, 3, 3]])


def test_an_end_that_is_not_shown_is_not_told(results: Path) -> None:
    collection = collect(results, "study")
    (run,) = [run for run in collection.runs if run.method == "nge" and run.seed == 1]
    tiles = [tile_of(run, collection, seconds) for seconds in (2.0, 0.2)]
    assert [isinstance(tile, Tile) and tile.ended for tile in tiles] == [True, False]


@needs_drawing
def test_a_champion_that_cannot_be_drawn_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, "transform2act", "gap", 0)
    (write_run(tmp_path, "<b>" * 30, "gap", 0) / "designs" / "final.json").unlink()
    assert command.main([f"results={tmp_path}", "study=study", f"out={tmp_path / 'a.png'}", *SMALL]) == 0
    assert "not drawn: " in capsys.readouterr().out


@needs_drawing
def test_what_was_left_out_is_told_and_keeps_its_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(2):
        write_run(tmp_path, "transform2act", seed=seed)
    write_run(tmp_path, "nge", budget="pilot")
    assert command.main([f"results={tmp_path}", "study=study", f"out={tmp_path / 'a.png'}", *SMALL]) == 0
    assert "gap/nge/seed_0: unequal budget" in capsys.readouterr().err
    assert pixels(tmp_path / "a.png").shape[1] == 2 * 96


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["out=a.png", "study=nothing"], "There is no study 'nothing'"),
        (["out=a.gif"], "out is 'a.gif'"),
        (["out=a.png", "seed=worst"], "seed is worst; allowed are best, all, or whole numbers"),
        (["out=a.png", "seed=7"], "has no runs to show with seed 7"),
        (["out=a.png", "method=none"], "method is 'none'; the study 'study' holds "),
        (["out=a.png", "width=1900", "height=1440", "seed=all"], ""),
    ],
)
def test_refuses(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], part: str) -> None:
    if not part:
        monkeypatch.setattr("codesign_bench.analysis.gallery.LARGEST_SHEET", 3000)
        part = "The gallery would be 3800 x "
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=part):
        command.main([f"results={results}", "study=study", *arguments])
    assert not list(tmp_path.iterdir())
