"""After every fault: nothing that was recorded is lost, and the resumed run equals one that nothing disturbed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.injection import FAULTS, Case, Verdict, attempt, obstacle, undisturbed


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_run_survives(fault: Callable[[Case], None], tmp_path: Path, expected: Any) -> None:
    if reason := obstacle(fault):
        pytest.skip(reason)
    for number in range(3):
        assert attempt(fault, tmp_path / str(number), expected, number) == Verdict(0, None)
