"""After every fault: nothing that was recorded is lost, and the resumed run equals one that nothing disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.faults import FAULTS, Fault, obstacle
from tests.faults.trial import Found, attempt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_run_survives(fault: Fault, folder: Path) -> None:
    if reason := obstacle(fault):
        pytest.skip(reason)
    for method in ("transform2act", "nge"):
        verdict = attempt(method, [fault, fault], [FAULTS.index(fault), ["transform2act", "nge"].index(method)], folder)
        assert verdict.found[0] == Found(fault.__name__), verdict
        assert not verdict.bad, verdict
