"""The configurations of a sweep. Hydra takes a third of a second to compose one, and most differ in a seed or another value to which
nothing refers: those are the first of their kind with that value in its place. tests/launching/test_sweep.py compares with Hydra's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from codesign_bench.configuration import plain
from codesign_bench.structured import merged

PLAIN_KEY = re.compile(r"(?!hydra\b)\w+(\.\w+)*")


def composed(loader: Any, config: Any, jobs: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """The plain configurations of jobs, each given as its overrides. `loader` and `config` are Hydra's."""
    parser = OverridesParser.create()

    @cache
    def chooses(key: str) -> bool:
        """Whether it names a file of a group, or else what sets no plain value."""
        return PLAIN_KEY.fullmatch(key) is None or bool(loader.get_group_options(key))

    @cache
    def parsed(override: str) -> tuple[str, Any] | None:
        """Key and value, if it is a plain value."""
        key = override.partition("=")[0]
        value = None if chooses(key) or "${" in override else parser.parse_override(override).value()
        return (key, value) if isinstance(value, (bool, int, float, str, list)) else None

    first = _First(loader, config)
    return [first.like(overrides, dict(found for override in overrides if (found := parsed(override)))) for overrides in jobs]


class _First:
    """The first configuration of each kind, to which the others are put down."""

    def __init__(self, loader: Any, config: Any) -> None:
        self.loader, self.config = loader, config
        self.free: dict[tuple[str, ...], frozenset[str]] = {}
        """By the choices of files: the keys among the overrides to which nothing refers."""
        self.whole: dict[tuple[str, ...], dict[str, Any]] = {}
        """By all overrides but those of free keys."""

    def like(self, overrides: Sequence[str], values: dict[str, Any]) -> dict[str, Any]:
        choices = _without(overrides, values)
        fixed = _without(overrides, self.free[choices]) if choices in self.free else None
        if fixed is None or fixed not in self.whole:
            found = self.loader.load_sweep_config(self.config, list(overrides))
            self.free[choices] = frozenset(values) - set(_referred_to(found, values))
            fixed = _without(overrides, self.free[choices])
            self.whole[fixed] = plain(found)
        config = self.whole[fixed]
        for key in self.free[choices]:
            change = values[key]
            for part in reversed(key.split(".")):
                change = {part: change}
            config = merged(config, change)
        return config


def _without(overrides: Sequence[str], keys: Any) -> tuple[str, ...]:
    return tuple(override for override in overrides if override.partition("=")[0] not in keys)


def _referred_to(config: Any, keys: Sequence[str] | dict[str, Any]) -> Iterator[str]:
    """Those that an interpolation may mean, also a relative one: it mentions their last name, or a part of them as a whole."""
    text = str(OmegaConf.to_container(OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])))
    said = {word for interpolation in re.findall(r"\$\{[^'\"]*", text) for word in re.findall(r"\w+", interpolation)}
    return (key for key in keys if said & set(key.split(".")))
