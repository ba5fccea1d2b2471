from __future__ import annotations

import numpy as np
import pytest

from codesign_bench.simulation.sampler import Sampler, random_policy
from codesign_bench.tasks import make_task
from codesign_bench.tasks.features import FeatureLayout
from tests.reference.specification import TASKS


def test_columns() -> None:
    layout = FeatureLayout(num_depths=3, state_size=2)
    depth, attributes, state = np.array([0, 2]), np.arange(10.0).reshape(2, 5), np.array([[0.5, 0.25], [-1, -2]])
    features = layout.features(depth, attributes, state)
    assert features.dtype == np.float32
    assert features.tolist() == [[1, 0, 0, 0.5, 0.25, 0, 1, 2, 3, 4], [0, 0, 1, -1, -2, 5, 6, 7, 8, 9]]
    np.testing.assert_array_equal(features[:, layout.state], state)
    np.testing.assert_array_equal(features[:, layout.attributes], attributes)
    np.testing.assert_array_equal(features[:, layout.depth], np.eye(3)[depth])
    assert layout.features(depth, attributes)[:, layout.state].tolist() == [[0, 0], [0, 0]]
    assert layout.design_columns.tolist() == [0, 1, 2, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("name", TASKS)
def test_what_the_sampler_shows_is_laid_out_so(name: str) -> None:
    task = make_task(name)
    seen = []

    def policy(graphs: object) -> object:
        seen.append(graphs.features.copy())  # type: ignore[attr-defined]
        return random_policy(graphs)  # type: ignore[arg-type]

    rollout = Sampler(task, 2, np.random.SeedSequence(0)).collect(policy, 8)  # type: ignore[arg-type]
    table, design = rollout.designs, rollout.design.ravel()
    nodes = np.concatenate([np.arange(table.offsets[d], table.offsets[d + 1]) for d in design])
    assert rollout.state.any()
    expected = task.features.features(table.depth[nodes], table.attributes[nodes], rollout.state)
    np.testing.assert_array_equal(np.concatenate(seen), expected)
