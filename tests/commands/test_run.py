"""codesign-bench run as a person runs it: refusals, signals, and a run in use."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from codesign_bench import cli
from codesign_bench.commands import run as program_main
from codesign_bench.experiment.run_folder import RunFolder
from tests.experiment.tiny import OVERRIDES, command, contents, environment, folder_of, program, run, status_of, tiny
from tests.simulation.test_workers import assert_gone

LONG = ("budget.steps=1600", "budget.evaluate_every=200")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(tiny(tmp_path_factory.mktemp("expected"), *LONG))


@contextlib.contextmanager
def started(config: dict[str, Any], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process group of its own, given when it has made its first checkpoint."""
    line = command(*OVERRIDES, "env=swimmer", *LONG, f"results={config['results']}", *arguments)
    process = subprocess.Popen(
        line, cwd=config["results"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        while process.poll() is None and not list((folder_of(config) / "checkpoints").glob("*.ckpt")):
            time.sleep(0.005)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["method=nothing"], "There is no method 'nothing'; allowed are "),
        (["env=mars"], "There is no env 'mars'; allowed are cheetah, crawler, gap, "),
        (["budget=huge"], "There is no budget 'huge'; allowed are paper, pilot, smoke."),
        (["nothing=1"], "There is no key 'nothing'"),
        (["method.ppo.nothing=1"], "There is no key 'method.ppo.nothing'"),
        (["gap"], "There is no command 'gap'; allowed are bench, check, "),
        (["env=gap", "swimmer"], "The argument 'swimmer' is not understood; allowed are arguments of the form key=value."),
        (["metod=nge"], "There is no key 'metod', nearest is method; "),
        (["method.ppo.polici_lr=1e-4"], "method.ppo.policy_lr"),
        (["method=ngee"], "There is no method 'ngee', nearest is nge; allowed are "),
        (["env.max_steps=${nothing}"], "env.max_steps: Interpolation key 'nothing' not found"),
        (["budget.steps=41"], "budget.steps is 41; "),
        (["+nothing=1"], "unknown key 'nothing'"),
        (["seed=-1"], "seed is -1; allowed are whole numbers from 0 up."),
        (["seed=one"], "seed is 'one'; allowed is a whole number."),
        (["seed=[0,1]"], "seed is [0, 1]; allowed is a whole number."),
        (["~env"], "env"),
        (["~method"], "method"),
        (["method.name=null"], "method.name"),
        (["study=null"], "study is None; allowed is text."),
        (["results=null"], "results is None; allowed is text."),
        (["method=null"], "method"),
        (["budget=[1"], "budget=[1"),
        (["sampler.groups=1000"], "sampler.groups is 1000; allowed are whole numbers from 1 to 64."),
        (["method.ppo.shards=1000"], "method.ppo.shards is 1000; allowed are whole numbers from 1 to 64; this machine has "),
        (["method.ppo.shards=5", "method.ppo.minibatch=4"], "method.ppo.shards is 5; allowed are whole numbers from 1 to 4; "),
        (["evaluation.episodes=5M"], "evaluation.episodes is 5000000; allowed are whole numbers from 1 to 10,000."),
        (["env.max_steps=1"], "budget.batch is 50000 and env.max_steps 1, which makes 50,000 slots; allowed are at most 10,000 of them."),
        (["budget.batch=5e9", "budget.steps=5e9"], "budget.batch is 5000000000; allowed are at most 10,000,000, as a batch is held"),
        (["method=nge", "budget.population=5M", "budget.steps=1e11"], "budget.population is 5000000; allowed are whole numbers from 1 to "),
        (["-m", "seed=range(0,1000000000)"], "This sweep has more than 10,000 runs"),
        (["-m", "seed=range(0,200)", "method.ppo.clip=range(0,100,1)"], "This sweep has more than 10,000 runs"),
    ],
)
def test_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """Exit code 2, one line that starts with error:, nothing written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    output, errors = capsys.readouterr()
    assert (ended.value.code, output) == (2, "")
    (line,) = [line for line in errors.splitlines() if "seed" not in line or line.startswith("error")]
    assert line.startswith("error: ")
    assert sentence in line
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_as_a_program(tmp_path: Path) -> None:
    done = program("method=nothing", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: There is no method 'nothing'; allowed are ")
    assert ", transform2act," in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_it_says_what_it_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from codesign_bench.experiment import runner

    monkeypatch.setattr(runner, "run", lambda config, command, plan, folder: "done")
    assert program_main.main(["env=gap", "budget=smoke", "seed=3", "results=x"]) == 0
    assert capsys.readouterr().err == "transform2act on gap, seed 3, budget smoke: x/default/gap/transform2act/seed_3\n"


def test_a_run_in_use_by_another_process(tmp_path: Path) -> None:
    """Exit code 2, as for every sentence that starts with error: a script that counts on the run being made must notice."""
    config = tiny(tmp_path, *LONG)
    with RunFolder.of(config).locked():
        before = contents(folder_of(config))
        done = program(*OVERRIDES, "env=swimmer", *LONG, f"results={tmp_path}", cwd=tmp_path)
        assert contents(folder_of(config)) == before
    assert (done.returncode, done.stdout) == (2, "")
    said, line = done.stderr.splitlines()
    assert said.startswith("transform2act on swimmer, seed 0, budget smoke: ")
    assert line.startswith("error: The run ")
    assert f"is in use by process {os.getpid()} on " in line
    assert line.endswith("; nothing was done.")


# ---- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("what", "workers"), [(signal.SIGTERM, 0), pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow)])
def test_a_signal_stops_the_run_and_it_resumes_equal(tmp_path: Path, expected: Any, what: signal.Signals, workers: int) -> None:
    config = tiny(tmp_path, *LONG)
    with started(config, f"workers={workers}") as process:
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(what)
        output, errors = process.communicate(timeout=120)
        assert_gone(children)
    assert (process.returncode, output) == (128 + what, "")
    assert "Traceback" not in errors
    status = status_of(config)
    assert (status["status"], status["reason"]) == ("stopped", "stopped by a signal")
    assert 200 <= status["steps"] < 1600
    assert errors.splitlines()[-1] == f"stopped at {status['steps']} steps; the same command goes on from there"
    expected.must_equal(run(config), "a run that was stopped and resumed")


@pytest.mark.slow
def test_ctrl_c_reaches_the_workers_too(tmp_path: Path, expected: Any) -> None:
    """A terminal sends it to the whole process group."""
    config = tiny(tmp_path, *LONG)
    with started(config, "workers=2") as process:
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        assert_gone(children)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert status_of(config)["status"] == "stopped"
    expected.must_equal(run(config), "a run that was stopped and resumed")


def test_a_second_signal_leaves_at_once_without_damage(tmp_path: Path, expected: Any) -> None:
    """Both arrive while the process is held, so that the second one meets the first one's work."""
    config = tiny(tmp_path, *LONG)
    with started(config) as process:
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert "Traceback" not in errors
    expected.must_equal(run(config), "a run that was left at once and resumed")
