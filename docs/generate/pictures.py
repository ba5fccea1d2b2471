"""docs/pictures/ (make pictures): for each environment a random design under random controls, as a moving picture and as a still one; and
what the reference study came to."""

from __future__ import annotations

import numpy as np
from PIL import Image

from codesign_bench.analysis.collect import collect
from codesign_bench.analysis.looks import ENVS
from codesign_bench.analysis.playing import recorded
from codesign_bench.analysis.style import captioned
from codesign_bench.simulation.rendering import Picture
from codesign_bench.simulation.showing import FRAMES_PER_SECOND, grown_design, motion, starting_pose
from codesign_bench.tasks import make_task
from codesign_bench.terminal import count
from docs.generate import ROOT

SIZE, SECONDS, EVERY = (320, 200), 3.0, 2
"""Pixels; length of the film; every how many of its frames are kept."""
SEED = 3


def main() -> None:
    for name in ENVS:
        draw(name)
    evolved()


def draw(name: str) -> None:
    task, rng = make_task(name), np.random.default_rng(SEED)
    design = grown_design(task, rng)
    picture = Picture(design, task, width=2 * SIZE[0], height=2 * SIZE[1])
    still = image(picture.frame(starting_pose(design, task, rng)))
    film = [image(picture.frame(pose)) for pose in list(motion(design, task, rng, SECONDS))[::EVERY]]
    picture.close()
    folder = ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    still.quantize(128).save(folder / f"{name}.png", optimize=True)
    save(name, film)


def evolved() -> None:
    """The best robots of the reference study in four environments, from the motion that was recorded of them."""
    study = collect(ROOT / "results", "reference")
    films = []
    for env in study.envs[:4]:
        moving = [run for run in study.runs if run.env == env and (run.path / "motion.json").is_file()]
        run = max(moving, key=study.final)
        task, shown = recorded(run.path, SECONDS)
        picture = Picture(shown.motion.design, task, width=2 * SIZE[0], height=2 * SIZE[1])
        caption = f"{study.title(env)}: {study.label(run.method)}, {count(run.steps)} steps"
        films.append([image(captioned(picture.frame(pose), caption)) for pose in shown.motion.poses[::EVERY]])
        picture.close()
    save("evolved", [side_by_side([film[min(i, len(film) - 1)] for film in films]) for i in range(max(map(len, films)))])


def side_by_side(images: list[Image.Image]) -> Image.Image:
    """Two in a row."""
    whole = Image.new("RGB", (2 * SIZE[0], SIZE[1] * ((len(images) + 1) // 2)), "white")
    for i, one in enumerate(images):
        whole.paste(one, (i % 2 * SIZE[0], i // 2 * SIZE[1]))
    return whole


def save(name: str, film: list[Image.Image]) -> None:
    path, milliseconds = ROOT / "docs" / "pictures" / f"{name}.webp", round(1000 * EVERY / FRAMES_PER_SECOND)
    film[0].save(path, save_all=True, append_images=film[1:], duration=milliseconds, loop=0, quality=60, method=6)
    print(f"{name}: {path.stat().st_size / 1000:.0f} kB")


def image(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(pixels).resize(SIZE, Image.Resampling.LANCZOS)


if __name__ == "__main__":
    main()
