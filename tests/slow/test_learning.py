"""Transform2Act learns to leap forward, not just to fall: 200,000 steps of 2D locomotion, some two minutes on two cores."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from codesign_bench.command_line import load_config
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.runner import run


@pytest.mark.slow
def test_transform2act_on_locomotion2d(tmp_path: Path) -> None:
    config = load_config(
        "config", ["env=locomotion2d", "budget=pilot", "budget.until=200000", "seed=0", f"results={tmp_path}", "progress=false"]
    )
    assert run(config) == "done"
    progress = pd.read_csv(RunFolder.of(config).progress)
    assert progress["steps"].tolist() == list(range(50_000, 200_001, 50_000))
    assert progress["return_mean"].max() > 100, "at random about 40: it falls where it stands"
    assert progress["net_displacement"].max() > 0.3
    assert progress["unstable"].iloc[-1] == 0
