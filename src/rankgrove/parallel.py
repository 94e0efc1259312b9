"""How many threads a kernel may use, without touching anything global.

Numba's number of threads is a thread-local setting, and its default ``workqueue`` layer must never
be entered by two Python threads at once: :func:`threads` sets the one, restores it, and holds a
lock for the other. Every parallel kernel is called inside it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rankgrove.errors import ParameterError

_entry = threading.RLock()


def available_threads() -> int:
    """Return the number of threads used where ``n_threads`` is None."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


@contextmanager
def threads(n_threads: int | None = None) -> Iterator[int]:
    """Run the body with at most `n_threads` kernel threads (None: all cores); gives the number.

    More threads than the machine has cores are not started: the result does not depend on the
    number, and they would only wait for each other.
    """
    import numba

    if n_threads is not None and (not isinstance(n_threads, int) or n_threads < 1):
        raise ParameterError(
            "The 'n_threads' parameter must be a whole number of at least 1, or None for all "
            f"cores. Got {n_threads!r} instead."
        )
    most = int(getattr(numba.config, "NUMBA_NUM_THREADS"))  # noqa: B009  (made at run time)
    wanted = min(n_threads or available_threads(), most)
    with _entry:
        before = numba.get_num_threads()
        numba.set_num_threads(wanted)
        try:
            yield wanted
        finally:
            numba.set_num_threads(before)


def chunks(n_items: int, n_threads: int, per_thread: int = 4) -> int:
    """Into how many pieces to cut `n_items` so that `n_threads` share them evenly."""
    return max(1, min(n_items, n_threads * per_thread))
