"""The report as HTML: page.html filled in, every value escaped, with style and scripts put inside."""

import base64
import hashlib
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from matplotlib.figure import Figure

from codesign_bench import __version__
from codesign_bench.analysis import measures, tables
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.figures import returns
from codesign_bench.analysis.report import bodies, commands, data
from codesign_bench.analysis.style import styled
from codesign_bench.bars import counted
from codesign_bench.design import colours
from codesign_bench.terminal import count

HERE = Path(__file__).parent
SCRIPTS = ("page.js", "curves.js", "viewer.js", "designs.js", "lineage.js", "start.js")

_CONTROLS = {code: "?" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\r\t"}
"""Control characters, which names of strangers may hold and no page needs."""


def report(collection: Collection, study: Path, command: str) -> str:
    """The whole page. `study` is the folder of the study, `command` what made the report."""
    missing = data.gaps(collection)
    parts: dict[str, Callable[[], Any]] = {
        "envs": lambda: [{"name": env, "title": collection.title(env)} for env in collection.envs],
        "methods": lambda: data.method_entries(collection),
        "metrics": lambda: data.metrics(collection),
        "colours": lambda: {"bones": colours.BONES, "hinge": colours.HINGE},
        "bands": lambda: data.BANDS,
        "curves": lambda: {env: data.curves(collection, env) for env in collection.envs},
        "designs": lambda: bodies.designs(collection, missing),
        "lineages": lambda: bodies.lineages(collection, missing),
        "videos": lambda: data.videos(study, missing),
    }
    values: dict[str, Any] = {}
    with counted("report: part", len(parts)) as after_part:
        for name, make in parts.items():
            values[name] = make()
            after_part()
    pairs = tables.pairwise(collection)
    with styled():
        pictures = {"Final return of every seed, with the methods' means": _png(returns.final_returns(collection))}
        if pairs.rows:
            pictures["Probability that a run of the row's method beats one of the column's"] = _png(returns.pairs(collection))
    text = _template().render(
        study=collection.study,
        counts=[(len(collection.runs), "run"), (len(collection.methods), "method"), (len(collection.envs), "environment")],
        seeds=[len(collection.of(run.env, run.method)) for run in collection.runs],
        budgets=[count(steps) for steps in sorted({run.budget_steps for run in collection.runs})],
        shortfall=measures.shortfall(collection, bands=False),
        missing=list(dict.fromkeys(missing)),
        values=values,
        overall=tables.overall(collection),
        leaderboard=[(collection.title(env), tables.summary(collection, env)) for env in collection.envs],
        more=[pairs, tables.designs(collection), tables.cost(collection), tables.exploration(collection), tables.learning(collection)],
        pictures=pictures,
        ledger=data.ledger(collection),
        versions=data.versions(collection),
        command=command,
        sweeps=commands.sweeps(collection),
        runs={run.name: commands.command_of(run) for run in collection.runs},
        version=__version__,
        time=time.strftime("%Y-%m-%d %H:%M %Z"),
        style=_asset("style.css"),
        script="\n".join(['"use strict";', *map(_asset, SCRIPTS)]),
    )
    return text.translate(_CONTROLS)


def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["sha256"] = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment.get_template("page.html")


def _asset(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _png(figure: Figure) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, metadata={"Software": None})
    return base64.b64encode(content.getvalue()).decode()
