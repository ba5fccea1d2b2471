"""codesign-bench [COMMAND] key=value ...: finds the command by its name, gives help and completion, and turns errors into sentences.

A command is a file of codesign_bench/commands, imported when it is used: its docstring is its help, `main` what it does, and
conf/COMMAND.yaml holds its keys (`config_of` has the exceptions).
"""

import argparse
import ast
import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from codesign_bench import __version__, interrupts
from codesign_bench.configuration import command_file, group_options, hydra_initialised, list_keys, no_such
from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.paths import conf_dir
from codesign_bench.terminal import plain_output

FOLDER = Path(__file__).parent / "commands"
DEFAULT = "run"
HARMLESS = ("status",)
"""Commands that have something to do without arguments; the others show their help."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """The program. An error addressed to the user is one sentence on stderr and exit code 2."""
    with plain_output():
        code = ended(sys.argv[1:] if arguments is None else arguments)
    interrupts.leave_at_once()
    raise SystemExit(code)


def ended(arguments: list[str]) -> int:
    """The exit code."""
    try:
        code = call(arguments)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        code = interrupts.CODE
    except BrokenPipeError:  # who reads has seen enough, as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if interrupts.asked:  # inside of something that made another error of it
            interrupts.leave()
        if not isinstance(error, CodesignError) or os.environ.get("HYDRA_FULL_ERROR") == "1":
            raise
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        code = 2
    return code or 0


def call(arguments: list[str]) -> int | None:
    """Runs the command that the arguments name, or shows what they ask to see of it."""
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(overview())
        return 0
    command, words = split(arguments)
    asked = flags(words)
    if asked.version:
        print(f"codesign-bench {__version__}")
    elif asked.shell_completion or asked.cfg or asked.info:
        show(command, asked)
    elif asked.help or not (asked.overrides or command in HARMLESS):
        print(help_of(command))
    else:
        program: Callable[[list[str]], int | None] = import_module(f"codesign_bench.commands.{command}").main
        interrupts.interrupt_from_now_on()
        return program([*(["-m"] if asked.multirun else []), *asked.overrides])
    return 0


def commands() -> dict[str, str]:
    """The docstrings of all commands, by name; none of them is imported."""
    files = sorted(path for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))
    return {path.stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in files}


def split(arguments: list[str]) -> tuple[str, list[str]]:
    """The command and its arguments; without a command it is `run`."""
    first, *rest = arguments
    known = list(commands())
    if first in known:
        return first, rest
    if first.startswith(("-", "~", "+")) or "=" in first:
        return DEFAULT, arguments
    raise ConfigError(no_such("command", first, known))


class _Flags(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"The arguments are not understood ({message}); allowed are key=value, and the flags that --help shows.")


def flags(words: list[str]) -> argparse.Namespace:
    """Hydra's flags, of those that make sense here."""
    parser = _Flags(add_help=False, allow_abbrev=False)
    for names in (("--help", "-h"), ("--version",), ("--multirun", "-m"), ("--shell-completion", "-sc"), ("--resolve",)):
        parser.add_argument(*names, action="store_true")
    parser.add_argument("--cfg", "-c", choices=("job", "hydra", "all"))
    parser.add_argument("--package", "-p")
    topics = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
    parser.add_argument("--info", "-i", const="all", nargs="?", choices=topics)
    parser.add_argument("overrides", nargs="*")
    return parser.parse_intermixed_args(words)


# ---- help ------------------------------------------------------------------------------------------------------------------


def overview() -> str:
    lines = "\n".join(f"  {name:<12}{text.partition(chr(10))[0]}" for name, text in commands().items())
    return f"""\
codesign-bench {__version__}: methods that optimise a robot's body and its controller, compared under an equal budget.

  codesign-bench [COMMAND] key=value ...        without COMMAND: run
  codesign-bench COMMAND --help                 what it does, its keys and their choices
  eval "$(codesign-bench -sc install=bash)"     completion with the Tab key (also fish, zsh)

{lines}

  codesign-bench method=transform2act env=swimmer budget=smoke      a run of a minute or so
  codesign-bench bench env=gap                                      all methods, the paper's budget: days"""


