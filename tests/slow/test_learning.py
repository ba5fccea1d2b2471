"""Learning, in minutes on two cores: Transform2Act learns to run forward, not just to stay up (750,000 steps of 2D locomotion with the
paper's batch; until about 0.4 million the most likely design is the initial one, which falls where it stands), and critics are alive."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from codesign_bench.configuration import load_config
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.runner import run


@pytest.mark.slow
def test_transform2act_on_locomotion2d(tmp_path: Path) -> None:
    config = load_config("config", ["env=locomotion2d", "budget.until=750000", "seed=0", f"results={tmp_path}", "progress=false"])
    assert run(config) == "done"
    progress = pd.read_csv(RunFolder.of(config).progress)
    assert progress["steps"].tolist() == list(range(50_000, 750_001, 50_000))
    best = progress.loc[progress["return_mean"].idxmax()]
    assert best["return_mean"] > 150, "falling where it stands gives about 42"
    assert best["return_mean"] - best["episode_length"] > 50, "the bonus for being alive is one a step; the rest is speed"
    assert best["net_displacement"] > 0.4
    assert progress["train_return"].iloc[-1] > 2 * progress["train_return"].iloc[0]
    assert progress["unstable"].iloc[-1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["expert", "transform2act"])
def test_critics_on_a_running_scale_are_alive(method: str, tmp_path: Path) -> None:
    """Those of raw returns are constants at this time: their explained variance is 0."""
    words = [f"method={method}", "env=locomotion2d", "budget.until=300000", "method.ppo.normalise_values=true", "progress=false"]
    config = load_config("config", [*words, f"results={tmp_path}"])
    assert run(config) == "done"
    learning = pd.read_csv(RunFolder.of(config).tables / "learning.csv")
    assert learning["steps"].iloc[-1] == 300_000
    assert learning["explained_variance"].iloc[-1] > 0.5
