from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codesign_bench.experiment import runner
from tests.experiment.tiny import changed, run, tiny
from tests.experiment.toy import Toy


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Configurations of the toy method, which takes a tenth of a second for its four iterations of 40 steps."""
    found = runner.method_class
    monkeypatch.setattr(runner, "method_class", lambda plugin: Toy if plugin == "toy" else found(plugin))

    def config(flaw: str = "none", **changes: Any) -> dict[str, Any]:
        base = tiny(tmp_path / "toy", "env.max_steps=12", "budget.batch=40", "budget.steps=160", "budget.evaluate_every=40")
        return changed({**base, "method": {"name": "toy", "plugin": "toy", "flaw": flaw}}, **changes)

    return config


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A Transform2Act run that nothing disturbed: its configuration and its outcome."""
    config = tiny(tmp_path_factory.mktemp("undisturbed"))
    return config, run(config)
