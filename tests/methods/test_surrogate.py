"""GM-UC: the pool, the masks, what the surrogate sees and learns."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from codesign_bench.experiment.equality import must_equal
from codesign_bench.tasks import make_task
from methods.evolution.random_design import random_design
from methods.evolution.selection import DEAD
from methods.nge import method as nge
from methods.nge.surrogate import WIDTH, GMUCConfig, Surrogate, half_masks, top
from tests.methods.population import make, small

CONFIG = GMUCConfig(enabled=True, pool=10, steps=100, batch=64, lr=1e-3, temperature=0.0)
TASK = make_task("swimmer")


def surrogate(**changes: Any) -> Surrogate:
    return Surrogate(TASK.space, GMUCConfig(**{**vars(CONFIG), **changes}), seed=0)


def designs(number: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [random_design(TASK, int(rng.integers(0, 12)), rng) for _ in range(number)]


def test_pool_and_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is pruned before twice the population is known; then ten candidates for each place, of which the chosen ones are
    born. Survivors stay, pruned candidates take no number."""
    method = make(small("nge", "method.gm_uc.enabled=true", "method.gm_uc.steps=3", "budget.steps=3200", "method.elimination=0.5"))
    pools: list[int] = []
    draw = nge.mutants

    def drawn(parents: Any, number: int, *arguments: Any) -> Any:
        found = draw(parents, number, *arguments)
        pools.append(number)
        drawn.last = [(o.parent.number, o.design) for o in found]  # type: ignore[attr-defined]
        return found

    monkeypatch.setattr(nge, "mutants", drawn)
    for generation in range(5):
        before = {species.number: species for species in method.population.species}
        method.iterate()
        if generation:
            staying = [species for species in method.population.species if species.number in before]
            born = [species for species in method.population.species if species.born == generation]
            assert len(staying) == len(born) == 2
            assert all(before[species.number] is species for species in staying)
            assert all((species.parent, species.design) in drawn.last for species in born)  # type: ignore[attr-defined]
            known = 4 + 2 * (generation - 1)
            assert len(method.surrogate.records) == known + 2
            assert pools[-1] == (20 if known >= 8 else 2)
    assert sorted(method.surrogate.records) == list(range(12))  # those that were eliminated too
    assert method.population.next_number == 12


def test_the_latest_label_counts_within_its_generation() -> None:
    found, some = surrogate(), designs(4)
    found.note([(i, design, float(i)) for i, design in enumerate(some[:3])])
    found.note([(1, some[1], 100.0), (3, some[3], 300.0)])
    expected = (np.arange(3) - 1) / np.std(np.arange(3))
    labels = {number: record.label for number, record in found.records.items()}
    assert labels == pytest.approx({0: expected[0], 1: -1.0, 2: expected[2], 3: 1.0})


def test_constant_and_dead_labels_are_numbers() -> None:
    found, some = surrogate(), designs(4)
    for constant in (5.0, 0.1, -0.7, 0.0):
        found.note([(i, some[i % 4], constant) for i in range(20)])
        assert {record.label for record in found.records.values()} == {0.0}
    found.note([(i, design, 5.0) for i, design in enumerate(some)])
    assert {record.label for record in found.records.values()} == {0.0}
    found.train(np.random.default_rng(0))
    assert np.isfinite(found.predict(some, half_masks(np.random.default_rng(0)))).all()
    found.note([(0, some[0], DEAD), (1, some[1], float("nan")), (2, some[2], 1.0), (3, some[3], 2.0)])
    labels = [found.records[i].label for i in range(4)]
    assert labels[0] == labels[1] == labels[2] < labels[3]
    found.note([(i, design, DEAD) for i, design in enumerate(some)])
    assert {record.label for record in found.records.values()} == {0.0}


def test_masks_have_half_of_their_units_on() -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros(WIDTH)
    for _ in range(300):
        for mask in half_masks(rng):
            assert sorted(set(mask.tolist())) == [0.0, 2.0]
            assert np.count_nonzero(mask.numpy()) == WIDTH // 2
            counts += mask.numpy() / 2
    assert np.abs(counts - 450).max() < 4.5 * np.sqrt(900 / 4)


def test_equal_designs_are_predicted_equal() -> None:
    """Within a generation, in one batch or in two: the prediction depends on the design alone."""
    found, some, masks = surrogate(), designs(6), half_masks(np.random.default_rng(1))
    found.note([(i, design, float(i)) for i, design in enumerate(some)])
    found.train(np.random.default_rng(2))
    predictions = found.predict([some[0], some[3], some[0], some[5]], masks)
    assert predictions[0] == predictions[2]
    assert np.allclose(found.predict(some, masks)[[0, 3, 5]], predictions[[0, 1, 3]], atol=1e-6)
    assert not np.allclose(found.predict(some, half_masks(np.random.default_rng(3))), found.predict(some, masks))


def test_one_set_of_masks_in_a_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(nge, "half_masks", lambda rng: calls.append(found := half_masks(rng)) or found)
    method = make(small("nge", "method.gm_uc.enabled=true", "method.gm_uc.steps=3", "method.elimination=0.5", "budget.steps=1600"))
    for _ in range(5):
        method.iterate()
    assert len(calls) == 2  # reproductions 3 and 4 know enough


def test_keeping_follows_the_softmax() -> None:
    rng, predictions, temperature, trials = np.random.default_rng(0), np.array([0.0, 0.1, 0.25, -0.1]), 0.1, 8000
    found = Counter(top(predictions, 1, temperature, rng)[0] for _ in range(trials))
    weights = np.exp(predictions / temperature)
    assert stats.chisquare([found[i] for i in range(4)], trials * weights / weights.sum()).pvalue > 6e-5
    assert top(predictions, 2, 0.0, rng) == [1, 2]
    assert top(predictions, 2, 1e-9, rng) == [1, 2]
    assert top(np.zeros(4), 2, 0.0, rng) == [0, 1]


def test_it_learns_a_property_of_designs() -> None:
    """The number of bodies: predictions rank unseen designs, and the kept ones beat a random choice."""
    found, train, unseen = surrogate(), designs(60, seed=1), designs(100, seed=2)
    found.note([(i, design, float(design.num_nodes)) for i, design in enumerate(train)])
    rng = np.random.default_rng(0)
    for _ in range(6):
        found.train(rng)
    bodies = np.array([design.num_nodes for design in unseen])
    predictions = found.predict(unseen, [torch.ones(WIDTH)] * 3)
    assert stats.spearmanr(predictions, bodies).statistic > 0.8
    sampled = found.predict(unseen, half_masks(rng))
    kept = top(sampled, 15, 0.0, rng)
    sigma = bodies.std() * np.sqrt((1 / 15) * (100 - 15) / (100 - 1))  # of the mean of 15 that are drawn without replacement
    assert bodies[kept].mean() > bodies.mean() + 4 * sigma


def test_its_state_survives() -> None:
    found, other, some = surrogate(), surrogate(), designs(5)
    found.note([(i, design, float(i)) for i, design in enumerate(some)])
    found.train(np.random.default_rng(0))
    other.load_state_dict(copy.deepcopy(found.state_dict()))
    for each in (found, other):
        each.train(np.random.default_rng(1))
    must_equal(found.state_dict(), other.state_dict(), "a surrogate that was saved and loaded")
