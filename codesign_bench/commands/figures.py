"""every figure and table of a study, from its run folders, without simulating; index.md lists them.

codesign-bench figures study=default
codesign-bench figures study=default env=gap method=transform2act,nge only=comparison band=interval
codesign-bench figures study=mine against=default
"""

import sys
from pathlib import Path

from codesign_bench.analysis.collect import study_folder
from codesign_bench.analysis.figures import FiguresConfig, draw, remarks
from codesign_bench.commands._studies import StudyConfig, runs_of
from codesign_bench.configuration import load_config, study_at
from codesign_bench.errors import ConfigError
from codesign_bench.structured import build

MADE_BY, WRITTEN = "Made by `", (".pdf", ".svg", ".png", ".md", ".tex", ".csv")


def main(arguments: list[str]) -> int:
    values = load_config("figures", arguments)
    study = build(StudyConfig, {key: values.pop(key) for key in ("results", "study", "env", "method")})
    if values["against"] is not None:
        values["against"] = str(study_folder(*study_at(study.results, str(values["against"]))))
    config = build(FiguresConfig, {**values, "study": study.place[1]})
    check_folder(config.folder)
    collection = runs_of(study, config.force)
    for remark in remarks(collection):
        print(f"note: {remark}", file=sys.stderr)
    written = draw(collection, config, ["codesign-bench", "figures", *arguments])
    print(f"{config.folder}: {len(written)} files from {len(collection.runs)} runs")
    return 0


def check_folder(folder: Path) -> None:
    """Refuses a folder with pictures or tables that this command did not make: its index.md would say so."""
    index = folder / "index.md"
    if index.is_file() and MADE_BY in index.read_text(encoding="utf-8", errors="replace"):
        return
    others = sorted(path.name for path in folder.iterdir() if path.suffix in WRITTEN) if folder.is_dir() else []
    if others:
        raise ConfigError(f"out is '{folder}', which holds {others[0]}, not made by figures; allowed is a new folder, or one of its own.")
