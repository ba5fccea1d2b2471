"""A design as it is kept in files: with the design space whose bounds give its normalised attributes their physical values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codesign_bench.design.graph import Design
from codesign_bench.design.space import DesignSpace
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.plain_files import read_json
from codesign_bench.structured import build

FORMAT = 2
MOST_BYTES, MOST_DESIGNS = 8_000_000, 100
"""Of a file, and in one."""


@dataclass(frozen=True)
class StoredDesign:
    """A robot that can be built again, whatever the method did to the bounds of its task."""

    design: Design
    space: DesignSpace

    def to_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, "space": asdict(self.space), "design": self.design.to_dict()}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1)

    @staticmethod
    def from_dict(value: Any) -> StoredDesign:
        """Reads what `to_dict` wrote; DesignError unless it is a design of its space."""
        if not isinstance(value, dict) or type(value.get("format")) is not int or value["format"] != FORMAT:
            raise DesignError(f"This is not a stored design of format {FORMAT}: an object with format, space and design.")
        try:
            space = build(DesignSpace, value.get("space"), "space")
        except ConfigError as error:
            raise DesignError(str(error)) from None
        stored = StoredDesign(Design.from_dict(value.get("design")), space)
        space.check(stored.design)
        return stored

    @staticmethod
    def load(path: Path) -> StoredDesign:
        """From a file; the error names it."""
        return StoredDesign._load(path, lambda value: [StoredDesign.from_dict(value)])[0]

    @staticmethod
    def load_all(path: Path) -> list[StoredDesign]:
        """From a file that holds a list of them."""
        return StoredDesign._load(path, StoredDesign._from_list)

    @staticmethod
    def _from_list(value: Any) -> list[StoredDesign]:
        if not isinstance(value, list) or len(value) > MOST_DESIGNS:
            raise DesignError(f"This is not a list of at most {MOST_DESIGNS} stored designs.")
        return [StoredDesign.from_dict(part) for part in value]

    @staticmethod
    def _load(path: Path, read: Callable[[Any], list[StoredDesign]]) -> list[StoredDesign]:
        try:
            value = read_json(path, MOST_BYTES)
        except OSError:
            raise DesignError(f"{path} is missing or cannot be read.") from None
        except ConfigError as error:
            raise DesignError(f"{path} {error}.") from None
        try:
            return read(value)
        except DesignError as error:
            raise DesignError(f"{path}: {error}") from None
