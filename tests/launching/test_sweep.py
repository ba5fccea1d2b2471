"""Hydra's multirun: which runs it makes, in which order, and what it refuses before any of them begins."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl

from codesign_bench import cli
from codesign_bench.commands import bench as command
from codesign_bench.commands import run as program
from codesign_bench.configuration import load_config, plain, searches, swept_values
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.equality import outcome
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.experiment.runner import RunSetup
from codesign_bench.experiment.signals import StopSignals
from codesign_bench.launching import compositions, local, plan, sweep, watch
from codesign_bench.launching import rounds as bench
from codesign_bench.launching.job import NOT_BEGUN, Config, Ending, run_here
from codesign_bench.launching.local import stopped_by_signals
from codesign_bench.launching.rounds import Bench, installed, rounds_of
from codesign_bench.launching.sweep import Sweep, report, run_sweep
from codesign_bench.paths import conf_dirs, options_of
from tests.experiment.tiny import OVERRIDES, contents, folder_of, run, tiny
from tests.reference.sentences import assert_one_sentence


class Listing(Sweep):
    """Keeps the configurations instead of running them."""

    runs: list[dict[str, Any]]

    def run(self, launch: Any, runs: Sequence[Config]) -> list[Ending]:
        self.runs = [dict(run) for run in runs]
        return []


def listed(*overrides: str) -> list[dict[str, Any]]:
    listing = Listing()
    run_sweep(list(overrides), listing)
    return listing.runs


# ---- which runs ------------------------------------------------------------------------------------------------------


def test_every_combination_in_order() -> None:
    runs = listed("seed=range(0,3)", "env=gap,swimmer", "budget=smoke")
    keys = [(run["seed"], run["env"]["name"]) for run in runs]
    assert keys == [(seed, env) for seed in range(3) for env in ("gap", "swimmer")]
    assert runs[0] == load_config("config", ["seed=0", "env=gap", "budget=smoke"])


def test_an_experiment_and_what_the_command_line_replaces() -> None:
    methods = ("transform2act", "transform2act_no_gnn")
    runs = listed("experiment=ablation", f"method={','.join(methods)}", "env=gap", "seed=4,5")
    assert [(run["seed"], run["method"]["name"]) for run in runs] == [(seed, method) for seed in (4, 5) for method in methods]
    assert {(run["study"], run["env"]["name"], run["budget"]["steps"]) for run in runs} == {("ablation", "gap", 50_000_000)}


def test_both_readings_of_ess_are_run() -> None:
    runs = listed("experiment=ess", "env=gap", "seed=0")
    assert [(run["method"]["name"], run["method"]["amortized"]) for run in runs] == [("ess", True), ("ess_strict", False)]
    assert {(run["study"], run["budget"]["steps"]) for run in runs} == {("ess", 50_000_000)}


def test_a_searched_value_names_its_runs() -> None:
    runs = listed("experiment=search/transform2act/execution_gnn", "env=gap", "seed=0")
    names = {run["method"]["name"]: run["method"]["execution"]["gnn"] for run in runs}
    sizes = ([32] * 3, [64] * 3, [128] * 3, [256] * 3)
    assert names == {f"transform2act_execution_gnn_{'-'.join(map(str, size))}": size for size in sizes}


SWEEPS = {
    "seeds": ["seed=range(0,4)", "env=gap", "budget=smoke"],
    "groups and seeds": ["env=gap,swimmer", "method=transform2act,nge", "seed=0,3,7"],
    "values of all kinds": ["method.ppo.clip=0.1,0.2", "study=a,'b c'", "tensorboard=true,false", "env.reward.alive=1,1.5e0", "seed=0,1"],
    "lists and nothing": ["method.execution.gnn=[8,8],[16]", "workers=null,2", "seed=0,1"],
    "values that others refer to": ["env.discount=0.9,0.99", "budget.steps=100000,200000", "seed=0,1"],
    "interpolations": ["evaluation.episodes=1,2", "seed='${evaluation.episodes}',7"],
    "names of runs": ["experiment=search/transform2act/policy_lr", "env=gap", "seed=0,1"],
    "parts of what others refer to": ["experiment=search/transform2act/execution_gnn", "env=gap", "seed=0,1"],
    "added and removed": ["+env.reward.extra=1,2", "~method.label", "seed=0,1"],
}


@pytest.mark.parametrize("name", SWEEPS)
def test_configurations_are_those_that_hydra_composes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow way is Hydra's own, for every run."""
    jobs: list[dict[str, Any]] = []

    def slowly(loader: Any, config: Any, overrides: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        jobs.extend(plain(loader.load_sweep_config(config, list(each))) for each in overrides)
        return jobs

    monkeypatch.setattr(sweep, "prepared", list)
    fast = listed(*SWEEPS[name])
    monkeypatch.setattr(compositions, "composed", slowly)
    assert listed(*SWEEPS[name]) == jobs
    assert [json.dumps(run) for run in fast] == [json.dumps(run) for run in jobs], "values, types and order"
    assert len(jobs) > 2


@pytest.mark.parametrize(
    ("overrides", "times"), [(["seed=range(0,300)"], 1), (["seed=0,1,2", "env=gap,swimmer", "evaluation.episodes=1,2"], 2)]
)
def test_hydra_composes_once_for_each_choice_of_files(monkeypatch: pytest.MonkeyPatch, overrides: list[str], times: int) -> None:
    composed: list[int] = []
    load = ConfigLoaderImpl.load_sweep_config

    def counted(self: Any, *arguments: Any) -> Any:
        composed.append(1)
        return load(self, *arguments)

    monkeypatch.setattr(sweep, "prepared", list)
    monkeypatch.setattr(ConfigLoaderImpl, "load_sweep_config", counted)
    runs = listed(*overrides)
    assert len(composed) == times
    assert len({id(part) for run in runs for part in (run["env"], run["method"])}) == 2 * times, "they share what they have in common"


SEARCHES = {
    f"search/{table}/{row}": search for table, of in searches().items() for row, search in of["rows"].items() if len(search["searched"]) > 1
}
FIGURES = {"baselines", "ablation", "continuous", "bench", "demo", "ess"}


def test_one_file_per_figure_and_one_row_per_searched_hyperparameter() -> None:
    """The paper's two tables search eighteen and thirteen hyperparameters."""
    assert set(options_of("experiment")) >= FIGURES
    folders = [name.rpartition("/")[0] for name in SEARCHES]
    assert (folders.count("search/transform2act"), folders.count("search/baselines")) == (18, 13)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_holds_the_selected_value(name: str) -> None:
    """What the method is configured with is among the values searched, and the rest is possible."""
    key, table = SEARCHES[name]["key"], searches()[name.split("/")[1]]
    methods = SEARCHES[name].get("methods", table["methods"])
    assert swept_values([f"experiment={name}"], "method") == methods
    config = load_config("config", [f"experiment={name}", f"method={methods[0]}"])
    RunSetup.of(config)
    selected: Any = config
    for part in key.split("."):
        selected = selected[part]
    assert selected in SEARCHES[name]["searched"]
    assert json.loads(f"[{','.join(swept_values([f'experiment={name}'], key))}]") == SEARCHES[name]["searched"]
    assert (
        config["method"]["name"]
        == f"{methods[0]}_{name.rpartition('/')[2]}_{'-'.join(map(str, selected)) if isinstance(selected, list) else selected}"
    )


# ---- running ---------------------------------------------------------------------------------------------------------


def test_with_another_launcher_of_hydra_and_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hydra's own launcher runs them here; ours then finds them done and starts no process."""
    arguments = ["-m", *OVERRIDES, "budget.steps=200", "env=swimmer", "seed=0,1", f"results={tmp_path}"]
    assert program.main([*arguments, "hydra/launcher=basic"]) == 0
    assert (tmp_path / ".jobs").is_dir(), "where jobs on other machines can see it"
    configs = [tiny(tmp_path, "budget.steps=200", f"seed={seed}") for seed in (0, 1)]
    before = [contents(folder_of(config)) for config in configs]
    capsys.readouterr()
    assert program.main(arguments) == 0
    assert capsys.readouterr().err.splitlines()[-2:] == ["2 of 2 runs were done already", "2 runs: 2 done"]
    assert [contents(folder_of(config)) for config in configs] == before
    run(tiny(tmp_path / "alone", "budget.steps=200", "seed=1")).must_equal(outcome(configs[1]), "a run of a sweep")


def test_a_run_of_another_configuration_is_not_taken_for_done(tmp_path: Path) -> None:
    config = tiny(tmp_path, "budget.steps=200")
    run(config)
    folder = RunFolder.of(config)
    assert folder.is_done(config)
    assert not folder.is_done({**config, "seed": 1})
    assert not folder.is_done({**config, "budget": {**config["budget"], "until": 400}})
    (folder.path / "config.yaml").write_text("[")
    assert not folder.is_done(config)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["seed=0,1"], "'seed=0,1' names several values; add -m to make a run of each."),
        (["seed=range(0,6)"], "'seed=range(0,6)' names several values; add -m to make a run of each."),
        (["-m", "seed=0,-1", "budget=smoke"], "seed is -1; allowed are whole numbers from 0 up."),
        (["-m", "method=transform2act,nothing"], "There is no method 'nothing'; allowed are "),
        (["-m", "launcher=moon"], "There is no launcher 'moon'; allowed are local, ray, slurm."),
        (["experiment=moon"], "There is no experiment 'moon'; allowed are ablation, baselines, bench, continuous"),
        (["-m", "method.ppo.passes=1,2"], "Two runs of this sweep would be in one folder, "),
        (["-m", "budget=smoke,pilot"], "Two runs of this sweep would be in one folder, "),
        (["-m", "hydra.launcher.jobs=0"], "jobs is 0; allowed are whole numbers from 1 to "),
        (["-m", "gap"], "The argument 'gap' is not understood; allowed are arguments of the form key=value."),
        (["-m", "seed=range(0,two)"], "The argument 'seed=range(0,two)' is not understood"),
        (["-m", "seed=range(0,6,0)"], "range() arg 3 must not be zero"),
        (["-m", "experiment=search/transform2act/polcy_lr"], "nearest is search/transform2act/policy_lr"),
    ],
)
def test_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    output, errors = capsys.readouterr()
    assert (ended.value.code, output) == (2, "")
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert sentence in line
    assert not list(tmp_path.rglob("seed_*"))


