"""A Slurm cluster of one node, made of processes on this machine, with keys, ports and state of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
KillWait=30
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=1000 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def obstacle() -> str | None:
    """Why there can be no cluster here, if so."""
    if os.geteuid() != 0:
        return "a Slurm cluster needs root"
    missing = [name for name in ("munged", "slurmctld", "slurmd", "scontrol") if shutil.which(name) is None]
    return f"{', '.join(missing)} not installed (Debian: slurm-wlm and munge)" if missing else None


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """The environment variables that make Slurm's commands talk to it."""
    folder.mkdir(mode=0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    host = socket.gethostname().partition(".")[0]
    text = CONFIGURATION.format(host=host, folder=folder, ports=(_free_port(), _free_port()), cores=os.cpu_count())
    (folder / "slurm.conf").write_text(text)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o600)
    files = {
        "key-file": "munge.key",
        "socket": "munge.socket",
        "pid-file": "munged.pid",
        "log-file": "munged.log",
        "seed-file": "munge.seed",
    }
    variables = {"SLURM_CONF": str(folder / "slurm.conf")}
    try:
        subprocess.run(["munged", "--force", *(f"--{option}={folder / name}" for option, name in files.items())], check=True)
        for daemon in ("slurmctld", "slurmd"):
            subprocess.run([daemon, "-f", str(folder / "slurm.conf")], check=True, env={**os.environ, **variables})
        _wait_until_idle(variables)
        yield variables
    finally:
        for daemon in ("slurmd", "slurmctld", "munged"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((folder / f"{daemon}.pid").read_text()), signal.SIGTERM)


def _wait_until_idle(variables: dict[str, str]) -> None:
    for _ in range(300):
        shown = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, env={**os.environ, **variables}, check=False)
        if shown.stdout.strip() == "idle":
            return
        time.sleep(0.1)
    raise TimeoutError(f"The node never became idle: {shown.stdout}{shown.stderr}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
