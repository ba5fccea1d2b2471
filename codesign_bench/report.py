"""python -m codesign_bench.report results=DIR study=NAME out=FILE.html: a study as one self-contained HTML file."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from codesign_bench.analysis.collect import collect, study_folder
from codesign_bench.analysis.report.page import report
from codesign_bench.command_line import load_config, run
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.run_folder import write_atomically
from codesign_bench.simulation.rendering import open_for_writing
from codesign_bench.structured import build


@dataclass(frozen=True)
class ReportConfig:
    """The content of conf/report.yaml."""

    results: str
    study: str
    out: str | None
    envs: tuple[str, ...] | None
    methods: tuple[str, ...] | None
    force: bool

    def __post_init__(self) -> None:
        if self.out is not None and Path(self.out).suffix not in (".html", ".htm"):
            raise ConfigError(f"out is '{self.out}'; allowed are names that end in .html.")


def main(arguments: list[str]) -> int:
    config = build(ReportConfig, load_config("report", arguments), "the configuration")
    folder = study_folder(Path(config.results), config.study)
    out = open_for_writing(config.out or Path("figures") / config.study / "report.html")
    collection = collect(Path(config.results), config.study, force=config.force, envs=config.envs, methods=config.methods)
    content = report(collection, folder, shlex.join(["python", "-m", "codesign_bench.report", *arguments])).encode(errors="replace")
    write_atomically(out, content)
    print(f"{out}: {len(collection.runs)} runs, {len(content) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    run(main)
