"""The command that makes a run again, from its configuration; and those that started many runs at once, as they were typed."""

import json
import shlex
from collections.abc import Mapping
from functools import cache
from typing import Any

from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.reading import PAPER
from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.run_folder import deciding, differences
from codesign_bench.paths import options_of
from codesign_bench.structured import merged

PARTS = ("env", "method", "budget", "evaluation", "sampler")
"""Of a configuration: what decides on the result, besides the seed."""


def command_of(run: Run) -> str:
    """What makes this run and no other: its method, environment, seed and budget, and every number that is not theirs by default.
    A variant under a name of its own is its plug-in with other numbers; a method that is not installed here shows what was typed."""
    budget = str(run.config["budget"].get("name"))
    for option in dict.fromkeys((run.option, str(run.config["method"].get("plugin")))):
        track = [] if run.track == PAPER else [f"track={run.track}"]
        usual, mine = _usual(option, run.env, budget, *track), deciding(run.config)
        if usual is not None and all(isinstance(mine.get(part), Mapping) for part in PARTS):
            own = [f"method={option}", f"env={run.env}", f"seed={run.seed}", f"budget={budget}", *track, f"study={run.study}"]
            changed = [each for part in PARTS for each in differences(usual[part], merged(usual[part], mine[part]), part)]
            changes = [
                f"{key}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}" for key, _, value in changed
            ]
            return shlex.join(["codesign-bench", *own, *changes])
    return shlex.join(_recorded(run))


@cache
def _usual(method: str, env: str, budget: str, *others: str) -> Mapping[str, Any] | None:
    """Of names that there are: those of a stranger's configuration are no words for Hydra."""
    if not all(name in options_of(group) for group, name in (("method", method), ("env", env), ("budget", budget))):
        return None
    try:
        return deciding(load_config("config", [f"method={method}", f"env={env}", f"budget={budget}", *others]))
    except ConfigError:
        return None


def sweeps(collection: Collection) -> list[str]:
    """Each once, under this study's name and in the default folder."""
    found = dict.fromkeys(tuple(_recorded(run)) for run in collection.runs)
    return [
        shlex.join([*(word for word in words if not word.startswith(("results=", "study="))), f"study={collection.study}"])
        for words in found
        if words[1:2] == ("bench",) or {"-m", "--multirun"} & set(words[1:]) or any(w.startswith("experiment=") for w in words)
    ]


def _recorded(run: Run) -> list[str]:
    words = run.manifest.get("command")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return []
    return ["codesign-bench", *words[3:]] if words[:3] == ["python", "-m", "codesign_bench"] else words
