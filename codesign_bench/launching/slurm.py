"""Many runs on a Slurm cluster, through submitit: one job each. A job that is warned or ended early is queued again."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from codesign_bench.errors import ConfigError
from codesign_bench.launching.job import TAIL, Config, Ending, elsewhere, run_here, this_command
from codesign_bench.launching.local import stopped_by_signals

PAUSE = 1.0
"""Seconds between looks at the jobs."""

PATIENCE = 60.0
"""Seconds that cancelled jobs have to say how they ended; those that never began say nothing."""


def launch(
    configs: Sequence[Config], *, cluster: str, cores: int, hours: float, memory_gb: float, partition: str | None, timeouts: int, extra: Any
) -> Iterator[Ending]:
    """Submits all configurations, and gives the ending of each as its job ends. Ctrl-C cancels the jobs. The settings are explained
    where their defaults are, in hydra_plugins/codesign_bench/launchers.py."""
    try:
        import submitit
    except ImportError:
        raise ConfigError("launcher is slurm, but submitit is not installed; pip install 'codesign-bench[launchers]'.") from None
    logs = Path(configs[0]["results"]).absolute() / configs[0]["study"] / ".jobs"
    try:
        executor = submitit.AutoExecutor(folder=logs, cluster=cluster, **{f"{cluster}_max_num_timeout": timeouts})
    except RuntimeError as error:
        raise ConfigError(f"launcher is slurm, but {error}.") from None
    names = {"slurm_partition": partition} if partition else {}
    executor.update_parameters(name="codesign", cpus_per_task=cores, timeout_min=int(60 * hours), mem_gb=memory_gb, **names, **extra)
    jobs = dict(zip(executor.map_array(Job(this_command(), logs), [elsewhere(config) for config in configs]), configs, strict=True))
    stopped_at = float("inf")

    def stop() -> None:
        nonlocal stopped_at
        stopped_at = min(stopped_at, time.monotonic())
        for job in jobs:
            cancellation(logs, job.job_id).touch()
            job.cancel()

    with stopped_by_signals(stop):
        while jobs:
            late = time.monotonic() > stopped_at + PATIENCE
            for job in [job for job in jobs if late or job.done()]:
                yield _ending(job, jobs.pop(job), stopped_at < float("inf"))
            time.sleep(PAUSE)


class Job:
    """What runs on the cluster. Having `checkpoint`, submitit queues it again when it is preempted or out of time."""

    def __init__(self, command: list[str], logs: Path) -> None:
        self.command, self.logs = command, logs

    def __call__(self, config: Config) -> Ending:
        from submitit import JobEnvironment

        ending, here = run_here(config, self.command), JobEnvironment()
        if ending.state == "stopped" and not cancellation(self.logs, here.job_id).exists() and not _cancelled():
            signal.raise_signal(here._usr_sig())  # submitit's own handler queues this job again and leaves
        return ending

    def checkpoint(self, config: Config) -> Any:
        """The run has its own checkpoints."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, config)


def cancellation(logs: Path, job: str) -> Path:
    """There if the sweep that submitted a job has cancelled it. Slurm itself may say no more than that the job is completing."""
    return logs / f"{job}.cancelled"


def _cancelled() -> bool:
    """Whether somebody cancelled this job by hand: then Slurm ended it with the same signal as it does to preempt it."""
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return False
    show = ["scontrol", "show", "job", job, "--oneliner"]
    return "JobState=CANCELLED" in subprocess.run(show, capture_output=True, text=True, check=False).stdout


def _ending(job: Any, config: Config, stopping: bool) -> Ending:
    if stopping and not job.paths.result_pickle.exists():
        return Ending.stopped(config)
    if job.exception() is None:
        ending: Ending = job.result()
        return ending
    tail = "\n".join((job.stderr() or "").splitlines()[-TAIL:])
    return Ending.of(config, "failed", f"The job {job.job_id} ended without a result; its logs are {job.paths.stderr}.", tail)
