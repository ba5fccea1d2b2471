"""every figure and table of a study, from its run folders, without simulating; index.md lists them.

codesign-bench figures study=default
codesign-bench figures study=default env=gap method=transform2act,nge only=comparison band=interval
codesign-bench figures study=mine against=default

Studies are names below `results`, folders, files that `export` wrote, or studies that come with the package.
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

from codesign_bench import own_files
from codesign_bench.analysis import studies
from codesign_bench.analysis.collect import study_folder
from codesign_bench.analysis.figures import FiguresConfig, draw, remarks
from codesign_bench.commands._studies import StudyConfig, runs_of
from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.structured import build

MADE_BY, WRITTEN = "Made by `", (".pdf", ".svg", ".png", ".md", ".tex", ".csv")


def main(arguments: list[str]) -> int:
    values = load_config("figures", arguments)
    study = build(StudyConfig, {key: values.pop(key) for key in ("results", "study", "env", "method")})
    if values["against"] is not None:
        values["against"] = str(study_folder(*studies.find_study(study.results, str(values["against"]))))
    config = build(FiguresConfig, {**values, "study": study.place[1]})
    earlier = figures_in(config.folder)
    collection = runs_of(study, config.force)
    for remark in remarks(collection):
        print(f"note: {remark}", file=sys.stderr)
    with own_files.published(config.folder, earlier) as fresh:
        written = draw(collection, replace(config, out=str(fresh)), ["codesign-bench", "figures", *arguments])
    print(f"{config.folder}: {len(written)} files from {len(collection.runs)} runs")
    return 0


def figures_in(folder: Path) -> set[tuple[str, str]]:
    """What this command made in a folder before, as its list says, or, of versions without one, its index.md. A folder with pictures or
    tables and neither is refused."""
    if files := own_files.made(folder):
        return files
    index = folder / "index.md"
    text = index.read_text(encoding="utf-8", errors="replace") if index.is_file() else ""
    if MADE_BY in text:
        names = [index.name, *re.findall(r"\]\(([^)/]+)\)", text)]
        return {(name, own_files.checksum(folder / name) or "") for name in names}
    others = sorted(path.name for path in folder.iterdir() if path.suffix in WRITTEN) if folder.is_dir() else []
    if others:
        raise ConfigError(f"out is '{folder}', which holds {others[0]}, not made by figures; allowed is a new folder, or one of its own.")
    return set()
