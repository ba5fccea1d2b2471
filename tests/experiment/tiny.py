"""Runs that take a second: configurations, and what is looked at afterwards."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from codesign_bench.configuration import load_config
from codesign_bench.experiment import runner
from codesign_bench.experiment.equality import Outcome, outcome
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.structured import merged

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = [f"method.{part}.{kind}" for part in ("skeleton", "attribute", "execution", "value") for kind in ("gnn=[8,8]", "mlp=[8]")]
SMALL = [
    *("method.ppo.minibatch=64", "method.ppo.passes=2", "env.max_steps=50", "sampler.groups=2", "evaluation.episodes=2"),
    *("budget=smoke", "budget.batch=200", "budget.steps=800", "budget.evaluate_every=200"),
    *("workers=0", "progress=false", "tensorboard=false", "products=mkl"),
]
OVERRIDES = [*NETWORKS, *SMALL]


@cache
def _loaded(overrides: tuple[str, ...]) -> dict[str, Any]:
    return load_config("config", list(overrides))


def tiny(results: Path, *overrides: str, env: str = "swimmer", networks: Sequence[str] = NETWORKS) -> dict[str, Any]:
    """Transform2Act, or what `overrides` say, with small networks and four iterations of 200 steps."""
    return {**copy.deepcopy(_loaded((*networks, *SMALL, f"env={env}", *overrides))), "results": str(results)}


def changed(config: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return merged(config, changes)


def run(config: dict[str, Any]) -> Outcome:
    assert runner.run(config, ["test"]) == "done"
    return outcome(config)


def folder_of(config: dict[str, Any]) -> Path:
    return RunFolder.of(config).path


def status_of(config: dict[str, Any]) -> dict[str, Any]:
    return RunFolder.of(config).status()


def checkpoints_of(config: dict[str, Any]) -> list[Path]:
    return sorted((folder_of(config) / "checkpoints").iterdir())


def contents(folder: Path) -> dict[str, Any]:
    """Every file's content; the time in status.json left out."""
    found: dict[str, Any] = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    if "status.json" in found:
        found["status.json"] = {key: value for key, value in json.loads(found["status.json"]).items() if key != "time"}
    return found


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "codesign_bench", *arguments]


def environment() -> dict[str, str]:
    without = {key: value for key, value in os.environ.items() if key != "HYDRA_FULL_ERROR"}
    return {**without, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def program(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command as a person runs it."""
    return subprocess.run(command(*arguments), cwd=cwd, env=environment(), capture_output=True, text=True, timeout=300, check=False)
