"""Pictures and videos of designs, without a screen: EGL, or OSMesa where there is none."""

import contextlib
import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from codesign_bench.arrays import Array
from codesign_bench.bars import counted
from codesign_bench.design.graph import Design
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.errors import ConfigError, DesignError, RenderError
from codesign_bench.quiet import be_quiet
from codesign_bench.tasks.base import Task

VIEWS = {"planar xz": (96.0, -11.0), "planar xy": (90.0, -65.0), "free xy": (120.0, -22.0)}
"""Azimuth and elevation in degrees, by the root's freedom and the task's plane."""
AHEAD = (55.0, -18.0)
"""The same for a robot free in space that has something ahead of it."""

MADE_BY = "Made by codesign_bench"
"""Every file that a command writes where `out` says holds these words, and is known by them."""
LARGEST = (1920, 1440)
"""Width and height of the largest picture, in pixels (the rendering model's buffer)."""


class Picture:
    """Draws one design. The camera frames the whole robot and keeps its distance while the robot moves."""

    def __init__(self, design: Design, task: Task, width: int = 960, height: int = 720, zoom: float = 1.0) -> None:
        import mujoco

        be_quiet()

        self._mujoco = mujoco
        self.design, self.task = design, task
        try:
            self.model = mujoco.MjModel.from_xml_string(to_mjcf(design, task.space, task.scene, rendering=True))
        except ValueError as error:
            raise DesignError(f"MuJoCo cannot build this design: {' '.join(str(error).split())[:200]}.") from None
        self.data = mujoco.MjData(self.model)
        self._renderer = _make_renderer(self.model, width, height)
        self._camera = mujoco.MjvCamera()
        free_among_parts = task.scene.root == "free" and task.scene.parts
        view = AHEAD if free_among_parts else VIEWS[f"{task.scene.root} {task.space.plane}"]
        self._camera.azimuth, self._camera.elevation = view
        self._options = mujoco.MjvOption()
        self._zoom = zoom
        self._distance: float | None = None
        self._aspect = width / height

    def frame(self, qpos: Array | None = None) -> Array:
        """[height, width, 3] uint8: the robot in a pose, by default its reference pose."""
        low, high = self._pose(qpos)
        self._camera.lookat[:] = (low + high) / 2
        if self._distance is None:
            self._distance = self._fitting(high - low)
        self._camera.distance = self._distance
        self._renderer.update_scene(self.data, self._camera, self._options)
        pixels: Array = self._renderer.render().copy()
        return pixels

    def distance(self, qpos: Array | None = None) -> float:
        """Of the camera that frames this pose; the largest of several robots', given to `keep_distance`, shows them at one scale."""
        low, high = self._pose(qpos)
        return self._fitting(high - low)

    def keep_distance(self, distance: float) -> None:
        self._distance = distance

    def close(self) -> None:
        self._renderer.close()

    def _pose(self, qpos: Array | None) -> tuple[Array, Array]:
        if qpos is not None and np.shape(qpos) != (self.model.nq,):
            raise DesignError(f"A pose has {np.size(qpos)} coordinates; allowed are {self.model.nq}, as this design has in its scene.")
        self.data.qpos[:] = self.model.qpos0 if qpos is None or not np.isfinite(qpos).all() else qpos
        self._mujoco.mj_forward(self.model, self.data)
        return self._extent()

    def _fitting(self, spread: Array) -> float:
        scene = self.task.scene
        if scene.ground.kind == "gaps" or scene.parts:  # show a gap, or what else is there, together with the robot
            spread[0] = max(spread[0], 0.8 * (scene.ground.period or 4.0))
        spread[:2] = np.maximum(spread[:2], 2 * self._reach_of_objects())
        from_above = scene.root == "planar" and self.task.space.plane == "xy"
        tall = max(spread[2], spread[1] if from_above else 0.0)
        wide = (spread[0] if from_above else max(spread[0], spread[1])) / self._aspect
        return (1.15 * max(float(tall), float(wide)) + 0.6) * 1.3 / self._zoom

    def _reach_of_objects(self) -> Array:
        """[2]: how far things to push reach from the middle of the robot, along x and y."""
        theirs = self.model.geom_bodyid > self.design.num_nodes
        low, high = self._extent()
        away = np.abs(self.data.geom_xpos[theirs] - (low + high) / 2) + self.model.geom_rbound[theirs][:, None]
        return np.asarray(away.max(axis=0, initial=0.0)[:2])

    def _extent(self) -> tuple[Array, Array]:
        """Lower and upper corner of the box around all parts of the robot."""
        mine = (self.model.geom_bodyid > 0) & (self.model.geom_bodyid <= self.design.num_nodes)
        centre, reach = self.data.geom_xpos[mine], self.model.geom_rbound[mine][:, None]
        return (centre - reach).min(axis=0), (centre + reach).max(axis=0)


