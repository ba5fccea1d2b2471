"""codesign-bench render: what it writes, and how it refuses. Most cases run in this process, a few as a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from codesign_bench import cli
from codesign_bench.analysis import gallery
from codesign_bench.design.stored import StoredDesign
from codesign_bench.paths import options_of
from codesign_bench.simulation.showing import random_design
from codesign_bench.tasks import make_task
from tests.simulation.drawing import HAS_EGL, needs_drawing

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["width=96", "height=64"]


def program(folder: Path, *arguments: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """The command as a person runs it. A variable that is None is taken out of the environment."""
    own = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HYDRA_FULL_ERROR": None, "PYOPENGL_PLATFORM": None}
    merged = {**os.environ, **own, **environment}
    command = [sys.executable, "-m", "codesign_bench", "render", *arguments]
    env = {name: value for name, value in merged.items() if value is not None}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


class Here:
    """The command in this process and in an empty folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        monkeypatch.chdir(folder)
        monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(["render", *arguments])
        output, errors = self._capsys.readouterr()
        return int(ended.value.code or 0), output, errors

    def refuses(self, *arguments: str) -> str:
        """Exit code 2, one line on stderr, nothing on stdout, nothing written; gives the line."""
        before = sorted(self.folder.rglob("*"))
        code, output, errors = self(*arguments)
        assert (code, output) == (2, "")
        assert errors.startswith("error: ")
        assert errors.endswith("\n")
        assert len(errors.splitlines()) == 1, errors
        assert "Traceback" not in errors
        assert sorted(self.folder.rglob("*")) == before
        return errors


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.array(image)


def assert_shows_something(frame: np.ndarray) -> None:
    assert frame.std() > 10
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 100


# ---- pictures and videos ---------------------------------------------------------------------------------------------


@needs_drawing
def test_a_picture_from_the_command_line(tmp_path: Path) -> None:
    done = program(tmp_path, "env=gap", "design=random", "seed=3", "out=new/robot.png", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("new/robot.png: gap, ")
    frame = pixels(tmp_path / "new" / "robot.png")
    assert frame.shape == (64, 96, 3)
    assert_shows_something(frame)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["new", "robot.png"], "nothing else is left behind"


@needs_drawing
def test_a_video_from_the_command_line(tmp_path: Path) -> None:
    done = program(tmp_path, "env=gap", "design=random", "seed=3", "out=robot.mp4", "seconds=0.4", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "robot.mp4"))
    assert next(reader)["size"] == (96, 64)
    frames = [np.frombuffer(frame, dtype=np.uint8).reshape(64, 96, 3) for frame in reader]
    assert len(frames) == 10
    for frame in frames:
        assert_shows_something(frame)
    assert not np.array_equal(frames[0], frames[-1])
    assert [p.name for p in tmp_path.rglob("*")] == ["robot.mp4"]


@needs_drawing
@pytest.mark.parametrize("env", ["locomotion2d", "locomotion3d", "swimmer", "gap"])
def test_every_design_in_every_environment(here: Here, env: str) -> None:
    for design in ("initial", "expert"):
        code, output, errors = here(f"env={env}", f"design={design}", f"out={design}.png", *SMALL)
        assert (code, errors) == (0, "")
        assert f"{design}.png: {env}" in output
        assert_shows_something(pixels(here.folder / f"{design}.png"))
    assert not np.array_equal(pixels(here.folder / "initial.png"), pixels(here.folder / "expert.png"))


