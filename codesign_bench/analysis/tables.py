"""The tables of a study (see table.py for how they are written): returns, what they are made of, pairs, designs, cost."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from codesign_bench.analysis import measures, statistics
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.looks import ordered, ordered_envs
from codesign_bench.analysis.reevaluations import settings
from codesign_bench.analysis.table import Bold, Columns, Row, Table, clock, number, over_seeds, plus_minus, with_interval
from codesign_bench.experiment.reevaluation import FreshEpisodes
from codesign_bench.terminal import count

# ---- returns ---------------------------------------------------------------------------------------------------------


def final_returns(collection: Collection, methods: Sequence[str] | None = None, name: str = "final_returns") -> Table:
    """Methods down, environments across: mean and standard deviation of the final return, the best in bold."""
    frame = measures.summary(collection)
    if methods is not None:
        frame = frame[frame["method"].isin(list(methods))]
    complete = frame["complete"].astype(bool)
    rivals = {env: rows["mean"] for env, rows in frame[complete].groupby("env")}
    cells = {(row["env"], row["method"]): _final_return(row, rivals.get(row["env"], ())) for row in frame.to_dict("records")}
    envs = ordered_envs(frame["env"])
    rows = [(collection.label(method), *(cells.get((env, method), "no runs") for env in envs)) for method in ordered(frame["method"])]
    notes = ["Mean return over the last 5 % of the steps, mean ± standard deviation over seeds, number of seeds in brackets."]
    if not complete.all():
        notes.append("† No seed has reached the others' last step; the value is at the steps in brackets and does not compare.")
    notes += measures.shortfall(collection, methods, bands=False)
    return Table(name, "Final returns", ("Method", *map(collection.title, envs)), tuple(rows), tuple(notes))


def _final_return(row: Row, rivals: Sequence[float]) -> str:
    value = plus_minus(row["mean"], row["std"])
    if not row["complete"]:
        return f"{value} † ({count(row['steps'])})"
    seeds = f"{row['seeds']}" if row["seeds"] == row["runs"] else f"{row['seeds']} of {row['runs']}"
    best = len(rivals) > 1 and row["mean"] >= max(rivals)
    return Bold(f"{value} ({seeds})") if best else f"{value} ({seeds})"


def summary(collection: Collection, env: str | None = None) -> Table:
    """One line per environment and method: everything that is measured on final returns and curves. With `env`, its methods only, the
    best first."""
    frame = measures.summary(collection)
    share = f"{100 * measures.FRACTION:.0f} %"
    columns: Columns = {
        **_curve(collection),
        "Seeds": lambda row: f"{row['seeds']} of {row['runs']}",
        "Final return": lambda row: plus_minus(row["mean"], row["std"]) + ("" if row["complete"] else f" † ({count(row['steps'])})"),
        "Mean [95 %]": lambda row: with_interval(row["mean"], row["low"], row["high"]),
        **({part_title(name): _of_seeds(name) for name in measures.parts(collection, env)} if env is not None else {}),
        **_distance(frame),
        "Mean over steps": _of_seeds("area"),
        f"Steps to {share}": level,
    }
    if collection.reevaluations.agents:
        columns["Fresh"] = _of_seeds("reevaluated")
    if collection.reevaluations.controllers:
        columns["Retrained"] = _of_seeds("retrained")
    if env is not None:
        frame = frame[frame["env"] == env].sort_values(["complete", "mean"], ascending=False, kind="stable")
        del columns["Environment"]
    notes = (
        "Final return: mean over the last 5 % of the steps, mean ± standard deviation over the seeds that reached the last step; "
        f"in square brackets the {statistics.T_INTERVAL} of the mean. "
        "Mean over steps: area under the curve divided by its steps, from where all methods have been evaluated. "
        "In round brackets: the number of seeds, where it is less than that of the final return.",
        *_about_parts(frame),
        f"Steps to {share}: median over seeds until {share} of the best method's final return (seeds that got there).",
        *_about_reevaluations(collection),
        *measures.cautions(collection),
        *measures.shortfall(collection, bands=False),
    )
    title, words = ("Returns", 2) if env is None else (f"Returns in {collection.title(env)}", 1)
    return Table.of("summary", title, columns, frame.to_dict("records"), notes, words)


def parts(collection: Collection) -> Table:
    """What the returns are made of, and how far the robots came: a return can hide standing still."""
    frame = measures.summary(collection)
    columns: Columns = {
        **_curve(collection),
        "Seeds": lambda row: f"{row['seeds']} of {row['runs']}",
        "Final return": lambda row: plus_minus(row["mean"], row["std"]) + ("" if row["complete"] else f" † ({count(row['steps'])})"),
        **{part_title(name): _of_seeds(name) for name in measures.parts(collection)},
        **_distance(frame),
    }
    notes = (*_about_parts(frame), *measures.shortfall(collection, bands=False))
    return Table.of("parts", "Parts of the final return", columns, frame.to_dict("records"), notes)


def part_title(name: str) -> str:
    return name.removeprefix(measures.PART).replace("_", " ").capitalize()


def _distance(frame: pd.DataFrame) -> Columns:
    return {"Distance (m)": _of_seeds(measures.DISTANCE)} if measures.DISTANCE in frame else {}


def _about_parts(frame: pd.DataFrame) -> list[str]:
    if measures.DISTANCE not in frame:
        return []
    return ["Parts of the return and the distance travelled forward in an episode: over the same evaluations as the final return."]


def learning(collection: Collection) -> Table:
    """How well the critics foresaw returns, as far as it was recorded."""
    frame = measures.summary(collection)
    columns: Columns = {
        **_curve(collection),
        "Seeds": lambda row: f"{row['seeds']} of {row['runs']}",
        "Explained variance": _of_seeds(measures.EXPLAINED),
    }
    rows = frame[frame[measures.EXPLAINED].notna()].to_dict("records") if measures.EXPLAINED in frame else []
    notes = (
        "Share of the variance of returns that the critic foresaw in the last 5 % of the steps, mean ± standard deviation over seeds: "
        "1 at best, 0 of a critic that says the same of every state.",
        *measures.shortfall(collection, bands=False),
    )
    return Table.of("learning", "Critics", columns, rows, notes)


def level(row: Row) -> str:
    """Steps to the level, a row of measures.summary as text: beyond the end if too few seeds got there for a median."""
    steps, of = row["steps_to_level"], f" ({row['reached_level']} of {row['level_runs']})"
    if math.isnan(steps):
        return "-"
    if math.isinf(steps):
        return (f"> {count(row['steps'])}" if row["reached_level"] else "never") + of
    return ("≤ " if steps <= row["first"] else "") + count(steps) + of


def _curve(collection: Collection) -> Columns:
    """The first columns of a table with one row per environment and method."""
    return {"Environment": lambda row: collection.title(row["env"]), "Method": lambda row: collection.label(row["method"])}


def _of_seeds(name: str) -> Callable[[Row], str]:
    """A column of measures.summary, of perhaps fewer seeds than the final return."""
    return lambda row: over_seeds(row[name], row[f"{name}_std"], row[f"{name}_seeds"], row["seeds"] if row["complete"] else row["runs"])


def _about_reevaluations(collection: Collection) -> list[str]:
    """What their columns hold; nothing without them."""
    found, said = collection.reevaluations, []
    if found.agents:
        episodes = next(iter(found.agents.values())).episodes
        said.append(f"Fresh: the final agents in {episodes} episodes with a seed that training never used.")
    if found.controllers:
        one = next(iter(found.controllers.values()))
        how = f"trained from scratch for {one.steps:,} steps on the frozen final designs, alike for all: {settings(one)}."
        said.append(f"Retrained: a controller {how}")
    if found.left_out:
        said.append(f"{len(found.left_out)} re-evaluation(s) that do not compare or cannot be read are left out.")
    return said


def designs(collection: Collection) -> Table:
    """One line per final design that was re-evaluated: what it is worth apart from how well it was learned."""
    found = collection.reevaluations

    def of(kind: Mapping[Path, FreshEpisodes], name: str) -> Callable[[Row], str]:
        return lambda row: number(float(kind[row["path"]].columns.get(name, math.nan))) if row["path"] in kind else "-"

    columns: Columns = {
        **_curve(collection),
        "Seed": lambda row: f"{row['seed']}",
        "Bodies": lambda row: f"{row['bodies']:g}",
        "Final return": lambda row: number(row["final"]),
        "Fresh": of(found.agents, "return_mean"),
    }
    if found.controllers:
        columns |= {"Retrained": of(found.controllers, "return_mean"), "Retrained, distance (m)": of(found.controllers, measures.DISTANCE)}
    frame = _finals(collection).assign(path=[run.path for run in collection.runs])
    rows = [
        row
        for curve in _by_curve(frame)
        for row in curve["runs"].to_dict("records")
        if row["path"] in found.agents.keys() | found.controllers
    ]
    notes = (*_about_reevaluations(collection), *measures.shortfall(collection, bands=False))
    return Table.of("designs", "Final designs", columns, rows, notes, words=3)


def overall(collection: Collection) -> Table:
    """Across environments: the mean of the runs' shares of the best method's mean final return."""
    frame = measures.normalised(measures.finals(collection))
    envs = ordered_envs(frame["env"])
    strata = {method: [scores for scores in measures.scores(frame, method, envs) if len(scores)] for method in ordered(frame["method"])}
    found = [(method, some, statistics.mean(some)) for method, some in strata.items() if some]
    rows = [
        (
            collection.label(method),
            with_interval(mean.value, mean.low, mean.high),
            number(statistics.interquartile_mean(some)),
            f"{len(some)} of {len(envs)}",
            f"{mean.runs}",
        )
        for method, some, mean in sorted(found, key=lambda row: (-len(row[1]), -row[2].value))
    ]
    notes = (
        "Final returns as a share of the best method's mean in the same environment, where that is above zero: mean over seeds, "
        f"environments counted alike, with its {statistics.T_INTERVAL}; interquartile mean of all runs. "
        "Methods that lack environments come after those that have them all: their shares are of fewer, perhaps easier, tasks.",
        *measures.cautions(collection),
    )
    columns = ("Method", "Mean [95 %]", "Interquartile mean", "Environments", "Runs")
    return Table("overall", "Normalised final returns", columns, tuple(rows), notes)


def pairwise(collection: Collection) -> Table:
    columns: Columns = {
        "Environment": lambda row: "All" if row["env"] == "all" else collection.title(row["env"]),
        "Methods": lambda row: f"{collection.label(row['method'])} against {collection.label(row['other'])}",
        "Runs": lambda row: f"{row['runs']}, {row['other_runs']}",
        "Difference [95 %]": lambda row: with_interval(row["difference"], row["low"], row["high"]),
        "P(better) [95 %]": lambda row: with_interval(row["improvement"], row["improvement_low"], row["improvement_high"]),
        "Cliff's delta": lambda row: number(row["cliffs_delta"]),
        "Hedges' g": lambda row: number(row["hedges_g"]),
    }
    notes = (
        "Difference of the mean final returns, and probability that a run of the first method beats one of the second.",
        statistics.INTERVALS,
        *measures.cautions(collection),
        *measures.shortfall(collection, bands=False),
    )
    return Table.of("pairwise", "Methods in pairs", columns, measures.pairwise(measures.finals(collection)).to_dict("records"), notes)


# ---- methods, cost and designs ---------------------------------------------------------------------------------------


def methods(collection: Collection) -> Table:
    """What the methods are called in figures and on the command line."""
    runs = {name: [run for run in collection.runs if run.method == name] for name in collection.methods}
    rows = [
        (look.label, name, str(runs[name][0].config["method"].get("plugin", "-")), look.colour, f"{len(runs[name])}")
        for name, look in collection.looks.items()
    ]
    return Table("methods", "Methods", ("In figures", "method=", "Plug-in", "Colour", "Runs"), tuple(rows), words=4)


def cost(collection: Collection) -> Table:
    """Wall time and speed of the runs as they were recorded, with the machines they ran on."""
    frame = _finals(collection)
    seconds = frame["seconds"].where(frame["seconds"] > 0)
    name, unit = clock(seconds)
    machines = [f"{run.manifest.get('cpu') or 'unknown'}, {run.manifest.get('cores') or '?'} cores" for run in collection.runs]
    frame = frame.assign(time=seconds / unit, speed=frame["charged"] / seconds, machine=machines)
    columns: Columns = {
        **_curve(collection),
        "Seeds": lambda row: f"{len(row['runs'])}",
        "Steps": lambda row: count(row["runs"]["charged"].mean()),
        name: _over_seeds("time"),
        "Steps per second": lambda row: number(row["runs"]["speed"].mean()),
        "Evaluation steps": lambda row: "-" if row["runs"]["eval_steps"].isna().all() else count(row["runs"]["eval_steps"].mean()),
        "Machine": lambda row: "; ".join(sorted(set(row["runs"]["machine"]))),
    }
    notes = (
        "Per run: charged steps, wall time (mean ± standard deviation over seeds, with evaluation), charged steps per second of wall time, "
        "steps of evaluation that were not charged. Runs on one machine may have shared it.",
        "The paper reports about one day per run on 20 cores with a GPU.",
        *measures.shortfall(collection, bands=False),
    )
    return Table.of("cost", "Computation cost", columns, _by_curve(frame), notes)


def exploration(collection: Collection) -> Table:
    """The appendix's comparison: how many designs a method tries, and how many samples each of them gets."""
    frame = _finals(collection)
    tried = frame["designs"].where(frame["designs"] > 0)
    frame = frame.assign(tried=tried, per_batch=50_000 * tried / frame["charged"], per_design=frame["charged"] / tried)
    columns: Columns = {
        **_curve(collection),
        "Seeds": lambda row: f"{len(row['runs'])}",
        "Designs tried": _over_seeds("tried"),
        "per 50,000 steps": _over_seeds("per_batch"),
        "Steps per design": _over_seeds("per_design"),
        "Episode length": _over_seeds("episode_length"),
        "Bodies": _over_seeds("bodies"),
    }
    notes = (
        "Mean ± standard deviation over seeds, of designs over the whole run, of episode length and bodies over its last 5 %. "
        "Steps per design: charged steps per design or species; "
        "Transform2Act learns from all of them with one policy, species of evolution methods only from their own and their ancestors'.",
        *measures.shortfall(collection, bands=False),
    )
    return Table.of("exploration", "Exploration of designs", columns, _by_curve(frame), notes)


