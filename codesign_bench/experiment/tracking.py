"""What people watch while a run goes on: a progress bar, TensorBoard, W&B. progress.csv remains the source of truth."""

import contextlib
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codesign_bench.bars import bar
from codesign_bench.errors import ConfigError
from codesign_bench.terminal import duration, short

RECENT = 300.0
"""Seconds of the past that say how fast a run is."""


class Pace:
    """How far a session came lately: since its beginning, or since the last of its checkpoints that lies so far back."""

    def __init__(self, steps: int) -> None:
        self._points = deque([(0.0, steps)])

    def note(self, seconds: float, steps: int) -> None:
        """At a checkpoint, with the seconds of the session."""
        self._points.append((seconds, steps))
        while len(self._points) > 2 and self._points[1][0] <= seconds - RECENT:
            self._points.popleft()

    @property
    def steps(self) -> int:
        return self._points[-1][1]

    def recent(self) -> dict[str, float]:
        (began, first), (now, steps) = self._points[0], self._points[-1]
        return {"recent_steps": steps - first, "recent_seconds": now - began}


class Display:
    """A bar with steps per second and time left on a terminal; elsewhere one line per evaluation. The bar is at the steps that are saved:
    those a run that is stopped now goes on from."""

    def __init__(self, enabled: bool, pace: Pace, until: int, path: Path) -> None:
        self._name, self._pace, self._until, self._returns = "/".join(path.parts[-3:]), pace, until, ""
        self._open = contextlib.ExitStack()
        begin = bar(f"{short(pace.steps)} of {short(until)}", until, pace.steps, stays=True)
        self._show = self._open.enter_context(begin) if enabled else None
        self._lines = enabled and self._show is None

    def update(self, done: int) -> None:
        """What the pace tells, too."""
        if self._show is None:
            return
        steps, seconds = self._pace.recent().values()
        speed = steps / seconds if steps > 0 and seconds > 0 else None
        left = [f"{speed:,.0f} steps/s", f"{duration((self._until - done) / speed)} left"] if speed else []
        self._show(done, ", ".join([f"{short(done)} of {short(self._until)}", *left, *([self._returns] if self._returns else [])]))

    def show(self, steps: int, value: float, best: float) -> None:
        """With the next update, on a terminal."""
        self._returns = f"return {value:.1f}, best {best:.1f}"
        if self._lines:
            print(f"{self._name}: {steps}/{self._until} steps, {self._returns}", file=sys.stderr)

    def close(self) -> None:
        self._open.close()


class Tracker:
    """Numbers to TensorBoard (if installed) and W&B (if asked for)."""

    def __init__(self, folder: Path, tensorboard: bool, wandb_project: str | None, start: int) -> None:
        self._writer: Any = None
        self._wandb: Any = None
        if tensorboard:
            with contextlib.suppress(ImportError), self._optional():
                from torch.utils.tensorboard import SummaryWriter

                self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=start)
        if wandb_project is not None:
            try:
                import wandb
            except ImportError:
                raise ConfigError("wandb is set, but the wandb package is not installed; install it or leave wandb unset.") from None
            self._wandb = wandb.init(project=wandb_project, dir=str(folder), name="/".join(folder.parts[-4:]), resume="allow")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        with self._optional():
            for name, value in values.items() if self._writer is not None else ():
                self._writer.add_scalar(name, value, step)
        if self._wandb is not None:
            self._wandb.log(dict(values), step=step)

    def close(self) -> None:
        with self._optional():
            if self._writer is not None:
                self._writer.close()
        if self._wandb is not None:
            self._wandb.finish()

    @contextlib.contextmanager
    def _optional(self) -> Iterator[None]:
        """A full disk ends TensorBoard's log with a warning, not the run: whether that can go on is for its own files to say."""
        try:
            yield
        except OSError as error:
            self._writer = None
            print(f"warning: TensorBoard's log cannot be written ({error.strerror}); the run goes on without it.", file=sys.stderr)
