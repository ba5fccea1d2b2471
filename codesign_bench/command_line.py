"""What all commands share: `key=value` arguments through Hydra, and errors as one sentence with exit code 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.paths import conf_dir


def load_config(name: str, overrides: list[str]) -> dict[str, Any]:
    """Composes conf/NAME.yaml with the overrides of the command line into plain values."""
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    for override in overrides:
        if "=" not in override and not override.startswith("~"):
            raise ConfigError(f"The argument '{override}' is not understood; allowed are arguments of the form key=value.")
    try:
        with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
            config = OmegaConf.to_container(compose(name, overrides), resolve=True)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            raise
        raise ConfigError(explain(error)) from None
    assert isinstance(config, dict)
    values = {str(key): value for key, value in config.items()}
    for key, value in values.items():
        if value == "???":
            raise ConfigError(f"{key} is missing; say {key}=...")
    return values


def explain(error: Exception) -> str:
    """Hydra's many-lined messages as one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("See ")]
    text = lines[0] if lines else type(error).__name__
    if text.startswith("Could not override"):
        key = text.split("'")[1]
        return f"There is no key '{key}' in the configuration; see the files in conf/ for the keys that exist."
    if text.startswith("In '") and len(lines) > 1:  # In 'config': Could not find 'env/mars' / Available options in 'env': / gap / ...
        parts = text.split("'")
        group, _, value = parts[3].partition("/")
        return f"There is no {group} '{value}'; allowed are {', '.join(options_of(group))}."
    return " ".join(lines)


def options_of(group: str) -> list[str]:
    """The names of the configurations in a group of conf/."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def run(main: Callable[[list[str]], int | None]) -> None:
    """Runs a command; an error addressed to the user becomes one sentence on stderr and exit code 2."""
    try:
        code = main(sys.argv[1:])
    except CodesignError as error:
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            raise
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        code = 130
    raise SystemExit(code or 0)
