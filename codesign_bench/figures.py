"""python -m codesign_bench.figures study=NAME [results=DIR out=DIR --against DIR --force]: all figures and tables of a study."""

from __future__ import annotations

import sys
from pathlib import Path

from codesign_bench.analysis.collect import collect
from codesign_bench.analysis.figures import FiguresConfig, draw, remarks
from codesign_bench.command_line import load_config, run
from codesign_bench.errors import ConfigError
from codesign_bench.structured import build


def arguments_of(words: list[str]) -> list[str]:
    """--force and --against DIR as force=true and against=DIR."""
    given, found = iter(words), []
    for word in given:
        if word == "--force":
            found.append("force=true")
        elif word == "--against":
            path = next(given, None)
            if path is None:
                raise ConfigError("--against is the last argument; allowed is --against DIR.")
            found.append(_against_word(path))
        elif word.startswith("--against="):
            found.append(_against_word(word.removeprefix("--against=")))
        else:
            found.append(word)
    return found


def _against_word(path: str) -> str:
    """Quoted, since = and , in a path would be read as grammar."""
    return "against='{}'".format(path.replace("'", "\\'"))


def main(arguments: list[str]) -> int:
    config = build(FiguresConfig, load_config("figures", arguments_of(arguments)), "the configuration")
    collection = collect(Path(config.results), config.study, force=config.force, envs=config.envs, methods=config.methods)
    for left_out in collection.left_out:
        print(f"left out: {left_out.path}: {left_out.reason}.", file=sys.stderr)
    for remark in remarks(collection):
        print(f"note: {remark}", file=sys.stderr)
    if not collection.runs:
        print(f"note: the study '{config.study}' has no runs that can be read; the figures are made without them.", file=sys.stderr)
    written = draw(collection, config, ["python", "-m", "codesign_bench.figures", *arguments])
    print(f"{config.folder}: {len(written)} files from {len(collection.runs)} runs")
    return 0


if __name__ == "__main__":
    run(main)
