"""codesign-bench itself: help, flags, completion, words that are misspelt, and what people type as values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from codesign_bench import __version__, cli
from codesign_bench.configuration import command_file, load_config, understood
from codesign_bench.errors import ConfigError, nearest
from codesign_bench.paths import conf_dir, options_of

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("bench", "check", "export", "figures", "gallery", "play", "plot", "reevaluate", "render", "report", "run", "status")


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    output, errors = capsys.readouterr()
    return int(ended.value.code or 0), output, errors


# ---- help ------------------------------------------------------------------------------------------------------------


def test_the_commands_are_found_and_not_imported() -> None:
    code = "import sys; from codesign_bench import cli; cli.overview(); cli.help_of('run'); print({'torch', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    assert tuple(cli.commands()) == COMMANDS


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_help_is_what_no_arguments_get(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    code, output, errors = called(capsys, *arguments)
    assert (code, errors) == (0, "")
    assert all(f"\n  {name} " in output for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(capsys: pytest.CaptureFixture[str], command: str) -> None:
    """The docstring, every line of its file, and the choices of its groups."""
    code, output, _ = called(capsys, command, "--help")
    assert code == 0
    assert output.startswith(f"codesign-bench {command}: {cli.commands()[command].splitlines()[0]}")
    for line in (conf_dir() / f"{cli.config_of(command)}.yaml").read_text().splitlines():
        assert line.rstrip() in output
    assert (f"{', '.join(options_of('env'))}\n" in output) == (command in ("run", "bench", "check", "render"))


@pytest.mark.parametrize("arguments", [["run"], ["bench"], ["-m"], ["run", "-m"], ["figures"], ["export"]])
def test_a_command_without_keys_does_no_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output, _ = called(capsys, *arguments)
    assert code == 0
    assert "Flags: " in output
    assert not list(tmp_path.iterdir())


def test_version_and_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert called(capsys, "--version") == called(capsys, "figures", "--version") == (0, f"codesign-bench {__version__}\n", "")
    _, output, _ = called(capsys, "method=nge", "budget.steps=20k", "--cfg", "job", "--resolve")
    config = yaml.safe_load(output)
    assert (config["method"]["name"], config["budget"]["steps"], config["budget"]["until"]) == ("nge", 20_000, 20_000)
    assert config == load_config("config", ["method=nge", "budget.steps=20000"])
    _, output, _ = called(capsys, "figures", "study=demo", "env=gap", "--cfg", "job")
    assert yaml.safe_load(output) == {**command_file("figures"), "study": "demo", "env": ["gap"]}
    info = [sys.executable, "-m", "codesign_bench", "--info", "defaults"]  # a process of its own: it turns Hydra's log on
    assert "Defaults List" in subprocess.run(info, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["figrues"], "There is no command 'figrues', nearest is figures; allowed are bench, "),
        (["figures", "study=demo", "metod=nge"], "There is no key 'metod', nearest is method; "),
        (["figures", "demo"], "The argument 'demo' is not understood"),
        (["figures", "--fast"], "unrecognized arguments: --fast"),
        (["--cfg", "nothing"], "invalid choice: 'nothing'"),
        (["check", "task=gpa"], "There is no environment 'gpa', nearest is gap; allowed are "),
        (["plot", "run=x", "out=a.png", "table=genealgy"], "table is 'genealgy', nearest is genealogy; allowed are "),
        (["render", "env=gpa", "out=a.png"], "There is no env 'gpa', nearest is gap; allowed are "),
    ],
)
def test_refusals(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output, errors = called(capsys, *arguments)
    assert (code, output) == (2, "")
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert sentence in line
    assert not list(tmp_path.iterdir())


def test_nearest() -> None:
    assert nearest("gpa", ["gap", "swimmer"]) == ", nearest is gap"
    assert nearest("polici_lr", ["method.ppo.policy_lr", "seed"]) == ", nearest is method.ppo.policy_lr"
    assert nearest("mars", ["gap", "swimmer"]) == nearest("x", []) == ""


# ---- completion --------------------------------------------------------------------------------------------------------

TRY = r"""
eval "$(codesign-bench -sc install=bash)"
for COMP_LINE in "$@"; do
  words=($COMP_LINE); COMP_CWORD=$(( ${#words[@]} - 1 )); COMP_POINT=${#COMP_LINE}
  [[ "$COMP_LINE" == *" " ]] && COMP_CWORD=$(( COMP_CWORD + 1 ))
  COMPREPLY=(); hydra_bash_completion; echo "${COMPREPLY[*]}"
done
"""


def test_completion_in_bash(tmp_path: Path) -> None:
    program = tmp_path / "codesign-bench"
    code = 'import sys; sys.argv[0] = "codesign-bench"; import codesign_bench.cli as c; c.main()'
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n")
    program.chmod(0o755)
    typed = {
        "codesign-bench fi": "figures",
        "codesign-bench bu": "budget. budget=",
        "codesign-bench method=ess": "method=ess method=ess_strict",
        "codesign-bench bench env=ga": "env=gap",
        "codesign-bench method=nge method.gm_uc.p": "method.gm_uc.pool=",
        "codesign-bench figures e": "env=",
        "codesign-bench status ": "env= json= method= results= seed= study= watch=",
    }
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    line = ["bash", "--norc", "--noprofile", "-c", TRY, "bash", *typed]
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert dict(zip(typed, done.stdout.splitlines(), strict=True)) == typed


# ---- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "number"),
    [("20k", 20_000), ("20_000", 20_000), ("1e6", 1_000_000), ("1.5M", 1_500_000), ("2E3", 2000), ("0.5", 0.5), ("1e-4", 1e-4)],
)
def test_numbers(typed: str, number: float) -> None:
    found = load_config("config", [f"budget.batch={typed}"])["budget"]["batch"]
    assert (found, type(found)) == (number, type(number))


NAMES = ("étude_日本", "2024", "1e6", "20k", "true", "a b", "a=b, c'd", 'x"y', "x\\", "исследование", "a:b", "[x", "#1")


@pytest.mark.parametrize("name", NAMES)
def test_names_are_taken_as_typed(name: str) -> None:
    assert load_config("config", [f"study={name}"])["study"] == name
    assert load_config("figures", [f"study={name}"])["study"] == name


def test_a_value_that_is_quoted_already() -> None:
    assert load_config("config", ["study='a b'"])["study"] == "a b"
    assert load_config("config", ["seed=3", "study=run_${seed}"])["study"] == "run_3"


def test_lists_with_and_without_brackets() -> None:
    for typed in ("gap,swimmer", "[gap,swimmer]", "[gap, swimmer]"):
        assert load_config("figures", ["study=x", f"env={typed}"])["env"] == ["gap", "swimmer"]
    assert load_config("figures", ["study=x", "env=gap"])["env"] == ["gap"]
    assert load_config("figures", ["study=x", "env=null"])["env"] == []
    assert load_config("status", ["study=日本,2024", "seed=0,1"])["study"] == ["日本", "2024"]
    assert understood("config", "seed=[0,1]", sweep=True) == "seed=0,1"
    assert understood("config", "method.value.gnn=[64,64],[32,32]", sweep=True) == "method.value.gnn=[64,64],[32,32]"


@pytest.mark.parametrize("value", ["seed=range(0,two)", "env=[gap", "seed={", "seed=choice()"])
def test_what_hydra_cannot_read_is_one_sentence(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^The argument '.*' is not understood \(.*\)\.$"):
        load_config("config", [value])