# ---- rounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "rounds"), [("paper", [400_000, 2_000_000, 10_000_000, 50_000_000]), ("pilot", [400_000, 2_000_000]), ("smoke", [40_000])]
)
def test_rounds(budget: str, rounds: list[int]) -> None:
    """Whole numbers of iterations for every installed method."""
    for method in options_of("method"):
        runs = [load_config("config", [f"budget={budget}", f"method={method}"])]
        assert rounds_of(runs) == rounds
        for until in rounds:
            RunSetup.of(bench.shortened(runs[0], until))


def test_runs_go_from_round_to_round_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launched: list[list[tuple[int, str, int]]] = []

    def launch(configs: Sequence[Config]) -> list[Ending]:
        launched.append([(c["seed"], c["method"]["name"], c["budget"]["until"]) for c in configs])
        stopped = len(launched) == 2
        return [Ending.of(c, "stopped" if stopped else "failed", "for a test") for c in configs]

    class Rounds(Bench):
        def launch(self, _: Any, configs: Sequence[Any]) -> list[Ending]:
            return super().launch(launch, configs)

    methods = ("transform2act", "transform2act_no_gnn")
    run_sweep(["experiment=bench", f"method={','.join(methods)}", "seed=0,1", "env=gap", f"results={tmp_path}"], Rounds())
    assert launched == [[(seed, method, until) for seed in (0, 1) for method in methods] for until in (400_000, 2_000_000)]
    said = capsys.readouterr().err
    assert "4 runs: method transform2act, transform2act_no_gnn; env gap; seed 0, 1; budget paper" in said
    assert "in rounds to 400,000, 2,000,000, 10,000,000, 50,000,000 steps each" in said
    assert plan.read(tmp_path / "bench")["gap/transform2act/seed_1"] == {"until": 2_000_000, "steps": 50_000_000}


