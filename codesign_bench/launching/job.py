"""One run as a job: in this process, or in a process of its own that no other run can take down.

python -m codesign_bench.launching.job reads a configuration and the user's command (JSON) from its standard input; launchers start it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from codesign_bench.errors import CodesignError
from codesign_bench.experiment.run_folder import RunFolder, RunInUse
from codesign_bench.simulation.processes import ONE_THREAD, die_with_parent

Config = Mapping[str, Any]
State = Literal["done", "stopped", "in use", "failed"]

CODES: dict[State, int] = {"done": 0, "failed": 2, "stopped": 3, "in use": 4}
"""Exit codes of a job's process; all others are crashes."""

COMMAND = (sys.executable, "-m", "codesign_bench.launching.job")

TAIL = 15
"""Lines of a failed run's output that are kept for the report."""

NOT_BEGUN = "the sweep was stopped before this run began"
PATIENCE = 60.0
"""Seconds that a run has to stop when its launcher is interrupted."""


@dataclass(frozen=True)
class Ending:
    """How a job ended. `reason` is a sentence; `tail` the last lines of what the run said."""

    path: str
    state: State
    reason: str = ""
    tail: str = ""

    @staticmethod
    def of(config: Config, state: State, reason: str = "", tail: str = "") -> Ending:
        return Ending(str(RunFolder.of(config).path), state, reason, tail)

    @staticmethod
    def stopped(config: Config) -> Ending:
        """Of a run that its sweep stopped, and that said nothing itself."""
        begun = RunFolder.of(config).status()["status"] != "missing"
        return Ending.of(config, "stopped", "the sweep was stopped" if begun else NOT_BEGUN)


def this_command() -> list[str]:
    """What the user typed, for the manifests of the runs it makes."""
    return ["codesign-bench", *sys.argv[1:]]


def run_here(config: Config, command: list[str]) -> Ending:
    """Runs a configuration in this process. Errors that are addressed to the user become endings, others pass."""
    from codesign_bench.experiment.runner import run

    try:
        return Ending.of(config, "done" if run(config, command) == "done" else "stopped")
    except RunInUse as error:
        return Ending.of(config, "in use", str(error))
    except CodesignError as error:
        return Ending.of(config, "failed", str(error))


def elsewhere(config: Config) -> dict[str, Any]:
    """A configuration for a process that may start in another folder and has no screen."""
    return {**config, "results": str(Path(config["results"]).absolute()), "progress": False}


class Children:
    """The processes of the jobs that run now. `stop` ends them as Ctrl-C would, and lets no new one begin."""

    def __init__(self) -> None:
        self.stopping = False
        self._processes: set[subprocess.Popen[bytes]] = set()

    def stop(self) -> None:
        """The second call does not wait for checkpoints to be written."""
        number = signal.SIGKILL if self.stopping else signal.SIGTERM
        self.stopping = True
        for process in list(self._processes):
            process.send_signal(number)

    def run(self, config: Config, command: list[str], cores: Iterable[int] = ()) -> Ending:
        """Runs a configuration in a process of its own, on the given cores, and returns how that ended."""
        if self.stopping:
            return Ending.stopped(config)
        with tempfile.TemporaryFile() as log:
            code = self._wait_for({"config": dict(config), "command": command}, cores, log)
            log.seek(0)
            return _ending(config, code, log.read().decode(errors="replace").splitlines(), self.stopping)

    def _wait_for(self, job: Mapping[str, Any], cores: Iterable[int], log: IO[bytes]) -> int:
        """The exit code of the job, in a session of its own: Ctrl-C reaches it through `stop` only. It dies with this process."""
        line = [*COMMAND, str(os.getpid()), ",".join(map(str, cores))]
        variables = {**os.environ, **ONE_THREAD}
        process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, env=variables)
        self._processes.add(process)
        try:
            if self.stopping:  # the request came between the question and the start
                process.send_signal(signal.SIGTERM)
            process.communicate(json.dumps(job).encode())
            return process.returncode
        finally:
            if process.poll() is None:  # an exception is on its way
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
                process.kill()
                process.wait()
            self._processes.discard(process)


def _ending(config: Config, code: int, said: list[str], stopping: bool) -> Ending:
    folder, tail = RunFolder.of(config), "\n".join(said[-TAIL:])
    for state, number in CODES.items():
        if number == code:
            reason = said[-1].removeprefix("error: ") if said and state != "done" else ""
            return Ending.of(config, state, reason, tail if state == "failed" else "")
    if stopping and code < 0:
        return Ending.stopped(config)
    how = f"died with {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    reason = f"The process of the run {how}."
    if code < 0 or folder.status()["status"] != "failed":  # it could not say so itself
        with contextlib.suppress(CodesignError, OSError), folder.locked():
            before = folder.status()
            folder.set_status("failed", steps=before.get("steps", 0), until=before.get("until", config["budget"]["until"]), reason=reason)
    return Ending.of(config, "failed", reason, tail)


def _stay_nice() -> None:
    """Linux may share the processor among sessions, and only within one by how nice processes are: this session is as nice as its job."""
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(os.nice(0)), encoding="utf-8")


def main(arguments: list[str]) -> int:
    parent, cores = arguments
    die_with_parent(int(parent))  # an orphan would hold the run's lock, and nobody could go on with it
    _stay_nice()
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, map(int, cores.split(",")))
    ending = run_here(**json.loads(sys.stdin.read()))
    if ending.reason:
        print(f"error: {ending.reason}", file=sys.stderr)
    return CODES[ending.state]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
