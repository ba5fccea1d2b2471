"""Checkpoints: whole or not used, two kept, and nothing in them runs."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from codesign_bench import __version__
from codesign_bench.errors import CodesignError
from codesign_bench.experiment import checkpoint
from codesign_bench.experiment.checkpoint import MAGIC, CheckpointError, load, load_latest, save
from codesign_bench.experiment.equality import difference
from tests.experiment.tiny import checkpoints_of, run
from tests.reference.sentences import assert_one_sentence

STATE = {
    "tensors": [torch.arange(5.0), torch.tensor(float("nan")), torch.zeros(0, 3, dtype=torch.float64)],
    "numbers": {"int": 2**127 + 1, "float": 0.1, "minus": -float("inf"), "none": None, "bool": True},
    "text": "ä\n",
}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def signed(payload: bytes) -> bytes:
    return MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload


def packed(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    save(tmp_path, 10, STATE, "hash")
    state, warnings = load_latest(tmp_path, "hash")
    assert difference(state, STATE) is None
    assert warnings == []


NUMPY = [
    np.arange(6.0).reshape(2, 3).T,
    np.zeros((0, 3), np.float32),
    np.array([True, False]),
    np.array(2**63 + 1, np.uint64),
    np.float64(0.1),
    np.int32(-7),
    np.random.default_rng(0).bit_generator.state,
    np.random.Generator(np.random.MT19937(3)).bit_generator.state,
    np.arange(5)[::-1],
]


@pytest.mark.parametrize("value", NUMPY, ids=lambda value: type(value).__name__)
def test_arrays_and_numbers_of_numpy_are_loaded_as_they_were(tmp_path: Path, value: Any) -> None:
    save(tmp_path, 10, {"here": [value, (value,)]}, "hash")
    state, _ = load_latest(tmp_path, "hash")
    assert difference(state, {"here": [value, (value,)]}) is None
    if isinstance(value, np.ndarray):
        assert state is not None
        assert state["here"][0].flags.writeable


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Path("x"), "PosixPath"),
        (np.array(["text"]), "ndarray"),
        (np.array([None]), "ndarray"),
        (np.random.default_rng(0), "Generator"),
        (lambda: None, "function"),
    ],
)
def test_what_cannot_be_loaded_is_not_saved_and_its_key_is_named(tmp_path: Path, value: Any, kind: str) -> None:
    """Found by the first save, not by whoever wants to go on."""
    save(tmp_path, 10, {"steps": 10}, "hash")
    with pytest.raises(CheckpointError) as error:
        save(tmp_path, 20, {"steps": 20, "method": {"good": 1.0, "parts": [0, {"bad": value}]}}, "hash")
    assert_one_sentence(error.value, f"cannot be saved: method.parts[1].bad is of type {kind}; allowed are tensors")
    assert load_latest(tmp_path, "hash") == ({"steps": 10}, [])


def test_two_are_kept_and_no_temporary_file(tmp_path: Path) -> None:
    for steps in (90, 100, 1000, 20000):
        save(tmp_path, steps, {"steps": steps}, "hash")
    assert names(tmp_path) == ["000000001000.ckpt", "000000020000.ckpt"]
    assert load_latest(tmp_path, "hash")[0] == {"steps": 20000}


def test_files_of_others_are_neither_loaded_nor_removed(tmp_path: Path) -> None:
    save(tmp_path, 90, {"steps": 90}, "hash")
    mine = ["backup.ckpt", "000000000090 (copy).ckpt", "99.ckpt"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    for steps in (100, 1000, 20000):
        save(tmp_path, steps, {"steps": steps}, "hash")
    assert names(tmp_path) == sorted(["000000001000.ckpt", "000000020000.ckpt", *mine])
    assert load_latest(tmp_path, "hash") == ({"steps": 20000}, [])


def test_a_damaged_one_ahead_does_not_take_the_place_of_a_good_one(tmp_path: Path) -> None:
    """A run that went back before its newest checkpoint keeps two good ones on its way to it."""
    for steps in (90, 100):
        save(tmp_path, steps, {"steps": steps}, "hash")
    (tmp_path / "000000000100.ckpt").write_bytes(b"damaged")
    save(tmp_path, 95, {"steps": 95}, "hash")
    assert names(tmp_path) == ["000000000090.ckpt", "000000000095.ckpt", "000000000100.ckpt"]


def test_an_empty_folder(tmp_path: Path) -> None:
    assert load_latest(tmp_path, "hash") == (None, [])


def test_a_temporary_file_is_no_checkpoint(tmp_path: Path) -> None:
    save(tmp_path, 10, {"steps": 10}, "hash")
    (tmp_path / ".000000000020.ckpt.tmp").write_bytes(b"half of")
    assert load_latest(tmp_path, "hash") == ({"steps": 10}, [])


def _truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _without_the_last_byte(content: bytes) -> bytes:
    return content[:-1]


def _only_the_heading(content: bytes) -> bytes:
    return content[: len(MAGIC) + 65]


def _longer(content: bytes) -> bytes:
    return content + b"x"


def _zeros(content: bytes) -> bytes:
    return bytes(len(content))


def _empty(content: bytes) -> bytes:
    return b""


DAMAGES = [_truncated, _without_the_last_byte, _only_the_heading, _longer, _zeros, _empty]


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_one_before_a_damaged_one_is_used_with_a_warning(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    save(tmp_path, 10, {"steps": 10}, "hash")
    save(tmp_path, 20, {"steps": 20}, "hash")
    newest = tmp_path / "000000000020.ckpt"
    newest.write_bytes(damage(newest.read_bytes()))
    state, (warning,) = load_latest(tmp_path, "hash")
    assert state == {"steps": 10}
    assert warning == f"The checkpoint {newest} is damaged: its checksum does not match."


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Everywhere in the heading, and at 300 random places of the rest. The byte between checksum and payload carries nothing."""
    save(tmp_path, 10, STATE, "hash")
    path = tmp_path / "000000000010.ckpt"
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    places = [i for i in range(len(MAGIC) + 64) if i % 5 == 0]
    places += rng.integers(len(MAGIC) + 65, len(content), 300).tolist()
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="is damaged"):
            load(path, "hash")


