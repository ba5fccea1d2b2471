"""the champions of a study side by side, with the same camera and scale.

codesign-bench gallery study=default out=gallery.mp4
"""

from dataclasses import dataclass

from codesign_bench.analysis.gallery import LEFT_OUT, NO_RUN, gallery
from codesign_bench.commands._pictures import PictureConfig
from codesign_bench.commands._studies import StudyConfig, runs_of
from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.simulation.rendering import open_for_writing
from codesign_bench.structured import build


@dataclass(frozen=True, kw_only=True)
class GalleryConfig(PictureConfig, StudyConfig):
    """The content of conf/gallery.yaml; `seed` is checked apart, being words or numbers."""


def main(arguments: list[str]) -> int:
    values = load_config("gallery", arguments)
    seeds = values.pop("seed")
    if seeds not in (["best"], ["all"]) and not (seeds and all(type(seed) is int and seed >= 0 for seed in seeds)):
        raise ConfigError(f"seed is {', '.join(map(str, seeds)) or 'empty'}; allowed are best, all, or whole numbers from 0 up.")
    config = build(GalleryConfig, values)
    collection = runs_of(config)
    out = open_for_writing(config.out)
    tiles = gallery(collection, out, seeds, config.seconds, config.width, config.height)
    drawn = [tile for tile in tiles if not isinstance(tile, str)]
    still = sum(len(tile.poses) == 1 for tile in drawn) if out.suffix == ".mp4" else 0
    print(f"{out}: {len(drawn)} champions of '{collection.study}'" + (f", {still} without a recorded motion" if still else ""))
    for tile in tiles:
        if isinstance(tile, str) and tile not in (NO_RUN, LEFT_OUT):
            print(f"not drawn: {tile}")
    return 0
