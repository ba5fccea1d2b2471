"""Tables as Markdown, LaTeX (booktabs) and CSV, from one list of columns and rows. Cells are text; `Bold` marks the best."""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from codesign_bench.analysis import measures, statistics
from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.looks import ordered, ordered_envs
from codesign_bench.analysis.style import count
from codesign_bench.errors import StorageError

LONG = 40
"""Rows that still fit on a page."""


@dataclass(frozen=True)
class Bold:
    text: str


@dataclass(frozen=True)
class Table:
    """`notes` are sentences under the table; the first `words` columns hold words, the others numbers."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | Bold, ...], ...]
    notes: tuple[str, ...] = ()
    words: int = 1

    def markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cells) + " |"

        head = [line([plain_markdown(c) for c in self.columns]), line(["---"] * self.words + ["---:"] * (len(self.columns) - self.words))]
        body = [line([f"**{plain_markdown(c.text)}**" if isinstance(c, Bold) else plain_markdown(c) for c in row]) for row in self.rows]
        if not body:
            body = [line(["no runs", *[""] * (len(self.columns) - 1)])]
        return (
            "\n".join([f"### {plain_markdown(self.title)}", "", *head, *body, "", *[f"{plain_markdown(n)}  " for n in self.notes]]).rstrip()
            + "\n"
        )

    def latex(self) -> str:
        body = [_latex_row(rf"\textbf{{{_latex(c.text)}}}" if isinstance(c, Bold) else _latex(c) for c in row) for row in self.rows] or [
            r"no runs \\"
        ]
        kinds = "l" * self.words + "r" * (len(self.columns) - self.words)
        caption = rf"\caption{{{_latex(' '.join([self.title + '.', *self.notes]))}}}"
        label_ = rf"\label{{table:{self.name}}}"
        head = [r"\toprule", _latex_row(map(_latex, self.columns)), r"\midrule"]
        if len(self.rows) <= LONG:
            begin = ["% needs \\usepackage{booktabs}", r"\begin{table}[t]", r"\centering", r"\small", rf"\begin{{tabular}}{{{kinds}}}"]
            lines = [*begin, *head, *body, r"\bottomrule", r"\end{tabular}", caption, label_, r"\end{table}"]
        else:  # across pages
            begin = ["% needs \\usepackage{booktabs,longtable}", r"{\small", rf"\begin{{longtable}}{{{kinds}}}", rf"{caption}{label_} \\"]
            lines = [*begin, *head, r"\endhead", r"\bottomrule", r"\endfoot", *body, r"\end{longtable}", "}"]
        return "\n".join(lines) + "\n"


def _latex_row(cells: Iterable[str]) -> str:
    """A row that begins with [ or * would be read as belonging to the command before it."""
    text = " & ".join(cells)
    return ("{}" if text.startswith(("[", "*")) else "") + text + r" \\"


def write(table: Table, out: Path) -> list[Path]:
    return [write_text(out / f"{table.name}.md", table.markdown()), write_text(out / f"{table.name}.tex", table.latex())]


def write_csv(frame: pd.DataFrame, out: Path, name: str) -> Path:
    return write_text(out / f"{name}.csv", frame.to_csv(index=False))


def write_text(path: Path, text: str) -> Path:
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
    **{"≤": r"$\le$", "±": r"$\pm$", "†": r"$\dagger$"},
}


def _latex(text: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in _one_line(text))


def plain_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|<>$~&])", r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text).strip()


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


def with_interval(value: float, low: float, high: float) -> str:
    return number(value) if math.isnan(low) or math.isnan(high) else f"{number(value)} [{number(low, value)}, {number(high, value)}]"


def methods(collection: Collection) -> Table:
    """What the methods are called in figures and on the command line."""
    runs = {name: [run for run in collection.runs if run.method == name] for name in collection.methods}
    rows = [
        (look.label, name, str(runs[name][0].config["method"].get("plugin", "-")), look.colour, f"{len(runs[name])}")
        for name, look in collection.looks.items()
    ]
    return Table("methods", "Methods", ("In figures", "method=", "Plug-in", "Colour", "Runs"), tuple(rows), words=4)


# ---- the table of final returns --------------------------------------------------------------------------------------


def final_returns(collection: Collection, methods: Sequence[str] | None = None, name: str = "final_returns") -> Table:
    """Methods down, environments across: mean and standard deviation of the final return, the best in bold."""
    frame = measures.summary(collection)
    if methods is not None:
        frame = frame[frame["method"].isin(list(methods))]
    envs = ordered_envs(frame["env"])
    rows = []
    for method in ordered(frame["method"]):
        cells: list[str | Bold] = [collection.label(method)]
        for env in envs:
            here = frame[(frame["env"] == env) & (frame["method"] == method)]
            cells.append(_cell(here.iloc[0], frame[(frame["env"] == env) & frame["complete"].astype(bool)]) if len(here) else "no runs")
        rows.append(tuple(cells))
    notes: tuple[str, ...] = ("Return of the last evaluation, mean ± standard deviation over seeds, number of seeds in brackets.",)
    if (~frame["complete"].astype(bool)).any():
        notes += ("† No seed has reached the others' last step; the value is at the steps in brackets and does not compare.",)
    return Table(
        name,
        "Final returns",
        ("Method", *map(collection.title, envs)),
        tuple(rows),
        (*notes, *measures.shortfall(collection, methods, bands=False)),
    )


def _cell(row: Any, rivals: pd.DataFrame) -> str | Bold:
    if not row["complete"]:
        return f"{plus_minus(row['mean'], row['std'])} † ({count(row['steps'])})"
    seeds = f"{row['seeds']}" if row["seeds"] == row["runs"] else f"{row['seeds']} of {row['runs']}"
    text = f"{plus_minus(row['mean'], row['std'])} ({seeds})"
    return Bold(text) if len(rivals) > 1 and row["mean"] >= rivals["mean"].max() else text


# ---- the other tables ------------------------------------------------------------------------------------------------


def summary(collection: Collection) -> Table:
    """One line per environment and method: everything that is measured on final returns and curves."""
    frame = measures.summary(collection)
    share = f"{100 * measures.FRACTION:.0f} %"
    rows = [
        (
            collection.title(row["env"]),
            collection.label(row["method"]),
            f"{row['seeds']} of {row['runs']}",
            plus_minus(row["mean"], row["std"]) + ("" if row["complete"] else f" † ({count(row['steps'])})"),
            with_interval(row["iqm"], row["low"], row["high"]),
            plus_minus(row["area"], row["area_std"]),
            level(row),
            plus_minus(row["reevaluated"], row["reevaluated_std"]),
            plus_minus(row["retrained"], row["retrained_std"]),
        )
        for row in frame.to_dict("records")
    ]
    columns = ("Environment", "Method", "Seeds", "Final return", "IQM [95 %]", "Mean over steps", f"Steps to {share}", "Fresh", "Retrained")
    notes = (
        "Final return: mean ± standard deviation over the seeds that reached the last step. IQM: interquartile mean with a stratified "
        "bootstrap interval. Mean over steps: area under the curve divided by its steps, from where all methods have been evaluated.",
        f"Steps to {share}: median over seeds until {share} of the best method's final return (seeds that got there).",
        *about_reevaluations(collection, "Fresh", "Retrained"),
        *measures.cautions(collection),
        *measures.shortfall(collection, bands=False),
    )
    return Table("summary", "Returns", columns, tuple(rows), notes, words=2)


def level(row: Mapping[str, Any]) -> str:
    """Steps to the level, a row of measures.summary as text: beyond the end if too few seeds got there for a median."""
    steps, of = row["steps_to_level"], f" ({row['reached_level']} of {row['level_runs']})"
    if math.isnan(steps):
        return "-"
    if math.isinf(steps):
        return (f"> {count(row['steps'])}" if row["reached_level"] else "never") + of
    return ("≤ " if steps <= row["first"] else "") + count(steps) + of


def about_reevaluations(collection: Collection, fresh: str, retrained: str) -> list[str]:
    """What the columns of these names hold; nothing without them."""
    found, said = collection.reevaluations, []
    if found.agents:
        episodes = next(iter(found.agents.values())).episodes
        said.append(f"{fresh}: the final agents in {episodes} episodes with a seed that training never used.")
    if found.controllers:
        one = next(iter(found.controllers.values()))
        said.append(f"{retrained}: a controller trained from scratch for {one.steps:,} steps on the frozen final designs.")
    if found.left_out:
        said.append(f"{len(found.left_out)} re-evaluation(s) that do not compare or cannot be read are left out.")
    return said


def pairwise(collection: Collection) -> Table:
    rows = [
        (
            "All" if row["env"] == "all" else collection.title(row["env"]),
            f"{collection.label(row['method'])} against {collection.label(row['other'])}",
            f"{row['runs']}, {row['other_runs']}",
            with_interval(row["difference"], row["low"], row["high"]),
            with_interval(row["improvement"], row["improvement_low"], row["improvement_high"]),
            number(row["cliffs_delta"]),
            number(row["hedges_g"]),
        )
        for row in measures.pairwise(measures.finals(collection)).to_dict("records")
    ]
    columns = ("Environment", "Methods", "Runs", "Difference [95 %]", "P(better) [95 %]", "Cliff's delta", "Hedges' g")
    notes = (
        "Difference of the mean final returns and probability that a run of the first method beats one of the second, with stratified "
        "bootstrap intervals.",
        *measures.cautions(collection),
        *measures.shortfall(collection, bands=False),
    )
    return Table("pairwise", "Methods in pairs", columns, tuple(rows), notes, words=2)


def cost(collection: Collection) -> Table:
    """Wall time and speed of the runs as they were recorded, with the machines they ran on."""
    rows = []
    unit = 3600 if any(seconds >= 3600 for _, seconds in _timed(collection, collection.runs)) else 60
    for env, method, runs in _curves(collection):
        timed = _timed(collection, runs)
        evaluation, _ = statistics.mean_and_std([e[-1] for _, e in (collection.curve(run, "eval_steps") for run in runs) if len(e)])
        speed, _ = statistics.mean_and_std([steps / seconds for steps, seconds in timed])
        rows.append(
            (
                collection.title(env),
                collection.label(method),
                f"{len(runs)}",
                count(sum(run.charged for run in runs) / len(runs)),
                plus_minus(*statistics.mean_and_std([seconds / unit for _, seconds in timed])),
                number(speed),
                "-" if math.isnan(evaluation) else count(evaluation),
                "; ".join(sorted({_machine(run.manifest) for run in runs})),
            )
        )
    columns = (
        "Environment",
        "Method",
        "Seeds",
        "Steps",
        "Hours" if unit == 3600 else "Minutes",
        "Steps per second",
        "Evaluation steps",
        "Machine",
    )
    notes = (
        "Per run: charged steps, wall time (mean ± standard deviation over seeds, with evaluation), charged steps per second of wall time, "
        "steps of evaluation that were not charged. Runs on one machine may have shared it.",
        "The paper reports about one day per run on 20 cores with a GPU.",
        *measures.shortfall(collection, bands=False),
    )
    return Table("cost", "Computation cost", columns, tuple(rows), notes, words=2)


def _timed(collection: Collection, runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Steps and seconds of the runs' last records."""
    return [(n[-1], s[-1]) for n, s in (collection.curve(run, "seconds") for run in runs) if len(s) and s[-1] > 0]


def exploration(collection: Collection) -> Table:
    """The appendix's comparison: how many designs a method tries, and how many samples each of them gets."""
    rows = []
    for env, method, runs in _curves(collection):
        tried, per_batch, samples, lengths = [], [], [], []
        for run in runs:
            steps, designs = collection.curve(run, "designs")
            if len(designs) and designs[-1] > 0:
                tried.append(float(designs[-1]))
                per_batch.append(float(designs[-1]) / float(steps[-1]) * 50_000)
                samples.append(float(steps[-1]) / float(designs[-1]))
            lengths += [float(v[-1]) for _, v in [collection.curve(run, "episode_length")] if len(v)]
        cells = [plus_minus(*statistics.mean_and_std(values)) for values in (tried, per_batch, samples, lengths)]
        rows.append((collection.title(env), collection.label(method), f"{len(runs)}", *cells))
    columns = ("Environment", "Method", "Seeds", "Designs tried", "per 50,000 steps", "Steps per design", "Episode length")
    notes = (
        "Mean ± standard deviation over seeds, of designs over the whole run, of episode length at the last evaluation. "
        "Steps per design: charged steps per design or species; "
        "Transform2Act learns from all of them with one policy, species of evolution methods only from their own and their ancestors'.",
        *measures.shortfall(collection, bands=False),
    )
    return Table("exploration", "Exploration of designs", columns, tuple(rows), notes, words=2)


def symmetry(frame: pd.DataFrame, collection: Collection) -> Table:
    """How symmetric the final designs are, with and without JSMLPs."""
    rows = []
    for env in ordered_envs(frame["env"]):
        for method in ordered(frame.loc[frame["env"] == env, "method"]):
            mine = frame[(frame["env"] == env) & (frame["method"] == method)]
            cells = [plus_minus(*statistics.mean_and_std(mine[kind])) for kind in ("sibling", "left-right", "mirror", "bodies")]
            rows.append((collection.title(env), collection.label(method), f"{len(mine)}", f"{int(mine['sibling'].notna().sum())}", *cells))
    columns = ("Environment", "Method", "Designs", "with siblings", "Sibling symmetry", "Left-right symmetry", "Mirror symmetry", "Bodies")
    notes = (
        "Final designs, mean ± standard deviation over seeds; 1 is perfectly symmetric. Sibling: likeness of limbs that hang on one joint. "
        "Left-right: overlap of the silhouette with its mirror image across the axis of travel, as it starts. "
        "Mirror: across the best axis through the root, near 1 for any chain.",
        *measures.shortfall(collection, sorted(set(frame["method"])), bands=False),
    )
    return Table("symmetry", "Symmetry of designs", columns, tuple(rows), notes, words=2)


def _curves(collection: Collection) -> list[tuple[str, str, tuple[Run, ...]]]:
    return [(env, method, runs) for env in collection.envs for method in collection.methods if (runs := collection.of(env, method))]


def _machine(manifest: Mapping[str, Any]) -> str:
    return f"{manifest.get('cpu') or 'unknown'}, {manifest.get('cores') or '?'} cores"
