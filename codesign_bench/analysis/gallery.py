"""Robots side by side: the champions of a study, with the same camera and scale, as a picture or a video; and random agents."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from codesign_bench.analysis.champions import FINAL
from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.looks import ENVS, ordered
from codesign_bench.analysis.style import captioned, font, letters, printable, short, span
from codesign_bench.analysis.table import number
from codesign_bench.arrays import Array
from codesign_bench.bars import counted
from codesign_bench.design.graph import Design
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.experiment.load import load_champion
from codesign_bench.experiment.motion import FRAMES_PER_SECOND, Motion, record
from codesign_bench.experiment.run_folder import CHECKPOINTS
from codesign_bench.experiment.seeds import Streams
from codesign_bench.paths import env_config, options_of
from codesign_bench.simulation.rendering import Picture, save_png, save_video
from codesign_bench.simulation.showing import grown_design, starting_pose
from codesign_bench.tasks import Task, make_task, task_from_config

LARGEST_SHEET = 16_000
"""Pixels of a sheet's longer side: what video encoders and browsers still take."""
GUTTER = 2
"""Pixels of white at either side of a tile."""
TILE, EDGE = (480, 360), 3
"""Of random agents: pixels of a tile, and of white along its edges."""
SIDE_BY_SIDE = 4
"""Environments of random agents in one line."""
NO_RUN, LEFT_OUT = "no run", "left out"
INK, FAINT = "#222222", "#777777"


@dataclass(frozen=True)
class Tile:
    """The champion of a run in its task; poses [frames, coordinates] are FRAMES_PER_SECOND apart."""

    run: Run
    value: float
    task: Task
    poses: Array
    ended: bool


def chosen_runs(collection: Collection, seeds: Sequence[str | int]) -> list[tuple[str, dict[str, Run]]]:
    """The rows of the sheet: a title, and the run to show for each method that has one."""
    rows = []
    for env in collection.envs:
        runs = [run for run in collection.runs if run.env == env]
        if "best" in seeds:
            best = {method: collection.best_first(env, method)[0] for method in {run.method for run in runs}}
            about = f"best of {span([len(collection.of(env, method)) for method in best])} seeds"
            rows.append((f"{collection.title(env)}, {about}, {span([run.steps for run in runs])} steps", best))
            continue
        shown = [number for number in sorted({run.seed for run in runs}) if "all" in seeds or number in seeds]
        rows += [(f"{collection.title(env)}, seed {number}", {run.method: run for run in runs if run.seed == number}) for number in shown]
    return rows


def tile_of(run: Run | None, collection: Collection, seconds: float, left_out: bool = False) -> Tile | str:
    """What to draw in a place, or why there is nothing."""
    if run is None:
        return LEFT_OUT if left_out else NO_RUN
    try:
        stored = StoredDesign.load(run.path / FINAL)
        task = shown_task(run.config["env"]).starting_from(stored.design, stored.space)
        motion = motion_of(run, stored.design, seconds) if seconds > 0 else None
        if motion is None:
            poses, ended = starting_pose(stored.design, task, np.random.default_rng(run.seed))[None], False
        else:
            poses, ended = motion_frames(motion, seconds), motion.ended and len(motion.poses) * motion.seconds_per_frame <= seconds
    except CodesignError as error:
        return str(error)
    return Tile(run, collection.final(run), task, poses, ended)


def shown_task(env: Mapping[str, Any]) -> Task:
    """The task of a run. MJCF that its configuration brings along is not built: the run may be a stranger's, and MJCF can hold anything."""
    task = task_from_config(env)
    installed = env_config(task.name)["scene"].get("elements", "") if task.name in options_of("env") else ""
    if task.config.scene.elements != installed:
        raise ConfigError("Its configuration holds MJCF of its own (env.scene.elements), which is not drawn.")
    return task


def motion_of(run: Run, design: Design, seconds: float) -> Motion | None:
    """What `reevaluate` recorded of this design, or else what the run's latest checkpoint does now; None if there is neither."""
    recorded = Motion.load(run.path)
    if recorded is not None and recorded.is_of(design):
        return recorded
    if not any((run.path / "checkpoints").glob(CHECKPOINTS)):
        return None
    agent, plan = load_champion(run.path)
    motion = record(agent, Streams(plan.settings.seed).sequence("motion", 0), seconds)
    return motion if motion is not None and motion.is_of(design) else None


def motion_frames(motion: Motion, seconds: float) -> Array:
    """The poses at the frames of a video; the last pose where the episode is shorter is repeated by whoever draws."""
    length = min(seconds, len(motion.poses) * motion.seconds_per_frame)
    times = np.arange(max(1, round(length * FRAMES_PER_SECOND))) / FRAMES_PER_SECOND
    nearest = np.minimum(times / motion.seconds_per_frame + 1e-6, len(motion.poses) - 1).astype(int)
    frames: Array = motion.poses[nearest]
    return frames