def test_rounds_end_where_every_method_has_whole_iterations() -> None:
    larger = [load_config("config", [f"method={method}", "budget.batch=500_000"]) for method in ("transform2act", "nge")]
    assert rounds_of(larger) == [2_000_000, 10_000_000, 50_000_000]
    assert rounds_of(larger[:1]) == [500_000, 2_000_000, 10_000_000, 50_000_000]


def test_rounds_that_are_done_are_not_gone_through_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(tmp_path)
    run_here(bench.shortened(config, 400), [])
    monkeypatch.setattr(bench, "ROUNDS", (200, 400, 600, 800))
    launched: list[int] = []

    def launch(configs: Sequence[Config]) -> list[Ending]:
        launched.append(configs[0]["budget"]["until"])
        return [Ending(str(folder_of(config)), "failed")]

    monkeypatch.setattr(bench, "prepared", list)
    Bench().launch(launch, [config])
    assert launched == [600, 800]


def test_a_signal_before_the_jobs_begin_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "prepared", list)
    monkeypatch.setattr(watch.Watch, "__enter__", lambda self: signal.raise_signal(signal.SIGINT) or self)
    monkeypatch.setattr(watch.Watch, "__exit__", lambda self, *_: None)
    endings = Bench().launch(local.launch, [tiny(tmp_path)])
    assert [(ending.state, ending.reason) for ending in endings] == [("stopped", NOT_BEGUN)]
    with stopped_by_signals(lambda: pytest.fail("that one is over")):
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_sweep_exits_as_its_signal_says(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    monkeypatch.setattr(StopSignals, "latest", signal.SIGUSR1)
    with stopped_by_signals(lambda: None):
        signal.raise_signal(number)
    assert report([Ending("a/d", "stopped")]) == 128 + number


@pytest.mark.parametrize("how", ["a signal at the last moment", "a run in use"])
def test_nobody_gets_more_steps_while_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    config = tiny(tmp_path)
    monkeypatch.setattr(bench, "ROUNDS", (200, 800))
    monkeypatch.setattr(bench, "prepared", list)
    launched: list[int] = []

    def launch(configs: Sequence[Config]) -> list[Ending]:
        launched.append(configs[0]["budget"]["until"])
        with stopped_by_signals(lambda: None):
            if how != "a run in use":
                signal.raise_signal(signal.SIGINT)  # when all runs have ended by themselves
        return [Ending(str(folder_of(config)), "in use" if how == "a run in use" else "done")]

    assert report(Bench().launch(launch, [config])) == (2 if how == "a run in use" else 130)
    assert launched == [200]


def test_rounds_need_a_launcher_that_knows_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="say launcher=local, slurm or ray"):
        command.main(["method=transform2act", "seed=0", "hydra/launcher=basic", f"results={tmp_path}"])
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_without_runs() -> None:
    with pytest.raises(ConfigError, match="This sweep has no runs"):
        Bench().launch(lambda configs: [], [])


