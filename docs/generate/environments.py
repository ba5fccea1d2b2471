"""docs/environments.md: a section for each environment, from its task's docstring and its file of conf/env/."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from codesign_bench.analysis.looks import ENVS
from codesign_bench.paths import content_of, files_of
from codesign_bench.tasks import TASKS, Task, make_task
from docs.generate import MADE, table
from docs.generate.commands import about_file

INTRODUCTION = """\
# Environments

An environment is a design space, a scene and a task: what nodes observe, what a step is worth, when an episode ends. Each is a file in
`conf/env/`, whose numbers can all be set (`env.reward.alive=0`), and names one of six classes in `codesign_bench/tasks/`. A change that
changes results raises the version; runs of different versions are not compared.

Common to all:

- **Stages.** An episode [designs a robot and then drives it](robots.md): skeleton steps, attribute steps, control steps. The reward is 0
  while designing.
- **What a node observes**: its depth as a one-hot vector, the simulator's state as listed below (zeros while designing), and its five
  normalised attributes. Velocities are clipped to 10.
- **Action**, seven numbers for each node: 0 control of its motor (the root has none), clipped to [-1, 1]; 1 to 5 change of the attributes;
  6 skeleton choice (nothing, add a joint, delete this one). Each stage reads its own.
- **Reward** is the sum of its parts, which `info` of the Gymnasium environment and `progress.csv` have by name, `reward_NAME`. dx is how
  far the root moved along x in the step of dt seconds.
- **Ends** before the time limit have no bootstrap. A simulation that diverges ends its episode everywhere, and is counted as unstable.

```sh
codesign-bench render env=gap design=random seed=3 out=robot.png
codesign-bench check task=gap
```

As Gymnasium environments they have the ids below; `import codesign_bench` registers them, and keyword arguments override numbers:

```python
import gymnasium, codesign_bench

env = gymnasium.make("codesign/Gap-v2", reward={"speed": "absolute"})
```

