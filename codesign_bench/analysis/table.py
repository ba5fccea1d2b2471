"""A table as Markdown, LaTeX (booktabs) and CSV, from one list of columns and rows, and numbers as text. Cells are text; `Bold` marks the
best."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from codesign_bench.experiment.run_folder import write_atomically

LONG = 40
"""Rows that still fit on a page."""
Row = Mapping[Any, Any]
Columns = dict[str, Callable[[Row], str]]
"""The name of each column, and its text in a row."""


class Bold(str):
    """The best of its column."""


@dataclass(frozen=True)
class Table:
    """`notes` are sentences under the table; the first `words` columns hold words, the others numbers."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    words: int = 1

    @staticmethod
    def of(name: str, title: str, columns: Columns, rows: Iterable[Row], notes: Sequence[str] = (), words: int = 2) -> "Table":
        cells = tuple(tuple(text(row) for text in columns.values()) for row in rows)
        return Table(name, title, tuple(columns), cells, tuple(notes), words)

    def markdown(self) -> str:
        def line(cells: Iterable[str]) -> str:
            return f"| {' | '.join(cells)} |"

        def cell(text: str) -> str:
            return f"**{plain_markdown(text)}**" if isinstance(text, Bold) else plain_markdown(text)

        numbers = len(self.columns) - self.words
        head = [line(map(cell, self.columns)), line(["---"] * self.words + ["---:"] * numbers)]
        body = [line(map(cell, row)) for row in self.rows or [("no runs", *[""] * (len(self.columns) - 1))]]
        notes = [f"{plain_markdown(note)}  " for note in self.notes]
        return "\n".join([f"### {plain_markdown(self.title)}", "", *head, *body, "", *notes]).rstrip() + "\n"

    def text(self) -> str:
        """For a terminal."""
        best = any(isinstance(cell, Bold) for row in self.rows for cell in row)
        cells = [[_one_line(cell) + " *" * isinstance(cell, Bold) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if place < self.words else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        return "\n".join(
            [self.title, *map(str.rstrip, lines), *(["* the best of its column"] if best else []), *map(_one_line, self.notes)]
        )

    def latex(self) -> str:
        body = [_latex_row(row) for row in self.rows or [("no runs",)]]
        kinds = "l" * self.words + "r" * (len(self.columns) - self.words)
        caption = rf"\caption{{{_latex(' '.join([self.title + '.', *self.notes]))}}}"
        label_ = rf"\label{{table:{self.name}}}"
        head = [r"\toprule", _latex_row(self.columns), r"\midrule"]
        if len(self.rows) <= LONG:
            begin = ["% needs \\usepackage{booktabs}", r"\begin{table}[t]", r"\centering", r"\small", rf"\begin{{tabular}}{{{kinds}}}"]
            lines = [*begin, *head, *body, r"\bottomrule", r"\end{tabular}", caption, label_, r"\end{table}"]
        else:  # across pages
            begin = ["% needs \\usepackage{booktabs,longtable}", r"{\small", rf"\begin{{longtable}}{{{kinds}}}", rf"{caption}{label_} \\"]
            lines = [*begin, *head, r"\endhead", r"\bottomrule", r"\endfoot", *body, r"\end{longtable}", "}"]
        return "\n".join(lines) + "\n"


def _latex_row(cells: Iterable[str]) -> str:
    """A row that begins with [ or * would be read as belonging to the command before it."""
    text = " & ".join(rf"\textbf{{{_latex(cell)}}}" if isinstance(cell, Bold) else _latex(cell) for cell in cells)
    return ("{}" if text.startswith(("[", "*")) else "") + text + r" \\"


def write(table: Table, out: Path) -> list[Path]:
    forms = {"md": table.markdown(), "tex": table.latex()}
    return [write_atomically(out / f"{table.name}.{form}", text, shared=True) for form, text in forms.items()]


def write_csv(frame: pd.DataFrame, out: Path, name: str) -> Path:
    return write_atomically(out / f"{name}.csv", frame.to_csv(index=False), shared=True)


_SPECIAL = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}"},
    **{"≤": r"$\le$", "±": r"$\pm$", "†": r"$\dagger$"},
}


def _latex(text: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in _one_line(text))


def plain_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|<>$~&])", r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    """Without characters that are no text: they can hide or turn what is read."""
    return "".join(c if c.isprintable() else " " for c in text).strip()


# ---- numbers as text -------------------------------------------------------------------------------------------------


def number(value: float, like: float | None = None) -> str:
    """Rounded as suits its size, or the size of the number that it belongs to."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "never"
    size = abs(value if like is None else like)
    return f"{value:,.0f}" if size >= 1000 else f"{value:,.1f}" if size >= 10 else f"{value:,.2f}"


def plus_minus(mean: float, std: float) -> str:
    return number(mean) if math.isnan(std) else f"{number(mean)} ± {number(std, mean)}"


def over_seeds(mean: float, std: float, seeds: int, of: int) -> str:
    """With the number of seeds where it is not that of the others in its row."""
    return plus_minus(mean, std) + (f" ({seeds} of {of})" if 0 < seeds < of else "")


def with_interval(value: float, low: float, high: float) -> str:
    return number(value) if math.isnan(low) or math.isnan(high) else f"{number(value)} [{number(low, value)}, {number(high, value)}]"


def clock(seconds: pd.Series) -> tuple[str, int]:
    """The unit in which these times are told, and its seconds."""
    return ("Hours", 3600) if (seconds >= 3600).any() else ("Minutes", 60)
