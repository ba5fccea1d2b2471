"""What a process that learns keeps, and leaves behind: freed memory, and no empty folders."""

import ctypes
import os
import sys
import tempfile
from contextlib import AbstractContextManager

from codesign_bench.simulation.processes import environment

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""Numbers of glibc's mallopt parameters."""


def keep_freed_memory() -> None:
    """Learning frees and takes the same few megabytes thousands of times: tells glibc, where there is one, not to hand freed blocks back
    to the system, which would have to clear them again page by page. Measured: a tenth of the time of a learning step."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((MMAP_THRESHOLD, 1 << 30), (TRIM_THRESHOLD, 1 << 30), (ARENA_MAX, 1)):
            mallopt(parameter, value)


def without_compiler_folder() -> AbstractContextManager[None]:
    """Optimisers and PyTorch Geometric import torch's compiler, which makes an empty folder, unless it is told of one that exists."""
    return environment({"TORCHINDUCTOR_CACHE_DIR": os.environ.get("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())})
