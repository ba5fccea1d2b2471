"""the final agent of a run designs itself, then moves: a video, or the designs side by side.

codesign-bench play run=results/default/gap/transform2act/seed_0 out=agent.mp4
"""

from dataclasses import dataclass
from pathlib import Path

from codesign_bench.analysis.playing import frames, perform, strip
from codesign_bench.configuration import load_config
from codesign_bench.experiment.load import load_champion
from codesign_bench.experiment.seeds import Streams
from codesign_bench.simulation.rendering import check_picture, open_for_writing, save_png, save_video
from codesign_bench.simulation.showing import FRAMES_PER_SECOND
from codesign_bench.structured import build


@dataclass(frozen=True)
class PlayConfig:
    """The content of conf/play.yaml."""

    run: str
    out: str
    seed: int
    seconds: float
    width: int
    height: int

    def __post_init__(self) -> None:
        check_picture(self.out, self.seed, self.seconds, self.width, self.height)


def main(arguments: list[str]) -> int:
    config = build(PlayConfig, load_config("play", arguments), "the configuration")
    agent, plan = load_champion(Path(config.run))
    out, size = open_for_writing(config.out), (config.width, config.height)
    shown = perform(agent, Streams(plan.settings.seed).sequence("play", config.seed))
    if out.suffix == ".png":
        save_png(out, strip(agent.task, shown, size))
    else:
        save_video(out, frames(agent.task, shown, config.seconds, size), FRAMES_PER_SECOND)
    print(f"{out}: {shown.design.num_nodes} bodies, return {shown.total_return:.1f} in {len(shown.poses)} steps")
    return 0
