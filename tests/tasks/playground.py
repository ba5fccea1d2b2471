"""The tasks of tests/third_party/playground without installing it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import yaml

from codesign_bench.paths import env_config
from codesign_bench.structured import merged
from codesign_bench.tasks import Task, make_task

FOLDER = Path(__file__).resolve().parents[1] / "third_party" / "playground"
PLAYGROUND = ("crawl", "thrift", "reach", "stairs", "push")


def any_task(name: str, **overrides: object) -> Task:
    """A task of ours or of the playground."""
    if name not in PLAYGROUND:
        return make_task(name, **overrides)
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    cls = getattr(importlib.import_module(f"playground.{name}"), name.capitalize())
    content = yaml.safe_load((FOLDER / "playground" / "conf" / "env" / f"{name}.yaml").read_text())
    base, _ = content.pop("defaults")
    task: Task = cls.from_mapping(merged(merged(env_config(base), content), overrides))
    return task