@needs_drawing
def test_the_seed_decides(here: Here) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert here("env=locomotion3d", "design=random", f"seed={seed}", f"out={name}.png", *SMALL)[0] == 0
    a, b, c = (pixels(here.folder / f"{name}.png") for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


@needs_drawing
@pytest.mark.parametrize("name", ["robot.png", "robot.mp4"])
def test_it_draws_over_its_own_files_and_no_other(here: Here, name: str) -> None:
    arguments = ("env=gap", f"out={name}", *SMALL, "seconds=0.2")
    assert here(*arguments)[0] == 0
    assert here(*arguments, "seed=2")[0] == 0
    (here.folder / name).write_bytes(b"a picture of my cat")
    assert "which exists and was not made by this codesign-bench" in here.refuses(*arguments)
    assert (here.folder / name).read_bytes() == b"a picture of my cat"


@needs_drawing
def test_a_design_from_a_file(here: Here) -> None:
    task = make_task("swimmer")
    design = random_design(task, np.random.default_rng(8))
    (here.folder / "design.json").write_text(StoredDesign(design, task.space).to_json(), encoding="utf-8")
    code, output, _ = here("env=swimmer", "design=design.json", "out=a.png", *SMALL)
    assert (code, output) == (0, f"a.png: swimmer, {design.num_nodes} bodies\n")


@needs_drawing
def test_a_contact_sheet(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "TILE", (160, 120))
    code, _, errors = here("env=all", "out=sheet.png", "agents=1", "seed=1")
    assert code == 0
    assert all(line.startswith("random agents: ") for line in errors.splitlines()), errors
    sheet = pixels(here.folder / "sheet.png")
    width, height = gallery.TILE
    assert sheet.shape == (5 * (44 + height), 4 * width, 3)
    for number in range(17):
        top, left = (number // 4 * (44 + height) + 44), number % 4 * width
        assert_shows_something(sheet[top : top + height, left : left + width])


# ---- refusals --------------------------------------------------------------------------------------------------------

HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["env=mars", "out=a.png"], ["'mars'", "locomotion2d, locomotion3d, "]),
        (["env.task=mars", "out=a.png"], ["'mars'", "locomotion2d, locomotion3d, swimmer, gap"]),
        (["colour=red", "out=a.png"], ["'colour'"]),
        (["env.reward.alve=1", "out=a.png"], ["alve"]),
        (["+env.reward.alve=1", "out=a.png"], ["'alve'", "speed, alive, control_cost"]),
        (["~env.reward.alive", "out=a.png"], ["'alive'"]),
        (["env.reward.alive=much", "out=a.png"], ["env.reward.alive", "'much'"]),
        (["env.reward.alive=nan", "out=a.png"], ["env.reward.alive", "nan"]),
        (["env.reward.speed=up", "out=a.png"], ["'up'", "forward, absolute"]),
        (["env.reward=null", "out=a.png"], ["env.reward is None"]),
        (["env.design.radius=[0.08,0.03]", "out=a.png"], ["radius", "[0.08, 0.03]", "lower bound below the upper bound"]),
        (["env.design.gear=[20,20]", "out=a.png"], ["gear", "[20.0, 20.0]"]),
        (["env.design.radius=[0.03]", "out=a.png"], ["env.design.radius is [0.03]", "a list of 2"]),
        (["env.design.initial.limbs.0.range=[30,-30]", "out=a.png"], ["[30.0, -30.0]"]),
        (["env.scene.frame_skip=0", "out=a.png"], ["frame_skip is 0"]),
        (["env.max_steps=0", "out=a.png"], ["max_steps is 0"]),
        (["env=gap", "env.scene.ground.gap_width=5", "out=a.png"], ["gap_width is 5"]),
        (["env=gap"], ["out is missing"]),
        (["out=null"], ["out is None"]),
        (["out=3"], ["out is '3'"]),
        (["out=a.jpg"], ["out is 'a.jpg'", ".png or .mp4"]),
        (["out=a"], ["out is 'a'"]),
        (["out=a.png", "seed=-1"], ["seed is -1"]),
        (["out=a.png", "seed=1.5"], ["seed is 1.5"]),
        (["out=a.png", "seed=true"], ["seed is True"]),
        (["out=a.png", "design=nowhere.json"], ["'nowhere.json'", "initial, random, expert"]),
        (["out=a.png", "design=."], ["'.'", "initial, random, expert"]),
        (["out=a.png", "env.design.expert=nowhere.xml", "design=expert"], ["nowhere.xml"]),
        (["out=a.png", "env.design.radius=[0.1"], ["[0.1"]),
        (["out=a.png", "--fast"], ["--fast", "key=value"]),
        pytest.param(["out=a.png", "+colour=red"], ["colour"]),
        pytest.param(["out=a.png", "env=null"], ["no env 'null'"]),
        pytest.param(["out=a.png", f"env.reward.alive={HUGE}"], ["alive"]),
        pytest.param(["out=a.png", "width=wide"], ["width is 'wide'"]),
        pytest.param(["out=a.png", "width=5000"], ["width is 5000"]),
        pytest.param(["out=a.png", "width=-5"], ["width is -5"]),
        pytest.param(["out=a.mp4", "seconds=long"], ["seconds is 'long'"]),
        pytest.param(["out=a.mp4", "seconds=-1"], ["seconds is -1"]),
        pytest.param(["out=/dev/null/a.png"], ["/dev/null"]),
        pytest.param(["out=a.png", "env.scene.geom_density=0"], ["density"]),
        pytest.param(["out=a.png", "env.scene.joint_armature=-1"], ["armature"]),
        pytest.param(["out=a.png", "env.end.min_height=3"], ["3"]),
    ],
)  # fmt: skip
def test_refuses(here: Here, arguments: list[str], parts: list[str]) -> None:
    line = here.refuses(*arguments)
    for part in parts:
        assert part in line


def stored(env: str) -> Any:
    task = make_task(env)
    return StoredDesign(task.initial_design, task.space).to_dict()


def design_text(**changes: Any) -> str:
    """The initial design of locomotion2d with some entries of its last node replaced."""
    value = stored("locomotion2d")
    value["design"]["nodes"][-1].update(changes)
    return json.dumps(value)


