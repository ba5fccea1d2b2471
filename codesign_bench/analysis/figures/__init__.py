"""What the figures and tables of a study are: `draw` writes all that a FiguresConfig asks for, from a collection, without simulating."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codesign_bench.analysis.collect import Collection
from codesign_bench.errors import ConfigError


@dataclass(frozen=True)
class FiguresConfig:
    """The content of conf/figures.yaml."""

    results: str
    study: str
    out: str | None
    envs: tuple[str, ...] | None
    methods: tuple[str, ...] | None
    only: tuple[str, ...] | None
    formats: tuple[Literal["pdf", "svg", "png"], ...]
    band: Literal["std", "iqm"]
    published: bool
    against: str | None
    force: bool

    def __post_init__(self) -> None:
        known = [*PARTS, "against"]
        for name in self.only or ():
            if name not in known:
                raise ConfigError(f"only holds '{name}'; allowed are {', '.join(known)}.")
        if "against" in (self.only or ()) and self.against is None:
            raise ConfigError("only holds 'against', but there is no study to compare with; allowed with against=STUDY.")
        if not self.formats:
            raise ConfigError("formats is empty; allowed are pdf, svg and png.")

    @property
    def folder(self) -> Path:
        return Path(self.out) if self.out is not None else Path("figures") / self.study


@dataclass(frozen=True)
class Job:
    """What a part needs to write itself."""

    collection: Collection
    config: FiguresConfig

    def curves(self, methods: Sequence[str], name: str, designs: bool) -> list[Path]:
        from codesign_bench.analysis.figures.comparison import comparison

        return comparison(
            self.collection,
            self.config.folder,
            methods=methods,
            envs=self.config.envs,
            band=self.config.band,
            published=self.config.published,
            designs=designs,
            name=name,
            formats=self.config.formats,
        )


def _comparison(job: Job) -> list[Path]:
    """(a), with the methods that do not ship beside the paper's."""
    from codesign_bench.analysis.style import BASELINES, LOOKS, ordered

    strangers = [method for method in ordered(job.collection.methods) if method not in LOOKS]
    return job.curves(_asked([*BASELINES, *strangers], job), "comparison", designs=True)


def _ablation(job: Job) -> list[Path]:
    from codesign_bench.analysis.style import ABLATIONS

    return job.curves(_asked(ABLATIONS, job), "ablation", designs=False)


def _continuous(job: Job) -> list[Path]:
    from codesign_bench.analysis.style import CONTINUOUS

    return job.curves(_asked(CONTINUOUS, job), "continuous", designs=False)


def _asked(methods: Sequence[str], job: Job) -> list[str]:
    """The methods of a figure, without those that the user did not ask for."""
    return [method for method in methods if job.config.methods is None or method in job.config.methods]


def _jsmlp(job: Job) -> list[Path]:
    from codesign_bench.analysis import champions, tables
    from codesign_bench.analysis.figures import designs
    from codesign_bench.analysis.style import save, styled

    frame = champions.symmetries(job.collection, (designs.WITH, designs.WITHOUT))
    with styled():
        written = save(designs.jsmlp(job.collection, frame), job.config.folder, "jsmlp", job.config.formats)
    return written + tables.write(tables.symmetry(frame, job.collection), job.config.folder)


def _process(job: Job) -> list[Path]:
    from codesign_bench.analysis.figures import designs
    from codesign_bench.analysis.style import save, styled

    with styled():
        return save(designs.process(job.collection), job.config.folder, "process", job.config.formats)


def _diagrams(job: Job) -> list[Path]:
    from codesign_bench.analysis.figures import designs, diagrams
    from codesign_bench.analysis.style import save, styled

    with styled():
        made = {"random_agents": designs.random_agents(), "joint_index": diagrams.joint_index(), "overview": diagrams.overview()}
        return [path for name, figure in made.items() for path in save(figure, job.config.folder, name, job.config.formats)]