def open_for_writing(path: str | Path) -> Path:
    """The path, in a folder that exists now. A place that cannot be written, or a file that no command of ours made, is an error before
    any work is done."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not (target.is_file() and _made_here(target)):
            raise ConfigError(f"out is '{target}', which exists and was not made by this codesign-bench; allowed is another name.")
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise RenderError(f"{target} cannot be written: {error.strerror}.") from None
    return target


def _made_here(path: Path) -> bool:
    """Whether a file holds our words, or nothing at all."""
    with open(path, "rb") as file:
        return os.fstat(file.fileno()).st_size == 0 or mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ).find(MADE_BY.encode()) >= 0


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """A name to write under: the file takes its own when it is whole, and one that was there before stays until then."""
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise RenderError(f"{path} cannot be written: {error.strerror or error}.") from None
    finally:
        temporary.unlink(missing_ok=True)


def save_png(path: Path, pixels: Array) -> None:
    from PIL import Image, PngImagePlugin

    about = PngImagePlugin.PngInfo()
    about.add_text("Software", MADE_BY)
    with _replaced(path) as temporary:
        Image.fromarray(pixels).save(temporary, pnginfo=about, optimize=True)


def save_video(path: Path, frames: Iterable[Array], fps: float, number: int) -> None:
    """H.264 in mp4, which browsers and slides play; it has an even number of rows and columns."""
    import imageio_ffmpeg

    writer = None
    with _replaced(path) as temporary, counted(f"{path.name}: frame", number) as after_frame:
        for frame in frames:
            frame = np.pad(frame, [(0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)], mode="edge")
            if writer is None:
                size, about = (frame.shape[1], frame.shape[0]), ["-metadata", f"comment={MADE_BY}"]
                writer = imageio_ffmpeg.write_frames(str(temporary), size, fps=fps, quality=7, macro_block_size=2, output_params=about)
                writer.send(None)
            writer.send(np.ascontiguousarray(frame))
            after_frame()
        if writer is not None:
            writer.close()


def _make_renderer(model: Any, width: int, height: int) -> Any:
    problems = []
    for backend in dict.fromkeys([os.environ.get("MUJOCO_GL", ""), "egl", "osmesa"]):
        try:
            return _renderer_with(backend, model, width, height)
        except Exception as error:  # a GL library that is missing or broken can fail in any way, even in attribute look-up
            problems.append(
                f"{backend or 'default'}: {str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__}"
            )
    raise RenderError(
        "Neither EGL nor OSMesa can draw on this machine "
        f"({'; '.join(problems)}); install one of them, for instance the packages libegl1 and libgl1-mesa-dri, or libosmesa6."
    )


def _renderer_with(backend: str, model: Any, width: int, height: int) -> Any:
    import mujoco
    from mujoco.rendering.classic import gl_context

    if backend == "egl":
        from mujoco.egl import GLContext
    elif backend == "osmesa":
        from mujoco.osmesa import GLContext
    else:
        GLContext = gl_context.GLContext
    gl_context.GLContext = GLContext
    return mujoco.Renderer(model, height, width)
