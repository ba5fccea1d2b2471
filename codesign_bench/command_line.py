"""What all commands share: `key=value` arguments through Hydra, and errors as one sentence with exit code 2."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.paths import conf_dir, conf_dirs, options_of

__all__ = ["hydra_initialised", "load_config", "options_of", "plain", "run"]


def load_config(name: str, overrides: list[str]) -> dict[str, Any]:
    """Composes conf/NAME.yaml with the overrides of the command line into plain values."""
    from hydra import compose

    with hydra_initialised(overrides) as search_path:
        return plain(compose(name, [*search_path, *overrides]))


def asks_for_many(overrides: list[str]) -> bool:
    """Whether an experiment among the overrides says that it is a sweep."""
    if not any(override.startswith(("experiment=", "hydra.mode=")) for override in overrides):
        return False
    mode = _hydra_config(overrides).mode
    return str(getattr(mode, "name", mode)) == "MULTIRUN"


def swept_values(overrides: list[str], key: str) -> list[str]:
    """The values over which the experiment among the overrides sweeps a key."""
    values = (_hydra_config(overrides).sweeper.params or {}).get(key)
    return str(values).split(",") if values is not None else []


def _hydra_config(overrides: list[str]) -> Any:
    """Hydra's own part of the configuration; values of a sweep on the command line do not matter to it."""
    from hydra import compose

    with hydra_initialised(overrides) as search_path:
        experiment = [override for override in overrides if override.startswith(("experiment=", "hydra."))]
        return compose("config", [*search_path, *experiment], return_hydra_config=True).hydra


@contextlib.contextmanager
def hydra_initialised(overrides: list[str]) -> Iterator[list[str]]:
    """Hydra with our configuration, as overrides that add what other packages bring; its errors become ours."""
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    for override in overrides:
        if "=" not in override and not override.startswith("~"):
            raise ConfigError(f"The argument '{override}' is not understood; allowed are arguments of the form key=value.")
    OmegaConf.register_new_resolver("label", label, replace=True)
    others = ",".join(repr(f"file://{folder}") for folder in conf_dirs()[1:])
    try:
        with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
            yield [f"hydra.searchpath=[{others}]"] if others else []
    except (HydraException, OmegaConfBaseException, ValueError, YAMLError) as error:
        if os.environ.get("HYDRA_FULL_ERROR") == "1" or isinstance(error, CodesignError):
            raise
        raise ConfigError(explain(error)) from None


def plain(config: Any) -> dict[str, Any]:
    """A composed configuration as plain values, without Hydra's own."""
    from omegaconf import OmegaConf

    content = OmegaConf.to_container(OmegaConf.masked_copy(config, [key for key in config if key != "hydra"]), resolve=True)
    assert isinstance(content, dict)
    values = {str(key): value for key, value in content.items()}
    for key, value in values.items():
        if value == "???":
            raise ConfigError(f"{key} is missing; say {key}=...")
    return values


def label(value: Any) -> str:
    """A value as a part of a folder's name: [64, 64] becomes 64-64."""
    return "-".join(map(str, value)) if hasattr(value, "__iter__") and not isinstance(value, str) else str(value)


def explain(error: Exception) -> str:
    """Hydra's many-lined messages as one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("See ")]
    text = lines[0] if lines else type(error).__name__
    if text.startswith("Could not override"):
        key = text.split("'")[1]
        return f"There is no key '{key}' in the configuration; see the files in conf/ for the keys that exist."
    if "Could not find" in text and len(lines) > 1:  # In 'config': Could not find 'env/mars' / Available options in 'env': / gap / ...
        parts = text.split("'")
        group, _, value = parts[3].partition("/")
        return f"There is no {group} '{value}'; allowed are {', '.join(options_of(group))}."
    if text.startswith(("Sweep parameters", "Ambiguous value")):
        argument = text.split("'")[1]
        return f"'{argument}' names several values; add -m to make a run of each."
    return " ".join(lines)


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
