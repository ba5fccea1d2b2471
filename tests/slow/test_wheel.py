"""The wheel carries methods, configuration and the reference study, and works from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_wheel_works_from_any_folder(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--quiet", "--wheel-dir", str(tmp_path)]
    subprocess.run(build, check=True, timeout=600)
    (wheel,) = tmp_path.glob("*.whl")
    content = tmp_path / "content"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(content)
    wanted = {f"codesign_bench/{path.relative_to(ROOT)}" for path in (ROOT / "conf").rglob("*.yaml")}
    wanted |= {str(path.relative_to(ROOT)) for path in (ROOT / "methods").rglob("*.py")}
    assets = (ROOT / "codesign_bench" / "analysis" / "report").iterdir()
    wanted |= {str(path.relative_to(ROOT)) for path in assets if path.suffix in (".js", ".css")}
    wanted |= {f"codesign_bench/studies/reference/{name}" for name in ("study.json", "export.json", "README.md")}
    assert wanted <= names
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    commands = ["render env=swimmer out=robot.png", "figures study=reference only=tables out=tables", "check study=reference"]
    for command in commands:
        run = [sys.executable, "-P", "-m", "codesign_bench", *command.split()]
        environment = {**os.environ, "PYTHONPATH": str(content)}
        done = subprocess.run(run, cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    assert (elsewhere / "robot.png").stat().st_size > 1000
    assert "Transform2Act" in (elsewhere / "tables" / "final_returns.md").read_text()
