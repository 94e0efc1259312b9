"""Where compiled kernels are kept, and telling the user what is being compiled, while it is.

Kernels are compiled when they are first used on a machine and kept after that; the first reading
and the first training would otherwise seem to hang. On a terminal a line moves until it is done,
and goes away; elsewhere one line is logged.
"""

from __future__ import annotations

import itertools
import logging
import os
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

_log = logging.getLogger("rankgrove")

# Packages of kernels -> what they are for.
_PURPOSES = {
    "data": "reading data",
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
}
SHOWN_AFTER = 0.5  # seconds of compiling: less is not worth a word
GONE_AFTER = 0.3  # seconds after the last kernel
_SPINNER = "|/-\\"


class Indicator:
    """Shows that kernels are being compiled: a moving line on a terminal, else one in the log."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0  # kernels that are being compiled, one within another
        self._done = 0
        self._purpose = ""
        self._ended = 0.0
        self._thread: threading.Thread | None = None
        self._logged = False

    def begin(self, module: str) -> None:
        """Take note of a kernel that is about to be compiled."""
        with self._lock:
            self._depth += 1
            self._purpose = _PURPOSES.get(module.split(".")[1], "kernels")
            if self._thread is None:
                self._done = 0
                self._thread = threading.Thread(target=self._show, daemon=True)
                self._thread.start()

    def end(self) -> None:
        """Take note that one is done."""
        with self._lock:
            self._depth -= 1
            self._done += 1
            self._ended = time.monotonic()

    def wait(self) -> None:
        """Wait until nothing is shown any more."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _show(self) -> None:
        began, shown = time.monotonic(), False
        for sign in itertools.cycle(_SPINNER):
            time.sleep(0.1)
            now = time.monotonic()
            with self._lock:
                if not self._depth and now - self._ended > GONE_AFTER:
                    self._thread = None
                    break
                text = f"compiling kernels for {self._purpose}"
                more = f"{self._done} done, {now - began:.0f} s; this happens once"
            if now - began < SHOWN_AFTER:
                continue
            if is_terminal():
                sys.stderr.write(f"\r\x1b[K{sign} {text} ({more})")
                sys.stderr.flush()
                shown = True
            elif not self._logged:
                self._logged = True
                _log.warning(
                    "%s: this happens once, and takes up to a minute ...", text.capitalize()
                )
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


INDICATOR = Indicator()
_told = False


def announce() -> None:
    """See to it that compiling is shown from now on."""
    global _told
    if _told:
        return
    _told = True
    from numba.core import event

    def module_of(found: Any) -> str:
        return str(found.data["dispatcher"].py_func.__module__)

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if module_of(event).startswith("rankgrove."):
                INDICATOR.begin(module_of(event))

        def on_end(self, event: Any) -> None:
            if module_of(event).startswith("rankgrove."):
                INDICATOR.end()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]


def find_cache_folder() -> None:
    """Have Numba keep kernels in a folder for the time being where no usual one can be written.

    It looks beside the sources and in the user's cache folder, and refuses to compile where both
    are closed, as for a user who shares another one's install and has no home.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    beside = Path(__file__).parent / "measures" / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not (_takes_files(beside) or _takes_files(Path(home, "numba"))):
        os.environ["NUMBA_CACHE_DIR"] = str(_own_folder())


def _takes_files(folder: Path) -> bool:
    """Whether files can be made in a folder, or it can be made itself."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK | os.X_OK)


def _own_folder() -> Path:
    """Return a folder that this user alone can write to: compiled kernels are run."""
    import tempfile

    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"rankgrove-kernels-{user}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
            return folder
    except OSError:  # somebody else's, or there is no room
        pass
    return Path(tempfile.mkdtemp(prefix="rankgrove-kernels-"))


def is_terminal() -> bool:
    """Whether a line of standard error can be written over."""
    return bool(sys.stderr.isatty()) and os.environ.get("TERM") != "dumb"
