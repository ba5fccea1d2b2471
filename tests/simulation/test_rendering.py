"""The rendering variant of a model looks better and moves the same; and what a picture shows."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from codesign_bench.design.graph import Design
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.errors import RenderError
from codesign_bench.simulation import rendering
from codesign_bench.simulation.rendering import Picture, open_for_writing, save_video
from codesign_bench.simulation.showing import motion, random_design, starting_pose
from codesign_bench.tasks import TASKS, make_task
from codesign_bench.tasks.base import Task
from tests.simulation.drawing import needs_drawing


def designs(task: Task) -> list[tuple[Task, Design]]:
    expert = task.with_expert()
    rng = np.random.default_rng(2)
    return [(task, task.initial_design), (expert, expert.initial_design), *((task, random_design(task, rng)) for _ in range(3))]


@pytest.mark.parametrize("name", TASKS)
def test_the_rendering_model_has_the_same_physics(name: str) -> None:
    for task, design in designs(make_task(name)):
        models = [mujoco.MjModel.from_xml_string(to_mjcf(design, task.space, task.scene, rendering=r)) for r in (False, True)]
        assert models[1].ngeom > models[0].ngeom
        both = [mujoco.MjData(model) for model in models]
        rng = np.random.default_rng(0)
        both[0].qpos[:] += rng.uniform(-0.1, 0.1, models[0].nq)
        both[1].qpos[:] = both[0].qpos
        touched = False
        for _ in range(400):
            control = rng.uniform(-1.5, 1.5, models[0].nu)
            for model, data in zip(models, both, strict=True):
                data.ctrl[:] = control
                mujoco.mj_step(model, data)
            touched |= both[0].ncon > 0
            np.testing.assert_array_equal(both[0].qpos, both[1].qpos)
            np.testing.assert_array_equal(both[0].qvel, both[1].qvel)
        assert touched is (name != "swimmer")
        assert np.isfinite(both[0].qpos).all()


@pytest.mark.parametrize("name", TASKS)
def test_the_training_model_carries_nothing_to_look_at(name: str) -> None:
    task = make_task(name)
    model = mujoco.MjModel.from_xml_string(to_mjcf(task.initial_design, task.space, task.scene))
    assert (model.nlight, model.ncam, model.ntex, model.nmat) == (0, 0, 0, 0)


@pytest.mark.slow
@needs_drawing
@pytest.mark.parametrize("name", TASKS)
def test_the_camera_frames_the_whole_robot(name: str) -> None:
    """Segmentation: every body is in the picture, and none touches its border."""
    for task, design in designs(make_task(name))[1:3]:
        picture = Picture(design, task, width=240, height=180)
        picture.frame(starting_pose(design, task, np.random.default_rng(0)))
        renderer = picture._renderer
        renderer.enable_segmentation_rendering()
        renderer.update_scene(picture.data, picture._camera, picture._options)
        segments = renderer.render()
        picture.close()
        geoms = np.where(segments[..., 1] == mujoco.mjtObj.mjOBJ_GEOM, segments[..., 0], -1)
        body = np.where(geoms >= 0, picture.model.geom_bodyid[geoms], 0)
        border = np.concatenate([body[0], body[-1], body[:, 0], body[:, -1]])
        assert not border.any()
        assert (body > 0).mean() > 0.002, "it is large enough to be seen"


@needs_drawing
def test_a_gap_is_in_the_picture() -> None:
    task = make_task("gap")
    picture = Picture(task.initial_design, task, width=240, height=180)
    picture.frame()
    renderer = picture._renderer
    renderer.enable_segmentation_rendering()
    renderer.update_scene(picture.data, picture._camera, picture._options)
    segments = renderer.render()
    picture.close()
    blocks = np.flatnonzero(np.char.find([picture.model.geom(g).name for g in range(picture.model.ngeom)], "ground_") == 0)
    seen = picture.model.geom_pos[np.intersect1d(blocks, segments[..., 0]), 0]
    assert (seen < 0.93).any()
    assert (seen > 1.89).any()


@pytest.mark.slow
@needs_drawing
def test_pictures_of_two_sizes_at_once() -> None:
    task = make_task("swimmer")
    small, large = Picture(task.initial_design, task, 64, 48), Picture(task.initial_design, task, 128, 96)
    shapes = [small.frame().shape, large.frame().shape, small.frame().shape]
    assert shapes == [(48, 64, 3), (96, 128, 3), (48, 64, 3)]
    np.testing.assert_array_equal(small.frame(), small.frame())
    small.close()
    large.close()


def test_one_sentence_if_nothing_can_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(backend: str, *_: object) -> None:
        raise AttributeError(f"{backend} is\nnot here")

    monkeypatch.setattr(rendering, "_renderer_with", broken)
    task = make_task("gap")
    with pytest.raises(RenderError, match="Neither EGL nor OSMesa can draw on this machine") as caught:
        Picture(task.initial_design, task)
    assert "\n" not in str(caught.value)


def test_osmesa_is_tried_after_egl(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def only_osmesa(backend: str, *_: object) -> str:
        tried.append(backend)
        if backend != "osmesa":
            raise ImportError("no library")
        return "renderer"

    monkeypatch.setattr(rendering, "_renderer_with", only_osmesa)
    monkeypatch.setenv("MUJOCO_GL", "egl")
    task = make_task("gap")
    assert Picture(task.initial_design, task)._renderer == "renderer"
    assert tried == ["egl", "osmesa"]


@pytest.mark.parametrize("name", ["locomotion2d", "gap", "locomotion3d", "swimmer"])
def test_a_video_has_25_poses_for_each_second(name: str) -> None:
    task = make_task(name)
    design = random_design(task, np.random.default_rng(3))
    poses = list(motion(design, task, np.random.default_rng(0), 2.0))
    assert len(poses) == 50
    assert np.isfinite(poses).all()
    assert len({pose.tobytes() for pose in poses}) == 50


def test_a_video_file_has_the_frames_given(tmp_path: Path) -> None:
    import imageio_ffmpeg

    frames = [np.full((48, 64, 3), 20 * i, dtype=np.uint8) for i in range(10)]
    save_video(open_for_writing(tmp_path / "deep" / "a.mp4"), frames, 25, len(frames))
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "deep" / "a.mp4"))
    meta = next(reader)
    assert meta["size"] == (64, 48)
    assert meta["codec"] == "h264"
    means = [np.frombuffer(frame, dtype=np.uint8).mean() for frame in reader]
    assert means == pytest.approx([20 * i for i in range(10)], abs=6)
