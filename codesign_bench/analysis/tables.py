"""Tables as Markdown, LaTeX (booktabs) and CSV, from one list of columns and rows. Cells are text; `Bold` marks the best."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from codesign_bench.analysis import measures
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.style import count, env_title, label, ordered, ordered_envs
from codesign_bench.errors import StorageError


@dataclass(frozen=True)
class Bold:
    text: str


@dataclass(frozen=True)
class Table:
    """`notes` are sentences under the table."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | Bold, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cells) + " |"

        head = [line([_markdown(c) for c in self.columns]), line(["---", *["---:"] * (len(self.columns) - 1)])]
        body = [line([f"**{_markdown(c.text)}**" if isinstance(c, Bold) else _markdown(c) for c in row]) for row in self.rows]
        if not body:
            body = [line(["no runs", *[""] * (len(self.columns) - 1)])]
        return "\n".join([f"### {_markdown(self.title)}", "", *head, *body, "", *[f"{_markdown(n)}  " for n in self.notes]]).rstrip() + "\n"

    def latex(self) -> str:
        body = [
            " & ".join(rf"\textbf{{{_latex(c.text)}}}" if isinstance(c, Bold) else _latex(c) for c in row) + r" \\" for row in self.rows
        ] or [r"no runs \\"]
        lines = [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}[t]",
            r"\centering",
            r"\small",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            r"\toprule",
            " & ".join(_latex(c) for c in self.columns) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{_latex(' '.join([self.title + '.', *self.notes]))}}}",
            rf"\label{{table:{self.name}}}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def write(table: Table, out: Path) -> list[Path]:
    return [_write(out / f"{table.name}.md", table.markdown()), _write(out / f"{table.name}.tex", table.latex())]


def write_csv(frame: pd.DataFrame, out: Path, name: str) -> Path:
    return _write(out / f"{name}.csv", frame.to_csv(index=False))


def _write(path: Path, text: str) -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written ({error.strerror}).") from None
    return path


_SPECIAL = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}"},
    **{"±": r"$\pm$", "†": r"$\dagger$"},
}


def _latex(text: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in _one_line(text))


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|<>])", r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)


# ---- numbers as text -------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "never"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def plus_minus(mean: float, std: float) -> str:
    return number(mean) if math.isnan(std) else f"{number(mean)} ± {number(std)}"


def interval(low: float, high: float) -> str:
    return "-" if math.isnan(low) or math.isnan(high) else f"[{number(low)}, {number(high)}]"


# ---- the table of final returns --------------------------------------------------------------------------------------


def final_returns(collection: Collection, methods: Sequence[str] | None = None, name: str = "final_returns") -> Table:
    """Methods down, environments across: mean and standard deviation of the final return, the best in bold."""
    frame = measures.summary(collection)
    if methods is not None:
        frame = frame[frame["method"].isin(list(methods))]
    envs = ordered_envs(frame["env"])
    rows = []
    for method in ordered(frame["method"]):
        cells: list[str | Bold] = [label(method)]
        for env in envs:
            here = frame[(frame["env"] == env) & (frame["method"] == method)]
            cells.append(_cell(here.iloc[0], frame[(frame["env"] == env) & frame["complete"].astype(bool)]) if len(here) else "no runs")
        rows.append(tuple(cells))
    notes: tuple[str, ...] = ("Return of the last evaluation, mean ± standard deviation over seeds, number of seeds in brackets.",)
    if (~frame["complete"].astype(bool)).any():
        notes += ("† No seed has reached the others' last step; the value is at the steps in brackets and does not compare.",)
    return Table(name, "Final returns", ("Method", *map(env_title, envs)), tuple(rows), (*notes, *measures.shortfall(collection, methods)))


def _cell(row: Any, rivals: pd.DataFrame) -> str | Bold:
    if not row["complete"]:
        return f"{plus_minus(row['mean'], row['std'])} † ({count(row['steps'])})"
    seeds = f"{row['seeds']}" if row["seeds"] == row["runs"] else f"{row['seeds']} of {row['runs']}"
    text = f"{plus_minus(row['mean'], row['std'])} ({seeds})"
    return Bold(text) if len(rivals) > 1 and row["mean"] >= rivals["mean"].max() else text