def test_methods_that_are_not_installed_are_named_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert installed(["transform2act", "nothing", "less"]) == ["transform2act"]
    assert capsys.readouterr().err == "Not installed, and so not part of this comparison: nothing, less.\n"
    with pytest.raises(ValueError, match="None of the methods nothing is installed"):
        installed(["nothing"])
    assert swept_values(["experiment=bench"], "method") == ["transform2act", "nge", "ess", "rgs", "continuous"]


def _plan_some(results: Path, first: int) -> None:
    for seed in range(first, first + 20):
        plan.add([{**tiny(results), "seed": seed}])


def test_sweeps_into_one_study_at_the_same_time_lose_nothing_of_the_plan(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    sweeps = [context.Process(target=_plan_some, args=(tmp_path, first)) for first in (0, 100)]
    for each in sweeps:
        each.start()
    for each in sweeps:
        each.join()
    assert [each.exitcode for each in sweeps] == [0, 0]
    assert len(plan.read(tmp_path / "default")) == 40


# ---- the report ------------------------------------------------------------------------------------------------------


def test_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    done, used = Ending("a/b", "done"), Ending("a/u", "in use", "In use.")
    assert report([done]) == 0
    assert capsys.readouterr().err == "1 runs: 1 done\n"
    assert report([done, used]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "2 runs: 1 done, 1 in use",
        "some runs are in use by another process; the same command goes on with them when they are free",
    ]
    assert report([done, Ending("a/c", "failed", "It broke.", "one\ntwo")]) == 1
    assert capsys.readouterr().err == "\nfailed: a/c\n  It broke.\n  | one\n  | two\n2 runs: 1 done, 1 failed\n"
    assert report([done, Ending("a/d", "stopped")]) == 128 + StopSignals.latest
    assert capsys.readouterr().err == "2 runs: 1 done, 1 stopped; the same command goes on from there\n"
    endings = [Ending("a/d", "stopped"), *(Ending(f"a/{n}", "stopped", NOT_BEGUN) for n in range(28))]
    assert report([done, *endings]) == 128 + StopSignals.latest
    assert capsys.readouterr().err == "30 runs: 1 done, 1 stopped, 28 not begun; the same command goes on from there\n"


# ---- configuration of other packages -----------------------------------------------------------------------------------


def test_an_entry_point_that_names_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    from codesign_bench import paths

    for value in ("no_such_package.conf", "json.decoder"):
        monkeypatch.setattr(paths, "entry_points", lambda group, value=value: [EntryPoint("theirs", value, group)])
        conf_dirs.cache_clear()
        with pytest.raises(ValueError, match="allowed is a package") as error:
            conf_dirs()
        assert_one_sentence(error.value, "'theirs'", value)
    monkeypatch.undo()
    conf_dirs.cache_clear()
