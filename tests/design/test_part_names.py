"""Names that people understand."""

from __future__ import annotations

import numpy as np
import pytest

from codesign_bench.design.part_names import attribute_names, part_names
from codesign_bench.tasks import make_task
from tests.learning.material import full_design
from tests.reference.specification import TASKS

MEANT = {
    "locomotion2d": ["torso", "thigh", "shin", "foot"],
    "gap": ["torso", "thigh", "shin", "foot"],
    "swimmer": ["torso", "middle", "tail"],
    "locomotion3d": [
        *("torso", "left front thigh", "left front shin", "left back thigh", "left back shin"),
        *("right back thigh", "right back shin", "right front thigh", "right front shin"),
    ],
}


@pytest.mark.parametrize("name", TASKS)
def test_parts_of_the_experts(name: str) -> None:
    task = make_task(name).with_expert()
    assert part_names(task.initial_design, task.space, legged=name != "swimmer") == MEANT[name]


@pytest.mark.parametrize("name", TASKS)
def test_parts_of_any_design_have_different_names(name: str) -> None:
    task = make_task(name)
    for legged in (True, False):
        names = part_names(full_design(task), task.space, legged)
        assert len(set(names)) == len(names) == task.space.max_nodes


def test_attributes() -> None:
    def names_of(env: str, node: int) -> tuple[str, ...]:
        task = make_task(env).with_expert()
        return attribute_names(task.initial_design, task.space)[node]

    rest = ("motor strength", "radius", "start extension")
    assert names_of("locomotion2d", 1) == ("slant", "length", *rest)  # a thigh hangs down
    assert names_of("locomotion2d", 3) == ("length", "slant", *rest)  # a foot lies along x
    assert names_of("swimmer", 1) == ("length", "slant", *rest)
    assert names_of("locomotion3d", 1) == ("forward extent", "leftward extent", *rest)
    task = make_task("locomotion2d").with_expert()
    leaning = task.initial_design.with_attributes(np.where([True, False, False, False, False], 0.5, task.initial_design.attributes))
    assert attribute_names(leaning, task.space)[1][:2] == ("forward extent", "upward extent")