def _aggregate(job: Job) -> list[Path]:
    from codesign_bench.analysis.figures.aggregate import aggregate
    from codesign_bench.analysis.style import ordered, save, styled

    with styled():
        return save(aggregate(job.collection, ordered(job.collection.methods)), job.config.folder, "aggregate", job.config.formats)


def _tables(job: Job) -> list[Path]:
    from codesign_bench.analysis import hyperparameters, measures, tables

    collection, out = job.collection, job.config.folder
    kinds = (tables.final_returns, tables.summary, tables.pairwise, tables.cost, tables.exploration)
    made = [*(kind(collection) for kind in kinds), *hyperparameters.tables(collection)]
    written = [path for table in made for path in tables.write(table, out)]
    frames = {"runs": measures.finals(collection), "summary": measures.summary(collection)}
    frames["pairwise"] = measures.pairwise(frames["runs"])
    return written + [tables.write_csv(frame, out, name) for name, frame in frames.items()]


def _against(job: Job) -> list[Path]:
    from dataclasses import replace

    from codesign_bench.analysis import compare, tables
    from codesign_bench.analysis.figures.comparison import comparison
    from codesign_bench.analysis.style import save, styled

    mine, config = job.collection, job.config
    assert config.against is not None
    theirs = compare.other_study(config.against, config.study, config.force, config.envs)
    frame = compare.differences(mine, theirs, config.force)
    with styled():
        written = save(compare.figure(frame, mine, theirs), config.folder, "against", config.formats)
    written += tables.write(compare.table(frame, mine, theirs), config.folder)
    written.append(tables.write_csv(frame, config.folder, "against"))
    others = replace(theirs, runs=tuple(run for run in theirs.runs if run.method not in mine.methods))
    written += comparison(
        mine.joined(others), config.folder, band=config.band, designs=False, name="against_curves", formats=config.formats
    )
    return written


PARTS: dict[str, Callable[[Job], list[Path]]] = {
    "comparison": _comparison,
    "ablation": _ablation,
    "continuous": _continuous,
    "jsmlp": _jsmlp,
    "process": _process,
    "diagrams": _diagrams,
    "aggregate": _aggregate,
    "tables": _tables,
}
"""What `only` can name, besides against."""


def draw(collection: Collection, config: FiguresConfig, command: Sequence[str] = ()) -> list[Path]:
    """Writes the parts that `config` asks for, and index.md, into its folder; returns the files. `command` is what to type for them."""
    parts = {**PARTS, **({"against": _against} if config.against else {})}
    job = Job(collection, config)
    written = [path for name in parts if config.only is None or name in config.only for path in parts[name](job)]
    return [*written, _index(written, job, command)]


def remarks(collection: Collection) -> list[str]:
    """What to know of the runs besides their figures."""
    return [*collection.remarks, *collection.reevaluations.left_out, *(f"forced: {mark}" for mark in collection.forced)]


def _index(written: list[Path], job: Job, command: Sequence[str]) -> Path:
    """index.md: what there is, from which runs, and which were left out."""
    from codesign_bench.analysis.tables import plain_markdown, write_text

    collection, names = job.collection, list(dict.fromkeys(path.stem for path in written))
    kinds = {name: [path.suffix for path in written if path.stem == name] for name in names}
    lines = [f"# {plain_markdown(collection.study)}", "", f"Made by `{shlex.join(command)}` from {len(collection.runs)} runs.", ""]
    lines += [f"- {name}: {', '.join(f'[{kind[1:]}]({name}{kind})' for kind in kinds[name])}" for name in names]
    for title, items in (
        ("Left out", [f"{'/'.join(item.path.parts[-3:])}: {item.reason}" for item in collection.left_out]),
        ("Remarks", remarks(collection)),
    ):
        if items:
            lines += ["", f"## {title}", "", *(f"- {plain_markdown(item)}" for item in items)]
    return write_text(job.config.folder / "index.md", "\n".join(lines) + "\n")
