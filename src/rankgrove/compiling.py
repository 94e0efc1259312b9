"""A message while kernels are being compiled.

Kernels are compiled when they are first used on a machine, and cached. Without a message, the first
read and the first fit would seem to hang. On a terminal a moving line is shown until compilation is
done; elsewhere one line is logged.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
import threading
import time
from typing import Any

_log = logging.getLogger("rankgrove")

# Packages of kernels -> their purpose.
_PURPOSES = {
    "data": "preparing data",
    "measures": "measures",
    "model": "nets",
    "nets": "nets",
    "objectives": "gradients",
    "growth": "growing trees",
    "scoring": "scores",
    "evaluation": "evaluation",
    "sweep": "combining",
    "svm": "SVMs",
    "boosting": "boosting",
    "adapt": "adaptation",
    "bagging": "bags",
    "pruning": "pruning",
    "explaining": "explanations",
    "_random_kernels": "random numbers",
}
SHOWN_AFTER = 0.5  # seconds of compiling; shorter compilations are not shown
GONE_AFTER = 0.3  # seconds without a kernel, after which counting starts again
_SPINNER = "|/-\\"


class Indicator:
    """Shows that kernels are being compiled: a moving line on a terminal, or a log message."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._purposes: list[str] = []  # of the kernels being compiled; compilations nest
        self._done = 0
        self._ended = 0.0
        self._drawn = False
        self._logged = False
        self.advises = True  # where there is no terminal: logs how kernels are compiled ahead
        self._thread: threading.Thread | None = None

    def begin(self, module: str) -> None:
        """Record that a kernel is about to be compiled."""
        with self._lock:
            self._purposes.append(purpose_of(module))
            if self._thread is None:
                self._done = 0
                self._thread = threading.Thread(target=self._show, daemon=True)
                self._thread.start()

    def end(self) -> None:
        """Record that a kernel is done; after the last one, the line disappears at once."""
        with self._lock:
            self._purposes.pop()
            self._done += 1
            self._ended = time.monotonic()
            if self._drawn and not self._purposes:
                self._drawn = False
                _draw("")

    def wait_for(self, module: str, begins: bool) -> None:
        """Record that a wait for another process, which compiles a kernel, begins or ends."""
        if begins:
            self.begin(module)
        else:
            self.end()

    def wait(self) -> None:
        """Wait until the line is no longer updated."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _show(self) -> None:
        began = time.monotonic()
        for sign in itertools.cycle(_SPINNER):
            time.sleep(0.1)
            with self._lock:
                now = time.monotonic()
                if self._purposes and now - began > SHOWN_AFTER:
                    self._tell(sign, now - began)
                elif not self._purposes and now - self._ended > GONE_AFTER:
                    self._thread = None
                    return

    def _tell(self, sign: str, seconds: float) -> None:
        text = f"compiling kernels for {self._purposes[-1]}"
        if is_terminal():
            _draw(f"{sign} {text} ({self._done} done, {seconds:.0f} s; this happens once)")
            self._drawn = True
        elif self.advises and not self._logged:
            self._logged = True
            _log.warning("C%s: this happens once; see rankgrove compile ...", text[1:])


def purpose_of(module: str) -> str:
    """Return the purpose of the kernels of a module."""
    if "letor_write" in module:
        return "writing LETOR files"
    if "letor" in module:
        return "reading LETOR files"
    return _PURPOSES.get(module.split(".")[1], "rankgrove")


def _draw(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


INDICATOR = Indicator()
_told = False


def announce(*, advises: bool = True) -> None:
    """Show compilations from now on; on a terminal alone if it `advises` nothing."""
    global _told
    if not advises:
        INDICATOR.advises = False
    if _told:
        return
    _told = True
    from numba.core import event

    def module_of(event: Any) -> str:
        return str(event.data["dispatcher"].py_func.__module__)

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if module_of(event).startswith("rankgrove."):
                INDICATOR.begin(module_of(event))

        def on_end(self, event: Any) -> None:
            if module_of(event).startswith("rankgrove."):
                INDICATOR.end()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]


def is_terminal() -> bool:
    """Return whether a line of standard error can be overwritten."""
    return bool(sys.stderr.isatty()) and os.environ.get("TERM") != "dumb"
