"""Wrong configurations are told in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.tasks import make_task, task_from_config
from tests.reference.sentences import assert_one_sentence

WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown key": ({"colour": "red"}, ["colour", "design"]),
    "unknown key inside": ({"reward": {"bonus": 1}}, ["bonus", "reward", "alive"]),
    "unknown key of the design": ({"design": {"colour": 1}}, ["colour", "gear"]),
    "unknown key of the ground": ({"scene": {"ground": {"depth": 1}}}, ["depth", "ground"]),
    "lower above upper": ({"design": {"radius": [0.08, 0.03]}}, ["radius", "0.08", "0.03"]),
    "lower equals upper": ({"design": {"gear": [20, 20]}}, ["gear", "20"]),
    "offset turned round": ({"design": {"bone_offset": [0.5, -0.5]}}, ["bone offset", "0.5"]),
    "negative radius": ({"design": {"radius": [-0.1, 0.08]}}, ["radius", "-0.1"]),
    "negative extension": ({"design": {"start_extension": [-0.1, 0.5]}}, ["start extension", "-0.1"]),
    "initial design outside": ({"design": {"gear": [20, 100]}}, ["200", "100"]),
    "text for a number": ({"reward": {"alive": "much"}}, ["env.reward.alive", "'much'"]),
    "number for text": ({"design": {"expert": 3}}, ["env.design.expert", "3"]),
    "text for a whole number": ({"max_steps": "1000"}, ["env.max_steps", "'1000'"]),
    "fraction for a whole number": ({"max_steps": 10.5}, ["env.max_steps", "10.5"]),
    "truth value for a whole number": ({"max_steps": True}, ["env.max_steps", "True"]),
    "number for a truth value": ({"raise_from_ground": 1}, ["env.raise_from_ground", "1"]),
    "nothing for a number": ({"start": {"noise": None}}, ["env.start.noise", "None"]),
    "not a number": ({"reward": {"alive": float("nan")}}, ["env.reward.alive", "nan"]),
    "infinite": ({"end": {"max_height": float("inf")}}, ["env.end.max_height", "inf"]),
    "huge": ({"reward": {"alive": 10**400}}, ["env.reward.alive"]),
    "nothing for a section": ({"reward": None}, ["env.reward", "None"]),
    "number for a section": ({"reward": 3}, ["env.reward", "3"]),
    "section for a number": ({"max_steps": {"a": 1}}, ["env.max_steps", "a"]),
    "three bounds": ({"design": {"gear": [1, 2, 3]}}, ["env.design.gear", "[1, 2, 3]"]),
    "bounds are text": ({"design": {"gear": "20-400"}}, ["env.design.gear", "20-400"]),
    "unknown speed": ({"reward": {"speed": "sideways"}}, ["env.reward.speed", "sideways", "absolute"]),
    "unknown time limit": ({"time_limit": "never"}, ["env.time_limit", "never", "truncate"]),
    "unknown plane": ({"design": {"plane": "yz"}}, ["env.design.plane", "yz"]),
    "no steps": ({"max_steps": 0}, ["max_steps", "0"]),
    "negative noise": ({"start": {"noise": -0.1}}, ["noise", "-0.1"]),
    "no limbs": ({"design": {"initial": {"limbs": []}}}, ["0"]),
    "no children": ({"design": {"max_children": 0}}, ["max_children", "0"]),
    "too many children": ({"design": {"max_children": 10}}, ["10", "9"]),
    "no frame skip": ({"scene": {"frame_skip": 0}}, ["frame_skip", "0"]),
    "no timestep": ({"scene": {"timestep": 0}}, ["timestep", "0"]),
    "gap wider than its period": ({"scene": {"ground": {"gap_width": 4}}}, ["gap_width", "4"]),
    "negative density": ({"scene": {"geom_density": -1}}, ["density", "-1"]),
    "no such condim": ({"scene": {"geom_condim": 2}}, ["condim", "2"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_told_in_one_sentence(case: str) -> None:
    overrides, fragments = WRONG[case]
    with pytest.raises((ConfigError, DesignError)) as error:
        make_task("gap", **overrides)
    assert_one_sentence(error.value, *fragments)


@pytest.mark.parametrize("name", ["mars", "", "Gap", "../env/gap", "gap.yaml", "\0"])
def test_unknown_environment(name: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_task(name)
    assert_one_sentence(error.value, name, "cheetah, crawler, gap,", "locomotion2d, locomotion3d", "swimmer")


def test_a_configuration_without_a_name() -> None:
    with pytest.raises(ConfigError) as error:
        task_from_config({"version": 1})
    assert_one_sentence(error.value, "None")


def test_overrides_change_only_their_key_and_only_this_task() -> None:
    changed = make_task("gap", reward={"alive": 0.7}, max_steps=5)
    assert (changed.config.reward.alive, changed.config.max_steps) == (0.7, 5)
    plain = make_task("gap").config
    assert (plain.reward.alive, plain.max_steps) == (0.1, 1000)
    assert changed.config.reward.speed == plain.reward.speed
    assert changed.config.scene == plain.scene


def test_bounds_are_keys() -> None:
    space = make_task("gap", design={"gear": [10, 500]}).space
    assert (space.lower[2], space.upper[2]) == (10, 500)


def test_children_and_depth_are_keys() -> None:
    space = make_task("gap", design={"max_children": 2, "max_depth": 2}).space
    assert set(space.index_names) == {"0", "1", "11", "21"}
    assert space.index_base == 3
