"""What the figures and tables of a study are: `draw` writes all that a FiguresConfig asks for, from a collection, without simulating."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from codesign_bench.analysis import champions, compare, hyperparameters, looks, measures, style, tables, tuning
from codesign_bench.analysis.collect import Collection, collect
from codesign_bench.analysis.figures import comparison, designs, diagrams, returns
from codesign_bench.analysis.figures.aggregate import aggregate
from codesign_bench.analysis.table import plain_markdown, write, write_csv
from codesign_bench.bars import counted
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.run_folder import write_atomically


@dataclass(frozen=True)
class FiguresConfig:
    """The content of conf/figures.yaml, without the part of the study that is asked for."""

    study: str
    out: str | None
    only: tuple[str, ...]
    formats: tuple[Literal["pdf", "svg", "png"], ...]
    band: Literal["std", "interval"]
    published: bool
    distance: bool
    against: str | None
    force: bool

    def __post_init__(self) -> None:
        known = [*PARTS, "against"]
        for name in self.only:
            if name not in known:
                raise ConfigError(f"only holds '{name}'; allowed are {', '.join(known)}.")
        if "against" in self.only and self.against is None:
            raise ConfigError("only holds 'against', but there is no study to compare with; allowed with against=STUDY.")
        if not self.formats:
            raise ConfigError("formats is empty; allowed are pdf, svg and png.")

    @property
    def folder(self) -> Path:
        return Path(self.out) if self.out is not None else Path("figures") / self.study


@dataclass(frozen=True)
class Drawing:
    """What a part needs to write itself: the study, and those of its methods that belong there, in the order of figures."""

    collection: Collection
    config: FiguresConfig
    methods: Sequence[str]

    def save(self, name: str, figure: Callable[[], Figure]) -> list[Path]:
        with style.styled():
            return style.save(figure(), self.config.folder, name, self.config.formats)

    def curves(self, name: str, designs: bool = False) -> list[Path]:
        config = self.config
        return comparison.comparison(
            self.collection,
            config.folder,
            methods=self.methods,
            band=config.band,
            published=config.published,
            distance=config.distance,
            designs=designs,
            name=name,
            formats=config.formats,
        )


def _jsmlp(drawing: Drawing) -> list[Path]:
    frame = champions.symmetries(drawing.collection, (designs.WITH, designs.WITHOUT))
    written = drawing.save("jsmlp", lambda: designs.jsmlp(drawing.collection, frame))
    return written + write(tables.symmetry(frame, drawing.collection), drawing.config.folder)


def _diagrams(drawing: Drawing) -> list[Path]:
    made = {
        "random_agents": lambda: designs.random_agents(drawing.collection),
        "joint_index": diagrams.joint_index,
        "overview": diagrams.overview,
    }
    return [path for name, figure in made.items() for path in drawing.save(name, figure)]


def _tables(drawing: Drawing) -> list[Path]:
    collection, out = drawing.collection, drawing.config.folder
    kinds = (tables.methods, tables.final_returns, tables.parts, tables.summary, tables.pairwise, tables.cost, tables.exploration)
    made = [*(kind(collection) for kind in kinds), *hyperparameters.tables(collection)]
    made += [table for table in (tables.designs(collection), tables.learning(collection)) if table.rows]
    written = [path for table in made for path in write(table, out)]
    frames = {"runs": measures.finals(collection), "summary": measures.summary(collection)}
    frames["pairwise"] = measures.pairwise(frames["runs"])
    return written + [write_csv(frame, out, name) for name, frame in frames.items()]


def _tuning(drawing: Drawing) -> list[Path]:
    out = drawing.config.folder
    return [*write(tuning.table(drawing.collection), out), write_csv(tuning.shares(drawing.collection), out, "tuning")]


def _against(drawing: Drawing) -> list[Path]:
    mine, config = drawing.collection, drawing.config
    assert config.against is not None
    theirs = collect(Path(config.against).parent, Path(config.against).name, force=config.force)
    frame = compare.differences(mine, theirs, config.force)
    written = drawing.save("against", lambda: compare.figure(frame, mine, theirs))
    written += write(compare.table(frame, mine, theirs), config.folder)
    written.append(write_csv(frame, config.folder, "against"))
    others = tuple(run for run in theirs.runs if run.method not in mine.methods and run.env in mine.envs)
    both = mine.joined(replace(theirs, runs=others))
    return written + Drawing(both, config, both.methods).curves("against_curves")


@dataclass(frozen=True)
class Part:
    """`methods` chooses those of a study that belong into it (none: the study has nothing for it), `write` makes its files."""

    write: Callable[[Drawing], list[Path]]
    methods: Callable[[Collection], Sequence[str]] = lambda study: study.methods


def _together(figure: Sequence[str], needed: Sequence[str]) -> Callable[[Collection], Sequence[str]]:
    """The methods of one of the paper's figures, if the study has any that is needed for it."""

    def chosen(study: Collection) -> Sequence[str]:
        bases = {method: looks.split(method)[0] for method in study.methods}
        return [method for method, base in bases.items() if base in figure and set(bases.values()) & set(needed)]

    return chosen


