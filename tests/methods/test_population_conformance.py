"""NGE, ESS, RGS and DERL pass the conformance suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codesign_bench.experiment import conformance
from tests.methods.population import small

IN_SECONDS = [check for check in conformance.CHECKS if check is not conformance.worker_independence]
OF_EACH = (
    *(conformance.equal_charging, conformance.determinism, conformance.resume_equality, conformance.state_survives),
    conformance.legal_designs,
)
"""Fast tests take these of every method, and all of NGE; the four share most of their code."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("populations")


@pytest.mark.parametrize("check", IN_SECONDS, ids=lambda check: check.__name__)
def test_nge(check: Callable[..., None], shared: Path) -> None:
    check(small("nge"), shared / "nge")


@pytest.mark.parametrize("method", ["ess", "rgs", "derl"])
@pytest.mark.parametrize("check", OF_EACH, ids=lambda check: check.__name__)
def test_the_others(check: Callable[..., None], method: str, shared: Path) -> None:
    check(small(method), shared / method)


def test_with_workers(shared: Path) -> None:
    conformance.worker_independence(small("nge"), shared / "nge")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ess", "rgs", "derl"])
def test_the_others_in_full(method: str, shared: Path) -> None:
    conformance.check(small(method), shared / method)


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ("nge", "method.gm_uc.enabled=true", "method.mutation.add_graph=0.5"),
        ("nge", "method.inner_iterations=2"),
        ("nge", "method.cohort=1", "env=locomotion3d"),
        ("ess", "method.amortized=false"),
        ("ess", "method.inherit_if_same_topology=true", "env=locomotion2d"),
        ("rgs", "method.redraw_every=1", "env=gap"),
        ("rgs", "method.controller.gnn=[8,8]", "env=gap"),
        ("derl", "method.controller.gnn=null", "method.inner_iterations=2", "env=gap"),
        ("derl", "method.lifetime=80", "method.window=4", "env=locomotion3d"),
    ],
    ids=" ".join,
)
def test_options(overrides: tuple[str, ...], tmp_path: Path) -> None:
    conformance.check(small(*overrides), tmp_path)
