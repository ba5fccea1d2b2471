"""docs/commands.md: every command with its docstring and its file of conf/, what there is to choose, and the targets of make."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from codesign_bench import cli
from docs.generate import MADE, ROOT, table
from hydra_plugins.codesign_bench import launchers

CONF = ROOT / "conf"
INTRODUCTION = """\
# Command line

`codesign-bench [COMMAND] key=value ...`, or `python -m codesign_bench [COMMAND] ...`; without COMMAND it is `run`. In a checkout it is
`.venv/bin/codesign-bench`; `make` calls it for you.

- The same words mean the same in every command: `study=` (a name or a folder), `run=`, `out=`, `env=`, `method=`, `seed=`, `against=`.
- Lists are written with or without brackets (`env=gap,swimmer`), numbers as `20_000`, `20k` or `1e6`. Any number in `conf/` can be set:
  `method.ppo.policy_lr=1e-4`. A key or value that is not known is refused in one sentence, which names the nearest one that is.
- `--cfg job` shows the whole configuration, `--info` where it comes from, `--version` the version. No arguments show help.
- Exit codes: 0 done, 1 runs of a sweep failed, 2 refused, 130 or 143 stopped.

```sh
codesign-bench --help
codesign-bench figures --help
eval "$(codesign-bench -sc install=bash)"   # completion with the Tab key; also fish, zsh
```"""


def page() -> str:
    commands = cli.commands()
    overview = [[f"[`{name}`](#{name})", sentence(text.partition("\n")[0])] for name, text in commands.items()]
    parts = [MADE, INTRODUCTION, table(["command", "what it does"], overview)]
    parts += ["## Commands", *(part for name, text in commands.items() for part in command(name, text))]
    parts += ["## What there is to choose", *choices()]
    parts += ["## Targets of make", *make()]
    return "\n\n".join(parts) + "\n"


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def command(name: str, text: str) -> list[str]:
    """Its docstring, whose example lines become a block, and its keys as the file has them."""
    parts = [f"### {name}"]
    for paragraph in sentence(text).strip().split("\n\n"):
        lines = [line.strip() for line in paragraph.splitlines()]
        if all(line.startswith("codesign-bench ") for line in lines):
            parts.append("\n".join(["```sh", *lines, "```"]))
        else:
            parts.append("\n".join(lines))
    file = cli.config_of(name)
    if name == "bench":
        parts.append("Its keys are those of [`run`](#run).")
    else:
        content = (CONF / f"{file}.yaml").read_text(encoding="utf-8").rstrip()
        parts += [f"Its keys, `conf/{file}.yaml`:", f"```yaml\n{content}\n```"]
    return parts


def choices() -> list[str]:
    """The groups that `run` composes, by the first sentences of their files."""
    parts = ["`env=` is one of the [environments](environments.md), `method=` one of the [methods](methods.md). The rest:"]
    for group, about in (
        ("budget", "How many steps every method gets."),
        ("track", "Which settings a method has; runs of different tracks are never averaged."),
        (
            "experiment",
            "Sweeps that are ready to run: `codesign-bench experiment=...`, or in rounds, `codesign-bench bench experiment=...`.",
        ),
        ("ppo", "Settings of PPO, included by the methods' files and chosen by `reevaluate`."),
    ):
        rows = [[f"`{file.stem}`", about_file(file)] for file in sorted((CONF / group).glob("*.yaml"))]
        parts += [f"### {group}=", about, table([group, "what it is"], rows)]
    parts += [
        "### experiment=search/...",
        "The tables of hyperparameters of the paper, whose rows are sweeps: `experiment=search/TABLE/ROW`. Tables and rows are in"
        " `conf/search.yaml`; a wrong name lists them.",
        "```sh\ncodesign-bench experiment=search/transform2act/policy_lr env=gap\n```",
        "### launcher=",
        "Where the runs of a sweep go, and the settings of each, `hydra.launcher.NAME=...`.",
    ]
    for name, cls in (("local", launchers.Local), ("slurm", launchers.Slurm), ("ray", launchers.Ray)):
        parts += [
            f"`launcher={name}`: {' '.join((inspect.getdoc(cls) or '').split())}",
            table(["setting", "default", "what it is"], settings(cls)),
        ]
    return parts


def about_file(file: Path) -> str:
    """The comment at the head of a YAML file."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if "@package" not in line:
            lines.append(line.lstrip("# "))
    return " ".join(lines)


def settings(cls: type) -> list[list[str]]:
    """Of a launcher: the fields of its dataclass with the comments behind them."""
    rows = []
    for line in inspect.getsource(cls).splitlines():
        if found := re.match(r"    (\w+): [^=]+ = (.+?)(?:  # (.*))?$", line):
            name, default, comment = found.groups()
            if name not in ("_target_", "module"):
                default = {"None": "null", "field(default_factory=dict)": "{}"}.get(default, default.strip('"'))
                rows.append([f"`{name}`", f"`{default}`", comment or ""])
    return rows


def make() -> list[str]:
    """The targets with the sentences that make help shows."""
    found = re.findall(r"^([a-z-]+):.*?## (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    rows = [[f"`{name}`", about] for name, about in found]
    return [
        "Everything installs itself into `.venv` on first use. Variables are in upper case; those it does not know are refused.",
        table(["target", "what it does"], rows),
    ]
