"""Plain mappings (from YAML, Hydra or a keyword argument) into frozen dataclasses, with errors in one sentence.

The annotations of a dataclass say what it takes, down to the range of its numbers: `passes: Count`.
"""

import dataclasses
import functools
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from codesign_bench.errors import ConfigError

T = TypeVar("T")

WHOLE = "the configuration"
_hints: Callable[[Any], dict[str, Any]] = functools.cache(functools.partial(typing.get_type_hints, include_extras=True))


@dataclasses.dataclass(frozen=True)
class Allowed:
    """What a value may be, in words that follow 'allowed', and whether one `fits`."""

    words: str
    fits: Callable[[Any], object]


Count = Annotated[int, Allowed("are whole numbers from 1 up", lambda value: value >= 1)]
Natural = Annotated[int, Allowed("are whole numbers from 0 up", lambda value: value >= 0)]
Positive = Annotated[float, Allowed("are numbers above 0", lambda value: value > 0)]
NotNegative = Annotated[float, Allowed("are numbers from 0 up", lambda value: value >= 0)]
Share = Annotated[float, Allowed("are numbers from 0 to 1", lambda value: 0 <= value <= 1)]
ShareBelowOne = Annotated[float, Allowed("are numbers from 0 up, below 1", lambda value: 0 <= value < 1)]
PositiveShare = Annotated[float, Allowed("are numbers above 0, up to 1", lambda value: 0 < value <= 1)]
AnyNumber = Annotated[Any, Allowed("are numbers", lambda value: _is_number(value))]
FolderName = Annotated[str, Allowed("are names of folders", lambda name: name not in ("", ".", "..") and not {"/", "\0"} & set(name))]

_KINDS: Mapping[Any, Allowed] = {
    bool: Allowed("is true or false", lambda value: isinstance(value, bool)),
    int: Allowed("is a whole number", lambda value: _is_number(value) and isinstance(value, int)),
    float: Allowed("is a finite number", lambda value: _is_number(value) and abs(value) <= sys.float_info.max),
    str: Allowed("is text", lambda value: isinstance(value, str)),
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Checked:
    """Base of dataclasses that are also made without `build`: their plain numbers are checked there too."""

    def __post_init__(self) -> None:
        for name, hint in _hints(type(self)).items():
            if typing.get_origin(hint) is Annotated:
                _checked(typing.get_args(hint)[1], getattr(self, name), f"{type(self).__name__}.{name}")


def build(cls: type[T], value: Any, where: str = WHOLE) -> T:
    """A `cls` from a mapping. Unknown keys, missing keys and values that are not allowed raise ConfigError naming `where`, which is a
    key or WHOLE."""
    _checked(Allowed(f"is a mapping with the keys {_keys(cls)}", _MAPPING.fits), value, where)
    hints = _hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for key in value:
        if key not in fields:
            raise ConfigError(f"{where} has an unknown key '{key}'; allowed are {_keys(cls)}.")
    arguments, inside = {}, "" if where == WHOLE else f"{where}."
    for name, field in fields.items():
        if name in value:
            arguments[name] = _convert(hints[name], value[name], f"{inside}{name}")
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
    if origin is Annotated:
        kind, allowed = options
        return _checked(allowed, _convert(kind, value, where), where)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        (inner,) = [o for o in options if o is not type(None)]
        return _convert(inner, value, where)
    if origin is typing.Literal:
        return _checked(Allowed(f"are {', '.join(map(str, options))}", lambda value: value in options), value, where)
    if origin is tuple:
        return _convert_tuple(options, value, where)
    if origin is dict:
        return {str(key): _convert(options[1], item, f"{where}.{key}") for key, item in _checked(_MAPPING, value, where).items()}
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(type, hint), value, where)
    if hint is Any:
        return value
    if hint not in _KINDS:
        raise TypeError(f"{where}: no rule for {hint}")
    return hint(_checked(_KINDS[hint], value, where))


def _convert_tuple(options: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    _checked(_LIST, value, where)
    if len(options) == 2 and options[1] is Ellipsis:
        options = (options[0],) * len(value)
    _checked(Allowed(f"is a list of {len(options)}", lambda value: len(value) == len(options)), value, where)
    return tuple(_convert(o, v, f"{where}[{i}]") for i, (o, v) in enumerate(zip(options, value, strict=True)))


_LIST = Allowed("is a list", lambda value: isinstance(value, Sequence) and not isinstance(value, str))
_MAPPING = Allowed("is a mapping", lambda value: isinstance(value, Mapping))


def _checked(allowed: Allowed, value: Any, where: str) -> Any:
    if not allowed.fits(value):
        text = repr(value)
        short = text if len(text) <= 60 else f"{text[:50]}... ({len(text)} characters)"
        raise ConfigError(f"{where} is {short}; allowed {allowed.words}.")
    return value
