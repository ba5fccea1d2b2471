"""Checkpoints: checksummed, written atomically, the two latest kept. Nothing in them can run code when it is loaded."""

import contextlib
import hashlib
import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from codesign_bench import __version__
from codesign_bench.errors import CodesignError
from codesign_bench.experiment.run_folder import CHECKPOINTS, write_atomically

MAGIC = b"codesign_bench checkpoint 1\n"
KEPT = 2
ARRAY, NUMBER = "numpy array", "numpy number"
"""Under these keys numpy's values lie in a checkpoint, as tensors: unpickling numpy's own could be made to run code."""
UNREADABLE = (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, TypeError, IndexError, AttributeError, ValueError, OSError)
"""What torch raises when it meets something else than it wrote, or than may be loaded; a RecursionError is a RuntimeError."""


class CheckpointError(CodesignError, RuntimeError):
    """A checkpoint is damaged, or cannot be written."""


class CheckpointDiffers(CheckpointError):
    """It is whole, but of another configuration or version: the command is refused, and nothing is wrong with the run."""


def save(folder: Path, steps: int, state: dict[str, Any], configuration_hash: str) -> None:
    """Writes the checkpoint of a run that has charged `steps`, which must be one that `load` can read; the older ones but one are removed
    after it stands. (One with more steps is damaged, or the run would have gone on from there.)"""
    payload = _packed({"version": __version__, "configuration": configuration_hash, "state": state})
    digest = hashlib.sha256(payload).hexdigest().encode()
    path = folder / f"{steps:012d}.ckpt"
    try:
        write_atomically(path, MAGIC + digest + b"\n" + payload)
    except OSError as error:
        raise CheckpointError(f"The checkpoint at {steps} steps cannot be written, the one before is kept: {error}") from None
    for old in sorted(file for file in folder.glob(CHECKPOINTS) if file <= path)[:-KEPT]:
        with contextlib.suppress(OSError):
            old.unlink()


def load_latest(folder: Path, configuration_hash: str, keys: Sequence[str] = ()) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest checkpoint that is whole and has these keys, or None if there is none at all, and a warning for each one that
    was passed over."""
    warnings: list[str] = []
    files = sorted(folder.glob(CHECKPOINTS), reverse=True)
    for file in files:
        try:
            return load(file, configuration_hash, keys), warnings
        except CheckpointDiffers:
            raise
        except CheckpointError as error:
            warnings.append(str(error))
    if files:
        raise CheckpointError(f"All checkpoints in {folder} are damaged; move the run folder away to start again.")
    return None, warnings


def newest(folder: Path) -> int:
    """The steps of the newest checkpoint, damaged or not; 0 if there is none."""
    return max((int(file.stem) for file in folder.glob(CHECKPOINTS)), default=0)


def load(file: Path, configuration_hash: str, keys: Sequence[str] = ()) -> dict[str, Any]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise CheckpointError(f"The checkpoint {file} cannot be read ({error.strerror}).") from None
    start = len(MAGIC)
    digest, payload = content[start : start + 64], content[start + 65 :]
    if not content.startswith(MAGIC) or hashlib.sha256(payload).hexdigest().encode() != digest:
        raise CheckpointError(f"The checkpoint {file} is damaged: its checksum does not match.")
    try:
        value = _unpacked(payload)
        version, configuration, state = value["version"], value["configuration"], value["state"]
    except UNREADABLE:
        raise CheckpointError(f"The checkpoint {file} does not hold the state of a run.") from None
    if version != __version__:
        raise CheckpointDiffers(f"The checkpoint {file} was written by version {version}; this is {__version__}.")
    if configuration != configuration_hash:
        raise CheckpointDiffers(f"The checkpoint {file} belongs to another configuration ({configuration}, not {configuration_hash}).")
    if not isinstance(state, dict) or not set(keys) <= state.keys():
        raise CheckpointError(f"The checkpoint {file} does not hold the state of a run.")
    return state


# ---- bytes -----------------------------------------------------------------------------------------------------------


def _packed(value: dict[str, Any]) -> bytes:
    """CheckpointError names the first part that cannot be read again: when the run is to go on, it is too late to find out."""
    try:
        payload = _bytes(value)
        _unpacked(payload)
    except Exception as error:  # a method's own objects can fail in any way when they are pickled
        where, part = _offender(value["state"])
        sentence = f"{where} is of type {type(part).__name__}" if where else " ".join(str(error).split())
        raise CheckpointError(
            f"The state of the run cannot be saved: {sentence}; allowed are tensors, numpy's arrays of numbers, numbers, text, lists and "
            "dictionaries."
        ) from None
    return payload


def _bytes(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(_without_numpy(value), buffer)
    return buffer.getvalue()


def _unpacked(payload: bytes) -> Any:
    return _with_numpy(torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True))


def _offender(value: Any, where: str = "") -> tuple[str, Any]:
    """The innermost part that is the reason why a value cannot be written and read again, and its place."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, part in parts:
        try:
            _unpacked(_bytes(part))
        except Exception:
            return _offender(part, f"{where}.{key}".lstrip(".") if isinstance(value, dict) else f"{where}[{key}]")
    return where, value


def _without_numpy(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return {ARRAY if isinstance(value, np.ndarray) else NUMBER: torch.from_numpy(np.array(value))}
    if type(value) is dict:
        return {key: _without_numpy(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_without_numpy(part) for part in value)
    return value


def _with_numpy(value: Any) -> Any:
    if type(value) is dict:
        kind, tensor = next(iter(value.items()), (None, None))
        if len(value) == 1 and kind in (ARRAY, NUMBER) and isinstance(tensor, torch.Tensor):
            array = tensor.numpy()
            return array if kind == ARRAY else array[()]
        return {key: _with_numpy(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_with_numpy(part) for part in value)
    return value
