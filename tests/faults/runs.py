"""Runs of some seconds, one for every method, and what they come to when nothing disturbs them."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codesign_bench.experiment.equality import WALL_CLOCK, Outcome, difference, outcome
from codesign_bench.paths import options_of
from tests.experiment.tiny import NETWORKS, folder_of, tiny
from tests.methods.population import small

METHODS = tuple(options_of("method"))
MOSAT = ("method.mosat.width=8", "method.mosat.blocks=2", "method.mosat.hidden=8", "method.gnn.gnn=[8]", "method.value.mlp=[8]")
CONTROLLER = ("method.controller.gnn=[8,8]", "method.controller.mlp=[8]", "method.value.gnn=[8]", "method.value.mlp=[8]")
QUICK = ("env.max_steps=12", "evaluation.episodes=1", "method.ppo.passes=1", "budget.batch=48", "budget.evaluate_every=48")
ITERATIONS = (*QUICK, "budget.steps=720")
"""Fifteen, each with an evaluation and a checkpoint."""
GENERATIONS = (*QUICK, "budget.agent_batch=24", "budget.steps=768")
"""Eight, with two checkpoints each."""

Row = dict[str, str]


@cache
def plugin_of(method: str) -> str:
    return str(tiny(Path("unused"), f"method={method}", networks=())["method"]["plugin"])


def config_of(method: str, results: Path, seed: int = 0) -> dict[str, Any]:
    """A run with small networks and a dozen checkpoints. Its products are named: the fastest may be others each time that a run begins."""
    plugin, given = plugin_of(method), {"seed": seed, "products": "mkl"}
    if plugin in ("nge", "ess", "rgs"):
        return {**small(plugin, f"method={method}", *GENERATIONS, results=results), **given}
    policy = [word for word in NETWORKS if method != "transform2act_no_gnn" or ".gnn" not in word or ".value." in word]
    networks = {"transform2act": policy, "bodygen": MOSAT, "continuous": CONTROLLER}[plugin]
    return {**tiny(results, f"method={method}", *ITERATIONS, networks=networks), **given}


@dataclass(frozen=True)
class Twin:
    """What a run that nothing disturbed came to."""

    outcome: Outcome
    designs: dict[str, bytes]

    @staticmethod
    def of(config: dict[str, Any]) -> Twin:
        designs = folder_of(config) / "designs"
        return Twin(outcome(config), {path.name: path.read_bytes() for path in sorted(designs.iterdir())})

    def differs_from(self, other: Twin) -> str | None:
        """The first place where they are not bit-equal."""
        return difference(vars(self.outcome), vars(other.outcome)) or difference(self.designs, other.designs, "designs")

    def differs_so_far(self, config: dict[str, Any]) -> str | None:
        """The first row that lies there, of progress.csv or a table, and is not as in here."""
        folder = folder_of(config)
        found = {"progress.csv": (rows_of(folder / "progress.csv"), self.outcome.rows)}
        for path in sorted((folder / "tables").glob("*.csv")):
            found[path.name] = (rows_of(path), self.outcome.tables.get(path.stem, []))
        return next((words for name, (rows, mine) in found.items() if (words := difference(mine[: len(rows)], rows, name))), None)


def rows_of(path: Path) -> list[Row]:
    """The whole rows of a table, wall-clock columns aside."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    whole = content[: content.rfind(b"\n") + 1].decode(errors="replace")
    return [{key: value for key, value in row.items() if key not in WALL_CLOCK} for row in csv.DictReader(io.StringIO(whole, newline=""))]


def twin_of(config: dict[str, Any], folder: Path, complete: Any) -> Twin:
    """The twin of a run, which is run by `complete` where it is not in the folder yet."""
    name = f"{config['method']['name']}_{config['seed']}"
    there, mine = folder / name, folder / f"{name}.{os.getpid()}"
    if not there.exists():
        complete({**config, "results": str(mine)})
        if not there.exists():
            mine.rename(there)
    return Twin.of({**config, "results": str(there)})
