"""The report as HTML: every value is escaped, style and scripts are put inside, and the page forbids itself any network."""

import base64
import hashlib
import io
import json
import math
import time
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from codesign_bench import __version__
from codesign_bench.analysis import measures, tables
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.figures import returns
from codesign_bench.analysis.report import bodies, commands, data
from codesign_bench.analysis.report.data import Missing
from codesign_bench.analysis.report.markup import Cell, Raw, duration, interval, number, spread, table
from codesign_bench.analysis.style import count, styled
from codesign_bench.design import colours

HERE = Path(__file__).parent
SCRIPTS = ("page.js", "curves.js", "viewer.js", "designs.js", "lineage.js", "start.js")


def report(collection: Collection, study: Path, command: str) -> str:
    """The whole page. `study` is the folder of the study, `command` what made the report."""
    missing = Missing()
    data.note_gaps(collection, missing)
    methods = data.method_entries(collection)
    values = {
        "envs": data.env_entries(collection),
        "methods": methods,
        "metrics": data.metrics(collection),
        "colours": {"bones": colours.BONES, "hinge": colours.HINGE},
        "bands": data.BANDS,
        "curves": data.curves(collection),
        "designs": bodies.designs(collection, missing),
        "lineages": bodies.lineages(collection, missing),
        "videos": data.videos(study, missing),
    }
    sections = [
        ("leaderboard", "Leaderboard", _leaderboard(collection)),
        ("curves", "Learning curves", '<div id="curves-controls"></div><div id="curves-panels" class="panels"></div>'),
        ("designs", "Designs", '<div id="designs-controls"></div><div id="designs-cards"></div>'),
        *([("lineage", "Lineage", '<div id="lineage-panels"></div>')] if values["lineages"] else []),
        *([("videos", "Videos", '<div id="videos-list"></div>')] if values["videos"] else []),
        ("ledger", "Budget ledger", _ledger(collection)),
        ("versions", "Versions", _versions(collection)),
        ("commands", "Commands", _commands(collection, command)),
    ]
    return _document(collection, sections, missing, values, _method_colours(methods))


def _document(
    collection: Collection, sections: Sequence[tuple[str, str, str]], missing: Missing, values: dict[str, Any], method_colours: str
) -> str:
    style = _asset("style.css") + method_colours
    script = '"use strict";\n' + "\n".join(_asset(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data: blob:; media-src blob:; base-uri 'none'; form-action 'none'"
    )
    links = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title, _ in sections)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(title)}</h2>{content}</section>'
        for name, title, content in sections
    )
    title = f"{collection.study}: codesign_bench report"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#leaderboard">Skip to the leaderboard</a>
