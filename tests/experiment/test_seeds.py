"""Random streams by name, and the ledger's state."""

from __future__ import annotations

import numpy as np

from codesign_bench.experiment.seeds import Streams

NAMES = [("networks",), ("minibatches",), ("sampler", 0), ("sampler", 1), ("evaluation", 0), ("evaluation", 1), ("evaluation", 0, 1)]


def test_the_values_never_change() -> None:
    """Frozen: another value here means that published runs cannot be made again."""
    assert Streams(0).sequence("evaluation", 3).generate_state(3).tolist() == [2338404308, 3523176826, 449795013]
    assert Streams(0).generator("minibatches").integers(0, 1000, 5).tolist() == [928, 735, 191, 461, 620]
    assert [Streams(seed).integer("networks") for seed in (0, 1, 12345)] == [4705790414038474160, 8709923844113676265, 7304318269804297195]


def test_streams_are_told_apart_by_name_numbers_and_seed() -> None:
    states = {tuple(Streams(seed).sequence(*name).generate_state(4).tolist()) for seed in (0, 1, 2) for name in NAMES}
    assert len(states) == 3 * len(NAMES)


def test_a_stream_does_not_depend_on_the_use_of_others() -> None:
    used, fresh = Streams(7), Streams(7)
    for name in NAMES:
        used.generator(*name).normal(size=100)
        used.sequence(*name).spawn(3)
    assert used.generator("sampler", 1).normal(size=5).tolist() == fresh.generator("sampler", 1).normal(size=5).tolist()
    assert used.generator("sampler", 1).normal() == used.generator("sampler", 1).normal()


def test_streams_are_not_correlated() -> None:
    draws = np.array([Streams(0).generator(*name).normal(size=10_000) for name in NAMES])
    assert np.abs(np.corrcoef(draws) - np.eye(len(NAMES))).max() < 0.05


def test_seeds_for_torch_are_whole_numbers_that_it_takes() -> None:
    assert all(0 <= Streams(seed).integer("networks") < 2**63 for seed in range(50))
