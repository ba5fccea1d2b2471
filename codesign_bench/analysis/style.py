"""One look for all figures: sizes, fonts, small print, files."""

import contextlib
import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from codesign_bench.arrays import Array
from codesign_bench.experiment.run_folder import write_atomically
from codesign_bench.simulation.rendering import MADE_BY
from codesign_bench.terminal import count

PAPER_SEEDS, PAPER_STEPS = 6, 50_000_000
"""The full protocol; a figure made from less says so on its face."""


def printable(text: str) -> str:
    """User-supplied text without what a font cannot draw."""
    return "".join(c if c.isprintable() else "?" for c in text)


def plain(text: str) -> str:
    """User-supplied text for matplotlib, in which $ would begin a formula."""
    return printable(text).replace("$", r"\$")


def short(text: str, most: int) -> str:
    """Names of users' methods may be longer than the place for them."""
    return text if len(text) <= most else text[: most - 1] + "…"


def row_names(labels: Iterable[str], most: int = 32) -> tuple[list[str], float]:
    """Names to stand left of rows, and the inches that they take."""
    names = [short(label, most) for label in labels]
    return [plain(name) for name in names], 0.15 + 0.044 * max(map(len, names), default=0)


def span(numbers: Sequence[float]) -> str:
    """The least and the largest of them in words, or the one that all are."""
    low, high = count(min(numbers)), count(max(numbers))
    return low if low == high else f"{low} to {high}"


SHEET = mpl.rc_params_from_file(Path(__file__).with_name("figures.mplstyle"), use_default_template=False)

WIDTH = 7.0
"""Inches: a text column across the page."""

FORMATS = ("pdf", "svg", "png")
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"Creator": MADE_BY, "CreationDate": None},
    "svg": {"Creator": MADE_BY, "Date": None},
    "png": {"Software": MADE_BY},
}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """The look, for as long as it lasts; seaborn sets it for everybody, and matplotlib puts back what was before."""
    import seaborn as sns

    with mpl.rc_context():
        sns.set_theme(style="ticks", rc=dict(SHEET))
        yield


@cache
def font(size: int) -> Any:
    """The figures' font, for text on rendered pictures."""
    from matplotlib.font_manager import findfont
    from PIL import ImageFont

    return ImageFont.truetype(findfont(SHEET["font.family"][0]), size)


def letters(width: int, size: int) -> int:
    """How many of this size fit into so many pixels."""
    return max(4, int(1.7 * width / size))


def captioned(pixels: Array, *lines: str, colour: str = "#222222") -> Array:
    """A rendered picture with text at its top; lines that are too long go on in the next."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(pixels)
    size = max(11, image.height // 20)
    text = "\n".join(part for line in lines for part in textwrap.wrap(printable(line), letters(image.width, size)))
    draw = ImageDraw.Draw(image)
    draw.text((size // 2, size // 2), text, fill=colour, font=font(size), spacing=size // 4, stroke_width=2, stroke_fill="white")
    return np.asarray(image)


def save(figure: Figure, out: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """NAME.pdf, NAME.svg and NAME.png; the same figure gives the same bytes. Readers never see half a file."""
    written = []
    for kind in formats:
        content = io.BytesIO()
        figure.savefig(content, format=kind, metadata=_METADATA[kind])
        written.append(write_atomically(out / f"{name}.{kind}", content.getvalue(), shared=True))
    return written


def panels(
    count: int,
    columns: int,
    height: float,
    small_print: Iterable[str] = (),
    *,
    width: float = WIDTH,
    left: float,
    right: float = 0.12,
    top: float = 0.27,
    bottom: float = 0.42,
    across: float = 0.15,
    down: float = 0.5,
    ratios: Sequence[float] | None = None,
) -> tuple[Figure, list[SubplotSpec]]:
    """A figure and the places for its panels: at most so many columns of them, each `height` tall, with room between them across and
    down, and small print at the foot. Lengths in inches; `ratios` are of the columns' widths."""
    columns = max(1, min(columns, count))
    lines = max(1, -(-count // columns))
    text = textwrap.wrap(" ".join(small_print), int(24 * width), break_long_words=False, break_on_hyphens=False)
    bottom += 0.11 * len(text)
    tall, wide = lines * height + (lines - 1) * down + top + bottom, (width - left - right - (columns - 1) * across) / columns
    figure = Figure(figsize=(width, tall))
    edges = {"left": left / width, "right": 1 - right / width, "top": 1 - top / tall, "bottom": bottom / tall}
    grid = figure.add_gridspec(lines, columns, **edges, wspace=across / wide, hspace=down / height, width_ratios=ratios)
    note = "\n".join(map(plain, text))
    figure.text(0.005, 0.004, note, fontsize=6.5, color="#444444", ha="left", va="bottom", linespacing=1.25)
    return figure, [grid[divmod(i, columns)] for i in range(count)]


def rows_down(axes: Axes, names: Sequence[str]) -> None:
    """One row for each name, from the top, without lines between them."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)


def blank(axes: Axes, text: str) -> None:
    """Why there is nothing to see."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#777777", fontsize=7)
