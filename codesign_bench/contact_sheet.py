"""python -m codesign_bench.contact_sheet out=FILE.png: random agents in all four environments (the paper's figure of its environments)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from codesign_bench.analysis.style import ENV_TITLES
from codesign_bench.command_line import load_config, run
from codesign_bench.design.graph import Design
from codesign_bench.errors import ConfigError
from codesign_bench.simulation.rendering import Picture, open_for_writing
from codesign_bench.simulation.showing import random_design, starting_pose
from codesign_bench.structured import build
from codesign_bench.tasks import TASKS, Task, make_task

TILE = (480, 360)


def contact_sheet(seed: int, agents: int) -> Image.Image:
    """One column per environment: its title, then `agents` random designs."""
    width, height = TILE
    band = 44
    sheet = Image.new("RGB", (width * len(TASKS), band + height * agents), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(24)
    for column, name in enumerate(TASKS):
        task = make_task(name)
        rng = np.random.default_rng([seed, column])
        draw.text((width * column + width // 2, band // 2), ENV_TITLES[name], fill="#222222", font=font, anchor="mm")
        for row in range(agents):
            design = _grown(task, rng)
            picture = Picture(design, task, width=2 * width, height=2 * height)
            tile = Image.fromarray(picture.frame(starting_pose(design, task, rng))).resize(TILE, Image.Resampling.LANCZOS)
            picture.close()
            sheet.paste(tile, (width * column, band + height * row))
    for column in range(1, len(TASKS)):
        draw.line([(width * column, 0), (width * column, sheet.height)], fill="white", width=6)
    for row in range(1, agents):
        draw.line([(0, band + height * row), (sheet.width, band + height * row)], fill="white", width=6)
    return sheet


def _grown(task: Task, rng: np.random.Generator) -> Design:
    """A random design in which something has grown, so that there is something to see."""
    while True:
        design = random_design(task, rng)
        if design.num_nodes >= task.initial_design.num_nodes + 3:
            return design


@dataclass(frozen=True)
class SheetConfig:
    """The content of conf/contact_sheet.yaml."""

    out: str
    seed: int
    agents: int

    def __post_init__(self) -> None:
        if Path(self.out).suffix != ".png":
            raise ConfigError(f"out is '{self.out}'; allowed are names that end in .png.")
        if self.agents < 1 or self.seed < 0:
            raise ConfigError(f"agents is {self.agents} and seed is {self.seed}; allowed are at least one agent and a seed from 0 up.")


def main(arguments: list[str]) -> int:
    settings = build(SheetConfig, load_config("contact_sheet", arguments), "the configuration")
    out = open_for_writing(settings.out)
    contact_sheet(settings.seed, settings.agents).save(out, optimize=True)
    print(f"{out}: {settings.agents} random agents in each of {', '.join(TASKS)}")
    return 0


if __name__ == "__main__":
    run(main)
