"""codesign-bench play: the champion of a run as a picture or a video, and what is refused."""

from pathlib import Path

import imageio_ffmpeg
import pytest
from PIL import Image

from codesign_bench.commands import play
from codesign_bench.errors import CodesignError
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
