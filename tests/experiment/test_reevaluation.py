"""Fresh episodes of a final agent, a new controller for its design, and the motion that is kept for pictures."""

from __future__ import annotations

import json
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from codesign_bench.commands import reevaluate as command
from codesign_bench.configuration import load_config
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import ConfigError, DesignError
from codesign_bench.experiment import runner
from codesign_bench.experiment.evaluation import evaluate
from codesign_bench.experiment.load import load_champion, load_state
from codesign_bench.experiment.motion import Motion, record
from codesign_bench.experiment.reevaluate import FOLDER, ReevaluateConfig, controller_config, reevaluate
from codesign_bench.experiment.reevaluation import Reevaluation, Which
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.seeds import Streams
from codesign_bench.experiment.signals import StopRequested, StopSignals
from codesign_bench.paths import options_of
from codesign_bench.simulation.sampler import Sampler
from tests.experiment.tiny import contents, folder_of
from tests.methods.population import make, small

NEW = {"reevaluation.json", "motion.json"}

CONTROLLER = load_config("reevaluate", ["run=x"])["controller"]
TRAINING = (*CONTROLLER, "ppo@method.ppo=paper", "budget.batch=200")


@pytest.fixture
def finished(undisturbed: Any, tmp_path: Path) -> Path:
    """A copy of a finished run."""
    return Path(shutil.copytree(folder_of(undisturbed[0]), tmp_path / "seed_0"))


def asked(path: Path, agent: Which = "champion", episodes: int = 3, seed: int = 0, train: int = 0, batch: int = 200) -> ReevaluateConfig:
    return ReevaluateConfig(str(path), agent, episodes, seed, train, 1.0, 0, CONTROLLER, "paper", batch)


def again(path: Path, **options: Any) -> Reevaluation:
    return reevaluate(asked(path, **options), ["test"])


def test_fresh_episodes_are_those_of_a_stream_of_their_own(finished: Path) -> None:
    found = again(finished, episodes=4).agent
    agent, plan = load_champion(finished)
    played = Sampler(agent.task, 4, Streams(plan.settings.seed).sequence("reevaluation", 0), agent.steps).play(agent.policy)
    returns = [record.total_return for record, _ in played]
    assert found.returns == tuple(returns)
    assert (found.return_mean, found.return_std) == (np.mean(returns), np.std(returns))
    assert (found.steps, found.episodes) == (plan.budget.steps, 4)
    assert found.evaluation_steps == sum(record.steps for record, _ in played)
    assert len(set(returns)) == 4
    assert again(finished, episodes=4).agent == found
    assert not set(again(finished, episodes=4, seed=1).agent.returns) & set(returns)


def test_the_run_itself_stays_as_it_is(finished: Path) -> None:
    before = contents(finished)
    again(finished)
    after = contents(finished)
    assert set(after) - set(before) == NEW
    assert {name: content for name, content in after.items() if name not in NEW} == before


def test_a_controller_from_scratch_on_the_frozen_design(finished: Path) -> None:
    before = contents(finished)
    found = again(finished, train=400)
    assert found.controller is not None
    assert (found.controller.steps, found.controller.episodes, found.controller.training) == (400, 3, TRAINING)
    (trained,) = (finished / FOLDER).iterdir()
    status = json.loads((trained / "status.json").read_text())
    assert (status["status"], status["steps"]) == ("done", 400)
    for design in (trained / "designs").glob("*.json"):
        assert StoredDesign.load(design) == StoredDesign.load(finished / "designs" / "final.json")
    after = contents(finished)
    assert {name: content for name, content in after.items() if name in before} == before, "nothing is charged to the run"
    assert found.columns().keys() >= {"reevaluated_return_mean", "retrained_return_mean", "retrained_steps"}
    assert Reevaluation.load(finished) == found
    assert again(finished).controller == found.controller, "fresh episodes alone keep the controller's"


def test_every_design_is_trained_for_alike(undisturbed: Any) -> None:
    """Whatever batch, rate and track a run had itself; the discount is the environment's."""
    run, config = undisturbed[0], asked(Path("x"), train=400)
    usual = controller_config(run, config, 0)
    assert (usual["budget"]["batch"], usual["budget"]["steps"]) == (200, 400)
    assert usual["method"]["ppo"] == load_config("config", ["env=swimmer"])["method"]["ppo"]
    other = {**run, "budget": {**run["budget"], "batch": 400}, "method": {**run["method"], "ppo": {"policy_lr": 1.0}}, "track": "strong"}
    assert {**controller_config(other, config, 0), "track": None} == {**usual, "track": None}
    patient = {**run, "env": {**run["env"], "discount": 0.9}}
    assert controller_config(patient, config, 0)["method"]["ppo"] == {**usual["method"]["ppo"], "gamma": 0.9}


