"""Designs as JSON: the way there and back, and files that do not hold a design."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from codesign_bench.design.graph import Design, FixedGeom
from codesign_bench.errors import DesignError
from codesign_bench.tasks import make_task
from tests.reference.designs import random_design
from tests.reference.sentences import assert_one_sentence
from tests.reference.specification import SPECIFICATIONS, TASKS


@pytest.mark.parametrize("name", TASKS)
def test_round_trip_is_identical(name: str) -> None:
    task, rng = make_task(name), np.random.default_rng(15)
    for _ in range(50):
        design = random_design(task, SPECIFICATIONS[name], rng, offsets=True)
        again = Design.from_json(design.to_json())
        for field in ("parents", "attributes", "axis", "range", "friction", "joint_offset"):
            assert getattr(again, field).tobytes() == getattr(design, field).tobytes()
        assert (again.root_bone, again.root_geoms) == (design.root_bone, design.root_geoms)
        assert again == design
        assert hash(again) == hash(design)
        assert again.to_json() == design.to_json()


def test_fixed_geoms_come_back() -> None:
    task = make_task("locomotion2d")
    first = task.initial_design
    geoms = (FixedGeom((0.1, 0.2, 1 / 3), (0.0, -1e-17, 2.0), 0.07, (0.9, 0.1, 0.2)), FixedGeom((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), 0.5))
    design = Design(first.parents, first.attributes, first.axis, first.range, first.friction, first.joint_offset, True, geoms)
    assert Design.from_json(design.to_json()).root_geoms == geoms
    assert Design.from_json(design.to_json()) != first


def test_a_start_height_comes_back() -> None:
    design = make_task("locomotion3d").with_expert().initial_design
    assert design.start_height == 0.75
    assert Design.from_json(design.to_json()) == design
    older = design.to_dict()
    del older["start_height"]
    assert Design.from_dict(older).start_height is None
    assert Design.from_dict(older) != design


def test_equal_designs_have_equal_hashes() -> None:
    design = make_task("locomotion2d").initial_design
    signed = np.array(design.attributes)
    signed[0, 2] = -0.0
    assert design.with_attributes(signed) == design
    assert hash(design.with_attributes(signed)) == hash(design)


def first_node(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda value: value["nodes"][1].update(changes)


def top(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda value: value.update(changes)


def geom(**changes: Any) -> Callable[[dict[str, Any]], None]:
    entry = {"start": [0, 0, 0], "end": [0, 0, 0], "radius": 0.1, "friction": [1, 0, 0]}
    return lambda value: value.update(root_geoms=[entry | changes])


FIVE = [0.0] * 5

BAD = {
    "cycle": (lambda v: [v["nodes"][1].update(parent=2), v["nodes"].append({**v["nodes"][1], "parent": 1})], ["node 1", "2", "cycle"]),
    "own parent": (first_node(parent=1), ["node 1", "is 1"]),
    "second root": (first_node(parent=-1), ["node 1", "-1"]),
    "root with a parent": (lambda v: v["nodes"][0].update(parent=0), ["node 0", "-1"]),
    "parent out of range": (first_node(parent=7), ["node 1", "7"]),
    "parent is text": (first_node(parent="0"), ["nodes[1].parent", "'0'"]),
    "parent is a float": (first_node(parent=0.0), ["nodes[1].parent", "0.0"]),
    "parent is a truth value": (first_node(parent=False), ["nodes[1].parent", "False"]),
    "parent is nothing": (first_node(parent=None), ["nodes[1].parent", "None"]),
    "parent is huge": (first_node(parent=10**17), ["node 1", "1000000"]),
    "not a number": (first_node(attributes=[math.nan, *FIVE[1:]]), ["nodes[1].attributes", "nan"]),
    "infinite": (first_node(axis=[math.inf, 0, 0]), ["nodes[1].axis", "inf"]),
    "minus infinite": (first_node(range=[-math.inf, 0]), ["nodes[1].range", "-inf"]),
    "huge whole number": (first_node(friction=[10**400, 0, 0]), ["whole number beyond 9e+18"]),
    "too few attributes": (first_node(attributes=[0.5] * 4), ["nodes[1].attributes", "0.5", "list of 5"]),
    "too many attributes": (first_node(attributes=[0.5] * 6), ["nodes[1].attributes", "0.5", "list of 5"]),
    "axis of two": (first_node(axis=[1, 0]), ["nodes[1].axis", "[1, 0]", "list of 3"]),
    "axis is a number": (first_node(axis=7), ["nodes[1].axis", "7"]),
    "axis is an object": (first_node(axis={"x": 1}), ["nodes[1].axis", "'x'"]),
    "text among numbers": (first_node(joint_offset=[0, "1", 0]), ["nodes[1].joint_offset", "'1'"]),
    "truth value among numbers": (first_node(joint_offset=[0, True, 0]), ["nodes[1].joint_offset", "True"]),
    "nothing among numbers": (first_node(joint_offset=[0, None, 0]), ["nodes[1].joint_offset", "None"]),
    "list among numbers": (first_node(joint_offset=[0, [1], 0]), ["nodes[1].joint_offset", "[1]"]),
    "extra key": (top(colour="red"), ["colour"]),
    "extra key of a node": (first_node(mass=1), ["nodes[1]", "mass"]),
    "missing key": (lambda v: v.pop("root_geoms"), ["root_geoms"]),
    "missing key of a node": (lambda v: v["nodes"][1].pop("range"), ["nodes[1]", "range"]),
    "no nodes": (top(nodes=[]), ["nodes"]),
    "nodes is an object": (top(nodes={}), ["nodes"]),
    "node is a list": (top(nodes=[[]]), ["nodes[0]", "mapping"]),
    "unknown key": (top(format=99), ["'format'"]),
    "root_bone is a number": (top(root_bone=1), ["root_bone", "1"]),
    "root_geoms is nothing": (top(root_geoms=None), ["root_geoms"]),
    "radius of zero": (geom(radius=0), ["radius", "is 0"]),
    "radius not a number": (geom(radius=math.nan), ["root_geoms[0].radius", "nan"]),
    "radius is text": (geom(radius="1"), ["root_geoms[0].radius", "'1'"]),
    "geom with an extra key": (geom(kind="box"), ["root_geoms[0]", "kind"]),
    "geom start too short": (geom(start=[0]), ["root_geoms[0].start", "[0]"]),
    "start height is text": (top(start_height="1"), ["start_height", "'1'"]),
    "start height not a number": (top(start_height=math.nan), ["start_height", "nan"]),
    "very many numbers": (first_node(attributes=[0.5] * 10_000), ["nodes[1].attributes"]),
    "nested lists": (first_node(attributes=json.loads("[" * 400 + "]" * 400)), ["nested more than 32 deep"]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_a_design_is_told_in_one_sentence(case: str) -> None:
    change, fragments = BAD[case]
    value = json.loads(make_task("locomotion2d").initial_design.to_json())
    change(value)
    with pytest.raises(DesignError) as error:
        Design.from_json(json.dumps(value))
    assert_one_sentence(error.value, *fragments)


@pytest.mark.parametrize(
    "text",
    ["", "{", "nodes", "[" * 100_000, '{"a":' * 100_000, "1" * 5000, "null", "3", "[]", '"design"', "NaN", '{"format": 1}', "\ufeff{}"],
    ids=lambda text: repr(text[:12]),
)
def test_text_that_is_not_a_design(text: str) -> None:
    with pytest.raises(DesignError) as error:
        Design.from_json(text)
    assert_one_sentence(error.value)


# ---- the limits of a task ---------------------------------------------------------------------------------------------


def with_parents(name: str, parents: list[int]) -> tuple[Any, Design]:
    """A design with these parents; every node but the root looks like the first limb."""
    task = make_task(name)
    value = json.loads(task.initial_design.to_json())
    root, limb = value["nodes"][0], value["nodes"][1]
    value["nodes"] = [{**(limb if i else root), "parent": p} for i, p in enumerate(parents)]
    return task.space, Design.from_json(json.dumps(value))


@pytest.mark.parametrize(
    ("name", "parents", "fragments"),
    [
        ("locomotion2d", [-1, 0, 1, 2, 3], ["Node 4", "depth 4", "3"]),
        ("locomotion2d", [-1, 0, 1, 1, 1, 1], ["Node 1", "4 children", "3"]),
        ("locomotion2d", [-1, 0, 0], ["root", "2 children", "1"]),
        ("locomotion2d", [-1], ["root", "0 children", "1"]),
        ("swimmer", [-1, 0, 1, 2, 3, 4], ["Node 4", "depth 4", "3"]),
        ("locomotion3d", [-1, 0, 0, 0], ["root", "3 children", "4"]),
        ("locomotion3d", [-1, 0, 0, 0, 0, 1, 1, 1], ["Node 1", "3 children", "2"]),
    ],
)
def test_a_tree_outside_the_limits(name: str, parents: list[int], fragments: list[str]) -> None:
    space, design = with_parents(name, parents)
    with pytest.raises(DesignError) as error:
        space.check(design)
    assert_one_sentence(error.value, *fragments)


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (first_node(attributes=[0, 1.5, 0, 0, 0]), ["node 1", "1.5"]),
        (first_node(axis=[0, 0, 0]), ["axis of node 1", "zero"]),
        (first_node(range=[30, -30]), ["range of node 1", "30.0, -30.0"]),
        (first_node(friction=[-1, 0, 0]), ["friction", "outside 0 to 1000"]),
        (top(start_height=-101), ["start height", "-101"]),
        (lambda v: v["nodes"][0].update(attributes=[0, 0, 0.5, 0, 0]), ["root", "motor"]),
        (lambda v: [v["nodes"][0].update(attributes=FIVE), v.update(root_bone=False)], ["root", "bone"]),
    ],
)
def test_values_outside_the_space(change: Callable[[dict[str, Any]], Any], fragments: list[str]) -> None:
    task = make_task("locomotion2d")
    value = json.loads(task.initial_design.to_json())
    change(value)
    design = Design.from_json(json.dumps(value))
    with pytest.raises(DesignError) as error:
        task.space.check(design)
    assert_one_sentence(error.value, *fragments)


@pytest.mark.parametrize(
    "change",
    [first_node(axis=[1e-20, 0, 0]), geom(end=[0, 0, 1e-20]), geom(radius=1e300), geom(friction=[-1, 0, 0])],
    ids=["tiny axis", "tiny capsule", "huge sphere", "negative friction of a fixed geom"],
)
def test_a_checked_design_compiles(change: Callable[[dict[str, Any]], None]) -> None:
    """What the simulator would refuse is refused before, as a DesignError."""
    task = make_task("locomotion2d")
    value = json.loads(task.initial_design.to_json())
    change(value)
    with pytest.raises(DesignError) as error:
        task.space.check(Design.from_json(json.dumps(value)))
    assert_one_sentence(error.value)
