"""Random agents in all environments, a column each (the paper's figure of its environments)."""

import numpy as np
from PIL import Image, ImageDraw

from codesign_bench.analysis.style import font
from codesign_bench.simulation.rendering import Picture
from codesign_bench.simulation.showing import grown_design, starting_pose
from codesign_bench.tasks import TASKS, make_task

TILE, GUTTER = (480, 360), 3
"""Pixels of a tile, and of white along its edges."""


def contact_sheet(seed: int, agents: int) -> Image.Image:
    """One column per environment: its title, then `agents` random designs."""
    width, height = TILE
    band = 44
    sheet = Image.new("RGB", (width * len(TASKS), band + height * agents), "white")
    draw = ImageDraw.Draw(sheet)
    for column, name in enumerate(TASKS):
        task = make_task(name)
        rng = np.random.default_rng([seed, column])
        title = task.config.title
        draw.text((width * column + width // 2, band // 2), title, fill="#222222", font=font(24), anchor="mm")
        for row in range(agents):
            design = grown_design(task, rng)
            picture = Picture(design, task, width=2 * width, height=2 * height)
            tile = Image.fromarray(picture.frame(starting_pose(design, task, rng))).resize(TILE, Image.Resampling.LANCZOS)
            picture.close()
            inner = tile.crop((GUTTER, GUTTER, width - GUTTER, height - GUTTER))
            sheet.paste(inner, (width * column + GUTTER, band + height * row + GUTTER))
    return sheet
