"""The agent of a run folder, for looking at it and for evaluating it again."""

import contextlib
import sys
from pathlib import Path
from typing import Any

from codesign_bench.errors import ConfigError
from codesign_bench.experiment import checkpoint
from codesign_bench.experiment.method import Agent
from codesign_bench.experiment.reevaluation import Which
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.runner import LiveRun, RunSetup
from codesign_bench.plain_files import read_yaml
from codesign_bench.simulation.budget import Ledger


def load_config_of(path: Path) -> dict[str, Any]:
    """The configuration of a run folder."""
    file = path / "config.yaml"
    if not file.is_file():
        raise ConfigError(f"run is '{path}'; allowed is the folder of a run, which holds a config.yaml.")
    try:
        config = read_yaml(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror}).") from None
    except ConfigError as error:
        raise ConfigError(f"{file} {error}.") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{file} holds no configuration.")
    return config


def load_champion(path: Path) -> tuple[Agent, RunSetup]:
    """The champion of a run's latest checkpoint."""
    setup = RunSetup.of(load_config_of(path))
    return champion_in(load_state(setup, RunFolder(path)), setup), setup


def load_state(setup: RunSetup, folder: RunFolder) -> dict[str, Any]:
    """Says so if the newest checkpoint is damaged and this is an older one."""
    state, passed_over = checkpoint.load_latest(folder.checkpoints, setup.hash, LiveRun.STATE)
    if state is None and folder.is_export():
        raise ConfigError(f"The run {folder.path} is an export, without checkpoints; allowed is the run that it was made from.")
    if state is None:
        raise ConfigError(f"The run {folder.path} has no checkpoint yet; let it take at least one iteration.")
    if passed_over:
        newest, charged = checkpoint.newest(folder.checkpoints), state["ledger"]["charged"]
        print(
            f"warning: the newest checkpoint of {folder.path}, at {newest} steps, is damaged; this is its agent at {charged} steps, "
            f"{newest - charged} steps before.",
            file=sys.stderr,
        )
    return state


def champion_in(state: dict[str, Any], setup: RunSetup, which: Which = "champion") -> Agent:
    with contextlib.closing(setup.new_method(Ledger(setup.budget.steps), device="cpu")) as method:
        method.load_state_dict(state["method"])
        agent = method.champion() if which == "champion" else method.incumbent()
    if agent is None:
        raise ConfigError(f"agent is {which}; allowed is champion, as {setup.method_class.__name__} keeps no {which}.")
    return agent
