"""Tables and numbers as safe HTML."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

DASH, MINUS = "\u2013", "\u2212"


@dataclass(frozen=True)
class Raw:
    """Markup that is already safe, and what a column is sorted by."""

    markup: str
    value: float | str = ""


Cell = str | Raw


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], text_columns: int = 1, sortable: bool = True) -> str:
    """The first `text_columns` columns are text, the others numbers; the caption is read by screen readers too."""
    head = "".join(
        f'<th scope="col"{"" if i < text_columns else " class=number"}>'
        + (f'<button type="button" class="sort">{escape(name)}</button>' if sortable else escape(name))
        + "</th>"
        for i, name in enumerate(columns)
    )
    body = "".join(f"<tr>{''.join(_cell(cell, i, text_columns) for i, cell in enumerate(row))}</tr>" for row in rows)
    if not body:
        body = f'<tr><td colspan="{len(columns)}">no runs</td></tr>'
    scroll = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
    return (
        f"{scroll}<table><caption><span>{escape(caption)}</span></caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Cell, i: int, text_columns: int) -> str:
    markup, value = (cell.markup, cell.value) if isinstance(cell, Raw) else (escape(cell), "")
    sort = f' data-v="{escape(str(value))}"' if value != "" else ""
    if i == 0:
        return f'<th scope="row"{sort}>{markup}</th>'
    return f"<td{'' if i < text_columns else ' class=number'}{sort}>{markup}</td>"


def number(value: float, digits: int = 1, unit: str = "") -> Raw:
    if not math.isfinite(value):
        return Raw("never" if value == math.inf else DASH, "inf" if value == math.inf else "-inf")
    return Raw(f"{value:,.{digits}f}{unit}".replace("-", MINUS), value)


def spread(mean: float, deviation: float) -> Raw:
    """mean ± std, the mean alone where one seed has no spread."""
    if not math.isfinite(mean):
        return number(mean)
    tail = f' <span class="faint">± {deviation:,.1f}</span>' if math.isfinite(deviation) else ""
    return Raw(number(mean).markup + tail, mean)


def interval(value: float, low: float, high: float, digits: int = 1) -> Raw:
    if not math.isfinite(value):
        return number(value)
    edges = f"{number(low, digits).markup}, {number(high, digits).markup}"
    return Raw(number(value, digits).markup + (f' <span class="faint">[{edges}]</span>' if math.isfinite(low) else ""), value)


def duration(seconds: float) -> Raw:
    if not math.isfinite(seconds):
        return number(seconds)
    text = f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"
    return Raw(text, seconds)