<header>
<p class="kind">codesign_bench report</p>
<h1>{escape(collection.study)}</h1>
{_facts(collection)}
{_shortcomings(collection, missing)}
</header>
<nav aria-label="Sections"><ul>{links}</ul><button type="button" id="theme" hidden>Dark</button></nav>
<main>
<noscript><p class="notice">Curves, 3D views and lineages need JavaScript; the tables below do not.</p></noscript>
{body}
</main>
<footer><p>Made by codesign_bench {escape(__version__)} on {time.strftime("%Y-%m-%d %H:%M %Z")}. Nothing in this file is loaded from
elsewhere.</p></footer>
<div id="announcer" class="unseen" aria-live="polite"></div>
<script type="application/json" id="data">{_json(values)}</script>
<script>{script}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(values: Any) -> str:
    """JSON in which nothing can end the element that holds it, or begin a comment in it."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _method_colours(methods: Sequence[dict[str, Any]]) -> str:
    """One class per method; the names themselves never get into the style."""
    light = "".join(f".m{i}{{--c:{entry['light']}}}" for i, entry in enumerate(methods))
    dark = "".join(f":root[data-theme=dark] .m{i}{{--c:{entry['dark']}}}" for i, entry in enumerate(methods))
    unset = "".join(f":root:not([data-theme]) .m{i}{{--c:{entry['dark']}}}" for i, entry in enumerate(methods))
    return f"\n{light}\n{dark}\n@media (prefers-color-scheme:dark){{{unset}}}\n"


# ---- head --------------------------------------------------------------------------------------------------------------


def _facts(collection: Collection) -> str:
    runs = collection.runs
    if not runs:
        return '<p class="facts">No runs.</p>'
    seeds = sorted({len(collection.of(run.env, run.method)) for run in runs})
    budgets = sorted({run.budget_steps for run in runs})
    parts = [
        _plural(len(runs), "run"),
        _plural(len(collection.methods), "method"),
        _plural(len(collection.envs), "environment"),
        f"{' to '.join(str(number) for number in dict.fromkeys([seeds[0], seeds[-1]]))} seed{'s' * (seeds[-1] > 1)} each",
        f"budget {' or '.join(count(steps) for steps in budgets)} steps",
    ]
    return f'<p class="facts">{escape(" · ".join(parts))}</p>'


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _shortcomings(collection: Collection, missing: Missing) -> str:
    short = "".join(f"<p>{escape(sentence)}</p>" for sentence in measures.shortfall(collection, bands=False))
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in missing.sentences)
    more = f"<details><summary>What is missing ({len(missing.sentences)})</summary><ul>{items}</ul></details>" if items else ""
    return f'<div class="notice" role="note" id="missing">{short}{more}</div>' if short or more else ""


# ---- sections ----------------------------------------------------------------------------------------------------------


def _method(collection: Collection, name: str) -> Raw:
    label, css = collection.label(name), f"m{collection.methods.index(name)}"
    code = f' <span class="faint code-name">{escape(name)}</span>' if label != name else ""
    return Raw(f'<span class="swatch {css}"></span>{escape(label)}{code}', label)


def _leaderboard(collection: Collection) -> str:
    if not collection.runs:
        return "<p>There are no runs to compare.</p>"
    standings = {env: data.standings(collection, env) for env in collection.envs}
    notes = [
        "± is the standard deviation over seeds, brackets a 95 % bootstrap interval; a single seed has neither.",
        "Mean over steps: area under the curve divided by its steps, from where all methods have been evaluated.",
        "Steps to half the best: median over seeds until half of the best method's final return (seeds that got there).",
        *measures.cautions(collection),
        *tables.about_reevaluations(collection, "Fresh episodes", "New controller"),
    ]
    parts = [_overall(collection) if len(standings) > 1 else ""]
    parts += [f"<h3>{escape(collection.title(env))}</h3>{_standings(collection, env, found)}" for env, found in standings.items()]
    dots = _picture(lambda: returns.final_returns(collection), "Final return of every seed, with the methods' interquartile means")
    return f'{"".join(parts)}<p class="note">{escape(" ".join(notes))}</p>{dots}{_pairs(collection)}'


def _overall(collection: Collection) -> str:
    rows = [
        [
            _method(collection, row["method"]),
            interval(row["estimate"].value, row["estimate"].low, row["estimate"].high, 2),
            Raw(f"{row['envs']} of {row['of']}", row["envs"]),
            Raw(str(row["estimate"].runs), row["estimate"].runs),
        ]
        for row in data.overall(collection)
    ]
    if not rows:
        return ""
    text = (
        "Final returns as a share of the best method's mean in the same environment, where that is above zero. Methods that lack"
        " environments come after those that have them all: their shares are of fewer, perhaps easier, tasks."
    )
    caption = "Normalised final return, interquartile mean with 95 % interval"
    return f"<h3>All environments</h3><p>{text}</p>" + table(caption, ["method", "interquartile mean", "environments", "runs"], rows)


def _standings(collection: Collection, env: str, found: Sequence[data.Standing]) -> str:
    again = any(math.isfinite(standing.row["reevaluated"]) for standing in found)
    trained = any(math.isfinite(standing.row["retrained"]) for standing in found)
    columns = ["method", "final return", "seeds", "interquartile mean", "mean over steps", "steps to half the best", "bodies"]
    columns += ["designs tried", "wall time"] + ["fresh episodes"] * again + ["new controller"] * trained
    rows: list[list[Cell]] = []
    for standing in found:
        row = standing.row
        seeds = f"{row['seeds']}" if row["seeds"] == row["runs"] else f"{row['seeds']} of {row['runs']}"
        mean = spread(row["mean"], row["std"])
        if not row["complete"]:
            mean = Raw(f'{mean.markup} <span class="faint">at {escape(count(row["steps"]))}</span>', mean.value)
        rows.append(
            [
                _method(collection, standing.method),
                mean,
                Raw(seeds, row["seeds"]),
                interval(row["iqm"], row["low"], row["high"]),
                spread(row["area"], row["area_std"]),
                Raw(escape(tables.level(row)), row["steps_to_level"]),
                number(standing.bodies),
                number(standing.designs, 0),
                duration(row["seconds"]),
                *([spread(row["reevaluated"], row["reevaluated_std"])] if again else []),
                *([spread(row["retrained"], row["retrained_std"])] if trained else []),
            ]
        )
    return table(f"{collection.title(env)}: final return and what it took", columns, rows)


def _pairs(collection: Collection) -> str:
    found = data.pairs(collection)
    if not len(found):
        return ""
    rows: list[list[Cell]] = []
    for row in found.to_dict("records"):
        env = "all environments" if row["env"] == "all" else collection.title(str(row["env"]))
        rows.append(
            [
                Raw(escape(collection.label(str(row["method"])))),
                Raw(escape(collection.label(str(row["other"])))),
                env,
                interval(row["difference"], row["low"], row["high"]),
                interval(row["improvement"], row["improvement_low"], row["improvement_high"], 2),
                number(row["cliffs_delta"], 2),
                number(row["hedges_g"], 2),
            ]
        )
    columns = ["method", "against", "environment", "difference of means", "probability of improvement", "Cliff's delta", "Hedges' g"]
    content = table("Every pair of methods, with 95 % bootstrap intervals", columns, rows, text_columns=3)
    content += f'<p class="note">{escape(" ".join(measures.cautions(collection)))}</p>'
    picture = _picture(lambda: returns.pairs(collection), "Probability that a run of the row's method beats one of the column's")
    return picture + _folded(f"Pairwise comparison ({len(rows)})", content, len(rows))


def _picture(draw: Callable[[], Figure], words: str) -> str:
    """One of the figures, whose numbers are in the tables beside it."""
    content = io.BytesIO()
    with styled():
        draw().savefig(content, format="png", dpi=150, metadata={"Software": None})
    source = f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
    return f'<figure class="picture"><img alt="{escape(words)}" src="{source}"></figure>'


def _ledger(collection: Collection) -> str:
    rows = data.ledger(collection)
    cells: list[list[Cell]] = [
        [
            row.run.name,
            row.run.status,
            Raw(f"{row.charged:,}", row.charged),
            Raw(f"{row.run.budget_steps:,}", row.run.budget_steps),
            number(row.evaluation, 0),
            number(row.reevaluation, 0),
            number(row.retraining, 0),
            duration(row.seconds),
            number(row.speed, 0),
        ]
        for row in rows
    ]
    columns = ["run", "status", "charged", "budget", "evaluation", "re-evaluation", "new controller", "wall time", "steps/s"]
    text = f"<p>{escape(data.ledger_sentence(rows))} Evaluation, re-evaluation and the training of new controllers are metered apart"
    content = table("Environment steps of every run", columns, cells, text_columns=2)
    return (
        f"{text} and never charged.</p><details{' open' * (len(rows) <= 12)}><summary>All runs ({len(rows)})</summary>{content}</details>"
    )


def _versions(collection: Collection) -> str:
    rows: list[list[Cell]] = []
    for name, found in data.versions(collection):
        text = escape(found[0][0]) if len(found) == 1 else "; ".join(f"{escape(v)} ({_plural(n, 'run')})" for v, n in found)
        rows.append([name, Raw(text)])
    return table("Recorded when each run began", ["package or fact", "version"], rows, text_columns=2, sortable=False)


def _commands(collection: Collection, command: str) -> str:
    runs = "".join(f"<li><span>{escape(run.name)}</span><code>{escape(commands.command_of(run))}</code></li>" for run in collection.runs)
    sweeps = "".join(map(_code, commands.sweeps(collection)))
    return (
        f"<p>This report:</p>{_code(command)}"
        + (f"<p>Many runs at once, as they were started, but for where they were kept:</p>{sweeps}" if sweeps else "")
        + _folded(f"Each run by itself ({len(collection.runs)})", f'<ul class="commands">{runs}</ul>', len(collection.runs))
        + "<p>Fresh episodes, a new controller for a final design, and the motion shown above:</p>"
        + _code("codesign-bench reevaluate run=RUN train=STEPS")
    )


def _folded(title: str, content: str, size: int) -> str:
    """Open where there is little to unfold."""
    return f"<details{' open' if size <= 12 else ''}><summary>{escape(title)}</summary>{content}</details>"


def _code(text: str) -> str:
    return f'<div class="code"><code>{escape(text)}</code></div>'
