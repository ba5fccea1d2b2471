"""On a terminal of 80 by 24: what shows while runs go on fits it, and Ctrl-C leaves it in order."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codesign_bench.launching.status import statuses
from tests.experiment.tiny import OVERRIDES, command, environment

pytestmark = pytest.mark.slow
BOTH = ("transform2act", "transform2act_no_gnn")
LONG = [*OVERRIDES, "env=swimmer", "budget.steps=4000000"]


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._settings = termios.tcgetattr(self._theirs)
        plain = {key: value for key, value in environment().items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command(*words),
            cwd=folder,
            env={**plain, "TERM": "xterm"},
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self._sent = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while got := os.read(self._ours, 65536):
                self._sent += got

    @property
    def sent(self) -> str:
        return self._sent.decode(errors="replace")

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert self.process.poll() is None, self.sent
            assert time.monotonic() < deadline, self.sent
            time.sleep(0.05)

    def press_ctrl_c(self) -> int:
        os.write(self._ours, b"\x03")
        code = self.process.wait(timeout=120)
        assert termios.tcgetattr(self._theirs) == self._settings
        time.sleep(0.2)
        assert "\x1b[?25l" not in self.sent, "the cursor was hidden"
        assert "Traceback" not in self.sent
        assert max(map(len, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\^C", "", self.sent).replace("\r", "\n").split("\n"))) <= 80, self.sent
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._theirs)
        os.close(self._ours)


def test_a_benchmark_and_its_status(tmp_path: Path) -> None:
    words = [*LONG, f"method={','.join(BOTH)}", "seed=range(0,3)", "study=bench", f"results={tmp_path}"]
    bench = Terminal(tmp_path, "bench", *words)
    try:
        bench.wait_for(lambda: sum(run.steps > 0 for run in statuses(tmp_path, ["bench"])) >= 1 and "steps/s together" in bench.sent)
        status = Terminal(tmp_path, "status", "watch=true", f"results={tmp_path}")
        try:
            status.wait_for(lambda: status.sent.count("6 runs on swimmer: ") > 2)
            assert status.press_ctrl_c() == 130
        finally:
            status.close()
        assert "stopped\r\n" not in status.sent.rpartition("seed")[2], "nobody needs to be told"
        assert bench.press_ctrl_c() == 130
    finally:
        bench.close()
    assert re.search(r"6 runs: \d stopped, \d not begun; the same command goes on from there\r\n$", bench.sent), bench.sent
    assert not any(run.state == "running" for run in statuses(tmp_path))
    last = bench.sent.rpartition("steps of")[2].rpartition("method")[2]
    assert " running" not in last, "the last state of all"


def test_a_run_and_its_bar(tmp_path: Path) -> None:
    run = Terminal(tmp_path, *LONG, "progress=true", f"results={tmp_path}")
    try:
        run.wait_for(lambda: "steps/s, " in run.sent and "return " in run.sent)
        assert run.press_ctrl_c() == 130
    finally:
        run.close()
    assert re.search(r"stopped at \d+ steps; the same command goes on from there\r\n$", run.sent), run.sent
