"""A package that knows nothing of this repository, installed into an environment of its own, brings a method and a task."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tests" / "third_party" / "playground"


@pytest.mark.parametrize("page", ["adding_a_method.md", "adding_a_task.md"])
def test_the_pages_show_the_package_as_it_is(page: str) -> None:
    """Each block that names a file is that file."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"`playground/([\w/.]+)`:?\n\n```\w+\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 2
    for name, content in blocks:
        assert content == (PACKAGE / name).read_text(encoding="utf-8"), name


@pytest.mark.slow
def test_a_package_that_adds_a_method_and_a_task(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    _call([python, "-m", "pip", "install", "--quiet", "--no-deps", str(PACKAGE)], tmp_path)

    said = _call([python, "-m", "codesign_bench", "check", "method=hill_climber", "env=crawl", "budget.batch=200"], tmp_path)
    assert [line for line in said.stdout.splitlines() if not line.endswith(": ok")] == []
    assert len(said.stdout.splitlines()) >= 9

    tiny = ["budget=smoke", "env.max_steps=50", "budget.steps=400", "budget.batch=200", "budget.evaluate_every=200", "tensorboard=false"]
    _call([python, "-m", "codesign_bench", "method=hill_climber", "env=gap", *tiny], tmp_path)
    _call([python, "-m", "codesign_bench", "-m", "method=hill_climber", "env=crawl,swimmer", "seed=0,1", *tiny], tmp_path)
    status = json.loads(_call([python, "-m", "codesign_bench", "status", "json=true"], tmp_path).stdout)
    runs = {(run["env"], run["seed"]): (run["method"], run["state"], run["steps"]) for run in status}
    keys = [("gap", 0), ("crawl", 0), ("crawl", 1), ("swimmer", 0), ("swimmer", 1)]
    assert runs == dict.fromkeys(keys, ("hill_climber", "done", 400))

    height = "from codesign_bench.tasks import make_task; print(make_task('crawl').limits.max_height, make_task('crawl').scene.ground.kind)"
    assert _call([python, "-c", height], tmp_path).stdout.split()[0] == "1.3"
    refused = subprocess.run([python, "-m", "codesign_bench", "env=mars"], cwd=tmp_path, env=variables(), capture_output=True, text=True)
    assert refused.returncode == 2
    assert "allowed are cheetah, crawl, crawler, gap, " in refused.stderr


def environment(folder: Path) -> str:
    """A new environment that sees the packages of this one."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (own,) = folder.glob("lib/python*/site-packages")
    (own / "outer.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n{ROOT}\n")
    return str(folder / "bin" / "python")


def variables() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "HYDRA_FULL_ERROR")} | {"OMP_NUM_THREADS": "1"}


def _call(line: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(line, cwd=folder, env=variables(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
