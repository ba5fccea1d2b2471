"""Plain mappings (from YAML, Hydra or a keyword argument) into frozen dataclasses, with errors in one sentence."""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from codesign_bench.errors import ConfigError

T = TypeVar("T")


def build(cls: type[T], value: Any, where: str) -> T:
    """A `cls` from a mapping. Unknown keys, missing keys and values of the wrong kind raise ConfigError naming `where`."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} is {value!r}; allowed is a mapping with the keys {_keys(cls)}.")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for key in value:
        if key not in fields:
            raise ConfigError(f"{where} has an unknown key '{key}'; allowed are {_keys(cls)}.")
    arguments = {}
    for name, field in fields.items():
        if name in value:
            arguments[name] = _convert(hints[name], value[name], f"{where}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where} lacks the key '{name}'; its keys are {_keys(cls)}.")
    return cls(**arguments)


def merged(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the leaves of `override` put in."""
    result = dict(base)
    for key, value in override.items():
        nested = isinstance(base.get(key), Mapping) and isinstance(value, Mapping)
        result[key] = merged(base[key], value) if nested else value
    return result


def _keys(cls: type) -> str:
    return ", ".join(f.name for f in dataclasses.fields(cls) if f.init)


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        (inner,) = [o for o in options if o is not type(None)]
        return _convert(inner, value, where)
    if origin is typing.Literal:
        if value not in options:
            raise ConfigError(f"{where} is {value!r}; allowed are {', '.join(map(str, options))}.")
        return value
    if origin is tuple:
        return _convert_tuple(options, value, where)
    if origin is dict:
        return {str(key): item for key, item in _checked(isinstance(value, Mapping), value, where, "a mapping").items()}
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(type, hint), value, where)
    if hint is bool:
        return _checked(isinstance(value, bool), value, where, "true or false")
    if hint is int:
        return _checked(isinstance(value, int) and not isinstance(value, bool), value, where, "a whole number")
    if hint is float:
        return float(_checked(_is_finite_number(value), value, where, "a finite number"))
    if hint is str:
        return _checked(isinstance(value, str), value, where, "text")
    raise TypeError(f"{where}: no rule for {hint}")


def _convert_tuple(options: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    _checked(isinstance(value, Sequence) and not isinstance(value, str), value, where, "a list")
    if len(options) == 2 and options[1] is Ellipsis:
        options = (options[0],) * len(value)
    _checked(len(value) == len(options), value, where, f"a list of {len(options)}")
    return tuple(_convert(o, v, f"{where}[{i}]") for i, (o, v) in enumerate(zip(options, value, strict=True)))


def _is_finite_number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _checked(ok: bool, value: Any, where: str, allowed: str) -> Any:
    if not ok:
        raise ConfigError(f"{where} is {shortened(value)}; allowed is {allowed}.")
    return value


def shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}... ({len(text)} characters)"
