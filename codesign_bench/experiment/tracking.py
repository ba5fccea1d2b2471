"""What people watch while a run goes on: a progress bar, TensorBoard, W&B. progress.csv remains the source of truth."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from codesign_bench.errors import ConfigError


class Display:
    """A bar with steps per second and time left on a terminal; elsewhere one line per evaluation. The bar is at the steps that are saved:
    those a run that is stopped now goes on from."""

    def __init__(self, enabled: bool, done: int, until: int, path: Path) -> None:
        self._name, self._done, self._until = "/".join(path.parts[-3:]), done, until
        self._lines = enabled and not sys.stderr.isatty()
        off = not enabled or self._lines
        look = {"unit": "step", "unit_scale": True, "dynamic_ncols": True, "smoothing": 0.1}
        self._bar = tqdm(total=until, initial=done, disable=off, desc=self._name, **look)

    def update(self, done: int) -> None:
        self._bar.update(done - self._done)
        self._done = done

    def show(self, steps: int, value: float, best: float) -> None:
        returns = f"return {value:.1f}, best {best:.1f}"
        self._bar.set_postfix_str(returns)
        if self._lines:
            print(f"{self._name}: {steps}/{self._until} steps, {returns}", file=sys.stderr)

    def close(self) -> None:
        self._bar.close()


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
