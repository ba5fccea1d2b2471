"""What the commands that draw robots share: a file, and how large and long it is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from codesign_bench.arrays import Array
from codesign_bench.simulation.rendering import LARGEST, save_png, save_video
from codesign_bench.structured import Allowed

SMALLEST = 16
LONGEST = 3600


@dataclass(frozen=True, kw_only=True)
class PictureConfig:
    """Of every conf/COMMAND.yaml of a command that draws robots. Width and height are pixels."""

    out: Annotated[str, Allowed("are names that end in .png or .mp4", lambda name: Path(name).suffix in (".png", ".mp4"))]
    seconds: Annotated[float, Allowed(f"are numbers above 0, up to {LONGEST}", lambda value: 0 < value <= LONGEST)]
    width: Annotated[int, Allowed(f"are whole numbers from {SMALLEST} to {LARGEST[0]}", lambda n: SMALLEST <= n <= LARGEST[0])]
    height: Annotated[int, Allowed(f"are whole numbers from {SMALLEST} to {LARGEST[1]}", lambda n: SMALLEST <= n <= LARGEST[1])]


def save(out: Path, picture: Callable[[], Array], video: Callable[[], Iterable[Array]], fps: float, frames: int) -> None:
    """One of the two, as the name of the file says; the video has so many frames."""
    if out.suffix == ".png":
        save_png(out, picture())
    else:
        save_video(out, video(), fps, frames)
