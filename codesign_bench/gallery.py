"""python -m codesign_bench.gallery study=NAME out=FILE.png|.mp4: the champions of a study side by side, same camera and scale."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from codesign_bench.analysis.collect import collect
from codesign_bench.analysis.gallery import LEFT_OUT, NO_RUN, gallery
from codesign_bench.command_line import load_config, run
from codesign_bench.errors import ConfigError
from codesign_bench.render import check_output
from codesign_bench.simulation.rendering import open_for_writing
from codesign_bench.structured import build


@dataclass(frozen=True)
class GalleryConfig:
    """The content of conf/gallery.yaml; `seed` is checked apart, being a word or a number."""

    results: str
    study: str
    out: str
    envs: tuple[str, ...] | None
    methods: tuple[str, ...] | None
    seconds: float
    width: int
    height: int

    def __post_init__(self) -> None:
        check_output(self.out, 0, self.seconds, self.width, self.height)


def main(arguments: list[str]) -> int:
    values = load_config("gallery", arguments)
    seed = values.pop("seed")
    if not (seed in ("best", "all") or (type(seed) is int and seed >= 0)):
        raise ConfigError(f"seed is {seed!r}; allowed are best, all, or a whole number from 0 up.")
    config = build(GalleryConfig, values, "the configuration")
    collection = collect(Path(config.results), config.study, envs=config.envs, methods=config.methods)
    for left_out in collection.left_out:
        print(f"left out: {left_out.path}: {left_out.reason}.", file=sys.stderr)
    out = open_for_writing(config.out)
    tiles = gallery(collection, out, seed, config.seconds, config.width, config.height)
    drawn = [tile.champion for tile in tiles if tile.champion is not None]
    still = sum(len(champion.poses) == 1 for champion in drawn) if out.suffix == ".mp4" else 0
    print(f"{out}: {len(drawn)} champions of '{config.study}'" + (f", {still} without a recorded motion" if still else ""))
    for tile in tiles:
        if tile.champion is None and tile.reason not in (NO_RUN, LEFT_OUT):
            print(f"not drawn: {tile.reason}")
    return 0


if __name__ == "__main__":
    run(main)
