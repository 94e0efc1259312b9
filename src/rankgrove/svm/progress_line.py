"""The line that shows the progress of solving."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rankgrove.showing import TextLine, in_notebook
from rankgrove.svm.cutting_plane import Progress

if TYPE_CHECKING:
    from rich.status import Status


class ProgressLine:
    """A callback that updates a line on a terminal or in a notebook; elsewhere it does nothing."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._line: TextLine | Status | None = None
        self._shown = 0.0

    def __call__(self, progress: Progress) -> None:
        if self._line is None:
            self._line = TextLine() if in_notebook() else _status()
        now = time.monotonic()
        if now - self._shown > 0.1:
            self._shown = now
            text = f"{self._title}, {progress}"
            if isinstance(self._line, TextLine):
                self._line.write(text)
            else:
                self._line.update(text)

    def close(self) -> None:
        """Release the terminal."""
        if isinstance(self._line, TextLine):
            self._line.close()
        elif self._line is not None:
            self._line.stop()


def _status() -> Status:
    """Return a started status line of rich."""
    from rich.console import Console
    from rich.status import Status

    line = Status("", console=Console(stderr=True))
    line.start()
    return line
