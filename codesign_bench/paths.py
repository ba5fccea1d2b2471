"""Where the configuration lies: beside the package in a checkout, inside it in an installed wheel, and in the packages that
name theirs through the entry-point group `codesign_bench.conf`."""

import importlib.util
import re
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from codesign_bench.errors import ConfigError
from codesign_bench.structured import merged

ENTRY_POINTS = "codesign_bench.conf"


@cache
def conf_dir() -> Path:
    package = Path(__file__).resolve().parent
    for candidate in (package / "conf", package.parent / "conf"):
        if (candidate / "env").is_dir():
            return candidate
    raise ConfigError(f"The configuration folder is missing; it should be {package / 'conf'} or {package.parent / 'conf'}.")


@cache
def conf_dirs() -> tuple[Path, ...]:
    """The configuration of this package, then of others; the first to have a name has it."""
    found = [conf_dir()]
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            spec = importlib.util.find_spec(point.value)
        except ImportError:
            spec = None
        if spec is None or not spec.submodule_search_locations:
            raise ConfigError(f"The entry point '{point.name}' of {ENTRY_POINTS} names {point.value}; allowed is a package of YAML files.")
        found += [Path(location) for location in spec.submodule_search_locations]
    return tuple(found)


def files_of(group: str) -> dict[str, Path]:
    """The configurations in a group by name."""
    found = {path.stem: path for folder in reversed(conf_dirs()) for path in (folder / group).glob("*.yaml")}
    return dict(sorted(found.items()))


def options_of(group: str) -> list[str]:
    """The names of the configurations in a group."""
    return list(files_of(group))


def env_versions() -> dict[str, int]:
    """The version of every environment, without reading more of its file than that."""
    stated = {name: re.search(r"^version:\s*(\d+)", path.read_text(encoding="utf-8"), re.M) for name, path in files_of("env").items()}
    return {name: int(version[1]) if version else 1 for name, version in stated.items()}


def env_config(name: str) -> dict[str, Any]:
    """The content of conf/env/NAME.yaml."""
    if name not in files_of("env"):
        raise ConfigError(f"There is no environment '{name}'; allowed are {', '.join(files_of('env'))}.")
    return content_of("env", name)


@cache
def content_of(group: str, name: str) -> dict[str, Any]:
    """Of conf/GROUP/NAME.yaml with the files of its group that it builds on."""
    content: dict[str, Any] = yaml.safe_load(files_of(group)[name].read_text(encoding="utf-8"))
    for base in content.pop("defaults", []):
        if base != "_self_":
            content = merged(content_of(group, base), content)
    return content
