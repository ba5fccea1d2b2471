"""Where the configuration lies: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from codesign_bench.errors import ConfigError


@cache
def conf_dir() -> Path:
    package = Path(__file__).resolve().parent
    for candidate in (package / "conf", package.parent / "conf"):
        if (candidate / "env").is_dir():
            return candidate
    raise ConfigError(f"The configuration folder is missing; it should be {package / 'conf'} or {package.parent / 'conf'}.")


@cache
def env_config(name: str, known: tuple[str, ...]) -> dict[str, Any]:
    """The content of conf/env/NAME.yaml."""
    path = conf_dir() / "env" / f"{name}.yaml"
    if name not in known or not path.is_file():
        raise ConfigError(f"There is no environment '{name}'; allowed are {', '.join(known)}.")
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content