@pytest.mark.parametrize("name", options_of("ppo"))
def test_the_settings_of_ppo_are_a_choice(undisturbed: Any, name: str) -> None:
    found = controller_config(undisturbed[0], replace(asked(Path("x"), train=400), ppo=name), 0)["method"]["ppo"]
    assert found == load_config("config", ["env=swimmer", f"ppo@method.ppo={name}"])["method"]["ppo"]


def test_all_runs_of_a_study(undisturbed: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study/swimmer/transform2act"
    shutil.copytree(folder_of(undisturbed[0]), study / "seed_0")
    shutil.copytree(folder_of(undisturbed[0]), study / "seed_1")
    config = yaml.safe_load((study / "seed_1/config.yaml").read_text())
    (study / "seed_1/config.yaml").write_text(yaml.safe_dump({**config, "seed": 1}))  # its checkpoints are of another seed
    arguments = [f"study={tmp_path / 'study'}", "episodes=2", "train=200", "batch=200", "workers=0"]
    assert command.main(arguments) == 1
    said = capsys.readouterr()
    assert "seed_0/reevaluation.json: return" in said.out
    assert "trained from scratch for 200 steps" in said.out
    (line,) = [line for line in said.err.splitlines() if line.startswith(f"{study / 'seed_1'}: ")]
    assert "belongs to another configuration" in line
    assert f"run 1 of 2: {study / 'seed_0'}" in said.err.splitlines()
    assert re.search(r"run 2 of 2, \d+ s left: .*seed_1\n", said.err)
    shutil.rmtree(study / "seed_1")
    before = contents(study)
    assert command.main(arguments) == 0
    assert "seed_0 is done" in capsys.readouterr().err
    assert contents(study) == before
    assert command.main([*arguments, "episodes=3"]) == 0
    found = Reevaluation.load(study / "seed_0")
    assert found is not None
    assert found.controller is not None
    assert (found.agent.episodes, found.controller.episodes) == (3, 3)


def test_another_design_is_another_controller(finished: Path) -> None:
    again(finished, train=200)
    again(finished, train=400)
    assert len(list((finished / FOLDER).iterdir())) == 2


def test_a_stopped_training_leaves_the_fresh_episodes(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", lambda *_: "stopped")
    with pytest.raises(StopRequested):
        again(finished, train=400)
    found = Reevaluation.load(finished)
    assert found is not None
    assert found.controller is None
    assert found.agent.episodes == 3
    assert command.main([f"run={finished}", "episodes=2", "train=400", "batch=200"]) == 128 + StopSignals.latest
    assert "the same command goes on from there" in capsys.readouterr().err


def test_a_stopped_training_exits_as_a_stopped_run_does(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run", lambda *_: "stopped")
    monkeypatch.setattr(StopSignals, "latest", signal.SIGTERM)
    assert command.main([f"run={finished}", "episodes=2", "train=200", "batch=200", "workers=0"]) == 143


def test_the_command(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([f"run={finished}", "episodes=2", "train=200", "batch=200", "workers=0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "in 2 fresh episodes" in lines[0]
    assert "trained from scratch for 200 steps" in lines[1]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "run and study are missing; allowed is run=FOLDER or study=NAME"),
        (["run=nowhere", "study=nothing"], "run and study are both given"),
        (["study=nothing"], "There is no study 'nothing'"),
        (["run=nowhere", "ppo=papre"], "ppo is 'papre', nearest is paper; allowed are the files of conf/ppo: paper"),
        (["run=nowhere", "batch=0"], "batch is 0"),
        (["run=nowhere"], "run is 'nowhere'"),
        (["run=nowhere", "episodes=0"], "episodes is 0"),
        (["run=nowhere", "seed=-1"], "seed is -1"),
        (["run=nowhere", "train=many"], "train is 'many'"),
        (["run=nowhere", "agent=other"], "agent is 'other'; allowed are champion, incumbent"),
    ],
)
def test_the_command_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], part: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=part):
        command.main(arguments)
    assert not list(tmp_path.iterdir())


def test_what_is_impossible_is_said_before_anything_is_done(finished: Path) -> None:
    before = contents(finished)
    with pytest.raises(ConfigError, match=r"budget\.steps is 333; allowed are whole numbers of iterations of 200 steps"):
        again(finished, train=333)
    for file in (finished / "checkpoints").iterdir():
        file.unlink()
    with pytest.raises(ConfigError, match="is an export, without checkpoints"):
        again(finished)
    assert set(contents(finished)) < set(before)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"agent": {}}', '{"agent": {"steps": 1}, "controller": null}'])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "reevaluation.json").write_text(content)
    with pytest.raises(ConfigError, match=r"reevaluation\.json does not hold a re-evaluation"):
        Reevaluation.load(tmp_path)
    assert Reevaluation.load(tmp_path / "elsewhere") is None


