"""a study as one self-contained HTML file.

codesign-bench report study=default
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from codesign_bench.analysis.report.page import report
from codesign_bench.commands._studies import StudyConfig, runs_of
from codesign_bench.configuration import configured
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.run_folder import write_atomically
from codesign_bench.simulation.rendering import open_for_writing


@dataclass(frozen=True)
class ReportConfig(StudyConfig):
    """The content of conf/report.yaml."""

    out: str | None
    force: bool

    def __post_init__(self) -> None:
        if self.out is not None and Path(self.out).suffix not in (".html", ".htm"):
            raise ConfigError(f"out is '{self.out}'; allowed are names that end in .html.")


def main(arguments: list[str]) -> int:
    config = configured(ReportConfig, "report", arguments)
    results, study = config.place
    collection = runs_of(config, config.force)
    out = open_for_writing(config.out or Path("figures") / study / "report.html")
    content = report(collection, results / study, shlex.join(["codesign-bench", "report", *arguments])).encode(errors="replace")
    write_atomically(out, content)
    print(f"{out}: {len(collection.runs)} runs, {len(content) / 1e6:.1f} MB")
    return 0
