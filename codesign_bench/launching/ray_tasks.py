"""Many runs on a Ray cluster: one task each. When a node dies, Ray gives its tasks to others, where the runs go on."""

import os
import time
from collections.abc import Iterator, Sequence

from codesign_bench.errors import ConfigError
from codesign_bench.launching.job import TAIL, Children, Config, Ending, elsewhere, this_command
from codesign_bench.launching.local import stopped_by_signals

PATIENCE = 120.0
"""Seconds that a run waits for its lock: the processes of a node that died may take a while to notice."""


def launch(configs: Sequence[Config], *, address: str | None, cores: int, retries: int) -> Iterator[Ending]:
    """Runs all configurations where the cluster has `cores` free, and gives the ending of each as it ends."""
    try:
        import ray
        from ray.exceptions import RayError
    except ImportError:
        raise ConfigError("launcher is ray, but Ray is not installed; pip install 'codesign-bench[launchers]'.") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address=address, ignore_reinit_error=True, log_to_driver=False, logging_level="ERROR")
    task = ray.remote(num_cpus=cores, max_retries=retries)(_run)
    waiting = {}
    for config in configs:
        workers = 0 if config["workers"] == 0 else min(config["workers"] or cores, cores)
        waiting[task.remote({**elsewhere(config), "workers": workers}, this_command())] = config
    stopping = False

    def stop() -> None:
        nonlocal stopping
        stopping = True
        for reference in list(waiting):
            ray.cancel(reference)

    with stopped_by_signals(stop):
        while waiting:
            (reference, *_), _ = ray.wait(list(waiting), num_returns=1, timeout=None)
            config = waiting.pop(reference)
            try:
                yield ray.get(reference)
            except RayError as error:
                said = str(error).strip().splitlines() or [type(error).__name__]
                yield Ending.stopped(config) if stopping else Ending.of(config, "failed", said[0], "\n".join(said[-TAIL:]))


def _run(config: Config, command: list[str]) -> Ending:
    """In a process of its own, below Ray's: it has its own signals, and dies with Ray's."""
    children, began = Children(), time.monotonic()
    try:
        while (ending := children.run(config, command)).state == "in use" and time.monotonic() < began + PATIENCE:
            time.sleep(1)
    except KeyboardInterrupt:  # how Ray cancels a task
        return Ending.stopped(config)
    return ending