def test_a_checkpoint_that_is_a_folder_or_cannot_be_read_counts_as_damaged(tmp_path: Path) -> None:
    save(tmp_path, 10, {"steps": 10}, "hash")
    (tmp_path / "000000000020.ckpt").mkdir()
    state, (warning,) = load_latest(tmp_path, "hash")
    assert state == {"steps": 10}
    assert "cannot be read" in warning


def test_all_damaged(tmp_path: Path) -> None:
    for steps in (10, 20):
        (tmp_path / f"{steps:012d}.ckpt").write_bytes(b"")
    with pytest.raises(CheckpointError) as error:
        load_latest(tmp_path, "hash")
    assert_one_sentence(error.value, "All checkpoints in", str(tmp_path), "move the run folder away")


def test_another_configuration(tmp_path: Path) -> None:
    save(tmp_path, 10, STATE, "one")
    with pytest.raises(CheckpointError) as error:
        load_latest(tmp_path, "two")
    assert_one_sentence(error.value, "belongs to another configuration (one, not two)")


def test_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "__version__", "0.0.1")
    save(tmp_path, 10, STATE, "hash")
    monkeypatch.undo()
    with pytest.raises(CheckpointError) as error:
        load_latest(tmp_path, "hash")
    assert_one_sentence(error.value, "was written by version 0.0.1; this is ")


class Hostile:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.target),)


def hostile(tmp_path: Path, wrap: str) -> tuple[Path, Path]:
    """A folder with a checkpoint that would make the second path, with a valid checksum, as an attacker would write it."""
    folder, target = tmp_path / "checkpoints", tmp_path / "executed"
    folder.mkdir()
    value = {"version": __version__, "configuration": "hash", "state": Hostile(target)}
    (folder / "000000000010.ckpt").write_bytes(signed(pickle.dumps(value, 2) if wrap == "bare pickle" else packed(value)))
    return folder, target


@pytest.mark.parametrize("wrap", ["bare pickle", "torch archive"])
def test_a_hostile_checkpoint_is_not_executed(tmp_path: Path, wrap: str) -> None:
    folder, target = hostile(tmp_path, wrap)
    with pytest.raises((CodesignError, pickle.UnpicklingError)):
        load_latest(folder, "hash")
    assert not target.exists()


@pytest.mark.parametrize("wrap", ["bare pickle", "torch archive"])
def test_a_hostile_checkpoint_is_refused_with_a_sentence(tmp_path: Path, wrap: str) -> None:
    with pytest.raises(CodesignError) as error:
        load_latest(hostile(tmp_path, wrap)[0], "hash")
    assert_one_sentence(error.value, "checkpoint")


@pytest.mark.parametrize("value", [[1, 2], {}, {"version": "1"}])
def test_a_checkpoint_with_something_else_inside_says_so_in_a_sentence(tmp_path: Path, value: Any) -> None:
    (tmp_path / "000000000010.ckpt").write_bytes(signed(packed(value)))
    with pytest.raises(CodesignError) as error:
        load_latest(tmp_path, "hash")
    assert_one_sentence(error.value, "checkpoint")


def test_a_full_disk_keeps_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 10, {"steps": 10}, "hash")
    before = (tmp_path / "000000000010.ckpt").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError) as error:
        save(tmp_path, 20, {"steps": 20}, "hash")
    assert_one_sentence(error.value, "The checkpoint at 20 steps cannot be written", "No space left", "the one before is kept")
    assert names(tmp_path) == ["000000000010.ckpt"]
    assert (tmp_path / "000000000010.ckpt").read_bytes() == before


@pytest.mark.parametrize("damage", DAMAGES[:1])
def test_a_run_falls_back_with_a_warning_and_ends_equal(
    toy: Callable[..., dict[str, Any]], tmp_path: Path, damage: Callable[[bytes], bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    expected = run(toy())
    config = toy(results=str(tmp_path / "other"))
    run({**config, "budget": {**config["budget"], "until": 120}})
    newest = checkpoints_of(config)[-1]
    newest.write_bytes(damage(newest.read_bytes()))
    capsys.readouterr()
    expected.must_equal(run(config), "a run with a damaged checkpoint")
    assert f"warning: The checkpoint {newest} is damaged" in capsys.readouterr().err
    assert len(checkpoints_of(config)) == 2


def test_a_checkpoint_of_something_else(tmp_path: Path) -> None:
    """The checksum is right, the content is not the state of a run: the one before is taken."""
    save(tmp_path, 1, {"method": 1, "ledger": 2}, "hash")
    save(tmp_path, 2, {}, "hash")
    state, (warning,) = load_latest(tmp_path, "hash", ("method", "ledger"))
    assert state == {"method": 1, "ledger": 2}
    assert warning.endswith("does not hold the state of a run.")