def test_a_damaged_file_is_replaced(finished: Path) -> None:
    (finished / "reevaluation.json").write_text("{")
    found = again(finished)
    assert Reevaluation.load(finished) == found


# ---- the incumbent ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A finished run of random graph search whose incumbent is no longer in the population."""
    config = small("rgs", "method.redraw_every=1", results=tmp_path_factory.mktemp("rgs"))
    assert runner.run(config, ["test"]) == "done"
    return config


def test_fresh_episodes_of_the_incumbent(searched: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    path, plan = folder_of(searched), runner.RunSetup.of(searched)
    method = make(searched)
    method.load_state_dict(load_state(plan, RunFolder(path))["method"])
    assert method.population.fittest.generation < 2, "choose another seed: the incumbent is the champion"
    champion = again(path, train=160, batch=80)
    before = contents(path)
    assert command.main([f"run={path}", "agent=incumbent", "episodes=3"]) == 0
    assert "reevaluation_incumbent.json: return" in capsys.readouterr().out
    after = contents(path)
    assert set(after) - set(before) == {"reevaluation_incumbent.json"}
    assert {name: after[name] for name in before} == before, "the champion's file and motion stay"
    found = Reevaluation.load(path, "incumbent")
    assert found is not None
    assert found.controller is None, "the champion's controller is for another design"
    fresh = evaluate(method.incumbent(), 3, Streams(plan.settings.seed).sequence("reevaluation", 0))
    assert found.agent.returns == fresh.returns != champion.agent.returns
    trained = again(path, agent="incumbent", train=160, batch=80)
    assert trained.controller is not None
    assert len(list((path / FOLDER).iterdir())) == 2
    assert Reevaluation.load(path) == champion


def test_a_method_without_an_incumbent_is_refused(finished: Path) -> None:
    before = contents(finished)
    with pytest.raises(ConfigError, match="agent is incumbent; allowed is champion, as Transform2Act keeps no incumbent"):
        command.main([f"run={finished}", "agent=incumbent"])
    assert contents(finished) == before


# ---- motion ----------------------------------------------------------------------------------------------------------


def test_a_motion_is_that_of_the_episode(finished: Path, tmp_path: Path) -> None:
    agent, _ = load_champion(finished)
    seed = np.random.SeedSequence(5)
    motion = record(agent, seed, 100.0)
    assert motion is not None
    ((played, design),) = Sampler(agent.task, 1, seed, agent.steps).play(agent.policy)
    assert motion.total_return == pytest.approx(played.total_return, rel=1e-12)
    assert motion.design == design
    assert len(motion.poses) == played.execution_steps, "one frame per step where a step takes a frame's time"
    assert motion.seconds_per_frame == agent.task.dt
    short = record(agent, seed, 0.5)
    assert short is not None
    np.testing.assert_array_equal(short.poses, motion.poses[: len(short.poses)])
    assert (len(short.poses) - 1) * short.seconds_per_frame <= 0.5 < len(short.poses) * short.seconds_per_frame
    assert short.total_return == motion.total_return
    motion.save(tmp_path)
    loaded = Motion.load(tmp_path)
    assert loaded is not None
    np.testing.assert_allclose(loaded.poses, motion.poses, atol=0.51e-4)
    assert (loaded.design, loaded.total_return, loaded.ended) == (motion.design, motion.total_return, False)


@pytest.mark.parametrize("poses", [[], [[]], [1.0, 2.0], [[float("nan")]], [[1.0], [1.0, 2.0]], "x"])
def test_a_damaged_motion_is_named(finished: Path, tmp_path: Path, poses: Any) -> None:
    again(finished)
    value = json.loads((finished / "motion.json").read_text())
    (tmp_path / "motion.json").write_text(json.dumps({**value, "poses": poses}))
    with pytest.raises(DesignError, match=r"motion\.json does not hold a motion"):
        Motion.load(tmp_path)
    assert Motion.load(tmp_path / "elsewhere") is None
