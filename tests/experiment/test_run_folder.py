"""A run on disk: its lock, status, configuration and progress.csv."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import CodesignError, ConfigError
from codesign_bench.experiment import runner
from codesign_bench.experiment.equality import outcome
from codesign_bench.experiment.run_folder import (
    RunDiffers,
    RunFolder,
    RunInUse,
    RunMoved,
    Table,
    Tables,
    configuration_hash,
    write_atomically,
)
from codesign_bench.experiment.tracking import Tracker
from tests.experiment.tiny import changed, contents, folder_of, run, status_of, tiny
from tests.experiment.toy import Toy
from tests.reference.sentences import assert_one_sentence

Toys = Callable[..., dict[str, Any]]


# ---- what is there ---------------------------------------------------------------------------------------------------


def test_the_folder_is_complete(toy: Toys, tmp_path: Path) -> None:
    config = toy()
    run(config)
    folder = folder_of(config)
    assert folder == tmp_path / "toy" / "default" / "swimmer" / "toy" / "seed_0"
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    designs = {f"designs/{name}.{kind}" for name in ("final", "best", "at_000000040") for kind in ("json", "xml")}
    assert names >= {"config.yaml", "manifest.json", "progress.csv", "status.json", *designs}
    assert {name for name in names if name.startswith("checkpoints/")} == {f"checkpoints/{n:012d}.ckpt" for n in (120, 160)}
    assert not [name for name in names if name.endswith(".tmp")]
    assert yaml.safe_load((folder / "config.yaml").read_text()) == config


def test_the_manifest(toy: Toys) -> None:
    config = toy()
    run(config)
    manifest = json.loads((folder_of(config) / "manifest.json").read_text())
    assert manifest["configuration_hash"] == configuration_hash(config)
    assert manifest["host"] == socket.gethostname()
    assert manifest["command"] == ["test"]
    assert manifest["versions"]["mujoco"]
    assert manifest["versions"]["torch"]
    assert {"git_commit", "cpu"} <= manifest.keys()


def test_the_saved_designs_can_be_read_again(toy: Toys) -> None:
    """`codesign-bench render design=RUN/designs/final.json` reads them so."""
    config = toy()
    run(config)
    task = runner.RunSetup.of(config).task
    designs = folder_of(config) / "designs"
    for path in {*designs.glob("*.json")} - {designs / "final_process.json"}:
        assert StoredDesign.load(path).space == task.space
    for stage in StoredDesign.load_all(designs / "final_process.json"):
        assert stage.space == task.space


# ---- the lock --------------------------------------------------------------------------------------------------------


def test_a_run_in_use_is_left_alone(toy: Toys) -> None:
    config = toy()
    run(changed(config, budget={"until": 80}))
    with RunFolder.of(config).locked():
        before = contents(folder_of(config))
        with pytest.raises(RunInUse) as error:
            runner.run(config)
        assert contents(folder_of(config)) == before
    assert_one_sentence(error.value, f"in use by process {os.getpid()} on {socket.gethostname()}; nothing was done")
    run(config)


def test_the_lock_of_a_process_that_is_gone_does_not_count(toy: Toys) -> None:
    config = toy()
    folder_of(config).mkdir(parents=True)
    (folder_of(config) / ".lock").write_text("process 1 on elsewhere")
    run(config)


def test_the_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(KeyError), folder.locked():
        raise KeyError
    with folder.locked():
        pass


@pytest.mark.parametrize("results", ["/proc/no/such", "{file}"])
def test_a_results_folder_that_cannot_be_written(toy: Toys, tmp_path: Path, results: str) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError) as error:
        runner.run(toy(results=results.format(file=file)))
    assert_one_sentence(error.value, "cannot be written", "choose another results=DIR")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_results_folder(toy: Toys, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with pytest.raises(ConfigError, match="cannot be written"):
        runner.run(toy(results=str(folder)))


def test_a_folder_that_turns_read_only(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock can be taken, but nothing new can be written: as on a file system that was mounted again."""
    config = toy()
    run(changed(config, budget={"until": 80}))

    def closed(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", closed)
    with pytest.raises(CodesignError) as error:
        runner.run(config)
    assert_one_sentence(error.value, "Read-only file system")


@pytest.mark.parametrize("begun_anew", [True, False])
@pytest.mark.parametrize("how", ["works on", "is stopped", "crashes"])
def test_a_folder_that_is_moved_while_its_run_is_alive(
    toy: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun_anew: bool, how: str
) -> None:
    """The same command may begin a fresh run in its place: nothing of the first one gets into that, and each goes on as its own."""
    expected, config = run(toy(results=str(tmp_path / "expected"))), toy()
    moved = changed(config, results=str(tmp_path / "moved"))
    iterate, folders = Toy.iterate, []

    def move(self: Toy) -> Any:
        found = iterate(self)
        if self.iterations == 2 and not folders:
            folder_of(moved).parent.mkdir(parents=True)
            folders.append(folder_of(config).rename(folder_of(moved)))
            if begun_anew:
                expected.must_equal(run(config), "a run in the place of one that was moved")
                folders.append(contents(folder_of(config)))
            if how == "is stopped":
                signal.raise_signal(signal.SIGTERM)
            if how == "crashes":
                raise MemoryError
        return found

    monkeypatch.setattr(Toy, "iterate", move)
    with pytest.raises(RunMoved) as error:
        runner.run(config)
    assert_one_sentence(error.value, f"The run folder {folder_of(config)} was moved, removed or replaced", "the same command")
    if begun_anew:
        assert contents(folder_of(config)) == folders[1]
    else:
        assert not folder_of(config).exists()
    assert (status_of(moved)["status"], status_of(moved)["steps"]) == ("running", 40)
    expected.must_equal(run(moved), "a run that went on where its folder was moved to")


# ---- status ----------------------------------------------------------------------------------------------------------


def test_status_of_a_run(toy: Toys) -> None:
    config = toy()
    assert status_of(config) == {"status": "missing"}
    run(changed(config, budget={"until": 80}))
    status = status_of(config)
    assert (status["status"], status["steps"], status["until"]) == ("done", 80, 80)
    run(config)
    assert (status_of(config)["steps"], status_of(config)["until"]) == (160, 160)


@pytest.mark.parametrize("content", [b"", b'{"status": "run', b"\xff\xfe"])
def test_a_damaged_status_counts_as_missing_and_does_not_stop_a_run(toy: Toys, content: bytes) -> None:
    config = toy()
    run(changed(config, budget={"until": 40}))
    (folder_of(config) / "status.json").write_bytes(content)
    assert status_of(config) == {"status": "missing"}
    run(config)
    assert status_of(config)["status"] == "done"


def test_a_run_that_is_done_changes_nothing(toy: Toys, capsys: pytest.CaptureFixture[str]) -> None:
    config = toy()
    run(config)
    before = contents(folder_of(config))
    capsys.readouterr()
    assert runner.run(config) == "done"
    assert capsys.readouterr().err == f"{folder_of(config)} is done: 160 steps\n"
    after = contents(folder_of(config))
    assert after.keys() == before.keys()
    assert [name for name in after if after[name] != before[name]] == []


# ---- configuration ---------------------------------------------------------------------------------------------------


def test_a_different_configuration_is_refused_and_named(toy: Toys) -> None:
    config = toy()
    run(changed(config, budget={"until": 80}))
    before = contents(folder_of(config))
    for changes, sentence in (
        ({"evaluation": {"episodes": 3}}, "evaluation.episodes is 2 on disk and 3 now"),
        ({"env": {"reward": {"alive": 0.5}}}, "env.reward.alive is 0 on disk and 0.5 now"),
        ({"method": {"flaw": "forgets"}}, "method.flaw is 'none' on disk and 'forgets' now"),
        ({"budget": {"steps": 200, "until": 200}}, "budget.steps is 160 on disk and 200 now"),
        ({"sampler": {"groups": 1}}, "sampler.groups is 2 on disk and 1 now"),
    ):
        with pytest.raises(RunDiffers) as error:
            runner.run(changed(config, **changes))
        assert_one_sentence(error.value, "was configured differently", sentence)
        assert contents(folder_of(config)) == before


def test_what_does_not_change_results_is_not_compared(toy: Toys, tmp_path: Path) -> None:
    config = toy()
    other = changed(config, workers=3, progress=True, study="x", results="y", wandb="p", device="cuda", budget={"until": 40})
    assert configuration_hash(other) == configuration_hash(config)
    for changes in ({"seed": 1}, {"env": {"max_steps": 11}}, {"evaluation": {"episodes": 1}}, {"budget": {"batch": 20}}):
        assert configuration_hash(changed(config, **changes)) != configuration_hash(config)


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b"a: [1", b"\xff\xfe\x00", b"a: 1", b"seed: 0\nbudget: 3"])
def test_an_unreadable_configuration(toy: Toys, content: bytes) -> None:
    config = toy()
    run(changed(config, budget={"until": 40}))
    path = folder_of(config) / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(CodesignError) as error:
        runner.run(config)
    assert_one_sentence(error.value, str(folder_of(config)))
    assert path.read_bytes() == content


