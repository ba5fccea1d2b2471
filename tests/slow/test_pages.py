"""The documentation does what it says: Python on its pages runs, so do the commands of the tutorial and the examples, and every link
of the built site leads somewhere."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate.check import problems
from tests.slow.test_third_party import PACKAGE, environment, variables

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "methods").glob("*/README.md"))]
FILE = re.compile(r"^`([\w/.-]+)`(?:, continued)?:$")
pytestmark = pytest.mark.slow


def blocks(page: Path, language: str) -> list[tuple[int, list[str], str | None]]:
    """Blocks in a language: the number of the first line, the lines, and the file that the page says they are."""
    found, inside, named = [], False, None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
            if inside:
                found.append((line[3:], number + 1, [], named))
        elif inside:
            found[-1][2].append(line)
        elif line:
            match = FILE.match(line)
            named = match[1] if match else None
    return [(number, lines, name) for word, number, lines, name in found if word == language]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment of its own, in which the package of the pages on methods and tasks is installed."""
    found = environment(tmp_path_factory.mktemp("pages") / "venv")
    subprocess.run([found, "-m", "pip", "install", "--quiet", "--no-deps", str(PACKAGE)], check=True)
    return found


SNIPPETS = [page for page in PAGES if any(name is None for _, _, name in blocks(page, "python"))]


@pytest.mark.parametrize("page", SNIPPETS, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_a_page(page: Path, python: str, tmp_path: Path) -> None:
    """All blocks of a page in one program, each on the lines that it has there, so that a traceback names page and line."""
    lines: list[str] = []
    for number, block, name in blocks(page, "python"):
        if name is None:
            lines += [""] * (number - 1 - len(lines)) + block
    program = tmp_path / page.relative_to(ROOT)
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("\n".join(lines), encoding="utf-8")
    shutil.copytree(ROOT / "results" / "demo", tmp_path / "results" / "demo")
    done = subprocess.run([python, str(program)], cwd=tmp_path, env=variables(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_tutorial(python: str, tmp_path: Path) -> None:
    """Its files are written and its commands run, as they stand on the page."""
    page = ROOT / "docs" / "tutorial.md"
    for language in ("toml", "yaml", "python"):
        for _, lines, name in blocks(page, language):
            assert name is not None
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            before = file.read_text(encoding="utf-8") + "\n\n" if file.is_file() else ""
            file.write_text(before + "\n".join([*lines, ""] if lines else []), encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--ignore", "I", "--config", str(ROOT / "pyproject.toml"), str(tmp_path / "my_method")]
    assert subprocess.run(ruff, check=False).returncode == 0
    ran = 0
    for number, lines, _ in blocks(page, "sh"):
        for i, line in enumerate(lines):
            words = shlex.split(line, comments=True)
            calls = {"pip": ["-m", "pip", "install", "--no-deps", *words[2:]], "codesign-bench": ["-m", "codesign_bench", *words[1:]]}
            done = subprocess.run(
                [python, *calls[words[0]]], cwd=tmp_path, env=variables(), capture_output=True, text=True, timeout=1200, check=False
            )
            assert done.returncode == 0, f"docs/tutorial.md:{number + i}: {line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            if words[1] == "check":
                assert [word for word in done.stdout.splitlines() if not word.endswith(": ok")] == []
            ran += 1
    assert ran >= 9
    assert (tmp_path / "figures" / "mine" / "comparison.png").is_file()
    assert (tmp_path / "figures" / "mine" / "report.html").is_file()


@pytest.mark.parametrize("notebook", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook(notebook: Path, tmp_path: Path) -> None:
    """It runs from top to bottom, and is kept without what it prints."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    content = nbformat.read(notebook, as_version=4)
    assert all(not cell.outputs and cell.execution_count is None for cell in content.cells if cell.cell_type == "code")
    shutil.copytree(ROOT / "results" / "demo", tmp_path / "results" / "demo")
    (tmp_path / notebook.name).write_bytes(notebook.read_bytes())
    nbclient.NotebookClient(content, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()


def test_another_library(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    line = [sys.executable, str(ROOT / "examples" / "stable_baselines.py"), "--env", "swimmer", "--steps", "4096"]
    done = subprocess.run(
        line, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "ten episodes" in done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the site is built from."""
    pytest.importorskip("zensical")
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "codesign_bench", "methods"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


def test_the_site(copy: Path) -> None:
    """It is built without a complaint, all its links lead somewhere, and nothing is loaded from elsewhere."""
    done = build(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert problems(copy / "site", copy) == []
    assert (copy / "site" / "commands.html").is_file()


def test_a_broken_link(copy: Path) -> None:
    """The build fails, and says where it is."""
    page = copy / "docs" / "faq.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    page.write_text("\n".join([*lines, "", "[broken](nowhere.md)", ""]), encoding="utf-8")
    done = build(copy)
    assert done.returncode != 0
    assert f"faq.md:{len(lines) + 2}" in done.stdout + done.stderr
