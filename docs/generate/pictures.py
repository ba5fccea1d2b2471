"""docs/pictures/ (make pictures): for each environment a random design under random controls, as a moving picture and as a still one; and
what the reference study came to."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from codesign_bench.analysis.collect import Collection, Run, collect
from codesign_bench.analysis.looks import ENVS
from codesign_bench.analysis.playing import recorded
from codesign_bench.analysis.style import captioned
from codesign_bench.commands import figures
from codesign_bench.simulation.rendering import Picture
from codesign_bench.simulation.showing import FRAMES_PER_SECOND, grown_design, motion, starting_pose
from codesign_bench.tasks import make_task
from codesign_bench.terminal import count
from docs.generate import ROOT

SIZE, SECONDS, EVERY = (320, 200), 3.0, 2
"""Pixels; length of the film; every how many of its frames are kept."""
SEED = 3
PICTURES = ROOT / "docs" / "pictures"


def main() -> None:
    for name in ENVS:
        draw(name)
    evolved()
    curves()


def curves() -> None:
    """Those of the reference study."""
    with tempfile.TemporaryDirectory() as folder:
        figures.main(["study=reference", "only=comparison,continuous", "formats=png", f"out={folder}"])
        for name in ("comparison", "continuous"):
            Image.open(Path(folder) / f"{name}.png").quantize(64).save(PICTURES / f"{name}.png", optimize=True)


def draw(name: str) -> None:
    task, rng = make_task(name), np.random.default_rng(SEED)
    design = grown_design(task, rng)
    picture = Picture(design, task, width=2 * SIZE[0], height=2 * SIZE[1])
    still = image(picture.frame(starting_pose(design, task, rng)))
    film = [image(picture.frame(pose)) for pose in list(motion(design, task, rng, SECONDS))[::EVERY]]
    picture.close()
    still.quantize(128).save(PICTURES / f"{name}.png", optimize=True)
    save(name, film)


def evolved() -> None:
    """The two best robots that methods of the reference study designed in each environment, as `reevaluate` recorded their motion."""
    study = collect(ROOT / "results", "reference")
    films = []
    for env in study.envs:
        curves = [study.of(env, method) for method in study.methods if method != "expert"]
        designers = [max(runs, key=study.final) for runs in curves if runs]
        films += [film_of(study, run) for run in sorted(designers, key=study.final, reverse=True)[:2]]
    save("evolved", [side_by_side([film[min(i, len(film) - 1)] for film in films]) for i in range(max(map(len, films)))])


def film_of(study: Collection, run: Run) -> list[Image.Image]:
    task, shown = recorded(run.path, SECONDS)
    picture = Picture(shown.motion.design, task, width=2 * SIZE[0], height=2 * SIZE[1])
    caption = f"{study.title(run.env)}: {study.label(run.method)}, {count(run.steps)} steps"
    film = [image(captioned(picture.frame(pose), caption)) for pose in shown.motion.poses[::EVERY]]
    picture.close()
    return film


def side_by_side(images: list[Image.Image]) -> Image.Image:
    """Two in a row."""
    whole = Image.new("RGB", (2 * SIZE[0], SIZE[1] * ((len(images) + 1) // 2)), "white")
    for i, one in enumerate(images):
        whole.paste(one, (i % 2 * SIZE[0], i // 2 * SIZE[1]))
    return whole


def save(name: str, film: list[Image.Image]) -> None:
    path, milliseconds = PICTURES / f"{name}.webp", round(1000 * EVERY / FRAMES_PER_SECOND)
    film[0].save(path, save_all=True, append_images=film[1:], duration=milliseconds, loop=0, quality=60, method=6)
    print(f"{name}: {path.stat().st_size / 1000:.0f} kB")


def image(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(pixels).resize(SIZE, Image.Resampling.LANCZOS)


if __name__ == "__main__":
    main()