def _compared(study: Collection) -> Sequence[str]:
    """All that do not have a figure of their own, or all of them if there are no others."""
    elsewhere = (*looks.ABLATIONS[1:], *looks.CONTINUOUS)
    return [method for method in study.methods if looks.split(method)[0] not in elsewhere] or study.methods


def _several(study: Collection) -> Sequence[str]:
    return study.methods if len(study.methods) > 1 else ()


def _with_process(study: Collection) -> Sequence[str]:
    """The methods that recorded how their champions design themselves."""
    return [m for m in study.methods if any((run.path / champions.PROCESS).is_file() for run in study.runs if run.method == m)]


PARTS: dict[str, Part] = {
    "comparison": Part(lambda drawing: drawing.curves("comparison", designs=True), _compared),
    "ablation": Part(lambda drawing: drawing.curves("ablation"), _together(looks.ABLATIONS, looks.ABLATIONS[1:])),
    "continuous": Part(lambda drawing: drawing.curves("continuous"), _together(looks.CONTINUOUS, looks.CONTINUOUS)),
    "final_returns": Part(lambda drawing: drawing.save("final_returns", lambda: returns.final_returns(drawing.collection))),
    "pairs": Part(lambda drawing: drawing.save("pairs", lambda: returns.pairs(drawing.collection)), _several),
    "aggregate": Part(lambda drawing: drawing.save("aggregate", lambda: aggregate(drawing.collection, drawing.methods))),
    "jsmlp": Part(_jsmlp, lambda study: [designs.WITHOUT] if designs.WITHOUT in study.methods else []),
    "process": Part(
        lambda drawing: drawing.save("process", lambda: designs.process(drawing.collection, drawing.methods[0])), _with_process
    ),
    "diagrams": Part(_diagrams),
    "tables": Part(_tables),
    "tuning": Part(_tuning, tuning.searched),
}
"""What `only` can name, besides against."""


def draw(collection: Collection, config: FiguresConfig, command: Sequence[str] = ()) -> list[Path]:
    """Writes the parts that `config` asks for, as far as the study has something for them, and index.md, into its folder; returns the
    files. `command` is what to type for them. A study without runs, or with nothing for what was asked, is refused."""
    if not collection.runs:
        raise ConfigError(f"The study '{config.study}' has no runs that can be read; allowed is one with at least one evaluation.")
    drawings = {name: Drawing(collection, config, part.methods(collection)) for name, part in PARTS.items()}
    for name in config.only:
        if name in drawings and not drawings[name].methods:
            allowed = ", ".join(other for other in drawings if drawings[other].methods)
            raise ConfigError(f"only holds '{name}', for which the study '{config.study}' has no runs; allowed are {allowed}.")
    written: list[Path] = []
    asked = [name for name, drawing in drawings.items() if drawing.methods and (not config.only or name in config.only)]
    with counted("figures: part", len(asked)) as after_part:
        for name in asked:
            written += PARTS[name].write(drawings[name])
            after_part()
    if config.against and (not config.only or "against" in config.only):
        written += _against(Drawing(collection, config, collection.methods))
    return [*written, _index(written, drawings["tables"], command)]


def remarks(collection: Collection) -> list[str]:
    """What to know of the runs besides their figures."""
    return [*collection.remarks, *collection.reevaluations.left_out, *(f"forced: {mark}" for mark in collection.forced)]


def _index(written: list[Path], drawing: Drawing, command: Sequence[str]) -> Path:
    """index.md: what there is, from which runs, and which were left out."""
    collection, names = drawing.collection, list(dict.fromkeys(path.stem for path in written))
    kinds = {name: [path.suffix for path in written if path.stem == name] for name in names}
    lines = [f"# {plain_markdown(collection.study)}", "", f"Made by `{shlex.join(command)}` from {len(collection.runs)} runs.", ""]
    lines += [f"- {name}: {', '.join(f'[{kind[1:]}]({name}{kind})' for kind in kinds[name])}" for name in names]
    for title, items in (
        ("Left out", [f"{'/'.join(item.path.parts[-3:])}: {item.reason}" for item in collection.left_out]),
        ("Remarks", remarks(collection)),
    ):
        if items:
            lines += ["", f"## {title}", "", *(f"- {plain_markdown(item)}" for item in items)]
    return write_atomically(drawing.config.folder / "index.md", "\n".join(lines) + "\n", shared=True)