def symmetry(frame: pd.DataFrame, collection: Collection) -> Table:
    """How symmetric the final designs are, with and without JSMLPs."""
    columns: Columns = {
        **_curve(collection),
        "Designs": lambda row: f"{len(row['runs'])}",
        "Sibling symmetry": _over_seeds("sibling"),
        "Left-right symmetry": _over_seeds("left-right"),
        "Mirror symmetry": _over_seeds("mirror"),
        "Bodies": _over_seeds("bodies"),
    }
    notes = (
        "Final designs, mean ± standard deviation over seeds; 1 is perfectly symmetric. Sibling: likeness of limbs that hang on one joint. "
        "Left-right: overlap of the silhouette with its mirror image across the axis of travel, as it starts. "
        "Mirror: across the best axis through the root, near 1 for any chain.",
        *measures.shortfall(collection, sorted(set(frame["method"])), bands=False),
    )
    return Table.of("symmetry", "Symmetry of designs", columns, _by_curve(frame), notes)


def _finals(collection: Collection) -> pd.DataFrame:
    """measures.finals with the charged steps, and NaN for what no run has recorded."""
    frame = measures.finals(collection).assign(charged=[run.charged for run in collection.runs])
    return frame.reindex(columns=frame.columns.union(["bodies", "designs", "episode_length", "eval_steps"], sort=False))


def _by_curve(frame: pd.DataFrame) -> Iterator[Row]:
    """env, method, and the rows of their `runs`."""
    for env in ordered_envs(frame["env"]):
        for method in ordered(frame.loc[frame["env"] == env, "method"]):
            yield {"env": env, "method": method, "runs": frame[(frame["env"] == env) & (frame["method"] == method)]}


def _over_seeds(column: str) -> Callable[[Row], str]:
    def text(row: Row) -> str:
        values = row["runs"][column]
        return over_seeds(*statistics.mean_and_std(values), int(values.notna().sum()), len(values))

    return text
