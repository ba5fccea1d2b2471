"""Plain mappings into dataclasses: every mistake is one sentence that names the place, the value and what is allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from codesign_bench.errors import ConfigError
from codesign_bench.structured import Checked, Count, FolderName, Natural, Positive, Share, build, merged


@dataclass(frozen=True)
class Wheel:
    radius: float
    pair: tuple[float, int] = (1.0, 2)


@dataclass(frozen=True)
class Car:
    name: str
    doors: int
    electric: bool
    colour: Literal["red", "blue"]
    front: Wheel
    top_speed: float | None
    spare: tuple[Wheel, ...] = ()
    weight: float = 1.0
    hidden: int = field(default=3, init=False)


GOOD: dict[str, Any] = {"name": "a", "doors": 4, "electric": True, "colour": "red", "front": {"radius": 1}, "top_speed": None}


def test_a_complete_mapping() -> None:
    car = build(Car, {**GOOD, "spare": [{"radius": 2, "pair": [0.5, 7]}]}, "car")
    assert car == Car("a", 4, True, "red", Wheel(1.0), None, (Wheel(2.0, (0.5, 7)),))
    assert isinstance(car.front.radius, float)
    assert isinstance(car.spare[0].pair[1], int)
    assert build(Car, {**GOOD, "top_speed": 3}, "car").top_speed == 3.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wings": 2}, "car has an unknown key 'wings'; allowed are name, doors, electric, colour, front, top_speed, spare, weight."),
        ({"hidden": 2}, "car has an unknown key 'hidden'; allowed are name, doors, electric, colour, front, top_speed, spare, weight."),
        ({"front": {"radius": 1, "spokes": 3}}, "car.front has an unknown key 'spokes'; allowed are radius, pair."),
        ({"front": {}}, "car.front lacks the key 'radius'; its keys are radius, pair."),
        ({"front": 3}, "car.front is 3; allowed is a mapping with the keys radius, pair."),
        ({"front": None}, "car.front is None; allowed is a mapping with the keys radius, pair."),
        ({"name": 3}, "car.name is 3; allowed is text."),
        ({"doors": 4.0}, "car.doors is 4.0; allowed is a whole number."),
        ({"doors": True}, "car.doors is True; allowed is a whole number."),
        ({"doors": "4"}, "car.doors is '4'; allowed is a whole number."),
        ({"doors": None}, "car.doors is None; allowed is a whole number."),
        ({"electric": 1}, "car.electric is 1; allowed is true or false."),
        ({"electric": "yes"}, "car.electric is 'yes'; allowed is true or false."),
        ({"colour": "green"}, "car.colour is 'green'; allowed are red, blue."),
        ({"colour": None}, "car.colour is None; allowed are red, blue."),
        ({"colour": ["red"]}, "car.colour is ['red']; allowed are red, blue."),
        ({"weight": float("nan")}, "car.weight is nan; allowed is a finite number."),
        ({"weight": float("inf")}, "car.weight is inf; allowed is a finite number."),
        ({"weight": True}, "car.weight is True; allowed is a finite number."),
        ({"weight": "heavy"}, "car.weight is 'heavy'; allowed is a finite number."),
        ({"weight": None}, "car.weight is None; allowed is a finite number."),
        ({"top_speed": "fast"}, "car.top_speed is 'fast'; allowed is a finite number."),
        ({"front": {"radius": 1, "pair": [1]}}, "car.front.pair is [1]; allowed is a list of 2."),
        ({"front": {"radius": 1, "pair": [1, 2, 3]}}, "car.front.pair is [1, 2, 3]; allowed is a list of 2."),
        ({"front": {"radius": 1, "pair": "ab"}}, "car.front.pair is 'ab'; allowed is a list."),
        ({"front": {"radius": 1, "pair": 5}}, "car.front.pair is 5; allowed is a list."),
        ({"front": {"radius": 1, "pair": [1, 2.5]}}, "car.front.pair[1] is 2.5; allowed is a whole number."),
        ({"spare": [{"radius": 1}, {"radius": "x"}]}, "car.spare[1].radius is 'x'; allowed is a finite number."),
        pytest.param({"weight": 10**400}, "car.weight is 1"),
    ],
)
def test_mistakes(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(Car, {**GOOD, **change}, "car")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", list(GOOD))
def test_missing_keys(key: str) -> None:
    with pytest.raises(ConfigError, match=f"car lacks the key '{key}'"):
        build(Car, {k: v for k, v in GOOD.items() if k != key}, "car")


@pytest.mark.parametrize("value", [None, 3, "text", [1, 2]])
def test_no_mapping_at_all(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"car is .*; allowed is a mapping with the keys name, doors"):
        build(Car, value, "car")


def test_merging_replaces_leaves_and_leaves_the_base_alone() -> None:
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 4}
    assert merged(base, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}, "d": 4}
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 4}
    assert merged(base, {"a": {"x": 1}, "d": {"y": 2}}) == {"a": {"b": 1, "c": [1, 2], "x": 1}, "d": {"y": 2}}


@dataclass(frozen=True)
class Engine(Checked):
    cylinders: Count
    idle: Share = 0.5
    gears: tuple[Positive, ...] = ()
    turbo: Natural | None = None
    maker: FolderName = "us"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cylinders": 0}, "engine.cylinders is 0; allowed are whole numbers from 1 up."),
        ({"cylinders": 1.5}, "engine.cylinders is 1.5; allowed is a whole number."),
        ({"idle": 2}, "engine.idle is 2.0; allowed are numbers from 0 to 1."),
        ({"gears": [1, 0]}, "engine.gears[1] is 0.0; allowed are numbers above 0."),
        ({"turbo": -1}, "engine.turbo is -1; allowed are whole numbers from 0 up."),
        ({"maker": "a/b"}, "engine.maker is 'a/b'; allowed are names of folders."),
    ],
)
def test_ranges_are_a_part_of_annotations(change: dict[str, Any], message: str) -> None:
    assert build(Engine, {"cylinders": 4, "turbo": None}, "engine") == Engine(4)
    with pytest.raises(ConfigError) as caught:
        build(Engine, {"cylinders": 4, **change}, "engine")
    assert str(caught.value) == message


def test_ranges_hold_without_a_mapping_too() -> None:
    with pytest.raises(ConfigError, match=r"^Engine\.cylinders is 0; allowed are whole numbers from 1 up\.$"):
        Engine(0)
    with pytest.raises(ConfigError, match="idle is nan"):
        Engine(1, float("nan"))


def test_keys_of_the_whole_configuration_have_no_prefix() -> None:
    with pytest.raises(ConfigError, match=r"^cylinders is 0; allowed"):
        build(Engine, {"cylinders": 0}, "the configuration")
    with pytest.raises(ConfigError, match=r"^the configuration has an unknown key"):
        build(Engine, {"wings": 0}, "the configuration")