The pictures show random designs under random controls (`make pictures`)."""

GROUPS = (
    ("Of Transform2Act", "The four of the paper (Yuan et al., ICLR 2022).", ENVS[:4]),
    ("Of BodyGen", "Ten of Lu et al., ICLR 2025.", ENVS[4:14]),
    ("Of Stackelberg PPO", "Three of Dai et al., ICLR 2026.", ENVS[14:]),
)
STANDARD = {TASKS[name].reward for name in ("locomotion2d", "locomotion3d", "swimmer", "gap")}
"""Rewards that the YAML describes whole."""
SAME = ("name", "title", "version", "defaults")
ATTRIBUTES = (
    ("bone_offset", "bone offsets", "m"),
    ("gear", "gear", ""),
    ("radius", "radius", "m"),
    ("start_extension", "start extension", "m"),
)


def page() -> str:
    parts = [MADE, INTRODUCTION, table(["environment", "bodies", "reward", "ends early"], [overview(name) for name in ENVS])]
    for title, about, names in GROUPS:
        parts += [f"## {title}", about, *(part for name in names for part in section(name))]
    return "\n\n".join(parts) + "\n"


def overview(name: str) -> list[str]:
    task = make_task(name)
    anchor = re.sub(r"[^a-z0-9]+", "-", task.title.lower()).strip("-")
    return [f"[`{name}`](#{anchor})", f"{task.initial_design.num_nodes} to {task.space.max_nodes}", reward(task), ends(task) or "never"]


def section(name: str) -> list[str]:
    task, file = make_task(name), files_of("env")[name]
    said = docstring(task)
    config, space = task.config, task.space
    words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    limit = "an end without bootstrap" if config.time_limit == "terminal" else "bootstrapped with the value"
    rows = [
        ["Observed by the root", said["State of the root"]],
        ["by a joint", said["State of a joint"]],
        ["Reward", reward(task)],
        ["Ends early", ends(task) or "never"],
        ["Time limit", f"{config.max_steps} control steps, {config.max_steps * task.dt:g} s; {limit}"],
        ["Start", start(task)],
        ["Metrics", said.get("Metrics", "")],
        ["Discount", f"{config.discount}"],
        ["Bodies", f"{task.initial_design.num_nodes} at first, {space.max_nodes} at most; depth up to {space.max_depth}, {children(task)}"],
        ["Attributes", bounds(config.design)],
        ["Numbers per node", f"{task.feature_size}: {space.num_depths} depths, {task.state_size} of the state, 5 attributes"],
        ["Expert", f"gymnasium's `{config.design.expert}`" if config.design.expert else "none"],
        ["Differs", differences(name)],
    ]
    versions = said["versions"] if name == config.task else f"Version {task.version}."
    return [
        f"### {task.title}",
        f'<picture><source media="(prefers-reduced-motion: reduce)" srcset="pictures/{name}.png">'
        f'<img src="pictures/{name}.webp" alt="A random design in {task.title}, under random controls" width="320" height="200"'
        ' loading="lazy"></picture>',
        f"`env={name}`, `codesign/{words}-v{task.version}`, class `{config.task}`. {about_file(file)}",
        *([said["text"]] if name == config.task else []),
        table(["property", "value"], [row for row in rows if row[1]]),
        versions,
    ]


def docstring(task: Task) -> dict[str, str]:
    """Its points by name, `text` (the first paragraph and those after the points) and `versions`."""
    found: dict[str, str] = {}
    text, versions = [], []
    for paragraph in (inspect.getdoc(type(task)) or "").split("\n\n"):
        if paragraph.startswith("- "):
            for point in re.split(r"\n(?=- )", paragraph):
                name, _, value = " ".join(point[2:].split()).partition(": ")
                for each in name.split(", "):
                    found[each if each[:1].isupper() else each.capitalize()] = value
        elif paragraph.startswith("Version"):
            versions += [f"- {' '.join(part.split())}" for part in re.split(r"\n(?=Version)", paragraph)]
        else:
            before, _, version = " ".join(paragraph.split()).partition(" Version ")
            text.append(before)
            versions += [f"- Version {version}"] if version else []
    return {**found, "text": " ".join(text), "versions": "\n".join(versions)}


def reward(task: Task) -> str:
    if type(task).reward not in STANDARD:
        return docstring(task)["Reward"].partition("; dt")[0]
    config = task.config.reward
    parts = ["dx/dt" if config.speed == "forward" else "abs(dx)/dt"]
    parts += [f"+ {config.alive:g} (alive)"] if config.alive else []
    parts += [f"- {config.control_cost:g} x mean over motors of control²"] if config.control_cost else []
    return " ".join(parts)


def ends(task: Task) -> str:
    end = task.config.end
    above = " above the ground of the start" if task.config.task == "stepper" else ""
    parts = [f"height at or below {end.min_height:g} m{above}"] if end.min_height is not None else []
    parts += [f"at or above {end.max_height:g} m"] if end.max_height is not None else []
    parts += [f"{'tilt' if task.scene.root == 'free' else 'pitch'} of {end.max_angle:g}° or more"] if end.max_angle is not None else []
    return "; ".join(parts)


def start(task: Task) -> str:
    config = task.config.start
    height = task.scene.root_height if config.height is None else config.height
    words = f"noise {config.noise:g} on positions and velocities"
    if task.scene.ground.kind != "none":
        words = f"height {height:g} m{', raised while a bone touches the ground' if task.config.raise_from_ground else ''}; {words}"
    return words


def children(task: Task) -> str:
    space = task.space
    return f"{space.root_children} child{'ren' * (space.root_children > 1)} of the root, up to {space.max_children} of a joint"


def bounds(design: Any) -> str:
    pairs = ((words, *getattr(design, key), unit) for key, words, unit in ATTRIBUTES)
    return ", ".join(f"{words} {low:g} to {high:g}{f' {unit}' if unit else ''}" for words, low, high, unit in pairs)


def differences(name: str) -> str:
    """What its file sets otherwise than the one that it builds on."""
    base = yaml.safe_load(files_of("env")[name].read_text(encoding="utf-8")).get("defaults", [None])[0]
    if base is None:
        return ""
    old, new = dict(leaves(content_of("env", base))), dict(leaves(content_of("env", name)))
    changed = [f"`{key}` {shown(old[key])} → {shown(value)}" for key, value in new.items() if key in old and old[key] != value]
    added = sorted({key.split("[")[0] if "[" in key else key for key in new if key not in old})
    return f"from `{base}`: " + ", ".join([*changed, *(f"`{key}` is new" for key in added)])


def leaves(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        where = f"{above}{key}"
        if where in SAME:
            continue
        if isinstance(value, Mapping):
            yield from leaves(value, f"{where}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for i, each in enumerate(value):
                yield from leaves(each, f"{where}[{i}].")
        else:
            yield where, value


def shown(value: Any) -> str:
    return "null" if value is None else str(value)
