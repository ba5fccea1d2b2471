"""Every example command in README.md, docs/ and the methods' READMEs is one that the program understands; pages that are made from the
code are as the code would make them now. Python on the pages is run by tests/slow/test_pages.py."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from codesign_bench import cli
from codesign_bench.configuration import asks_for_many, load_config
from codesign_bench.launching.job import Config, Ending
from codesign_bench.launching.sweep import Launch, Sweep, run_sweep
from codesign_bench.paths import conf_dir
from docs.generate.__main__ import PAGES
from docs.generate.check import problems

ROOT = Path(__file__).resolve().parents[1]
FILES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "methods").glob("*/README.md")),
]
NAMED = re.compile(r"^`[\w/.]*conf/(method|env)/(\w+)\.yaml`:", re.M)
STAND_IN = {"method": "ess_strict", "env": "gap"}
THEIRS = {found[2]: STAND_IN[found[1]] for file in FILES for found in NAMED.finditer(file.read_text(encoding="utf-8"))}
THEIRS |= {path.stem: STAND_IN[path.parent.name] for path in ROOT.glob("tests/third_party/*/*/conf/*/*.yaml")}
"""Names of the packages that pages write, and what stands in for them where they are not installed."""


def examples(file: Path) -> dict[str, int]:
    """Lines of shell blocks, and commands between backticks, with the numbers of their lines."""
    found: dict[str, int] = {}
    language = None
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            language = None if language is not None else line[3:]
            continue
        lines = [line.strip()] if language == "sh" else re.findall(r"`((?:make|codesign-bench) [^`\n]+)`", line) if language is None else []
        for each in lines:
            if re.match(r"(\.venv/bin/)?(codesign-bench|python -m codesign_bench)\b|make ", each) and "..." not in each:
                found.setdefault(each, number)
    return found


EXAMPLES = [
    pytest.param(line, id=f"{file.relative_to(ROOT)}:{number}: {line}") for file in FILES for line, number in examples(file).items()
]


class Understood(Sweep):
    """Checks all configurations and runs none."""

    def run(self, launch: Launch, runs: Sequence[Config]) -> list[Ending]:
        assert runs
        return []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 100


@pytest.mark.parametrize("line", EXAMPLES)
def test_it_is_understood(line: str) -> None:
    words = shlex.split(line, comments=True)
    theirs = [name for name in THEIRS if re.search(rf"(=|,){name}(,|$)", " ".join(words).replace(" ", ","))]
    if theirs:  # whose own keys are not known here
        words = [
            re.sub(rf"\b({'|'.join(theirs)})\b", lambda found: THEIRS[found[1]], word) for word in words if not word.startswith("method.")
        ]
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


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_the_code_would_make_it(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), f"docs/{name} is not up to date; make docs makes it anew"


def test_every_method_is_in_the_table() -> None:
    rows = re.findall(
        r"^\| \[?`(\w+)`(?:\]\([^)]*\))? \| ([^|]+) \|.*\|.*\|.*\|", (ROOT / "docs" / "methods.md").read_text(encoding="utf-8"), re.M
    )
    labels = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8"))["label"] for file in (conf_dir() / "method").glob("*.yaml")}
    assert dict(rows) == labels


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = {str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r"[\w/]+\.md", text)) == pages


def test_the_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_links_of_a_site(tmp_path: Path) -> None:
    """Named by page and line."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n[gone](gone.md)\n[here](other.md#no)\n")
    site = tmp_path / "site"
    site.mkdir()
    (site / "other.html").write_text('<h1 id="yes">x</h1>')
    links = '<a href="gone.html">a</a><a href="other.html#no">b</a><a href="other.html#yes">c</a><a href="https://somewhere">d</a>'
    (site / "index.html").write_text(links + '<img src="https://somewhere/x.png">')
    assert problems(site, tmp_path) == [
        "docs/index.md: https://somewhere/x.png is loaded from elsewhere",
        "docs/index.md:3: gone.html leads nowhere",
        "docs/index.md:4: other.html#no has no such anchor",
    ]
