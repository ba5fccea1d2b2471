"""the final agent of a run designs itself, then moves: a video, or the designs side by side.

codesign-bench play run=results/default/gap/transform2act/seed_0 out=agent.mp4

Of an export, which has no checkpoints, it shows the motion that `reevaluate` recorded before.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from codesign_bench.analysis.playing import frames, perform, recorded, still_frames, strip
from codesign_bench.commands._pictures import PictureConfig, save
from codesign_bench.configuration import configured
from codesign_bench.experiment.load import load_champion
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.simulation.rendering import open_for_writing
from codesign_bench.structured import Natural


@dataclass(frozen=True, kw_only=True)
class PlayConfig(PictureConfig):
    """The content of conf/play.yaml."""

    run: str
    seed: Natural


def main(arguments: list[str]) -> int:
    config = configured(PlayConfig, "play", arguments)
    folder, size = Path(config.run), (config.width, config.height)
    if RunFolder(folder).is_export():
        task, shown = recorded(folder, config.seconds)
        out = open_for_writing(config.out)
        print(f"{folder} is an export, without checkpoints; this is the motion that reevaluate recorded.", file=sys.stderr)
    else:
        agent, setup = load_champion(folder)
        task, out = agent.task, open_for_writing(config.out)
        shown = perform(agent, setup.streams.sequence("play", config.seed), config.seconds)
    motion = shown.motion
    number = len(shown.process) * still_frames(motion) + len(motion.poses)
    save(out, lambda: strip(task, shown, size), lambda: frames(task, shown, size), 1 / motion.seconds_per_frame, number)
    end = f", which ends after {len(motion.poses) * motion.seconds_per_frame:.1f} s" if motion.ended else ""
    print(f"{out}: {motion.design.num_nodes} bodies, return {motion.total_return:.1f} in one episode{end}")
    return 0
