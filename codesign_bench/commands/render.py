"""a picture or video of a design, without an agent; env=all: random designs in all environments, one PNG.

codesign-bench render env=gap design=random seed=3 out=robot.png
codesign-bench render env=locomotion3d design=expert out=ant.mp4
codesign-bench render env=all seed=3 agents=3 out=sheet.png
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from codesign_bench.commands._pictures import PictureConfig, save
from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.simulation.rendering import Picture, open_for_writing, save_png
from codesign_bench.simulation.showing import FRAMES_PER_SECOND, choose_design, motion, starting_pose
from codesign_bench.structured import Allowed, Natural, build
from codesign_bench.tasks import Task, task_from_config

ALL = "env=all"


@dataclass(frozen=True, kw_only=True)
class RenderConfig(PictureConfig):
    """The content of conf/render.yaml, without the environment."""

    design: str
    seed: Natural
    agents: Annotated[int, Allowed("are whole numbers from 1 to 40", lambda value: 1 <= value <= 40)]


def main(arguments: list[str]) -> int:
    values = load_config("render", [argument for argument in arguments if argument != ALL])
    config = build(RenderConfig, {key: value for key, value in values.items() if key != "env"})
    return render_all(config) if ALL in arguments else render(config, task_from_config(values.get("env") or {}))


def render(config: RenderConfig, task: Task) -> int:
    rng = np.random.default_rng(config.seed)
    design, task = choose_design(task, config.design, rng)
    out = open_for_writing(config.out)
    picture = Picture(design, task, width=config.width, height=config.height)
    film = (picture.frame(pose) for pose in motion(design, task, rng, config.seconds))
    save(
        out,
        lambda: picture.frame(starting_pose(design, task, rng)),
        lambda: film,
        FRAMES_PER_SECOND,
        round(config.seconds * FRAMES_PER_SECOND),
    )
    picture.close()
    print(f"{out}: {task.name}, {design.num_nodes} bodies")
    return 0


def render_all(config: RenderConfig) -> int:
    from codesign_bench.analysis.gallery import contact_sheet
    from codesign_bench.analysis.looks import ENVS

    out = open_for_writing(config.out)
    if out.suffix != ".png":
        raise ConfigError(f"out is '{out}'; allowed with env=all are names that end in .png.")
    save_png(out, np.asarray(contact_sheet(config.seed, config.agents)))
    print(f"{out}: {config.agents} random agents in each of {', '.join(ENVS)}")
    return 0
