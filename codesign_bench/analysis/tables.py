"""Tables as Markdown, LaTeX (booktabs) and CSV, from one list of columns and rows. Cells are text; `Bold` marks the best."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from codesign_bench.analysis import measures, statistics
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.looks import ordered, ordered_envs
from codesign_bench.analysis.style import count
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


def with_interval(value: float, low: float, high: float) -> str:
    return number(value) if math.isnan(low) or math.isnan(high) else f"{number(value)} [{number(low, value)}, {number(high, value)}]"


def clock(seconds: pd.Series) -> tuple[str, int]:
    """The unit in which these times are told, and its seconds."""
    return ("Hours", 3600) if (seconds >= 3600).any() else ("Minutes", 60)


def level(row: Row) -> str:
    """Steps to the level, a row of measures.summary as text: beyond the end if too few seeds got there for a median."""
    steps, of = row["steps_to_level"], f" ({row['reached_level']} of {row['level_runs']})"
    if math.isnan(steps):
        return "-"
    if math.isinf(steps):
        return (f"> {count(row['steps'])}" if row["reached_level"] else "never") + of
    return ("≤ " if steps <= row["first"] else "") + count(steps) + of


# ---- returns ---------------------------------------------------------------------------------------------------------


def final_returns(collection: Collection, methods: Sequence[str] | None = None, name: str = "final_returns") -> Table:
    """Methods down, environments across: mean and standard deviation of the final return, the best in bold."""
    frame = measures.summary(collection)
    if methods is not None:
        frame = frame[frame["method"].isin(list(methods))]
    complete = frame["complete"].astype(bool)
    rivals = {env: rows["mean"] for env, rows in frame[complete].groupby("env")}
    cells = {(row["env"], row["method"]): _final_return(row, rivals.get(row["env"], ())) for row in frame.to_dict("records")}
    envs = ordered_envs(frame["env"])
    rows = [(collection.label(method), *(cells.get((env, method), "no runs") for env in envs)) for method in ordered(frame["method"])]
    notes = ["Return of the last evaluation, mean ± standard deviation over seeds, number of seeds in brackets."]
    if not complete.all():
        notes.append("† No seed has reached the others' last step; the value is at the steps in brackets and does not compare.")
    notes += measures.shortfall(collection, methods, bands=False)
    return Table(name, "Final returns", ("Method", *map(collection.title, envs)), tuple(rows), tuple(notes))


def _final_return(row: Row, rivals: Sequence[float]) -> str:
    value = plus_minus(row["mean"], row["std"])
    if not row["complete"]:
        return f"{value} † ({count(row['steps'])})"
    seeds = f"{row['seeds']}" if row["seeds"] == row["runs"] else f"{row['seeds']} of {row['runs']}"
    best = len(rivals) > 1 and row["mean"] >= max(rivals)
    return Bold(f"{value} ({seeds})") if best else f"{value} ({seeds})"


def summary(collection: Collection, env: str | None = None) -> Table:
    """One line per environment and method: everything that is measured on final returns and curves. With `env`, its methods only, the
    best first."""
    frame = measures.summary(collection)
    share = f"{100 * measures.FRACTION:.0f} %"
    columns: Columns = {
        **_curve(collection),
        "Seeds": lambda row: f"{row['seeds']} of {row['runs']}",
        "Final return": lambda row: plus_minus(row["mean"], row["std"]) + ("" if row["complete"] else f" † ({count(row['steps'])})"),
        "IQM [95 %]": lambda row: with_interval(row["iqm"], row["low"], row["high"]),
        "Mean over steps": lambda row: plus_minus(row["area"], row["area_std"]),
        f"Steps to {share}": level,
    }
    if collection.reevaluations.agents:
        columns["Fresh"] = lambda row: plus_minus(row["reevaluated"], row["reevaluated_std"])
    if collection.reevaluations.controllers:
        columns["Retrained"] = lambda row: plus_minus(row["retrained"], row["retrained_std"])
    if env is not None:
        frame = frame[frame["env"] == env].sort_values(["complete", "mean"], ascending=False, kind="stable")
        del columns["Environment"]
    notes = (
        "Final return: mean ± standard deviation over the seeds that reached the last step. IQM: interquartile mean with a stratified "
        "bootstrap interval. Mean over steps: area under the curve divided by its steps, from where all methods have been evaluated.",
        f"Steps to {share}: median over seeds until {share} of the best method's final return (seeds that got there).",
        *_about_reevaluations(collection),
        *measures.cautions(collection),
        *measures.shortfall(collection, bands=False),
    )
    title, words = ("Returns", 2) if env is None else (f"Returns in {collection.title(env)}", 1)
    return Table.of("summary", title, columns, frame.to_dict("records"), notes, words)


def _curve(collection: Collection) -> Columns:
    """The first columns of a table with one row per environment and method."""
    return {"Environment": lambda row: collection.title(row["env"]), "Method": lambda row: collection.label(row["method"])}


def _about_reevaluations(collection: Collection) -> list[str]:
    """What their columns hold; nothing without them."""
    found, said = collection.reevaluations, []
    if found.agents:
        episodes = next(iter(found.agents.values())).episodes
        said.append(f"Fresh: the final agents in {episodes} episodes with a seed that training never used.")
    if found.controllers:
        steps = next(iter(found.controllers.values())).steps
        said.append(f"Retrained: a controller trained from scratch for {steps:,} steps on the frozen final designs.")
    if found.left_out:
        said.append(f"{len(found.left_out)} re-evaluation(s) that do not compare or cannot be read are left out.")
    return said


def overall(collection: Collection) -> Table:
    """Across environments: the interquartile mean of the runs' shares of the best method's mean final return."""
    frame = measures.normalised(measures.finals(collection))
    envs = ordered_envs(frame["env"])
    strata = {method: [scores for scores in measures.scores(frame, method, envs) if len(scores)] for method in ordered(frame["method"])}
    found = [(method, len(some), statistics.interquartile_mean(some)) for method, some in strata.items() if some]
    rows = [
        (collection.label(method), with_interval(iqm.value, iqm.low, iqm.high), f"{number} of {len(envs)}", f"{iqm.runs}")
        for method, number, iqm in sorted(found, key=lambda row: (-row[1], -row[2].value))
    ]
    notes = (
        "Interquartile mean of final returns as a share of the best method's mean in the same environment, where that is above zero. "
        "Methods that lack environments come after those that have them all: their shares are of fewer, perhaps easier, tasks.",
    )
    return Table("overall", "Normalised final returns", ("Method", "IQM [95 %]", "Environments", "Runs"), tuple(rows), notes)


def pairwise(collection: Collection) -> Table:
    columns: Columns = {
        "Environment": lambda row: "All" if row["env"] == "all" else collection.title(row["env"]),
        "Methods": lambda row: f"{collection.label(row['method'])} against {collection.label(row['other'])}",
        "Runs": lambda row: f"{row['runs']}, {row['other_runs']}",
        "Difference [95 %]": lambda row: with_interval(row["difference"], row["low"], row["high"]),
        "P(better) [95 %]": lambda row: with_interval(row["improvement"], row["improvement_low"], row["improvement_high"]),
        "Cliff's delta": lambda row: number(row["cliffs_delta"]),
        "Hedges' g": lambda row: number(row["hedges_g"]),
    }
    notes = (
        "Difference of the mean final returns and probability that a run of the first method beats one of the second, with stratified "
        "bootstrap intervals.",
        *measures.cautions(collection),
        *measures.shortfall(collection, bands=False),
    )
    return Table.of("pairwise", "Methods in pairs", columns, measures.pairwise(measures.finals(collection)).to_dict("records"), notes)


# ---- methods, cost and designs ---------------------------------------------------------------------------------------


def methods(collection: Collection) -> Table:
    """What the methods are called in figures and on the command line."""
    runs = {name: [run for run in collection.runs if run.method == name] for name in collection.methods}
    rows = [
        (look.label, name, str(runs[name][0].config["method"].get("plugin", "-")), look.colour, f"{len(runs[name])}")
        for name, look in collection.looks.items()
    ]
    return Table("methods", "Methods", ("In figures", "method=", "Plug-in", "Colour", "Runs"), tuple(rows), words=4)


def cost(collection: Collection) -> Table:
    """Wall time and speed of the runs as they were recorded, with the machines they ran on."""
    frame = _finals(collection)
    seconds = frame["seconds"].where(frame["seconds"] > 0)
    name, unit = clock(seconds)
    machines = [f"{run.manifest.get('cpu') or 'unknown'}, {run.manifest.get('cores') or '?'} cores" for run in collection.runs]
    frame = frame.assign(time=seconds / unit, speed=frame["charged"] / seconds, machine=machines)
    columns: Columns = {
        **_curve(collection),
        "Seeds": lambda row: f"{len(row['runs'])}",
        "Steps": lambda row: count(row["runs"]["charged"].mean()),
        name: _over_seeds("time"),
        "Steps per second": lambda row: number(row["runs"]["speed"].mean()),
        "Evaluation steps": lambda row: "-" if row["runs"]["eval_steps"].isna().all() else count(row["runs"]["eval_steps"].mean()),
        "Machine": lambda row: "; ".join(sorted(set(row["runs"]["machine"]))),
    }
    notes = (
        "Per run: charged steps, wall time (mean ± standard deviation over seeds, with evaluation), charged steps per second of wall time, "
        "steps of evaluation that were not charged. Runs on one machine may have shared it.",
        "The paper reports about one day per run on 20 cores with a GPU.",
        *measures.shortfall(collection, bands=False),
    )
    return Table.of("cost", "Computation cost", columns, _by_curve(frame), notes)


def exploration(collection: Collection) -> Table:
    """The appendix's comparison: how many designs a method tries, and how many samples each of them gets."""
    frame = _finals(collection)
    tried = frame["designs"].where(frame["designs"] > 0)
    frame = frame.assign(tried=tried, per_batch=50_000 * tried / frame["charged"], per_design=frame["charged"] / tried)
    columns: Columns = {
        **_curve(collection),
        "Seeds": lambda row: f"{len(row['runs'])}",
        "Designs tried": _over_seeds("tried"),
        "per 50,000 steps": _over_seeds("per_batch"),
        "Steps per design": _over_seeds("per_design"),
        "Episode length": _over_seeds("episode_length"),
        "Bodies": _over_seeds("bodies"),
    }
    notes = (
        "Mean ± standard deviation over seeds, of designs over the whole run, of episode length and bodies at the last evaluation. "
        "Steps per design: charged steps per design or species; "
        "Transform2Act learns from all of them with one policy, species of evolution methods only from their own and their ancestors'.",
        *measures.shortfall(collection, bands=False),
    )
    return Table.of("exploration", "Exploration of designs", columns, _by_curve(frame), notes)


