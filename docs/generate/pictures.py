"""docs/pictures/: for each environment a random design under random controls, as a moving picture and as a still one (make pictures)."""

from __future__ import annotations

import numpy as np
from PIL import Image

from codesign_bench.analysis.looks import ENVS
from codesign_bench.simulation.rendering import Picture
from codesign_bench.simulation.showing import FRAMES_PER_SECOND, grown_design, motion, starting_pose
from codesign_bench.tasks import make_task
from docs.generate import ROOT

SIZE, SECONDS, EVERY = (320, 200), 3.0, 2
"""Pixels; length of the film; every how many of its frames are kept."""
SEED = 3


def main() -> None:
    for name in ENVS:
        draw(name)


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
    milliseconds = round(1000 * EVERY / FRAMES_PER_SECOND)
    film[0].save(folder / f"{name}.webp", save_all=True, append_images=film[1:], duration=milliseconds, loop=0, quality=60, method=6)
    print(f"{name}: {(folder / f'{name}.webp').stat().st_size / 1000:.0f} kB")


def image(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(pixels).resize(SIZE, Image.Resampling.LANCZOS)


if __name__ == "__main__":
    main()
