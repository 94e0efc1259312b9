"""The number of threads, without changing global state, and running work on them.

There are two ways to run a kernel on several threads. :func:`run_pieces` calls a serial ``nogil``
kernel for pieces of the work from a pool of Python threads: it compiles quickly, may be called
from anywhere, and passes errors on. Numba's ``prange`` is faster to enter, for work that is done
thousands of times per second: :func:`threads` sets its number of threads (a thread-local setting),
restores it, and holds a lock, because the default ``workqueue`` layer must never be entered by two
Python threads at once.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from rankgrove.compiling import announce
from rankgrove.errors import ParameterError

QUOTA_FILE = "/sys/fs/cgroup/cpu.max"

_entry = threading.RLock()
_pool: ThreadPoolExecutor | None = None


def available_threads() -> int:
    """Return the number of threads that are used if ``n_threads`` is None.

    It is the number of cores this process may run on, or less if its container has a CPU quota.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        cores = os.cpu_count() or 1
    return min(cores, quota_of_cores(QUOTA_FILE) or cores)


@functools.cache
def quota_of_cores(path: str) -> int | None:
    """Return the CPU quota of a container in cores (cgroup v2), rounded up; None: no limit.

    If more threads run, all of them are halted until the next period.
    """
    try:
        with open(path) as file:
            quota, period = file.read().split()
        return max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):  # not on this platform, or "max"
        return None


def thread_count(n_threads: int | None) -> int:
    """Return the number of threads to use, at most one per core (None: all cores).

    More threads would only wait for each other; results do not depend on the number.
    """
    if n_threads is not None and (
        not isinstance(n_threads, int | np.integer) or isinstance(n_threads, bool) or n_threads < 1
    ):
        raise ParameterError(
            "The 'n_threads' parameter must be a whole number of at least 1, or None for all "
            f"cores. Got {n_threads!r} instead."
        )
    most = available_threads()
    return most if n_threads is None else min(int(n_threads), most)


@contextmanager
def threads(n_threads: int | None = None) -> Iterator[int]:
    """Run ``prange`` kernels in the body with at most `n_threads` threads; yields the number."""
    import numba

    announce()
    most = int(getattr(numba.config, "NUMBA_NUM_THREADS"))  # noqa: B009  (set at run time)
    wanted = min(thread_count(n_threads), most)
    with _entry:
        before = numba.get_num_threads()
        numba.set_num_threads(wanted)
        try:
            yield wanted
        finally:
            numba.set_num_threads(before)


def run_pieces(
    work: Callable[[int, int], None], bounds: np.ndarray, n_threads: int | None = None
) -> None:
    """Call ``work(first, last)`` for the pieces between `bounds`, on several threads.

    Threads take the next piece as they become free, so the result of a piece must not depend on
    the others.
    """
    announce()
    cuts = bounds.tolist()
    n_workers = min(thread_count(n_threads), len(cuts) - 1)
    if n_workers <= 1:
        work(cuts[0], cuts[-1])
        return
    pieces = iter(list(itertools.pairwise(cuts)))

    def worker() -> None:
        for first, last in pieces:  # `next` on a list's iterator is atomic
            work(first, last)

    others = [_threads().submit(worker) for _ in range(n_workers - 1)]
    try:
        worker()
    finally:
        for other in others:
            other.result()


def piece_bounds(
    sizes_before: np.ndarray, n_threads: int | None, per_thread: int = 8
) -> np.ndarray:
    """Cut items into pieces of about equal size; `sizes_before` are cumulative sizes from 0 on."""
    n = sizes_before.size - 1
    n_pieces = max(1, min(n, thread_count(n_threads) * per_thread))
    goals = np.linspace(0, sizes_before[-1], n_pieces + 1)
    bounds = np.searchsorted(sizes_before, goals)
    bounds[0], bounds[-1] = 0, n
    return np.unique(bounds)


def _threads() -> ThreadPoolExecutor:
    """Return the pool, which is created when it is first needed."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(available_threads(), thread_name_prefix="rankgrove")
    return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None


# A forked process has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
