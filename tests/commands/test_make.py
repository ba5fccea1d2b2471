"""make: the variables that it knows, and what it runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import versions

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What make would do; recipes are not run."""
    line = ["make", "-n", "--no-print-directory", "-o", ".venv/.installed", *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("variable", "word"),
    [("env=gap", "; say ENV=..."), ("seed=1", "; say SEEDS=..."), ("methods=nge", "; say METHODS=..."), ("colour=red", "")],
)
def test_variables_that_it_does_not_know(variable: str, word: str) -> None:
    done = make("bench", variable)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"There is no variable {variable.partition('=')[0]}{word}; allowed are PYTHON VENV" in done.stderr


def test_the_rest_goes_to_hydra() -> None:
    done = make("bench", "ENV=gap", "SEEDS=2", "BUDGET=smoke", "JOBS=1", "ARGS=progress=false study='a b'")
    assert done.returncode == 0, done.stderr
    line = " ".join(done.stdout.replace("\\\n", " ").splitlines()[-1].split())
    assert line == (
        ".venv/bin/codesign-bench bench env=gap budget=smoke 'seed=range(0,2)' launcher=local study=bench_smoke"
        " hydra.launcher.jobs=1 progress=false study='a b'"
    )


def test_a_case_of_the_soak() -> None:
    done = make("soak", "SEED=5", "CASE=17")
    assert done.stdout.splitlines()[-1] == ".venv/bin/python -m tests.faults.soak '1' '5' '17'", done.stderr
    assert "There is no variable SEED; say SEEDS=..." in make("bench", "ENV=gap", "SEED=5").stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ENV=gap", "SEEDS=two"], "SEEDS is 'two'; allowed is a whole number from 1 up"),
        (["ENV=gap", "SEEDS=0"], "SEEDS is '0'; "),
        ([], "Say which environment: make bench ENV=gap"),
    ],
)
def test_values_that_it_refuses(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    """The recipe runs, with a program that must not be reached."""
    (tmp_path / "bin").mkdir()
    (tmp_path / ".installed").touch()
    line = ["make", "--no-print-directory", "-o", f"{tmp_path}/.installed", "bench", f"VENV={tmp_path}", *arguments]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert sentence in done.stdout
    assert "codesign-bench: " not in done.stderr


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_other_versions_have_an_environment_of_their_own(which: str) -> None:
    done = make(f"test-{which}", "PYTEST=-x")
    assert done.returncode == 0, done.stderr
    assert f".venv-{which}/bin/python -m pip install --quiet --constraint .{which}.txt" in done.stdout
    assert f".venv-{which}/bin/python -m pytest -n 2 -x" in done.stdout


def test_the_oldest_versions(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text(
        '[project]\ndependencies = ["numpy>=2.0", "hydra-core>=1.3.8,<2", "torch>=2.13"]\n'
        '[project.optional-dependencies]\nextra = ["ray[default]>=2.50"]\n'
    )
    assert versions.oldest(project) == ["hydra-core==1.3.8", "numpy==2.0", "ray==2.50"]
    project.write_text('[project]\ndependencies = ["numpy"]\n[project.optional-dependencies]\n')
    with pytest.raises(SystemExit, match="'numpy' names no least version"):
        versions.oldest(project)
    assert len(versions.oldest()) > 20
