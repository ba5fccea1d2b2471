"""Which runs may be compared: budget, versions, environment, evaluation and the method's configuration must agree."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from codesign_bench.analysis.reading import Run
from codesign_bench.experiment.run_folder import deciding, differences

STRICT_VERSIONS = ("mujoco", "codesign-bench")
"""Packages whose version changes results by itself."""


@dataclass(frozen=True)
class LeftOut:
    path: Path
    reason: str


@dataclass(frozen=True)
class _Rule:
    """Within each group of runs, `value` must agree."""

    what: str
    group: Callable[[Run], Hashable]
    value: Callable[[Run], Any]

    def key(self, run: Run) -> str:
        return json.dumps(self.value(run), sort_keys=True, default=str)


def version_of(run: Run, package: str) -> str:
    versions = run.manifest.get("versions")
    return str(versions.get(package)) if isinstance(versions, Mapping) else "unknown"


def _parts(*keys: str) -> Callable[[Run], dict[str, Any]]:
    return lambda run: {key: value for key, value in deciding(run.config).items() if key in keys}


_RULES = (
    _Rule("budget", lambda run: (), lambda run: {key: run.config["budget"].get(key) for key in ("name", "steps", "evaluate_every")}),
    *(_Rule(f"{package} version", lambda run: (), partial(version_of, package=package)) for package in STRICT_VERSIONS),
    _Rule("configuration", lambda run: run.env, _parts("env", "evaluation")),
    _Rule("configuration", lambda run: (run.env, run.method), _parts("method", "sampler", "budget")),
)
"""The last one is the method's own."""


def _difference(a: Any, b: Any, most: int = 3) -> str:
    """In what two plain values differ, in words: "method.ppo.clip 0.9 instead of 0.2"."""
    found = [f"{_cut(where)} {_cut(mine)} instead of {_cut(theirs)}".strip() for where, mine, theirs in differences(a, b)]
    rest = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + rest


def _cut(value: Any, most: int = 60) -> str:
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def comparable(runs: Sequence[Run], force: bool) -> tuple[list[Run], list[LeftOut], list[str]]:
    """The largest set of runs that agree, the others with the reason, and what force mixed."""
    kept, left_out, forced = list(runs), [], []
    for rule in _RULES:
        groups: dict[Hashable, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
        for run in kept:
            groups[rule.group(run)][rule.key(run)].append(run)
        kept = []
        for kinds in groups.values():
            chosen = max(kinds, key=lambda kind: (len(kinds[kind]), sum(run.steps for run in kinds[kind]), kind))
            for kind, same in kinds.items():
                unlike = f"unequal {rule.what}: {_difference(rule.value(same[0]), rule.value(kinds[chosen][0]))}"
                if kind == chosen or force:
                    kept += same
                    forced += [unlike] if kind != chosen else []
                else:
                    left_out += [LeftOut(run.path, unlike) for run in same]
    return sorted(kept, key=lambda run: (run.env, run.method, run.seed)), left_out, forced


def mixed(runs: Iterable[Run]) -> list[str]:
    """In what runs that are compared differ without being left out for it, in words."""
    runs = list(runs)
    kinds = {
        "git commits": {str(run.manifest.get("git_commit") or "unknown")[:8] for run in runs},
        "torch versions": {version_of(run, "torch") for run in runs},
        "libraries of matrix products": {str(run.manifest.get("products", "mkl")) for run in runs},
    }
    return [f"Runs of {len(found)} {what}: {', '.join(sorted(found))}" for what, found in kinds.items() if len(found) > 1]


def differing(mine: Sequence[Run], theirs: Sequence[Run]) -> list[str]:
    """In what two studies are not comparable, in words; the methods' own configurations may differ."""
    return [f"unequal {rule.what}: {difference}" for rule in _RULES[:-1] for _, difference in _between(rule, mine, theirs)]


def own_differences(mine: Sequence[Run], theirs: Sequence[Run]) -> list[str]:
    """In what the configurations of methods that two studies share differ, in words."""
    return list(dict.fromkeys(f"{method}, {difference}" for (_, method), difference in _between(_RULES[-1], mine, theirs)))


def _between(rule: _Rule, mine: Sequence[Run], theirs: Sequence[Run]) -> Iterator[tuple[Any, str]]:
    """The groups that both studies have and in which they differ."""
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(lambda: [{}, {}])
    for side, runs in enumerate((mine, theirs)):
        for run in runs:
            groups[rule.group(run)][side][rule.key(run)] = rule.value(run)
    for group, (a, b) in groups.items():
        if a and b and set(a) != set(b):
            yield group, _difference(next(iter(a.values())), next(iter(b.values())))