class Sheet:
    """Titles, and a grid of tiles: one row for each environment (and seed), one column for each method."""

    def __init__(self, rows: Sequence[str], columns: Sequence[str], width: int, height: int) -> None:
        self.width, self.height = width, height
        self.font = max(11, height // 18)
        self.band = round(2.2 * self.font)
        self.size = (len(columns) * width, self.band + len(rows) * (self.band + height))
        if max(self.size) > LARGEST_SHEET:
            raise ConfigError(f"The gallery would be {self.size[0]} x {self.size[1]} pixels; choose smaller tiles, or some methods.")
        self.blank = Image.new("RGB", self.size, "white")
        draw = ImageDraw.Draw(self.blank)
        for column, title in enumerate(columns):
            centre = (column * width + width // 2, self.band // 2)
            draw.text(centre, short(printable(title), letters(width, self.font)), fill=INK, font=font(self.font), anchor="mm")
        for row, title in enumerate(rows):
            draw.text((self.font // 2, self.top(row) - self.band // 2), title, fill=INK, font=font(self.font), anchor="lm")

    def top(self, row: int) -> int:
        return self.band + row * (self.band + self.height) + self.band

    def composed(self, tiles: Sequence[tuple[int, int, Array]]) -> Array:
        image = np.array(self.blank)
        for row, column, pixels in tiles:
            left = column * self.width
            image[self.top(row) : self.top(row) + self.height, left + GUTTER : left + self.width - GUTTER] = pixels[:, GUTTER:-GUTTER]
        return image


def drawn_tile(tile: Tile | str, distance: float, width: int, height: int) -> Iterator[Array]:
    """The frames of a tile, one for a picture of something that does not move."""
    if isinstance(tile, str):
        yield captioned(np.full((height, width, 3), 245, dtype=np.uint8), tile, colour=FAINT)
        return
    design = tile.task.initial_design
    facts = f"return {number(tile.value)}, {design.num_nodes} bodies, seed {tile.run.seed}"
    picture = Picture(design, tile.task, width, height)
    picture.keep_distance(distance)
    for i, pose in enumerate(tile.poses):
        last = tile.ended and i == len(tile.poses) - 1 and len(tile.poses) > 1
        yield captioned(picture.frame(pose), facts, *([f"ended at {i / FRAMES_PER_SECOND:.1f} s"] if last else []))
    picture.close()


def common_distance(tiles: Sequence[Tile | str], width: int, height: int) -> float:
    """Of the camera that frames every champion of a row in its first pose."""
    found = [0.0]
    for tile in tiles:
        if isinstance(tile, Tile):
            picture = Picture(tile.task.initial_design, tile.task, width, height)
            found.append(picture.distance(tile.poses[0]))
            picture.close()
    return max(found)


def gallery(collection: Collection, out: Path, seeds: Sequence[str | int], seconds: float, width: int, height: int) -> list[Tile | str]:
    """Draws the champions into a picture or a video; returns what was drawn."""
    video = out.suffix == ".mp4"
    rows, methods = chosen_runs(collection, seeds), ordered({*collection.methods, *(left.path.parts[-2] for left in collection.left_out)})
    if not rows:
        raise ConfigError(f"The study '{collection.study}' has no runs to show with seed {', '.join(map(str, seeds))}.")
    sheet = Sheet([title for title, _ in rows], [collection.label(method) for method in methods], width, height)
    tiles: list[list[Tile | str]] = []
    films = []
    with counted("gallery: champion", len(rows) * len(methods)) as after_champion:
        for _, runs in rows:
            tiles.append([])
            for method in methods:
                tiles[-1].append(tile_of(runs.get(method), collection, seconds if video else 0.0, method not in collection.methods))
                after_champion()
    with counted("gallery: frame", sum(len(tile.poses) if isinstance(tile, Tile) else 1 for mine in tiles for tile in mine)) as after_frame:
        for row, mine in enumerate(tiles):
            distance = common_distance(mine, width, height)
            for column, tile in enumerate(mine):
                film: list[bytes] = []
                films.append((row, column, film))
                for pixels in drawn_tile(tile, distance, width, height):
                    film.append(zlib.compress(pixels.tobytes(), 1))  # a study's worth of frames does not fit in memory
                    after_frame()

    def frame(number: int) -> Array:
        pixels = [zlib.decompress(film[min(number, len(film) - 1)]) for _, _, film in films]
        drawn = [np.frombuffer(each, dtype=np.uint8).reshape(height, width, 3) for each in pixels]
        return sheet.composed([(row, column, each) for (row, column, _), each in zip(films, drawn, strict=True)])

    if video:
        frames = max(len(film) for _, _, film in films)
        save_video(out, map(frame, range(frames)), FRAMES_PER_SECOND, frames)
    else:
        save_png(out, frame(0))
    return [tile for mine in tiles for tile in mine]


def contact_sheet(seed: int, agents: int) -> Image.Image:
    """Random agents in all environments, a column each, SIDE_BY_SIDE of them (the paper's figure of its environments, which come first)."""
    width, height = TILE
    band = 44
    lines = -(-len(ENVS) // SIDE_BY_SIDE)
    sheet = Image.new("RGB", (width * SIDE_BY_SIDE, (band + height * agents) * lines), "white")
    draw = ImageDraw.Draw(sheet)
    with counted("random agents: environment", len(ENVS)) as after_env:
        for place, name in enumerate(ENVS):
            task = make_task(name)
            rng = np.random.default_rng([seed, place])
            title = task.config.title
            left, top = width * (place % SIDE_BY_SIDE), (band + height * agents) * (place // SIDE_BY_SIDE)
            draw.text((left + width // 2, top + band // 2), title, fill=INK, font=font(24), anchor="mm")
            for row in range(agents):
                design = grown_design(task, rng)
                picture = Picture(design, task, width=2 * width, height=2 * height)
                tile = Image.fromarray(picture.frame(starting_pose(design, task, rng))).resize(TILE, Image.Resampling.LANCZOS)
                picture.close()
                inner = tile.crop((EDGE, EDGE, width - EDGE, height - EDGE))
                sheet.paste(inner, (left + EDGE, top + band + height * row + EDGE))
            after_env()
    return sheet
