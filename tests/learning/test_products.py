"""Routes of matrix products: what fills up rows changes nothing, and only exact float32 is chosen."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from codesign_bench.learning import products
from codesign_bench.learning.batch import steps_of_rollout
from codesign_bench.learning.forest import filled_up
from codesign_bench.learning.ppo import PPO
from tests.learning.test_ppo import CONFIG, material, weights


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = products.in_use()
    yield
    products.use(before)


@pytest.mark.parametrize("multiple", [2, 16, 64])
def test_a_filled_up_forest_holds_the_same_graphs(multiple: int) -> None:
    task, _, _, rollout = material()
    steps, _ = steps_of_rollout(rollout, task.space)
    chosen = np.random.default_rng(0).permutation(steps.num_steps)[:51]
    forest, rows = steps.forest(chosen)
    filled, filled_rows = filled_up(forest, rows, multiple)
    assert all((end - start) % multiple == 0 for _, start, end in filled.segments)
    assert filled.num_graphs > forest.num_graphs
    assert [joint for joint, _, _ in filled.segments] == [joint for joint, _, _ in forest.segments]
    for joint, start, end in filled.segments:
        assert (steps.joint_index[filled_rows[start:end]] == joint).all()
    assert sorted(filled_rows[(filled.graph < len(chosen)).numpy()]) == sorted(rows)
    of_row = {int(row): i for i, row in enumerate(filled_rows) if filled.graph[i] < len(chosen)}
    for i, row in enumerate(rows):
        j = of_row[int(row)]
        assert filled.graph[j] == forest.graph[i]
        mine = [int(rows[n]) for n in forest.neighbours[forest.offsets[i] : forest.offsets[i + 1]]]
        assert [int(filled_rows[n]) for n in filled.neighbours[filled.offsets[j] : filled.offsets[j + 1]]] == mine
    alone = filled.graph >= len(chosen)
    assert not filled.offsets.diff()[alone].any()
    depth = steps.space.joint_depths[steps.joint_index[filled_rows]]
    assert filled.up_to_depth == tuple(int((depth <= d).sum()) for d in range(len(forest.up_to_depth)))


def test_learning_from_filled_up_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same weights but for the order of sums, whatever the rows are filled up to."""
    task, policy, value, rollout = material()
    steps, bootstrap = steps_of_rollout(rollout, task.space)
    found = []
    for multiple in (1, 64):
        monkeypatch.setattr(products, "multiple_of_rows", lambda multiple=multiple: multiple)
        networks = copy.deepcopy((policy, value))
        losses = PPO(*networks, replace(CONFIG, normalise_values=True)).learn(rollout, steps, bootstrap, np.random.default_rng(0))
        found.append((losses, weights(networks[0]) + weights(networks[1])))
    (plain, plain_weights), (filled, filled_weights) = found
    assert filled.policy == pytest.approx(plain.policy, rel=1e-3, abs=1e-6)
    assert filled.value == pytest.approx(plain.value, rel=1e-4)
    before = weights(policy) + weights(value)
    moved, apart = (
        sum(float((a - b).double().square().sum()) for a, b in zip(plain_weights, others, strict=True)) ** 0.5
        for others in (before, filled_weights)
    )
    assert apart < 0.01 * moved, "single weights with gradients near 0 may go another way, as Adam's steps know only signs at first"


def test_the_route_is_what_was_asked_for() -> None:
    for route in ("onednn", "mkl"):
        products.use(route)  # type: ignore[arg-type]
        assert products.in_use() == route
    assert products.multiple_of_rows() == 1


def test_the_fastest_is_exact_and_nothing_is_left_changed() -> None:
    products.use("mkl")
    assert products.is_exact(products.fastest(repeats=2))
    assert products.in_use() == "mkl"


@pytest.mark.parametrize(("faster", "error", "expected"), [(3.0, 1e-7, "onednn"), (3.0, 1e-3, "mkl"), (1.0, 1e-7, "mkl")])
def test_choice(faster: float, error: float, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is clearly faster, and never bfloat16 in disguise."""
    errors = {"mkl": [1.1e-7], "onednn": [error]}
    monkeypatch.setattr(products, "_errors", lambda route: errors[route])
    monkeypatch.setattr(products, "_seconds", lambda route: 1.0 if route == "mkl" else 1 / faster)
    assert products.fastest() == expected


def less_precise(a: Tensor, bits: int) -> Tensor:
    """With so many bits of the mantissa left: 7 are bfloat16's, 10 are TF32's."""
    return (a.contiguous().view(torch.int32) & -(1 << (23 - bits))).view(torch.float32)


@pytest.mark.parametrize("bits", [7, 10, 14])
def test_less_than_float32_would_be_noticed(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(route: str) -> list[float]:
        pairs = [(less_precise(a, bits), less_precise(b, bits), a, b) for a, b in products._products()]
        return [float((x @ y - a.double() @ b.double()).abs().max() / (a @ b).abs().max()) for x, y, a, b in pairs]

    exact = products._errors
    monkeypatch.setattr(products, "_errors", lambda route: rounded(route) if route == "onednn" else exact(route))
    assert not products.is_exact("onednn")
    assert products.fastest() == "mkl"


def test_sums_in_another_order_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, as no library would: the worst that float32 does."""

    def one_by_one(route: str) -> list[float]:
        pairs = [(a[:16], b[:, :16]) for a, b in products._products()]
        sums = [functools.reduce(torch.add, ((a[:, k, None] * b[k]) for k in range(a.shape[1]))) for a, b in pairs]
        return [float((x - a.double() @ b.double()).abs().max() / x.abs().max()) for x, (a, b) in zip(sums, pairs, strict=True)]

    exact = products._errors
    monkeypatch.setattr(products, "_errors", lambda route: one_by_one(route) if route == "onednn" else exact(route))
    assert products.is_exact("onednn")
