"""What `codesign-bench reevaluate` left in the run folders, as far as it compares.

Fresh episodes compare where there are as many of them, new controllers where they were trained for as many steps and with the same
settings too: the largest agreeing set of a study stays, and the others are left out by name.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codesign_bench.analysis.reading import Run
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.reevaluation import FreshEpisodes, Reevaluation


@dataclass(frozen=True)
class Reevaluations:
    """By run folder: all that are of the run as it is now; of those that compare, the final agents in fresh episodes and the new
    controllers on the frozen final designs; and sentences about the others."""

    found: dict[Path, Reevaluation]
    agents: dict[Path, FreshEpisodes]
    controllers: dict[Path, FreshEpisodes]
    left_out: tuple[str, ...]


def read_reevaluations(runs: Sequence[Run]) -> Reevaluations:
    current: dict[Path, Reevaluation] = {}
    said = []
    for run in runs:
        try:
            found = Reevaluation.load(run.path)
        except ConfigError as error:
            said.append(str(error).replace(f"{run.path}/", f"{run.name}/"))
            continue
        if found is None:
            continue
        if found.agent.steps != run.charged:
            why = "has gone on since" if found.agent.steps < run.charged else "has recorded no evaluation there"
            said.append(f"{run.name} was re-evaluated at {found.agent.steps} steps and {why} ({run.charged}); its numbers are left out.")
            continue
        current[run.path] = found
    again = [(run, current[run.path]) for run in runs if run.path in current]
    agents = [(run, found.agent) for run, found in again]
    controllers = [(run, found.controller) for run, found in again if found.controller is not None]
    kept_agents, unlike_agents = _agreeing(agents, lambda fresh: (fresh.episodes,), "{} fresh episodes")
    kept_controllers, unlike = _agreeing(
        controllers, lambda fresh: (fresh.steps, fresh.episodes, settings(fresh)), "controller of {:,} steps, {} episodes, {}"
    )
    return Reevaluations(current, kept_agents, kept_controllers, (*said, *unlike_agents, *unlike))


def settings(controller: FreshEpisodes) -> str:
    """How it was trained, in words of the command line."""
    return " ".join(controller.training) or "settings not recorded"


def _agreeing(
    found: Sequence[tuple[Run, FreshEpisodes]], key: Callable[[FreshEpisodes], tuple[Any, ...]], words: str
) -> tuple[dict[Path, FreshEpisodes], list[str]]:
    """The largest set that agrees, of equal ones that with the larger numbers; and a sentence about each of the others."""
    sizes = Counter(key(fresh) for _, fresh in found)
    chosen = max(sizes, key=lambda kind: (sizes[kind], kind), default=())
    kept = {run.path: fresh for run, fresh in found if key(fresh) == chosen}
    others = [
        f"{run.name}: its re-evaluation ({words.format(*key(fresh))}) is left out; the others have {words.format(*chosen)}."
        for run, fresh in found
        if key(fresh) != chosen
    ]
    return kept, others