def symmetry(frame: pd.DataFrame, collection: Collection) -> Table:
    """How symmetric the final designs are, with and without JSMLPs."""
    columns: Columns = {
        **_curve(collection),
        "Designs": lambda row: f"{len(row['runs'])}",
        "with siblings": lambda row: f"{row['runs']['sibling'].notna().sum()}",
        "Sibling symmetry": _over_seeds("sibling"),
        "Left-right symmetry": _over_seeds("left-right"),
        "Mirror symmetry": _over_seeds("mirror"),
        "Bodies": _over_seeds("bodies"),
    }
    notes = (
        "Final designs, mean ± standard deviation over seeds; 1 is perfectly symmetric. Sibling: likeness of limbs that hang on one joint. "
        "Left-right: overlap of the silhouette with its mirror image across the axis of travel, as it starts. "
        "Mirror: across the best axis through the root, near 1 for any chain.",
        *measures.shortfall(collection, sorted(set(frame["method"])), bands=False),
    )
    return Table.of("symmetry", "Symmetry of designs", columns, _by_curve(frame), notes)


def _finals(collection: Collection) -> pd.DataFrame:
    """measures.finals with the charged steps, and NaN for what no run has recorded."""
    frame = measures.finals(collection).assign(charged=[run.charged for run in collection.runs])
    return frame.reindex(columns=frame.columns.union(["bodies", "designs", "episode_length", "eval_steps"], sort=False))


def _by_curve(frame: pd.DataFrame) -> Iterator[Row]:
    """env, method, and the rows of their `runs`."""
    for env in ordered_envs(frame["env"]):
        for method in ordered(frame.loc[frame["env"] == env, "method"]):
            yield {"env": env, "method": method, "runs": frame[(frame["env"] == env) & (frame["method"] == method)]}


def _over_seeds(column: str) -> Callable[[Row], str]:
    return lambda row: plus_minus(*statistics.mean_and_std(row["runs"][column]))
