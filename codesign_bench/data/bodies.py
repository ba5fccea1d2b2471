"""Bodies that methods found, with what they earned: a data set for PyTorch Geometric."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data, InMemoryDataset

from codesign_bench.analysis import studies
from codesign_bench.analysis.collect import Collection, Run, collect, study_folder
from codesign_bench.analysis.genealogy import HISTORY, read_genealogy
from codesign_bench.data.graphs import to_data
from codesign_bench.design.graph import NUM_ATTRIBUTES, Design
from codesign_bench.design.space import DesignSpace
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError, ConfigError, DesignError
from codesign_bench.own_files import checksum_of

ALL = "all"
CHAMPION, SPECIES = "champion", "species"


class RobotBodies(InMemoryDataset):  # type: ignore[misc]
    """Every champion and every evolution species of a study as a graph, with its return.

    Each `Data` has what `codesign_bench.data.graphs.to_data` gives, and:

    - y: [1] float32, of a champion the mean return of its evaluation, of a species its fitness: the return of a whole episode while it
      learned, in its best generation
    - steps: [1], environment steps that the run had been charged by then; -1 where its tables do not tell
    - env, method, seed, kind: of which run, and `champion` or `species`
    - run: the same as one word, for splits: bodies of one run are alike, so they belong on one side

    Robots of some environments can be deeper than those of others: x has as many columns for the depth as the deepest.

    The study is read once, into ROOT/processed; after that its folders are not needed.
    """

    def __init__(
        self,
        root: str,
        name: str = ALL,
        study: str = "reference",
        results: str = "results",
        transform: Callable[[Data], Any] | None = None,
        pre_transform: Callable[[Data], Any] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
        force_reload: bool = False,
    ) -> None:
        """
        - root: folder of the data set
        - name: an environment, or "all"
        - study, results: where the bodies come from: a study by name, folder or archive
        """
        self.name, self.study, self.results = name, study, results
        super().__init__(root, transform, pre_transform, pre_filter, force_reload=force_reload)
        self.load(self.processed_paths[0])

    @property
    def processed_file_names(self) -> str:
        place = str(Path(self.results, self.study).resolve())
        return f"{Path(self.study).stem}_{self.name}_{checksum_of(place.encode())}.pt"

    def process(self) -> None:
        root, name = studies.find_study(self.results, self.study)
        study_folder(root, name)
        collection = collect(root, name, envs=None if self.name == ALL else [self.name])
        if not collection.runs:
            raise ConfigError(f"The study '{self.study}' has no runs of '{self.name}'; allowed is an environment of it, or {ALL}.")
        found: list[Data] = []
        for run in collection.runs:
            try:
                found += list(bodies(collection, run))  # all or none
            except CodesignError as error:
                print(f"left out: {run.path}: {error}", file=sys.stderr)
        for left_out in collection.left_out:
            print(f"left out: {left_out.path}: {left_out.reason}.", file=sys.stderr)
        if not found:
            raise ConfigError(f"No run of the study '{self.study}' has a body that can be read.")
        width = max(data.x.shape[1] for data in found)
        for data in found:
            depth, attributes = data.x[:, :-NUM_ATTRIBUTES], data.x[:, -NUM_ATTRIBUTES:]
            data.x = torch.cat([depth, depth.new_zeros(len(depth), width - data.x.shape[1]), attributes], dim=1)
        if self.pre_filter is not None:
            found = [data for data in found if self.pre_filter(data)]
        if self.pre_transform is not None:
            found = [self.pre_transform(data) for data in found]
        self.save(found, self.processed_paths[0])

    def split(self, share: float = 0.2, seed: int = 0) -> tuple[InMemoryDataset, InMemoryDataset]:
        """Two parts, the second of about this share of the runs: no run has bodies in both."""
        runs = np.array([self.get(i).run for i in self.indices()])
        names = np.random.default_rng(seed).permutation(np.unique(runs))
        if len(names) < 2:
            raise ConfigError(f"The bodies are of {len(names)} runs; allowed are two or more, to have some on each side.")
        held_out = np.isin(runs, names[: min(max(1, round(share * len(names))), len(names) - 1)])
        return self.index_select(np.flatnonzero(~held_out).tolist()), self.index_select(np.flatnonzero(held_out).tolist())

    def sizes(self) -> pd.DataFrame:
        """How many graphs and runs there are of every environment, method and kind, with the mean number of bodies and the best return."""
        everything = [self.get(i) for i in self.indices()]
        frame = pd.DataFrame([{key: data[key] for key in ("env", "method", "kind", "run")} for data in everything])
        frame["bodies"] = [data.num_nodes for data in everything]
        frame["return"] = [float(data.y) for data in everything]
        named = {"graphs": ("bodies", "size"), "runs": ("run", "nunique"), "bodies": ("bodies", "mean"), "best": ("return", "max")}
        return frame.groupby(["env", "method", "kind"], as_index=False).agg(**named)


def bodies(study: Collection, run: Run) -> Iterator[Data]:
    """Of one run, those whose return is known."""
    yield from _champions(study, run)
    if (run.path / HISTORY).is_file():
        yield from _species(study, run)


def _champions(study: Collection, run: Run) -> Iterator[Data]:
    """The designs that were kept of evaluations: the last, the best, and some along the run."""
    steps, returns = study.record(run)
    at = {"final": len(steps) - 1, "best": int(np.nanargmax(returns))}
    for path in sorted((run.path / "designs").glob("at_*.json")):
        if re.fullmatch(r"at_\d{1,15}", path.stem) and (here := np.flatnonzero(steps == int(path.stem[3:]))).size:
            at[path.stem] = int(here[0])
    told = set()
    for name, evaluation in at.items():
        if evaluation in told or not np.isfinite(returns[evaluation]):
            continue
        with contextlib.suppress(DesignError):
            stored = StoredDesign.load(run.path / "designs" / f"{name}.json")
            told.add(evaluation)
            yield _body(run, CHAMPION, stored.design, stored.space, float(returns[evaluation]), int(steps[evaluation]))


def _species(study: Collection, run: Run) -> Iterator[Data]:
    genealogy = read_genealogy(run.path)
    space = StoredDesign.load(run.path / "designs" / "final.json").space
    steps, iterations = study.record(run)[0], study.record(run, "iteration")[1]
    generations = 1 + genealogy.history["generation"].max()
    charged = {}
    if generations == len(steps) == iterations[-1]:  # every generation is an iteration, and was evaluated
        charged = dict(enumerate(steps.astype(int).tolist()))
    known = genealogy.history[np.isfinite(genealogy.history["fitness"])]
    for _, row in known.loc[known.groupby("species")["fitness"].idxmax()].iterrows():
        design = genealogy.designs[int(row["species"])]
        space.check(design)
        yield _body(run, SPECIES, design, space, float(row["fitness"]), charged.get(int(row["generation"]), -1))


def _body(run: Run, kind: str, design: Design, space: DesignSpace, value: float, steps: int) -> Data:
    data = to_data(design, space)
    data.y, data.steps = torch.tensor([value], dtype=torch.float32), torch.tensor([steps])
    data.env, data.method, data.seed, data.kind = run.env, run.method, run.seed, kind
    data.run = run.name if run.method == run.option else f"{run.env}/{run.method}/seed_{run.seed}"
    return data
