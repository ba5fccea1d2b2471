"""Tables of hyperparameters: what the paper searched, and what the configuration says. Nothing is typed in twice: selected values are
read from the runs of the study, or from conf/ where a method has none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codesign_bench.analysis import measures
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.style import label
from codesign_bench.analysis.tables import Table
from codesign_bench.command_line import load_config, options_of

GNN, MLP = "(32, 32, 32), (64, 64, 64), (128, 128, 128)", "(128, 128), (256, 256), (512, 256)"
WIDE_GNN, WIDE_MLP = f"{GNN}, (256, 256, 256)", f"{MLP}, (256, 256, 256)"


@dataclass(frozen=True)
class Row:
    """`path` leads through a run's configuration to the selected value; `searched` is from the paper's table."""

    name: str
    path: str
    searched: str


PPO = (
    Row("PPO clip", "method.ppo.clip", "0.2"),
    Row("PPO minibatch size", "method.ppo.minibatch", "512, 2048"),
    Row("PPO iterations per batch", "method.ppo.passes", "1, 5, 10"),
    Row("GAE lambda", "method.ppo.gae_lambda", "0.95"),
)
OURS = (
    Row("Skeleton transforms", "method.skeleton.steps", "3, 5, 10"),
    Row("Attribute transforms", "method.attribute.steps", "1, 3, 5"),
    Row("GNN size (skeleton)", "method.skeleton.gnn", WIDE_GNN),
    Row("JSMLP size (skeleton)", "method.skeleton.mlp", WIDE_MLP),
    Row("GNN size (attribute)", "method.attribute.gnn", WIDE_GNN),
    Row("JSMLP size (attribute)", "method.attribute.mlp", WIDE_MLP),
    Row("GNN size (execution)", "method.execution.gnn", WIDE_GNN),
    Row("JSMLP size (execution)", "method.execution.mlp", WIDE_MLP),
    Row("Variance of attributes", "variance method.attribute.log_std", "1.0, 0.04, 0.01"),
    Row("Variance of controls", "variance method.execution.log_std", "1.0, 0.04, 0.01"),
    Row("Policy learning rate", "method.ppo.policy_lr", "5e-5, 1e-4, 3e-4"),
    Row("Value GNN size", "method.value.gnn", WIDE_GNN),
    Row("Value MLP size", "method.value.mlp", WIDE_MLP),
    Row("Value learning rate", "method.ppo.value_lr", "1e-4, 3e-4"),
    Row("PPO batch size", "budget.batch", "10000, 20000, 50000"),
    *PPO,
    Row("Training epochs", "epochs", "1000"),
    Row("Discount factor", "method.ppo.gamma", "0.99, 0.995, 0.997, 0.999"),
)
THEIRS = (
    Row("Generations", "generations", "125"),
    Row("Population size", "budget.population", "10, 20, 50, 100"),
    Row("Elimination rate", "method.elimination", "0.15, 0.2, 0.3, 0.4"),
    Row("Policy GNN size", "method.controller.gnn", GNN),
    Row("Policy MLP size", "method.controller.mlp", MLP),
    Row("Policy log standard deviation", "method.controller.log_std", "0.0, -1.6, -2.3"),
    Row("Policy learning rate", "method.ppo.policy_lr", "5e-5, 1e-4, 3e-4"),
    Row("Value GNN size", "critic", GNN),
    Row("Value MLP size", "method.value.mlp", MLP),
    Row("Value learning rate", "method.ppo.value_lr", "1e-4, 3e-4"),
    Row("PPO batch size", "budget.agent_batch", "10000, 20000, 50000"),
    *PPO,
    Row("Discount factor", "method.ppo.gamma", "0.99, 0.995, 0.999"),
)
ELSEWHERE = "gap"
"""The environment with a discount factor of its own."""


def tables(collection: Collection) -> list[Table]:
    return [
        _table(collection, "hyperparameters_transform2act", "Hyperparameters of Transform2Act", OURS, ("transform2act",)),
        _table(collection, "hyperparameters_baselines", "Hyperparameters of the baselines", THEIRS, ("nge", "ess", "rgs")),
    ]


def _table(collection: Collection, name: str, title: str, rows: Sequence[Row], methods: Sequence[str]) -> Table:
    found = {method: _configurations(collection, method) for method in methods}
    body = [(row.name, row.searched, *(_selected(row, found[method]) for method in methods)) for row in rows]
    sources = [f"{label(m)}: {_source(collection, m, bool(found[m]))}" for m in methods]
    short = measures.shortfall(collection, methods, bands=False) if any(run.method in methods for run in collection.runs) else []
    note = f"Searched: the paper's tables. Selected: the configuration ({'; '.join(sources)})."
    return Table(name, title, ("Hyperparameter", "Searched", *(label(m) for m in methods)), tuple(body), (note, *short), words=2)


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
    return {env: load_config("config", [f"method={method}", f"env={env}", "budget=paper"]) for env in ("locomotion2d", ELSEWHERE)}


def _selected(row: Row, configs: Mapping[str, Mapping[str, Any]]) -> str:
    """The value in the configurations; where environments differ, each value with its environments."""
    values: dict[str, list[str]] = {}
    for env, config in configs.items():
        values.setdefault(_text(value_at(config, row.path)), []).append(env)
    if len(values) <= 1:
        return next(iter(values), "-")
    common = max(values, key=lambda text: len([env for env in values[text] if env != ELSEWHERE]))
    rest = [f"{text} ({', '.join(envs)})" for text, envs in values.items() if text != common]
    return "; ".join([common, *rest])


def value_at(config: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, or one of those that follow from others; None where there is none."""
    budget = config["budget"]
    if path == "epochs":
        return budget["steps"] // budget["batch"] if budget.get("batch") else None
    if path == "generations":
        return budget["steps"] // (budget["population"] * budget["agent_batch"]) if budget.get("agent_batch") else None
    if path == "critic":  # of a controller without a graph network it is an MLP too
        return value_at(config, "method.value.gnn") if value_at(config, "method.controller.gnn") else None
    if path.startswith("variance "):
        log_std = value_at(config, path.removeprefix("variance "))
        return None if log_std is None else float(f"{math.exp(2 * log_std):.1g}")
    value: Any = config
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(str, value))})"
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        mantissa, exponent = f"{value:e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return str(value)