def config_of(command: str) -> str:
    """The name of the file of conf/ that holds a command's keys."""
    return {"run": "config", "bench": "config"}.get(command, command)


def help_of(command: str) -> str:
    """The command's docstring, its file of conf/ with the comments, and the choices of its groups."""
    name = config_of(command)
    parts = [
        f"codesign-bench {command}: {commands()[command]}",
        f"conf/{name}.yaml:\n" + "\n".join(f"  {line}".rstrip() for line in (conf_dir() / f"{name}.yaml").read_text("utf-8").splitlines()),
    ]
    if groups := groups_of(name):
        with hydra_initialised(name, []) as words:
            choices = {group: _options(group, words) for group in groups}
        parts.append("\n".join(["Choices:", *(f"  {group + '=':<12}{', '.join(names)}" for group, names in choices.items())]))
    parts.append(
        "Flags: --cfg job (the whole configuration), --info, --version" + (", -m (a run of every combination)" * (command == "run"))
    )
    return "\n\n".join(parts)


def groups_of(name: str) -> list[str]:
    """The groups that conf/NAME.yaml composes, also through a file that it includes."""
    found: list[str] = []
    for entry in command_file(name).get("defaults", []):
        if isinstance(entry, dict):
            found += [group for group in entry if not group.startswith("override ")]
        elif entry != "_self_":
            found += groups_of(entry)
    return found


def _options(group: str, words: list[str]) -> list[str]:
    here = group_options(group, words)
    below = [name for name in _hydra().config_loader.list_groups(group) if name not in here]
    return [*here, *(f"{name}/..." for name in below)]


def _hydra() -> Any:
    from hydra.core.global_hydra import GlobalHydra

    return GlobalHydra.instance().hydra


# ---- what Hydra shows ------------------------------------------------------------------------------------------------------


def show(command: str, asked: argparse.Namespace) -> None:
    """--cfg, --info and -sc, as every program with Hydra has them."""
    if asked.shell_completion:
        complete(command, asked.overrides)
        return
    name = config_of(command)
    with hydra_initialised(name, asked.overrides) as words:
        if asked.cfg:
            _hydra().show_cfg(name, words, asked.cfg, asked.package, asked.resolve)
        else:
            _hydra().show_info(asked.info, config_name=name, overrides=words)


def complete(command: str, words: list[str]) -> None:
    """The shell's script, or, when it asks, how the line that is being typed can go on."""
    if not any(word.startswith("query=") for word in words):
        _complete("config", words)
        return
    line = os.environ.get("COMP_LINE", "")
    program, *typed = line.split() or [""]
    if program.rpartition("/")[2].startswith("python"):  # python -m codesign_bench
        typed = typed[2:]
    *before, latest = typed if typed and not line.endswith(" ") else [*typed, ""]
    if not before:
        print(" ".join(name for name in commands() if name.startswith(latest)))
    elif before[0] in commands():
        command, *before = before
    elif "=" not in before[0] and not before[0].startswith("-"):
        return
    os.environ["COMP_LINE"] = f"{shlex.join(['codesign-bench', *before])} {latest}"
    name, said = config_of(command), io.StringIO()
    with contextlib.redirect_stdout(said):
        _complete(name, words)
    known = {*command_file(name), *groups_of(name)}
    found = [f"{word[:-1]}=" if word[:-1] in list_keys(name) else word for word in said.getvalue().split()]
    print(" ".join(word for word in found if re.split("[=./]", word)[0] in known))


def _complete(name: str, words: list[str]) -> None:
    with hydra_initialised(name, []) as _, contextlib.suppress(SystemExit):
        _hydra().shell_completion(config_name=name, overrides=words)
