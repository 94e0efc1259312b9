"""The progress of training, and a bar that shows it: rounds, rate, time left, validation value."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from rankgrove.showing import TextLine, in_notebook
from rankgrove.training.watch import Watch


@dataclass(repr=False, kw_only=True)
class Progress:
    """The state of training after a round, passed to every callback.

    Attributes
    ----------
    round : number of rounds done, those of a checkpoint included
    first : number of rounds that were already done when training began
    rounds : maximum number of rounds
    watch : the validation data's history, best round and patience
    seconds : time since training began
    interrupted : whether Ctrl-C ended training
    """

    round: int
    rounds: int
    watch: Watch
    first: int = 0
    started: float = field(default_factory=time.monotonic)
    interrupted: bool = False

    @property
    def seconds(self) -> float:
        """Seconds since training began."""
        return time.monotonic() - self.started

    def __repr__(self) -> str:
        """Return the round, and the newest value of the deciding measure."""
        text = f"round {self.round} of {self.rounds}"
        values = self.watch.deciding
        if values:
            name, measures = next(iter(self.watch.history.items()))
            text += f", {name} {next(iter(measures))} {values[-1]:.4f}"
        return f"Progress({text})"


_SINGULAR = {"passes": "pass"}  # of units whose plural is not formed with s


class ProgressBar:
    """A callback that draws a bar on a terminal, or writes a line in a notebook.

    Elsewhere it shows nothing.

    Parameters
    ----------
    title : the text before the bar
    unit : the name of rounds, in the plural
    """

    def __init__(self, title: str = "training", unit: str = "rounds") -> None:
        self._title = title
        self._unit = unit
        self._bar: Any = None
        self._task: Any = None
        self._shown = 0.0
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        if self._bar is None:
            self._start(progress)
        self._last = progress
        now = time.monotonic()
        if now - self._shown > 0.1 or progress.round == progress.rounds:
            self._shown = now
            self._bar.update(self._task, completed=progress.round, note=self._note(progress))

    def _start(self, progress: Progress) -> None:
        self._bar = _new_bar()
        self._task = self._bar.add_task(self._title, total=progress.rounds, note="")
        self._bar.start()

    def close(self) -> None:
        """Show how training ended, and release the terminal."""
        if self._bar is None:
            return
        if self._last is not None:
            note = self._end(self._last)
            self._bar.update(self._task, completed=self._last.round, note=note)
        self._bar.stop()

    def _end(self, progress: Progress) -> str:
        """Return the last note: the best round, and why training ended early; or the rate."""
        parts = []
        if progress.round < progress.rounds:
            parts = ["interrupted" if progress.interrupted else "stopped early"]
        best, value = progress.watch.best_round, progress.watch.best_value
        if best is not None and value is not None:
            name = next(iter(next(iter(progress.watch.history.values()))))
            unit = _SINGULAR.get(self._unit, self._unit.removesuffix("s"))
            parts.append(f"{name} best {value:.4f} in {unit} {best:,}")
        return "; ".join(parts) or self._rate(progress)  # together too wide for 80 columns

    def _rate(self, progress: Progress) -> str:
        rate = (progress.round - progress.first) / max(progress.seconds, 1e-9)
        return f"{rate:.1f} {self._unit}/s"

    def _note(self, progress: Progress) -> str:
        """Return the rate and, with validation data, its current and its best value."""
        text = self._rate(progress)
        values, best = progress.watch.deciding, progress.watch.best_value
        if values and best is not None:
            name = next(iter(next(iter(progress.watch.history.values()))))
            text += f"  {name} {values[-1]:.4f}, best {best:.4f}"
        return text


class TaskBar:
    """A bar over independent pieces of work, such as the models of a bag.

    Parameters
    ----------
    title : the text before the bar
    total : number of pieces
    unit : the name of the pieces, in the plural
    """

    def __init__(self, title: str, total: int, unit: str) -> None:
        self._bar = _new_bar()
        self._task = self._bar.add_task(title, total=total, note=unit)
        self._bar.start()

    def advance(self, n: int = 1, note: str | None = None) -> None:
        """Count `n` more pieces."""
        fields = {} if note is None else {"note": note}
        self._bar.update(self._task, advance=n, **fields)

    def close(self) -> None:
        """Leave the bar as it is and release the terminal."""
        self._bar.stop()


class _NotebookBar:
    """A line of text for notebooks, where rich's bar would need another package."""

    def __init__(self) -> None:
        self._line = TextLine()
        self._title, self._note = "", ""
        self._done = self._total = 0
        self._shown = 0.0

    def add_task(self, title: str, total: int, note: str) -> int:
        """Set the task; rich's bars can have several, this one has one."""
        self._title, self._total, self._note = title, total, note
        return 0

    def start(self) -> None:
        """Do nothing: the first update starts the line."""

    def update(
        self, task: int, completed: int | None = None, advance: int = 0, note: str | None = None
    ) -> None:
        """Rewrite the line, several times per second."""
        self._done = self._done + advance if completed is None else completed
        self._note = self._note if note is None else note
        now = time.monotonic()
        if now - self._shown > 0.3 or self._done >= self._total:
            self._shown = now
            self._write()

    def stop(self) -> None:
        """Leave the line as it is."""
        if self._shown:
            self._write()
        self._line.close()

    def _write(self) -> None:
        self._line.write(f"{self._title}: {self._done:,} of {self._total:,}, {self._note}")


def _new_bar() -> Any:
    if in_notebook():
        return _NotebookBar()
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=False,
    )
