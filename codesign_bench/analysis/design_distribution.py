"""How a design distribution moved during a run: mu and sigma of every attribute, from RUN/tables/design_distribution.csv."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from codesign_bench.analysis.style import plain, styled
from codesign_bench.errors import ConfigError
from codesign_bench.plain_files import read_bytes

COLUMNS = ("iteration", "steps", "part", "attribute", "mu", "sigma", "value")
PLACES = (
    ("length", "forward extent"),
    ("slant", "leftward extent", "upward extent"),
    ("motor strength",),
    ("radius",),
    ("start extension",),
)
"""Attributes by the column of the figure that they stand in."""
MOST_PARTS = 60
PANEL = (2.1, 1.35)
"""Inches."""
COLOUR = "#31688e"


def read_distribution(run: Path) -> pd.DataFrame:
    """One row per iteration and attribute. mu and sigma are in the units of the method's design parameters, value is the
    physical value at mu: metres, or the motor's gear."""
    path = run / "tables" / "design_distribution.csv"
    if not path.is_file():
        raise ConfigError(f"run is '{run}'; allowed is the folder of a run of continuous design, which holds a {path.relative_to(run)}.")
    try:
        table = pd.read_csv(io.BytesIO(read_bytes(path)))
        numbers = table[["iteration", "steps", "mu", "sigma", "value"]].to_numpy(dtype=np.float64)
        whole = tuple(table.columns) == COLUMNS and len(table) > 0 and bool(np.isfinite(numbers).all())
        whole = whole and set(table["attribute"]) <= {name for names in PLACES for name in names}
        whole = whole and len(set(table["part"])) <= MOST_PARTS and bool((np.abs(numbers) < 1e15).all())
    except (ValueError, TypeError, KeyError, OSError):
        whole = False
    if not whole:
        raise ConfigError(f"{path} is not a table of a design distribution; it must have the columns {', '.join(COLUMNS)}.")
    return table


@styled()
def draw_distribution(table: pd.DataFrame, title: str) -> Any:
    """A figure with one row per part and one column per kind of attribute: mu, and a band of one sigma around it."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    parts = list(dict.fromkeys(table["part"]))
    figure = Figure(figsize=(PANEL[0] * len(PLACES), PANEL[1] * len(parts) + 0.9), layout="constrained")
    axes = figure.subplots(len(parts), len(PLACES), sharex=True, sharey=True, squeeze=False)
    unit, factor = ("million", 1e6) if table["steps"].max() >= 2e6 else ("thousand", 1e3)
    for (part, attribute), rows in table.groupby(["part", "attribute"], sort=False):
        place = parts.index(part), next(i for i, names in enumerate(PLACES) if attribute in names)
        _draw_attribute(axes[place], rows, factor, plain(f"{part}, {attribute}"))
    for ax in axes.flat:
        if not ax.lines:
            ax.set_axis_off()
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.yaxis.set_major_locator(MaxNLocator(5))
    low, high = (table["mu"] - table["sigma"]).min(), (table["mu"] + table["sigma"]).max()
    axes[0, 0].set_ylim(low - 0.05 * (high - low) - 1e-3, high + 0.3 * (high - low) + 1e-3)  # room for the text
    figure.suptitle(title)
    figure.supxlabel(f"environment steps ({unit})")
    figure.supylabel("mu ± sigma (0: the expert)")
    return figure


def _draw_attribute(ax: Any, rows: pd.DataFrame, factor: float, name: str) -> None:
    steps, mu, sigma = rows["steps"] / factor, rows["mu"], rows["sigma"]
    ax.axhline(0, color="#999999", linewidth=0.6)
    ax.fill_between(steps, mu - sigma, mu + sigma, color=COLOUR, alpha=0.22, linewidth=0)
    ax.plot(steps, mu, color=COLOUR, linewidth=1.3)
    ax.set_title(name, pad=3)
    first, last = rows.iloc[0], rows.iloc[-1]
    sign = np.sign(first.value) if name.endswith(", length") else 1.0  # a bone that points backwards is not of negative length
    before, now = sign * first.value, sign * last.value
    value = f"{before:.0f} → {now:.0f}" if name.endswith(", motor strength") else f"{_metres(before)} → {_metres(now)} m"
    text = f"{value}\nsigma {first.sigma:.2f} → {last.sigma:.2f}"
    ax.text(0.03, 0.96, text, transform=ax.transAxes, fontsize=6.5, color="#333333", verticalalignment="top", linespacing=1.25)


def _metres(value: float) -> str:
    return f"{value:.3f}".replace("-0.000", "0.000")
