"""Ctrl-C at any moment of a command: one word, exit code 130."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codesign_bench import interrupts
from tests.experiment.tiny import OVERRIDES, environment

INTERRUPTING = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
        return None

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have told its children to ignore it
sys.meta_path.insert(0, Finder())
"""
"""A sitecustomize that sends Ctrl-C to its process when a module is about to be imported."""

FIRST = ("codesign_bench.errors", "yaml", "gymnasium", "codesign_bench.cli", "hydra", "numpy")
STATUS, RUN = ("status", "results=."), (*OVERRIDES, "env=swimmer")


def interrupted(folder: Path, module: str, *arguments: str, program: bool = False) -> subprocess.CompletedProcess[str]:
    """A command that is interrupted where it imports a module."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(INTERRUPTING)
    variables = environment()
    variables |= {"PYTHONPATH": f"{folder / 'site'}:{variables['PYTHONPATH']}", "INTERRUPT_AT": module}
    start = [str(Path(sys.executable).with_name("codesign-bench"))] if program else [sys.executable, "-m", "codesign_bench"]
    work = folder / "work"
    work.mkdir()
    return subprocess.run([*start, *arguments], cwd=work, env=variables, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("program", [False, True])
@pytest.mark.parametrize("module", FIRST)
def test_while_it_gets_ready(tmp_path: Path, module: str, program: bool) -> None:
    done = interrupted(tmp_path, module, *(STATUS if module != "hydra" else RUN), program=program)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize("module", ["mujoco._specs", "torch", "codesign_bench.experiment.runner", "methods.transform2act.method"])
def test_inside_of_imports_that_make_another_error_of_it(tmp_path: Path, module: str) -> None:
    done = interrupted(tmp_path, module, *RUN)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")
    assert list((tmp_path / "work").iterdir()) == []


def test_a_library_leaves_signals_alone() -> None:
    code = "import signal, codesign_bench; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    ready = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", f"{ready}\n{code}"], env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
    assert signal.getsignal(signal.SIGINT) is not interrupts.leave
