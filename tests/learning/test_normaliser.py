from __future__ import annotations

import json

import numpy as np
import pytest

from codesign_bench.learning.normaliser import Normaliser


def test_identity_before_the_first_update() -> None:
    x = np.array([[1000.0, -7.0]], dtype=np.float32)
    np.testing.assert_array_equal(Normaliser(2)(x), x)
    unused = Normaliser(2)
    unused.update(np.zeros((0, 2), dtype=np.float32))
    np.testing.assert_array_equal(unused(x), x)


@pytest.mark.parametrize("sizes", [[1], [5], [3, 1, 400, 20]])
def test_updating_with_batches_is_seeing_everything_at_once(sizes: list[int]) -> None:
    rng = np.random.default_rng(0)
    batches = [(rng.normal(size=(n, 4)) * [1, 30, 0.01, 2] + [0, 1000, -3, 5 * i]).astype(np.float32) for i, n in enumerate(sizes)]
    normaliser = Normaliser(4)
    for batch in batches:
        normaliser.update(batch)
    seen = np.concatenate(batches).astype(np.float64)
    np.testing.assert_allclose(normaliser.mean, seen.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(normaliser.squares / normaliser.count, seen.var(axis=0), rtol=1e-9, atol=1e-15)
    assert normaliser.count == len(seen)
    x = rng.normal(size=(50, 4)).astype(np.float32) * 40
    deviation = seen.std(axis=0)
    safe = np.maximum(deviation, 1e-4)
    expected = np.where(deviation < 1e-4, 0, np.clip((x - seen.mean(axis=0)) / safe, -5, 5))
    np.testing.assert_allclose(normaliser(x), expected, rtol=1e-6, atol=1e-6)
    assert normaliser(x).dtype == np.float32


def test_using_it_changes_nothing() -> None:
    normaliser = Normaliser(3)
    normaliser.update(np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32))
    before = normaliser.state_dict()
    x = np.full((4, 3), 9.0, dtype=np.float32)
    copy = x.copy()
    normaliser(x)
    assert normaliser.state_dict() == before
    np.testing.assert_array_equal(x, copy)


def test_output_is_clipped() -> None:
    normaliser = Normaliser(1)
    normaliser.update(np.array([[-1.0], [1.0]], dtype=np.float32))
    assert normaliser(np.array([[100.0], [-100.0], [2.0]], dtype=np.float32)).ravel().tolist() == [5.0, -5.0, 2.0]


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, 1e6 / 3, -123.456])
def test_a_constant_feature_is_harmless_in_float32(constant: float) -> None:
    """Many batches of a number that float32 rounds, then the number itself and one a rounding error away: 0, not +-5."""
    value = np.float32(constant)
    normaliser = Normaliser(2)
    rng = np.random.default_rng(0)
    for _ in range(5):
        normaliser.update(np.stack([np.full(1000, value), rng.normal(size=1000).astype(np.float32)], axis=1).astype(np.float32))
    near = np.array([[value, 0.5], [np.nextafter(value, np.float32(np.inf)), 0.5], [value + np.float32(1e-5), 0.5]], dtype=np.float32)
    assert (np.abs(normaliser(near)[:, 0]) == 0).all()
    assert (normaliser(near)[:, 1] != 0).all()


def test_state_survives_json() -> None:
    normaliser, again = Normaliser(3), Normaliser(3)
    normaliser.update(np.random.default_rng(1).normal(size=(17, 3)).astype(np.float32))
    again.load_state_dict(json.loads(json.dumps(normaliser.state_dict())))
    more = np.random.default_rng(2).normal(size=(5, 3)).astype(np.float32)
    for one in (normaliser, again):
        one.update(more)
    assert again.state_dict() == normaliser.state_dict()
    np.testing.assert_array_equal(again(more), normaliser(more))
