"""The line that shows how solving goes on."""

from __future__ import annotations

import time
from typing import Any

from rankgrove.svm.cutting_plane import Progress


class ProgressLine:
    """A callback that keeps one line on the terminal up to date; nothing where it is none."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._line: Any = None
        self._shown = 0.0

    def __call__(self, progress: Progress) -> None:
        if self._line is None:
            from rich.console import Console
            from rich.status import Status

            self._line = Status("", console=Console(stderr=True))
            self._line.start()
        now = time.monotonic()
        if now - self._shown > 0.1:
            self._shown = now
            self._line.update(f"{self._title}, {progress}")

    def close(self) -> None:
        """Give the terminal back."""
        if self._line is not None:
            self._line.stop()
