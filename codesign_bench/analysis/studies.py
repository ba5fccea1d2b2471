"""Where a study lies, however it is named: a folder, a name below `results`, an archive, or one that ships with this package."""

from functools import cache
from pathlib import Path

from codesign_bench.analysis import archive
from codesign_bench.configuration import study_at

PACKAGE = Path(__file__).resolve().parents[1]


def find_study(results: str, study: str) -> tuple[Path, str]:
    """Its root and its name. A study of the user's hides one of the same name that ships."""
    if study.endswith(archive.ENDING):
        found = archive.unpacked(Path(study))
        return found.root, found.name
    root, name = study_at(results, study)
    return (shipped()[name], name) if name == study and not (root / name).is_dir() and name in shipped() else (root, name)


@cache
def shipped() -> dict[str, Path]:
    """The roots of the studies that come with the package, by name: inside a wheel, or in results/ of a checkout."""
    roots = (PACKAGE / "studies", PACKAGE.parent / "results")
    return {about.parent.name: root for root in reversed(roots) for about in root.glob(f"*/{archive.ABOUT}")}
