"""A pool that was given other groups samples what a new pool of those groups would."""

from __future__ import annotations

import numpy as np
import pytest

from codesign_bench.errors import ConfigError
from codesign_bench.experiment.equality import must_equal
from codesign_bench.simulation.budget import Ledger
from codesign_bench.simulation.episode import NO_TRANSFORM
from codesign_bench.simulation.sampler import random_policy
from codesign_bench.simulation.showing import random_design
from codesign_bench.simulation.workers import Group, WorkerPool
from codesign_bench.tasks import make_task

TASK = make_task("swimmer", max_steps=8)


def groups_of(seed: int) -> list[Group]:
    designs = tuple(random_design(TASK, np.random.default_rng(seed + i)) for i in range(3))
    starts = tuple(np.random.SeedSequence(seed + i) for i in range(3))
    return [Group(TASK, 3, np.random.SeedSequence(seed + 10 + i), NO_TRANSFORM, designs, starts) for i in range(2)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_rebuilt_pool_is_a_new_one(workers: int) -> None:
    ledger = Ledger(1000)
    with WorkerPool(groups_of(0), workers, ledger) as pool, WorkerPool(groups_of(100)) as new:
        pool.collect(random_policy, 11)
        pids = pool.pids
        pool.rebuild(groups_of(100))
        found, meant = pool.collect(random_policy, 20), new.collect(random_policy, 20)
        for name in ("reward", "state", "actions", "terminated", "last_state"):
            must_equal(getattr(found, name), getattr(meant, name), name)
        assert found.episodes == meant.episodes
        must_equal(pool.state_dict(), new.state_dict(), "The state")
        assert pool.pids == pids
        assert ledger.charged == 31 * 6
        with pytest.raises(ConfigError, match="1 new groups were given for 2 groups"):
            pool.rebuild(groups_of(0)[:1])
