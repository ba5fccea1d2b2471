"""Which settings suit each method best: the search behind track=strong, from a study of experiment=tuning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from codesign_bench.analysis import measures
from codesign_bench.analysis.collect import Collection
from codesign_bench.analysis.reading import Run
from codesign_bench.analysis.table import Bold, Columns, Row, Table, number

NOTE = (
    "Area: mean return under the curve. Share: of the best area of the same method in the same environment; its mean over environments "
    "decides, without those where no setting is above zero. Only settings that have come to the end everywhere take part."
)


def searched(collection: Collection) -> list[str]:
    """The methods of a study whose plug-in was run on several tracks."""
    tracks: dict[str, set[str]] = {}
    for run in collection.runs:
        tracks.setdefault(_plugin(run), set()).add(run.track)
    several = {run.method for run in collection.runs if len(tracks[_plugin(run)]) > 1}
    return [method for method in collection.methods if method in several]


def shares(collection: Collection) -> pd.DataFrame:
    """One row per method and setting: plugin, setting, area_ENV for each environment, share (NaN where it is not everywhere at the end),
    chosen."""
    frame, methods = measures.finals(collection), searched(collection)
    areas = (
        frame[frame["reached"]].groupby(["method", "env"])["area"].mean().unstack().reindex(index=methods, columns=list(collection.envs))
    )
    plugin = pd.Series({run.method: _plugin(run) for run in collection.runs}).reindex(methods)
    best = areas.groupby(plugin).transform("max")
    share = (areas / best).where(best > 0).mean(axis="columns").where(areas.notna().all(axis="columns"))
    chosen = share.groupby(plugin).transform("max") == share
    setting = pd.Series({run.method: run.option.removeprefix(f"{_plugin(run)}_") for run in collection.runs}).reindex(methods)
    rows = areas.add_prefix("area_").assign(plugin=plugin, setting=setting, share=share, chosen=chosen)
    return rows.reset_index(drop=True)[["plugin", "setting", *(f"area_{env}" for env in collection.envs), "share", "chosen"]]


def table(collection: Collection) -> Table:
    frame = shares(collection)
    columns: Columns = {"method": lambda row: str(row["plugin"]), "settings": lambda row: str(row["setting"])}
    columns |= {f"area, {collection.title(env)}": _area(f"area_{env}") for env in collection.envs}
    columns["share"] = lambda row: (Bold if row["chosen"] else str)(f"{row['share']:.2f}" if np.isfinite(row["share"]) else "")
    return Table.of("tuning", "Settings by mean share of the best area under the curve", columns, frame.to_dict("records"), (NOTE,))


def _area(name: str) -> Callable[[Row], str]:
    return lambda row: number(row[name])


def _plugin(run: Run) -> str:
    return str(run.config["method"].get("plugin", run.method))
