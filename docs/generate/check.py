"""What is wrong with the built site, by page and line of its source: links that lead nowhere, and whatever is loaded from elsewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docs.generate import ROOT

LOADS = {
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "script": ("src",),
    "iframe": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
}
"""Attributes that make a browser load something at once."""
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch", "manifest"}


@dataclass
class Page(HTMLParser):
    """Anchors of a page, what it links to, and what it loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found and tag != "meta"}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and found.get("href"):
            (self.loads if set(found.get("rel", "").split()) & LOADED_LINKS else self.links).append(found["href"])
        for name in LOADS.get(tag, ()):
            if name in found:
                self.loads += [part.split()[0] for part in found[name].split(",") if part.split()] if name == "srcset" else [found[name]]


def problems(site: Path, root: Path = ROOT) -> list[str]:
    """Sentences; none if all is well. `root`: where docs/ is."""
    pages = {file: parsed(file) for file in sorted(site.rglob("*.html"))}
    found = [
        f"{place(target, file.relative_to(site), root)}: {target} {why}"
        for file, page in pages.items()
        for target in dict.fromkeys([*page.loads, *page.links])
        if (why := wrong(target, file, pages, target in page.loads))
    ]
    return found + [
        f"{file.relative_to(site)}: {url} is loaded from elsewhere" for file in sorted(site.rglob("*.css")) for url in imports(file)
    ]


def parsed(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def wrong(target: str, file: Path, pages: dict[Path, Page], loaded: bool) -> str:
    """What is wrong with a link, or nothing."""
    parts = urlsplit(target)
    if parts.scheme in ("http", "https") or parts.netloc:
        return "is loaded from elsewhere" if loaded else ""
    if parts.scheme or file.name == "404.html":  # which may be shown at any address
        return ""
    there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    there = there / "index.html" if there.is_dir() else there
    if not there.is_file():
        return "leads nowhere"
    if parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].anchors:
        return "has no such anchor"
    return ""


def place(target: str, page: Path, root: Path) -> str:
    """Page and line of the source that has such a link; only the page, where it comes from the theme or from a docstring."""
    parts = urlsplit(target)
    path = Path(parts.path).stem if parts.path.endswith(".html") else parts.path
    words = [word for word in (f"#{parts.fragment}" if parts.fragment else "", path) if word]
    for source in sources(root / "docs" / page.with_suffix(".md"), root):
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            if words and all(word in line for word in words):
                return f"{source.relative_to(root)}:{number}"
    return f"docs/{page.with_suffix('.md')}"


def sources(file: Path, root: Path) -> Iterator[Path]:
    """A page and the files that it includes."""
    if file.is_file():
        yield file
        for name in re.findall(r'^--8<-- "(.+)"', file.read_text(encoding="utf-8"), re.M):
            yield root / name


def imports(file: Path) -> list[str]:
    return re.findall(r"""(?:url\(|@import\s)\s*["']?(https?://[^"')\s]+)""", file.read_text(encoding="utf-8"))


def main(folder: str) -> int:
    found = problems(Path(folder).resolve())
    print("\n".join(found) or f"{folder}: every link leads somewhere, and nothing is loaded from elsewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
