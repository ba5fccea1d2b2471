"""Configurations from files and `key=value` words, through Hydra, as plain values; what Hydra objects to becomes one sentence."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from codesign_bench.errors import CodesignError, ConfigError, nearest
from codesign_bench.paths import conf_dir, conf_dirs, content_of, options_of
from codesign_bench.structured import build, merged

T = TypeVar("T")

TEXT = ("study", "results", "run", "out", "against", "design")
"""Keys whose values are names or paths: taken as they are typed, in any script, whatever they look like."""
ONE_EACH = ("seed", "env", "method", "budget")
"""Keys that have one value in a run, so that a list in a sweep means a run of each."""

_WORD = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\$\{[^}]*\}|"""
_VALUE, _NAME = re.compile(_WORD + r"""[^\s,\[\]{}()=:'"]+"""), re.compile(_WORD + r"""[^,\[\]'"]+""")
_NUMBER = re.compile(r"(\d[\d_]*(?:\.\d+)?)(?:([eE])\+?(\d+)|([kKM]))")


def load_config(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """Composes conf/NAME.yaml with the overrides of the command line into plain values."""
    from hydra import compose

    with hydra_initialised(name, overrides) as words:
        return plain(compose(name, words))


def configured(cls: type[T], name: str, overrides: Sequence[str]) -> T:
    """The same as a dataclass that says what its keys may be."""
    return build(cls, load_config(name, overrides))


def asks_for_many(overrides: Sequence[str]) -> bool:
    """Whether an experiment among the overrides says that it is a sweep."""
    from hydra.types import RunMode

    if not any(override.startswith(("experiment=", "hydra.mode=")) for override in overrides):
        return False
    return bool(_hydra_config(overrides).mode == RunMode.MULTIRUN)


def swept_values(overrides: Sequence[str], key: str) -> list[str]:
    """The values over which the experiment among the overrides sweeps a key."""
    values = (_hydra_config(overrides).sweeper.params or {}).get(key)
    return str(values).split(",") if values is not None else []


def _hydra_config(overrides: Sequence[str]) -> Any:
    """Hydra's own part of the configuration; values of a sweep on the command line do not matter to it."""
    from hydra import compose

    with hydra_initialised("config", [word for word in overrides if word.startswith(("experiment=", "hydra."))]) as words:
        return compose("config", words, return_hydra_config=True).hydra


@contextlib.contextmanager
def hydra_initialised(name: str, overrides: Sequence[str], sweep: bool = False) -> Iterator[list[str]]:
    """Hydra with our configuration; gives the overrides as Hydra reads them, with what other packages bring. Its errors become ours."""
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    words = [understood(name, override, sweep) for override in overrides]
    OmegaConf.register_new_resolver("label", label, replace=True)
    _store_searches()
    _store_strong()
    others = ",".join(repr(f"file://{folder}") for folder in conf_dirs()[1:]) if "defaults" in command_file(name) else ""
    elsewhere = [f"hydra.searchpath=[{others}]"] if others else []
    with _initialised(name):
        try:
            for typed, word in zip(overrides, words, strict=True):
                _check_grammar(typed, word)
            yield [*elsewhere, *words]
        except (HydraException, OmegaConfBaseException, ValueError, yaml.YAMLError) as error:
            if os.environ.get("HYDRA_FULL_ERROR") == "1" or isinstance(error, CodesignError):
                raise
            raise ConfigError(explain(error, name, [*elsewhere, *words])) from None


def _initialised(name: str) -> contextlib.AbstractContextManager[None]:
    from hydra import initialize_config_dir, initialize_config_module
    from hydra.core.config_store import ConfigStore

    if "defaults" in command_file(name):
        return initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3")
    # A file without groups: its env and method are names of what a study holds. Where Hydra searched conf/, they would be groups.
    ConfigStore.instance().store(name, dict(command_file(name)), provider="codesign_bench")
    return initialize_config_module("codesign_bench.commands", version_base="1.3")


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


def study_at(results: str, study: str) -> tuple[Path, str]:
    """Root and name of a study that is given as a name in `results` or as a folder."""
    path = Path(study)
    return (path.parent, path.name) if len(path.parts) > 1 else (Path(results), study)


# ---- what people type --------------------------------------------------------------------------------------------------


def understood(name: str, override: str, sweep: bool = False) -> str:
    """An override as Hydra reads it. Names and paths are quoted, 20k and 1e6 are whole numbers, a key of conf/NAME.yaml that holds a
    list takes one with or without brackets, and so do the keys of a sweep."""
    key, equals, value = override.partition("=")
    if not equals:
        if override.startswith("~"):
            return override
        raise ConfigError(f"The argument '{override}' is not understood; allowed are arguments of the form key=value.")
    if value.strip().lower() in ("", "null", "???"):
        return f"{key}=[]" if value.strip() and key in list_keys(name) else override
    if key.lstrip("+") in TEXT:
        several = sweep or key in list_keys(name)
        value = _NAME.sub(lambda match: _quoted(match[0].strip()), value) if several else _quoted(value)
    else:
        value = _VALUE.sub(lambda match: _number(match[0]), value)
    bracketed = value.startswith("[") and value.endswith("]")
    if sweep and bracketed and key in ONE_EACH:
        value = value[1:-1]
    elif not sweep and not bracketed and key in list_keys(name):
        value = f"[{value}]"
    return f"{key}={value}"


def _number(word: str) -> str:
    match = _NUMBER.fullmatch(word)
    if match:
        digits, exponent, power, unit = match.groups()
        number = float(digits.replace("_", "")) * (10.0 ** int(power[:3]) if exponent else {"k": 1e3, "K": 1e3, "M": 1e6}[unit])
        if number < 1e15 and number.is_integer():
            return str(int(number))
    return word if re.fullmatch(r"""[\w/\-\\+.$%*@?|]*|'.*'|".*"|\$\{.*\}""", word, re.ASCII | re.DOTALL) else _quoted(word)


def _quoted(word: str) -> str:
    if not word or word[0] in "'\"" or "${" in word:
        return word
    return "'" + re.sub(r"(\\*)('|$)", lambda match: 2 * match[1] + ("\\'" if match[2] else ""), word) + "'"


@cache
def command_file(name: str) -> Mapping[str, Any]:
    """The content of conf/NAME.yaml."""
    content: dict[str, Any] = yaml.safe_load((conf_dir() / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


def list_keys(name: str) -> list[str]:
    return [key for key, value in command_file(name).items() if isinstance(value, list) and key != "defaults"]


# ---- what Hydra objects to ---------------------------------------------------------------------------------------------


def _check_grammar(typed: str, word: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    try:
        override = OverridesParser.create().parse_override(word)
        if override.is_discrete_sweep():
            next(override.sweep_iterator(), None)
    except Exception as error:  # the grammar's functions raise what they like: range(0,two) a TypeError
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise ConfigError(f"The argument '{typed}' is not understood ({lines[0].rstrip('.:')}).") from None


def explain(error: Exception, name: str, words: Sequence[str]) -> str:
    """Hydra's many-lined messages as one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("See ")]
    text = lines[0] if lines else type(error).__name__
    if text.startswith("Could not override"):
        key = text.split("'")[1]
        return f"There is no key '{key}'{nearest(key, _keys(name, words))}; --help shows the keys, and what they mean."
    if "Could not find" in text and len(lines) > 1:  # In 'config': Could not find 'env/mars' / Available options in 'env': / gap / ...
        path = text.split("'")[3]
        group, _, value = path.partition("/")
        folder = path.rpartition("/")[0]
        known = [f"{folder}/{option}".removeprefix(f"{group}/") for option in group_options(folder, words)]
        return no_such(group, value, known or group_options(group, words))
    if text.startswith("Config group override"):  # must be a string or a list; which group is left to be found
        group, _, value = next(word for word in words if (conf_dir() / word.partition("=")[0]).is_dir()).partition("=")
        return no_such(group, value, group_options(group, words))
    if text.startswith(("Sweep parameters", "Ambiguous value")):
        argument = text.split("'")[1]
        advice = "name one, since --cfg shows one configuration" if "--cfg" in words else "add -m to make a run of each"
        return f"'{argument}' names several values; {advice}."
    at = next((line.removeprefix("full_key: ") for line in lines if line.startswith("full_key: ")), "")
    said = " ".join(line for line in lines if not line.startswith(("full_key:", "object_type", "reference_type"))) or text
    return f"{at}: {said}" if at else said


def group_options(group: str, words: Sequence[str]) -> list[str]:
    """The choices of a group of configurations, those of other packages too. Hydra is initialised."""
    from hydra.core.global_hydra import GlobalHydra

    loader: Any = GlobalHydra.instance().config_loader()
    found: list[str] = loader.get_group_options(
        group, config_name="config", overrides=[w for w in words if w.startswith("hydra.searchpath")]
    )
    return found


def no_such(kind: str, value: str, known: Sequence[str]) -> str:
    return f"There is no {kind} '{value}'{nearest(value, known)}; allowed are {', '.join(known) or 'none'}."


def _keys(name: str, words: Sequence[str]) -> list[str]:
    """All keys that can be set, as the groups among the words have them."""
    from hydra import compose
    from omegaconf import OmegaConf

    groups = [word for word in words if word.startswith("hydra.searchpath") or (conf_dir() / word.partition("=")[0]).is_dir()]
    for given in (groups, []):
        with contextlib.suppress(Exception):
            return list(_leaves(OmegaConf.to_container(compose(name, given)), ""))
    return []


def _leaves(config: Any, where: str) -> Iterator[str]:
    for key, value in config.items():
        yield f"{where}{key}"
        if isinstance(value, dict):
            yield from _leaves(value, f"{where}{key}.")


# ---- tracks ------------------------------------------------------------------------------------------------------------


@cache
def _store_strong() -> None:
    """What conf/strong.yaml says of each method, as settings/strong_METHOD, which conf/config.yaml takes in."""
    from hydra.core.config_store import ConfigStore

    for method, choice in command_file("strong").items():
        content = merged(content_of("track", choice["track"]), {"method": choice.get("method", {}), "track": "strong"})
        ConfigStore.instance().store(f"strong_{method}", content, group="settings", package="_global_", provider="codesign_bench")


def has_settings(track: str, method: str) -> bool:
    """Whether a track knows a method; on the strong one others run with their own defaults."""
    return track != "strong" or method in command_file("strong") or f"strong_{method}" in options_of("settings")


# ---- the paper's searches ----------------------------------------------------------------------------------------------


@cache
def searches() -> Mapping[str, Any]:
    """The content of conf/search.yaml: the values of hyperparameters that the paper searched."""
    return command_file("search")


@cache
def _store_searches() -> None:
    """Every searched hyperparameter as an experiment of Hydra: experiment=search/TABLE/ROW."""
    from hydra.core.config_store import ConfigStore

    for table, content in searches().items():
        for row, search in content["rows"].items():
            if len(search["searched"]) > 1:
                values = ",".join(str(value).replace(" ", "") for value in search["searched"])
                methods = ",".join(search.get("methods", content["methods"]))
                params = {"seed": "range(0,6)", "env": content["env"], "method": methods, search["key"]: values}
                node = {
                    "study": f"search_{table}_{row}",
                    "method": {"name": f"${{method.plugin}}_{row}_${{label:${{{search['key']}}}}}"},
                    "hydra": {"mode": "MULTIRUN", "sweeper": {"params": params}},
                }
                ConfigStore.instance().store(row, node, group=f"experiment/search/{table}", package="_global_", provider="codesign_bench")
