"""The progress bar of training: rounds, rate, time left, and the current validation value."""

from __future__ import annotations

import time
from typing import Any

from rankgrove.boosting.loop import Progress


class ProgressBar:
    """A callback that draws a bar on the terminal; nothing where it is no terminal."""

    def __init__(self, title: str = "training") -> None:
        self._title = title
        self._bar: Any = None
        self._task: Any = None
        self._shown = 0.0

    def __call__(self, progress: Progress) -> None:
        if self._bar is None:
            self._start(progress)
        now = time.monotonic()
        if now - self._shown > 0.1 or progress.round == progress.rounds:
            self._shown = now
            self._bar.update(self._task, completed=progress.round, note=_note(progress))

    def _start(self, progress: Progress) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=False,
        )
        self._task = self._bar.add_task(self._title, total=progress.rounds, note="")
        self._bar.start()

    def close(self) -> None:
        """Leave the bar as it is and give the terminal back."""
        if self._bar is not None:
            self._bar.stop()


def _note(progress: Progress) -> str:
    """Return the rate and, where there is validation data, its value now and at best."""
    rate = (progress.round - progress.first) / max(progress.seconds, 1e-9)
    text = f"{rate:.1f} rounds/s"
    values, best = progress.watch.deciding, progress.watch.best_value
    if values and best is not None:
        name = next(iter(next(iter(progress.watch.history.values()))))
        text += f"  {name} {values[-1]:.4f}, best {best:.4f}"
    return text
