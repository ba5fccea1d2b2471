"""python tests/versions.py oldest|newest: constraints for pip, from what pyproject.toml allows; torch has its pin in the Makefile."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
PINNED = "torch"


def oldest(project: Path = PROJECT) -> list[str]:
    """The least version of every package that a requirement names."""
    content = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    groups = [content["dependencies"], *content["optional-dependencies"].values()]
    found = {}
    for requirement in (requirement for group in groups for requirement in group):
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[.*\])?[>=]=([0-9.]+)(?:,<[0-9.]+)?", requirement)
        if match is None:
            raise SystemExit(f"The requirement {requirement!r} names no least version; allowed are requirements such as 'numpy>=2.0'.")
        if match[1] != PINNED:
            found[match[1]] = match[2]
    return [f"{name}=={version}" for name, version in sorted(found.items())]


if __name__ == "__main__":
    print("\n".join(oldest() if sys.argv[1] == "oldest" else []))
