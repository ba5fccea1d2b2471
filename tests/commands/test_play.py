"""codesign-bench play: the champion of a run as a picture or a video, and what is refused."""

import shutil
from pathlib import Path

import imageio_ffmpeg
import pytest
from PIL import Image

from codesign_bench.commands import export, play, reevaluate
from codesign_bench.errors import CodesignError
from codesign_bench.experiment.motion import Motion
from tests.experiment.tiny import folder_of, run, tiny
from tests.reference.sentences import assert_one_sentence
from tests.simulation.drawing import needs_drawing


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = tiny(tmp_path_factory.mktemp("play"))
    run(config)
    return folder_of(config)


@needs_drawing
def test_the_designs_on_the_way_side_by_side(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "designs.png"
    assert play.main([f"run={folder}", f"out={out}", "width=96", "height=64"]) == 0
    width, height = Image.open(out).size
    assert height == 64
    assert width % 96 == 0
    assert width >= 2 * 96
    assert "bodies, return" in capsys.readouterr().out


@needs_drawing
def test_a_video_shows_the_designs_and_then_the_motion(folder: Path, tmp_path: Path) -> None:
    lengths = []
    for seconds in ("0.4", "1.2"):
        out = tmp_path / f"{seconds}.mp4"
        assert play.main([f"run={folder}", f"out={out}", "width=96", "height=64", f"seconds={seconds}"]) == 0
        frames, _ = imageio_ffmpeg.count_frames_and_secs(str(out))
        lengths.append(frames)
    assert 0 < lengths[0] < lengths[1]


@needs_drawing
def test_an_export_shows_what_it_has(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, mine = tmp_path / "results", tmp_path / "results" / "default" / Path(*folder.parts[-3:])
    shutil.copytree(folder.parents[2], results / "default")
    exported = results / "sent" / Path(*folder.parts[-3:])
    line = [f"run={exported}", f"out={tmp_path / 'agent.mp4'}", "width=96", "height=64", "seconds=0.4"]
    export.main([f"results={results}", "study=default", f"out={results / 'sent'}"])
    with pytest.raises(CodesignError) as error:
        play.main(line)
    assert_one_sentence(
        error.value, "is an export, without checkpoints, and holds no motion of its final design; run codesign-bench reeval"
    )
    reevaluate.main([f"run={mine}", "episodes=1", "workers=0"])
    export.main([f"results={results}", "study=default", f"out={results / 'sent'}"])
    capsys.readouterr()
    assert play.main(line) == 0
    said, errors = capsys.readouterr()
    assert f"return {Motion.load(mine).total_return:.1f} in one episode" in said
    assert errors.startswith(f"{exported} is an export, without checkpoints; this is the motion that reevaluate recorded.\n")
    long = tmp_path / "long.mp4"
    play.main([*line[:1], f"out={long}", *line[2:4], "seconds=1.2"])
    lengths = [imageio_ffmpeg.count_frames_and_secs(str(path))[0] for path in (tmp_path / "agent.mp4", long)]
    assert 0 < lengths[0] < lengths[1]
    with pytest.raises(CodesignError) as error:
        reevaluate.main([f"run={exported}", "episodes=1"])
    assert_one_sentence(error.value, "is an export, without checkpoints; allowed is the run that it was made from.")


@needs_drawing
def test_a_damaged_newest_checkpoint_is_said(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = Path(shutil.copytree(folder, tmp_path / "seed_0"))
    (mine / "checkpoints" / "000000000800.ckpt").write_bytes(b"damaged")
    sentence = f"warning: the newest checkpoint of {mine}, at 800 steps, is damaged; this is its agent at 600 steps, 200 steps before.\n"
    assert play.main([f"run={mine}", f"out={tmp_path / 'a.png'}", "width=96", "height=64"]) == 0
    assert capsys.readouterr().err == sentence
    assert reevaluate.main([f"run={mine}", "episodes=1", "workers=0"]) == 0
    assert capsys.readouterr().err == sentence


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"out": "agent.gif"}, "end in .png or .mp4"),
        ({"seconds": "0"}, "above 0"),
        ({"width": "8"}, "from 16 to 1920"),
        ({"seed": "-1"}, "from 0 up"),
        ({"run": "nowhere"}, "the folder of a run"),
    ],
)
def test_what_is_refused(folder: Path, tmp_path: Path, change: dict[str, str], part: str) -> None:
    arguments = {"run": str(folder), "out": str(tmp_path / "agent.png"), **change}
    with pytest.raises(CodesignError) as error:
        play.main([f"{key}={value}" for key, value in arguments.items()])
    assert_one_sentence(error.value, part)
    assert not list(tmp_path.iterdir())
