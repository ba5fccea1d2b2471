"""Checkpoints: checksummed, written atomically, the two latest kept. Nothing in them can run code when it is loaded."""

import contextlib
import hashlib
import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from codesign_bench import __version__
from codesign_bench.errors import CodesignError
from codesign_bench.experiment.run_folder import CHECKPOINTS, write_atomically

MAGIC = b"codesign_bench checkpoint 1\n"
KEPT = 2


class CheckpointError(CodesignError, RuntimeError):
    """A checkpoint is damaged, or cannot be written."""


class CheckpointDiffers(CheckpointError):
    """It is whole, but of another configuration or version: the command is refused, and nothing is wrong with the run."""


def save(folder: Path, steps: int, state: dict[str, Any], configuration_hash: str) -> None:
    """Writes the checkpoint of a run that has charged `steps`; the older ones but one are removed after it stands. (One with more steps
    is damaged, or the run would have gone on from there.)"""
    buffer = io.BytesIO()
    torch.save({"version": __version__, "configuration": configuration_hash, "state": state}, buffer)
    payload = buffer.getvalue()
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
        value = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
        version, configuration, state = value["version"], value["configuration"], value["state"]
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, TypeError, IndexError, AttributeError, ValueError):
        raise CheckpointError(f"The checkpoint {file} does not hold the state of a run.") from None
    if version != __version__:
        raise CheckpointDiffers(f"The checkpoint {file} was written by version {version}; this is {__version__}.")
    if configuration != configuration_hash:
        raise CheckpointDiffers(f"The checkpoint {file} belongs to another configuration ({configuration}, not {configuration_hash}).")
    if not isinstance(state, dict) or not set(keys) <= state.keys():
        raise CheckpointError(f"The checkpoint {file} does not hold the state of a run.")
    return state
