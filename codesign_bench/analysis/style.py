"""One look for all figures: names and colours of methods and environments, sizes, fonts, files.

Colours are Okabe and Ito's, which people with colour-blindness can tell apart; every curve has a marker of its own as well.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from codesign_bench.errors import StorageError
from codesign_bench.tasks import TASKS

PAPER_SEEDS, PAPER_STEPS = 6, 50_000_000
"""The full protocol; a figure made from less says so on its face."""

ENV_TITLES = {"locomotion2d": "2D Locomotion", "locomotion3d": "3D Locomotion", "swimmer": "Swimmer", "gap": "Gap Crosser"}


@dataclass(frozen=True)
class Look:
    label: str
    colour: str
    marker: str
    dashes: str = "-"


LOOKS = {
    "transform2act": Look("Transform2Act", "#0072B2", "o"),
    "nge": Look("NGE", "#D55E00", "s"),
    "ess": Look("ESS", "#009E73", "^"),
    "rgs": Look("RGS", "#CC79A7", "D"),
    "ess_strict": Look("ESS (strict)", "#117733", "<"),
    "transform2act_no_gnn": Look("w/o GNNs", "#E69F00", "v"),
    "transform2act_no_control_jsmlp": Look("w/o control JSMLP", "#56B4E9", "P"),
    "transform2act_no_jsmlp": Look("w/o all JSMLPs", "#882255", "X"),
    "transform2act_attributes": Look("Transform2Act (attributes)", "#332288", ">"),
    "continuous": Look("Ha (2019)", "#7F7F7F", "p"),
    "expert": Look("Expert design", "#000000", "h"),
}
"""Of every method that ships; others get a look of their own from `look`."""

BASELINES = ("transform2act", "nge", "ess", "rgs")
ABLATIONS = ("transform2act", "transform2act_no_gnn", "transform2act_no_control_jsmlp", "transform2act_no_jsmlp")
CONTINUOUS = ("transform2act_attributes", "continuous", "expert")
"""The methods of the paper's three figures of curves, in its order."""

_SPARE = ("#999933", "#AA4499", "#44AA99", "#117733", "#CC6677", "#6699CC", "#661100", "#B8860B")
_SPARE_MARKERS = ("<", ">", "*", "d", "H", "8", "^", "s")
_SPARE_DASHES = ("-", "--", "-.", ":")


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """A look for each method; the ones that do not ship get spare colours in the order of their names."""
    names = list(dict.fromkeys(methods))
    strangers = sorted(name for name in names if name not in LOOKS)
    found = {}
    for name in names:
        if name in LOOKS:
            found[name] = LOOKS[name]
            continue
        i = strangers.index(name)
        n = len(_SPARE)
        found[name] = Look(name, _SPARE[i % n], _SPARE_MARKERS[i % n], _SPARE_DASHES[i // n % len(_SPARE_DASHES)])
    return found


def label(method: str) -> str:
    return LOOKS[method].label if method in LOOKS else method


def ordered(methods: Iterable[str]) -> tuple[str, ...]:
    """The methods that ship in the paper's order, then the others by name."""
    names = set(methods)
    return tuple(name for name in LOOKS if name in names) + tuple(sorted(names - set(LOOKS)))


def env_title(env: str) -> str:
    return ENV_TITLES.get(env, env)


def ordered_envs(envs: Iterable[str]) -> tuple[str, ...]:
    names = set(envs)
    return tuple(name for name in TASKS if name in names) + tuple(sorted(names - set(TASKS)))


def plain(text: str) -> str:
    """User-supplied text for matplotlib, in which $ would begin a formula."""
    return re.sub(r"[\x00-\x1f\x7f]", "?", text).replace("$", r"\$")


def short(text: str, most: int) -> str:
    """Names of users' methods may be longer than the place for them."""
    return text if len(text) <= most else text[: most - 1] + "…"


def count(number: float) -> str:
    """12,345 as 12.3 k, 50,000,000 as 50 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


RC: Any = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 220,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "codesign_bench",
    "path.simplify": True,
}

WIDTH = 7.0
"""Inches: a text column across the page."""

FORMATS = ("pdf", "svg", "png")
_METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    with mpl.rc_context(RC):
        yield


def save(figure: Figure, out: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """NAME.pdf, NAME.svg and NAME.png; the same figure gives the same bytes. Readers never see half a file."""
    written = []
    for kind in formats:
        path = out / f"{name}.{kind}"
        temporary = out / f".{name}.{os.getpid()}.{kind}"
        try:
            out.mkdir(parents=True, exist_ok=True)
            figure.savefig(temporary, format=kind, metadata=_METADATA[kind])
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise StorageError(f"{path} cannot be written ({error.strerror}).") from None
        written.append(path)
    return written


def note(figure: Figure, lines: Sequence[str], size: float = 6.5) -> None:
    """Small print at the foot of a figure."""
    text = "\n".join(plain(line) for line in lines if line)
    if text:
        figure.text(0.005, 0.004, text, fontsize=size, color="#444444", ha="left", va="bottom", linespacing=1.25, wrap=False)


def wrapped(sentences: Iterable[str], width: int = 170) -> list[str]:
    """Sentences filled into lines."""
    lines = [""]
    for word in " ".join(sentences).split():
        if len(lines[-1]) + len(word) + 1 > width and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
