"""Whether the runs of a study may be compared with others': what is wrong with each, as far as its files tell.

Nobody can prove from files that a run was really made; but budgets, ledgers and rows that do not belong together are found here.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from codesign_bench import __version__
from codesign_bench.analysis.collect import Collection, Run
from codesign_bench.analysis.comparable import LeftOut, version_of
from codesign_bench.analysis.measures import COUNTERS, PART
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.method import Budget, known_methods, method_class
from codesign_bench.experiment.run_folder import configuration_hash
from codesign_bench.paths import env_versions
from codesign_bench.structured import build

CLOSE = 1e-6
"""To which the parts of a return add up, relative to it; they are means of sums in another order."""


def problems(study: Collection) -> list[LeftOut]:
    """Every reason for which a run cannot be compared, those for which it was left out before among them."""
    found = [*study.left_out]
    for run in study.runs:
        found += [LeftOut(run.path, reason) for check in CHECKS if (reason := check(study, run)) is not None]
    return found


def remarks(study: Collection) -> Iterator[str]:
    """What to know before the runs that are well are compared: unequal lengths and seeds."""
    for env in study.envs:
        lengths, seeds = defaultdict(list), {}
        for method in study.methods:
            runs = study.of(env, method)
            for run in runs:
                lengths[run.charged].append(run)
            if runs:
                seeds[method] = {run.seed for run in runs}
        if len(lengths) > 1:
            counts = ", ".join(f"{len(runs)} with {steps:,}" for steps, runs in sorted(lengths.items()))
            yield f"{study.title(env)}: runs of unequal length ({counts} steps); what is compared is what all have"
        everyone = set().union(*seeds.values())
        for method, mine in seeds.items():
            if lacking := sorted(everyone - mine):
                yield f"{study.title(env)}: {study.label(method)} lacks seed {', '.join(map(str, lacking))}"


def environment(study: Collection, run: Run) -> str | None:
    """It is one that is installed here, in the version that is installed."""
    known, version = env_versions(), run.config["env"].get("version", 1)
    if run.env not in known:
        return f"the environment {run.env} is not known here"
    return None if version == known[run.env] else f"its environment is version {version}, here it is {known[run.env]}"


def whole_ledger(study: Collection, run: Run) -> str | None:
    """The run is done, to the last step it was asked for, by whole iterations of its method, and every row is there."""
    until, (steps, _) = run.config["budget"].get("until"), study.record(run)
    if run.status != "done" or run.charged != until:
        return f"it is {run.status}, with {run.charged:,} of {until} steps"
    if run.half_rows:
        return f"{run.half_rows} row(s) of progress.csv are not whole, or do not grow in steps"
    plugin = str(run.config["method"].get("plugin"))
    if plugin in known_methods():
        try:
            size = method_class(plugin).iteration_steps(build(Budget, run.config["budget"], "budget"))
        except ConfigError as error:
            return str(error).rstrip(".")
        if not np.array_equal(study.record(run, "iteration")[1] * size, steps):
            return f"its steps are not those of its iterations, {size:,} each"
    return None


def same_configuration(study: Collection, run: Run) -> str | None:
    """Its configuration is the one that it began with; of other versions, which may have counted other keys, this cannot be told."""
    then, now = run.manifest.get("configuration_hash"), configuration_hash(run.config)
    return (
        None
        if then == now or version_of(run, "codesign-bench") != __version__
        else f"its config.yaml is not the one it began with (hash {now}, then {then})"
    )


def rows_agree(study: Collection, run: Run) -> str | None:
    """What is recorded twice agrees, and what only grows does."""
    returns, best = study.record(run)[1], study.record(run, "best_return")[1]
    if np.isfinite(best).any() and not np.array_equal(np.fmax.accumulate(returns), best, equal_nan=True):
        return "best_return is not the largest return_mean so far: rows were changed"
    parts = [study.record(run, name)[1] for name in study.table.columns if name.startswith(PART)]
    sums = np.sum([part for part in parts if np.isfinite(part).all()] or [returns], axis=0)
    if not np.allclose(sums, returns, rtol=CLOSE, atol=CLOSE, equal_nan=True):
        return "the parts of the return do not add up to return_mean: rows were changed"
    for name in COUNTERS:
        values = study.record(run, name)[1]
        if (np.diff(values) < 0).any():
            return f"{name} decreases: rows were changed, or are of several runs"
    return None


CHECKS: tuple[Callable[[Collection, Run], str | None], ...] = (environment, whole_ledger, same_configuration, rows_agree)
