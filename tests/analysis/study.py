"""Synthetic studies: run folders as the runner leaves them, without running anything."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from codesign_bench.configuration import load_config
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.stored import StoredDesign
from codesign_bench.experiment.reevaluation import FreshEpisodes
from codesign_bench.experiment.run_folder import configuration_hash
from codesign_bench.paths import options_of
from codesign_bench.simulation.showing import random_design
from codesign_bench.structured import merged
from codesign_bench.tasks import make_task

COLUMNS = (
    *("iteration", "steps", "return_mean", "return_std", "best_return", "train_return", "episode_length", "net_displacement"),
    *("net_to_path", "bodies", "designs", "at_bounds", "unstable", "eval_steps", "steps_per_second", "seconds"),
)
"""Of a progress.csv."""

VERSIONS = {"codesign-bench": "0.1.0", "mujoco": "4.0.0", "torch": "2.13.0"}


def fresh_episodes(
    value: float, steps: int = 10_000, episodes: int = 2, evaluation_steps: int = 100, training: tuple[str, ...] = ()
) -> FreshEpisodes:
    columns = {"return_mean": value, "return_std": 0.5, "episode_length": 10.0, "net_displacement": 1.0, "bodies": 3.0}
    return FreshEpisodes(steps, 0, evaluation_steps, (value,) * episodes, columns, training)


@cache
def _config(method: str, env: str, budget: str) -> dict[str, Any]:
    return load_config("config", [f"method={method}", f"env={env}", f"budget={budget}"])


def configuration(method: str, env: str, seed: int, study: str, budget: str = "smoke", **changes: Any) -> dict[str, Any]:
    """Of a method that ships, or of a stranger, which then has Transform2Act's."""
    known = method.startswith("transform2act")
    config = copy.deepcopy(_config(method if known else "transform2act", env, budget))
    shown = _config(method, env, budget)["method"] if method in options_of("method") else {}
    config["method"] |= {"name": method, "label": shown.get("label"), "colour": shown.get("colour")}
    return merged({**config, "seed": seed, "study": study}, changes)


def write_run(
    results: Path,
    method: str = "transform2act",
    env: str = "gap",
    seed: int = 0,
    *,
    study: str = "study",
    budget: str = "smoke",
    returns: NDArray[Any] | list[float] | None = None,
    every: int | None = None,
    status: str = "done",
    versions: Mapping[str, str] = VERSIONS,
    tail: str = "",
    designs: bool = True,
    more: Mapping[str, list[float]] | None = None,
    **changes: Any,
) -> Path:
    """One run folder with one evaluation for each of `returns`; `more` are columns besides COLUMNS, or instead of theirs, and `tail` is
    appended to progress.csv as it is."""
    config = configuration(method, env, seed, study, budget, **changes)
    folder = results / study / env / method / f"seed_{seed}"
    (folder / "designs").mkdir(parents=True, exist_ok=True)
    steps_per_row = every or config["budget"]["evaluate_every"]
    values = np.arange(1.0, config["budget"]["steps"] // steps_per_row + 1) if returns is None else np.asarray(returns, dtype=float)
    steps = steps_per_row * np.arange(1, len(values) + 1)
    names = list(dict.fromkeys([*COLUMNS, *(more or {})]))
    rows = np.zeros((len(values), len(names)))
    columns = {
        "iteration": np.arange(1, len(values) + 1),
        "steps": steps,
        "return_mean": values,
        "best_return": np.fmax.accumulate(values) if len(values) else values,
        "train_return": 0.8 * values,
        "episode_length": np.full(len(values), 500.0),
        "bodies": np.full(len(values), 7.0),
        "designs": steps // 100,
        "eval_steps": 10 * steps,
        "steps_per_second": np.full(len(values), 2000.0),
        "seconds": steps / 2000,
        **(more or {}),
    }
    for name, column in columns.items():
        rows[:, names.index(name)] = column
    body = "".join(",".join([str(int(r[0])), str(int(r[1])), *(repr(float(v)) for v in r[2:])]) + "\r\n" for r in rows)
    (folder / "progress.csv").write_text(",".join(names) + "\r\n" + body + tail, newline="")
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    manifest = {
        "versions": dict(versions),
        "git_commit": "0" * 40,
        "cpu": "a processor",
        "cores": 2,
        "configuration_hash": configuration_hash(config),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "status.json").write_text(json.dumps({"status": status, "steps": int(steps[-1]) if len(steps) else 0}))
    if designs and env in ("locomotion2d", "locomotion3d", "swimmer", "gap"):
        task = make_task(env)
        design = random_design(task, np.random.default_rng([seed, len(method)]))
        for name in ("final", "best"):
            (folder / "designs" / f"{name}.json").write_text(StoredDesign(design, task.space).to_json())
            (folder / "designs" / f"{name}.xml").write_text(to_mjcf(design, task.space, task.scene))
    return folder