def grown(nodes: int) -> str:
    """A chain of so many nodes."""
    value = stored("locomotion2d")
    nodes_ = value["design"]["nodes"]
    nodes_ += [{**nodes_[1], "parent": i + 1} for i in range(nodes - 2)]
    return json.dumps(value)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "UTF-8"),
        (b"", "cannot be read as JSON"),
        (b"{", "cannot be read as JSON"),
        (b"[" * 100_000, "nested"),
        (b"[1, 2]", "format"),
        (b"{}", "format"),
        (b"\x00\x00", "cannot be read as JSON"),
        (design_text(parent=1).encode(), "no cycles"),
        (design_text(parent=0.5).encode(), "0.5"),
        (design_text(attributes=[float("nan")] * 5).encode(), "finite"),
        (design_text(attributes=[0, 0, 0, 0, 1.5]).encode(), "start extension of node 1 is 1.5"),
        (design_text(range=[10, 10]).encode(), "[10.0, 10.0]"),
        (design_text(axis=[0, 0, 0]).encode(), "axis of node 1 is [0.0, 0.0, 0.0]"),
        (design_text(wings=2).encode(), "wings"),
        (grown(5).encode(), "depth 4; allowed is at most 3"),
        (make_task("locomotion2d").initial_design.to_json().encode(), "format 2"),
        (json.dumps(stored("locomotion3d")).encode(), "plane of its design space is xy; allowed in locomotion2d is xz"),
        (json.dumps({**stored("locomotion2d"), "space": {"plane": "xz"}}).encode(), "space lacks the key 'lower'"),
        pytest.param(b'{"a\\nb": 1}', "format"),
    ],
)  # fmt: skip
def test_refuses_a_file_that_holds_no_design(here: Here, content: bytes, part: str) -> None:
    (here.folder / "design.json").write_bytes(content)
    line = here.refuses("design=design.json", "out=a.png")
    assert "design.json" in line
    assert part in line


def test_the_files_above_are_refused_for_their_faults_alone(here: Here) -> None:
    StoredDesign.from_dict(json.loads(design_text()))
    StoredDesign.from_dict(json.loads(grown(4)))


@pytest.mark.parametrize(
    ("arguments", "part"),
    [pytest.param(["agents=1"], "out"),
     (["out=a.png", "agents=0"], "agents is 0"), (["out=a.png", "seed=-1"], "seed is -1"), (["out=a.png", "agents=x"], "'x'"),
     pytest.param(["out=a.mp4", "agents=1"], ".png")],
)  # fmt: skip
def test_the_contact_sheet_refuses(here: Here, monkeypatch: pytest.MonkeyPatch, arguments: list[str], part: str) -> None:
    monkeypatch.setattr(gallery, "TILE", (16, 12))
    assert part in here.refuses("env=all", *arguments)


def test_the_program_refuses_in_one_line(tmp_path: Path) -> None:
    done = program(tmp_path, "env=mars", "out=a.png")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: There is no env 'mars'; allowed are {', '.join(options_of('env'))}.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("env=mars", "out=a.png"), ("out=a.png", "seed=-1")])
def test_a_traceback_on_request(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = program(tmp_path, *arguments, HYDRA_FULL_ERROR="1")
    assert done.returncode != 0
    assert "Traceback (most recent call last)" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_one_word(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("codesign_bench.commands.render.render", interrupted)
    assert here("out=a.png") == (130, "", "stopped\n")


# ---- machines --------------------------------------------------------------------------------------------------------


@needs_drawing
@pytest.mark.parametrize("backend", [None, pytest.param("osmesa"), pytest.param("")])
def test_finds_a_way_to_draw(tmp_path: Path, backend: str | None) -> None:
    done = program(tmp_path, "env=swimmer", "out=a.png", *SMALL, MUJOCO_GL=backend, DISPLAY=None)
    assert (done.returncode, done.stderr) == (0, "")
    assert_shows_something(pixels(tmp_path / "a.png"))


@pytest.mark.skipif(not HAS_EGL, reason="libEGL is not installed")
def test_an_unknown_backend(tmp_path: Path) -> None:
    done = program(tmp_path, "env=swimmer", "out=a.png", *SMALL, MUJOCO_GL="crayon")
    assert "Traceback" not in done.stderr


DIVERGES = """
import numpy as np
from codesign_bench.simulation.sampler import Sampler, random_policy
from codesign_bench.tasks import make_task

rollout = Sampler(make_task("swimmer", scene={"timestep": 0.5}), 2, np.random.SeedSequence(0)).collect(random_policy, 60)
print(sum(episode.unstable for episode in rollout.episodes) > 0)
"""


def test_a_design_that_diverges_writes_nothing(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", DIVERGES], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert list(tmp_path.iterdir()) == []


@needs_drawing
def test_a_picture_of_a_strange_model_writes_only_the_picture(tmp_path: Path) -> None:
    code = """
from codesign_bench.simulation.rendering import Picture
from codesign_bench.tasks import make_task
task = make_task("gap", scene={"joint_armature": 0, "joint_damping": 0})
Picture(task.initial_design, task, 64, 48).close()
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert [p.name for p in tmp_path.iterdir()] == []