def test_numbers_survive_the_file(toy: Toys) -> None:
    """A configuration that was written and read is the same one, also with numbers that YAML spells in its own way."""
    config = tiny(Path(toy()["results"]), "method.ppo.policy_lr=1e-5", "method.ppo.value_lr=3e-17")
    folder = RunFolder.of(config)
    with folder.locked():
        folder.write_configuration(config, [], "mkl")
    written = yaml.safe_load((folder.path / "config.yaml").read_text())
    assert (written["method"]["ppo"]["policy_lr"], written["method"]["ppo"]["value_lr"]) == (1e-5, 3e-17)
    assert configuration_hash(written) == configuration_hash(config)


def test_equal_numbers_are_equal_however_they_are_spelled(toy: Toys) -> None:
    config = toy()
    run(changed(config, budget={"until": 40}))
    spelled = changed(config, env={"reward": {"alive": int(config["env"]["reward"]["alive"])}})
    assert configuration_hash(spelled) == configuration_hash(config)
    run(spelled)


def test_a_refused_command_leaves_the_configuration_alone(toy: Toys) -> None:
    config = toy()
    run(changed(config, budget={"until": 40}))
    before = (folder_of(config) / "config.yaml").read_bytes()
    for path in (folder_of(config) / "checkpoints").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(CodesignError, match=r"All checkpoints in .* are damaged"):
        runner.run(config)
    assert (folder_of(config) / "config.yaml").read_bytes() == before
    assert status_of(config)["status"] == "failed"
    assert "are damaged" in status_of(config)["reason"]
    assert status_of(config)["steps"] == 40


