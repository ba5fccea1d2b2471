"""Tables of hyperparameters: what the paper searched (conf/search.yaml), and what the configuration says. Nothing is typed in twice:
selected values are read from the runs of the study, or from conf/ where a method has none."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from codesign_bench.analysis import measures
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.table import Table
from codesign_bench.configuration import load_config, searches
from codesign_bench.paths import options_of

Row = Mapping[str, Any]
"""A row of conf/search.yaml."""
ELSEWHERE = "gap"
"""The environment with a discount factor of its own."""


def tables(collection: Collection) -> list[Table]:
    return [_table(collection, f"hyperparameters_{name}", **content) for name, content in searches().items()]


def _table(collection: Collection, name: str, title: str, methods: Sequence[str], rows: Mapping[str, Row], **_: Any) -> Table:
    found = {method: _configurations(collection, method) for method in methods}
    body = [(row["title"], _searched(row), *(_selected(row, found[method]) for method in methods)) for row in rows.values()]
    sources = [f"{collection.label(m)}: {_source(collection, m, bool(found[m]))}" for m in methods]
    short = measures.shortfall(collection, methods, bands=False) if any(run.method in methods for run in collection.runs) else []
    note = f"Searched: the paper's tables. Selected: the configuration ({'; '.join(sources)})."
    return Table(name, title, ("Hyperparameter", "Searched", *(collection.label(m) for m in methods)), tuple(body), (note, *short), words=2)


def _searched(row: Row) -> str:
    return ", ".join(_text(_shown(row, value)) for value in row["searched"])


def _source(collection: Collection, method: str, known: bool) -> str:
    if any(run.method == method for run in collection.runs):
        return "the runs of this study"
    return "conf/" if known else "not installed"


def _configurations(collection: Collection, method: str) -> dict[str, dict[str, Any]]:
    """By environment: a run's configuration, or what conf/ gives with the paper's budget; empty for a method without either."""
    runs = {run.env: run.config for run in collection.runs if run.method == method}
    if runs:
        return runs
    if method not in options_of("method"):
        return {}
    return {env: _usual(method, env) for env in ("locomotion2d", ELSEWHERE)}


@cache
def _usual(method: str, env: str) -> dict[str, Any]:
    return load_config("config", [f"method={method}", f"env={env}", "budget=paper"])


def _selected(row: Row, configs: Mapping[str, Mapping[str, Any]]) -> str:
    """The value in the configurations; where environments differ, each value with its environments."""
    values: dict[str, list[str]] = {}
    for env, config in configs.items():
        values.setdefault(_text(selected(config, row)), []).append(env)
    if len(values) <= 1:
        return next(iter(values), "-")
    common = max(values, key=lambda text: len([env for env in values[text] if env != ELSEWHERE]))
    rest = [f"{text} ({', '.join(envs)})" for text, envs in values.items() if text != common]
    return "; ".join([common, *rest])


def selected(config: Mapping[str, Any], row: Row) -> Any:
    """The value of a configuration as the table shows it; None where there is none."""
    if "needs" in row and not value_at(config, row["needs"]):
        return None
    if "key" in row:
        return _shown(row, value_at(config, row["key"]))
    budget = config["budget"]
    if row.get("derived") == "epochs":
        return _times(budget, "batch")
    if row.get("derived") == "generations":
        return _times(budget, "population", "agent_batch")
    return row["always"]


def _times(budget: Mapping[str, Any], *keys: str) -> int | None:
    """How often the budget holds the product of these; None where it lacks one."""
    steps = math.prod(budget.get(key, 0) for key in keys)
    return budget["steps"] // steps if steps else None


def value_at(config: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    value: Any = config
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _shown(row: Row, value: Any) -> Any:
    if row.get("as") != "variance" or value is None:
        return value
    return float(f"{math.exp(2 * value):.1g}") if isinstance(value, (int, float)) and abs(value) < 100 else None


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(str, value))})"
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        mantissa, exponent = f"{value:e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return str(value)
