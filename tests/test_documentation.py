"""Every example command in README.md, docs/ and the methods' READMEs is one that the program understands."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from codesign_bench import cli
from codesign_bench.configuration import asks_for_many, load_config
from codesign_bench.launching.job import Config, Ending
from codesign_bench.launching.sweep import Launch, Sweep, run_sweep

ROOT = Path(__file__).resolve().parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "methods").glob("*/README.md"))]
THEIRS = {
    path.stem: ours
    for group, ours in (("method", "rgs"), ("env", "gap"))
    for path in ROOT.glob(f"tests/third_party/*/*/conf/{group}/*.yaml")
}
"""Names of the packages that docs/ writes, and what stands in for them where they are not installed."""


def examples(file: Path) -> list[str]:
    """Lines of shell blocks, and commands between backticks."""
    text = file.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()] + re.findall(r"`((?:make|codesign-bench) [^`\n]+)`", text)
    return [
        line for line in lines if re.match(r"(\.venv/bin/)?(codesign-bench|python -m codesign_bench)\b|make ", line) and "..." not in line
    ]


EXAMPLES = [pytest.param(line, id=f"{file.parent.name}/{file.name}: {line}") for file in FILES for line in dict.fromkeys(examples(file))]


class Understood(Sweep):
    """Checks all configurations and runs none."""

    def run(self, launch: Launch, runs: Sequence[Config]) -> list[Ending]:
        assert runs
        return []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 25


@pytest.mark.parametrize("line", EXAMPLES)
def test_it_is_understood(line: str) -> None:
    for name, ours in THEIRS.items():
        line = re.sub(rf"\b{name}\b", ours, line)
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        done = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for recipe in done.stdout.replace("\\\n", " ").splitlines():
            if recipe.strip().startswith(".venv/bin/codesign-bench"):
                understand(shlex.split(recipe)[1:])
        return
    understand(words[3:] if words[0] == "python" else words[1:])


def understand(arguments: list[str]) -> None:
    command, words = cli.split(arguments)
    asked = cli.flags(words)
    import_module(f"codesign_bench.commands.{command}")
    experiment = any(word.startswith("experiment=") for word in asked.overrides)
    few = ["seed=0", *(["env=gap"] if experiment else [])]  # the last one counts; one run of each method says as much as hundreds
    if command == "bench":
        run_sweep([*([] if experiment else ["experiment=bench"]), *asked.overrides, *few], Understood())
    elif command == "run" and (asked.multirun or asks_for_many(asked.overrides)):
        run_sweep([*asked.overrides, *few], Understood())
    elif asked.overrides and not asked.shell_completion:
        load_config(cli.config_of(command), [word for word in asked.overrides if word != "env=all"])