# ---- file systems ----------------------------------------------------------------------------------------------------


def test_a_file_system_without_locks_is_not_one_where_everything_is_in_use(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    folder = RunFolder.of(toy())
    with pytest.raises(ConfigError) as error, folder.locked():
        pass
    assert_one_sentence(error.value, "cannot lock files", "results=DIR")
    assert not folder.alive()


def test_a_lock_on_a_full_disk(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    """What must be written says that the disk is full; the lock's text need not."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with RunFolder.of(toy()).locked():
            assert RunFolder.of(toy()).alive()


def test_a_finished_run_needs_no_lock(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    config = toy()
    run(config)
    monkeypatch.setattr(RunFolder, "locked", lambda self: pytest.fail("it may be on a read-only file system"))
    assert runner.run(config) == "done"


def test_tensorboard_on_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Full:
        def add_scalar(self, *_: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        close = add_scalar

    tracker = Tracker(tmp_path, tensorboard=False, wandb_project=None, start=0)
    tracker._writer = Full()
    for _ in range(2):
        tracker.log(1, {"loss": 0.0})
    tracker.close()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: TensorBoard's log cannot be written (No space left on device)")


# ---- progress.csv ----------------------------------------------------------------------------------------------------


def test_the_columns(toy: Toys) -> None:
    config = toy()
    run(config)
    content = (folder_of(config) / "progress.csv").read_bytes()
    head, *rows = csv.reader(content.decode().splitlines())
    assert ",".join(head) == (
        "iteration,steps,return_mean,return_std,episode_length,net_displacement,net_to_path,bodies,at_bounds,"
        "reward_forward,reward_alive,reward_control,best_return,train_return,explained_variance,"
        "designs,unstable,eval_steps,steps_per_second,seconds"
    )
    assert [(row[0], row[1]) for row in rows] == [("1", "40"), ("2", "80"), ("3", "120"), ("4", "160")]
    assert all(len(row) == len(head) for row in rows)
    assert content.endswith(b"\n")


@pytest.mark.parametrize("extra", [b"3,12", b"3,120,1.5\r\n", b"\x00" * 100])
def test_what_was_written_after_the_last_checkpoint_is_cut(toy: Toys, tmp_path: Path, extra: bytes) -> None:
    expected = run(toy())
    config = toy(results=str(tmp_path / "other"))
    run(changed(config, budget={"until": 80}))
    with open(folder_of(config) / "progress.csv", "ab") as file:
        file.write(extra)
    expected.must_equal(run(config), "a run with half a line in progress.csv")


def test_a_row_that_was_written_whole_before_the_checkpoint_is_not_doubled(
    toy: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(toy())
    config = toy(results=str(tmp_path / "other"))

    def crash(self: runner.LiveRun) -> None:
        raise MemoryError("crash")

    with monkeypatch.context() as patched:
        run(changed(config, budget={"until": 80}))
        patched.setattr(runner.LiveRun, "save", crash)
        with pytest.raises(MemoryError):
            runner.run(config)
    assert len((folder_of(config) / "progress.csv").read_bytes().splitlines()) == 4
    assert (status_of(config)["status"], status_of(config)["reason"], status_of(config)["steps"]) == ("failed", "crash", 80)
    assert "MemoryError: crash" in (folder_of(config) / "error.txt").read_text()
    expected.must_equal(run(config), "a run that crashed between a row and its checkpoint")


@pytest.mark.parametrize("damage", ["missing", "shortened"])
def test_a_progress_file_that_lost_rows_is_refused_with_a_sentence(toy: Toys, damage: str) -> None:
    """Rows that are gone cannot be made again without going back; zeros in their place would be worse."""
    config = toy()
    run(changed(config, budget={"until": 80}))
    path = folder_of(config) / "progress.csv"
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(CodesignError) as error:
        runner.run(config)
    assert_one_sentence(error.value, "progress.csv")
    assert not path.exists() or b"\x00" not in path.read_bytes()


def test_progress_appends_and_cuts(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    progress = Table(path)
    progress.append({"steps": 1.5, "return_mean": 0.0})
    length = progress.length
    progress.append({"steps": 2.5, "return_mean": 0.0})
    Table(path, length).append({"steps": 3.5, "return_mean": 0.0})
    assert [row["steps"] for row in csv.DictReader(path.read_text().splitlines())] == ["1.5", "3.5"]


# ---- tables/ ---------------------------------------------------------------------------------------------------------


def test_a_method_keeps_tables(toy: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    note = runner.LiveRun.note

    def noting(self: runner.LiveRun, iteration: Any) -> None:
        seen.append(iteration.tables)
        note(self, iteration)

    monkeypatch.setattr(runner.LiveRun, "note", noting)
    config = toy()
    tables = run(config).tables
    assert tables.keys() == {"learning", "slots", "second"}
    assert [row["iteration"] for row in tables["learning"]] == ["1", "2", "3", "4"]
    assert tables["slots"] == [{key: str(value) for key, value in row.items()} for part in seen for row in part["slots"]]
    assert len(tables["slots"]) == 4 * 4
    assert tables["second"] == [{"odd": "a, b"}] * 2


@pytest.mark.parametrize("crash_at", [1, 2, 3, 4])
def test_tables_are_cut_back_on_resume(toy: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_at: int) -> None:
    """A crash between the rows of an iteration and its checkpoint, also before the first one."""
    expected, config = run(toy()), toy(results=str(tmp_path / "other"))
    save = runner.LiveRun.save

    def crash(self: runner.LiveRun) -> None:
        if self.counts.iteration == crash_at:
            raise MemoryError("crash")
        save(self)

    with monkeypatch.context() as patched:
        patched.setattr(runner.LiveRun, "save", crash)
        with pytest.raises(MemoryError):
            runner.run(config)
    tables = folder_of(config) / "tables"
    assert len((tables / "slots.csv").read_text().splitlines()) > 1
    for path in tables.iterdir():
        with open(path, "ab") as file:
            file.write(b"7,8")
    (tables / "mine.csv").write_text("somebody's")
    run(config)
    assert (tables / "mine.csv").read_text() == "somebody's"
    (tables / "mine.csv").unlink()
    expected.must_equal(outcome(config), "a run that crashed between its rows and their checkpoint")


@pytest.mark.parametrize("damage", ["missing", "shortened"])
def test_a_table_that_lost_rows_is_refused_with_a_sentence(toy: Toys, damage: str) -> None:
    config = toy()
    run(changed(config, budget={"until": 80}))
    path = folder_of(config) / "tables" / "slots.csv"
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CodesignError) as error:
        runner.run(config)
    assert_one_sentence(error.value, "slots.csv has lost rows")


def test_tables_begin_with_their_first_rows(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables", {})
    tables.append({"empty": []})
    assert tables.lengths == {}
    tables.append({"a": [{"x": 1, "y": 0.1}, {"y": 0.2, "x": 2}]})
    lengths = tables.lengths
    tables.append({"a": [{"x": 3, "y": 0.3}], "b": [{"z": "n"}]})
    resumed = Tables(tmp_path / "tables", lengths)
    resumed.append({"a": [{"x": 4, "y": 0.4}]})
    assert (tmp_path / "tables" / "a.csv").read_bytes() == b"x,y\r\n1,0.1\r\n2,0.2\r\n4,0.4\r\n"
    resumed.append({"b": [{"z": "m"}]})
    assert (tmp_path / "tables" / "b.csv").read_bytes() == b"z\r\nm\r\n"
    with pytest.raises(ValueError, match=r"A row of a\.csv has the columns x; they must be x, y"):
        resumed.append({"a": [{"x": 5}]})
    with pytest.raises(ValueError, match="allowed are lower-case letters"):
        resumed.append({"../a": [{"x": 5}]})
    assert resumed.lengths == {"a": len(b"x,y\r\n1,0.1\r\n2,0.2\r\n4,0.4\r\n"), "b": len(b"z\r\nm\r\n")}


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_the_outcome_of_a_folder_without_checkpoints(toy: Toys) -> None:
    with pytest.raises(AssertionError, match="has no checkpoint"):
        outcome(toy())


# ---- runs that must not go on ----------------------------------------------------------------------------------------


def test_results_without_a_checkpoint_are_never_begun_anew(toy: Toys) -> None:
    """A study that was sent around has no checkpoints: what is done is done, and what is not cannot go on."""
    config = toy()
    run(changed(config, budget={"until": 80}))
    for path in (folder_of(config) / "checkpoints").iterdir():
        path.unlink()
    before = contents(folder_of(config))
    assert runner.run(changed(config, budget={"until": 80})) == "done"
    with pytest.raises(RunDiffers) as error:
        runner.run(config)
    assert_one_sentence(error.value, "has results, but no checkpoint")
    assert contents(folder_of(config)) == before


@pytest.mark.parametrize("status", [None, "{", "{}"])
def test_rows_without_checkpoint_and_status_are_never_begun_anew(toy: Toys, status: str | None) -> None:
    """Somebody's progress.csv, or a run whose other files were lost."""
    config = toy()
    run(changed(config, budget={"until": 80}))
    folder = folder_of(config)
    for path in [*(folder / "checkpoints").iterdir(), folder / "status.json"]:
        path.unlink()
    if status is not None:
        (folder / "status.json").write_text(status)
    rows = (folder / "progress.csv").read_bytes()
    with pytest.raises(RunDiffers) as error:
        runner.run(config)
    assert_one_sentence(error.value, "has results, but no checkpoint")
    assert (folder / "progress.csv").read_bytes() == rows


def test_a_run_goes_on_with_the_versions_that_it_was_made_with(toy: Toys) -> None:
    config = toy()
    run(changed(config, budget={"until": 80}))
    path = folder_of(config) / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["versions"]["mujoco"] = "3.3.0"
    path.write_text(json.dumps(manifest))
    with pytest.raises(RunDiffers) as error:
        runner.run(config)
    assert_one_sentence(error.value, "was made with mujoco 3.3.0", "mujoco==3.3.0")


@pytest.mark.parametrize("change", [{"study": "a/b"}, {"study": ".."}, {"method": {"name": "../toy"}}, {"method": {"name": ""}}])
def test_names_that_lead_elsewhere(toy: Toys, change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="allowed are names"):
        runner.RunSetup.of(changed(toy(), **change))
