"""Decides whether a parallel region currently pays on this machine.

Entering a region costs ten microseconds if all cores are free, and ten milliseconds if other
processes use them: every region waits until the last of its threads has run. So a short region is
timed in every tree; other work must save at least its delay to be worth a region. Trees do not
depend on it: they are the same to the bit for any number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

LEAST_NS = 100_000.0  # a region must always save at least this
SERIAL_ROWS = 1 << 14  # a step over fewer rows saves less than LEAST_NS
TREES_BETWEEN = 16  # while regions are expensive, they are tried once per this number of trees
# Processors may be slower than the estimates, and threads wait for each other a little.
ALLOWANCE = 4.0


class Prices:
    """The recent cost of regions; rises after two slow ones in a row, falls after a fast one."""

    def __init__(self) -> None:
        self._last = 0.0
        self._price = 0.0
        self._waited = 0

    @property
    def price(self) -> float:
        """The nanoseconds that work must save to be worth a region."""
        return max(self._price, LEAST_NS)

    def trial(self) -> bool:
        """Return whether to enter the next timed region; called once per tree."""
        self._waited += 1
        if self.price > LEAST_NS and self._waited < TREES_BETWEEN:
            return False
        self._waited = 0
        return True

    def note(self, took: float, work: float) -> None:
        """Record a region: the time it took, and its approximate work on one thread."""
        excess = took - ALLOWANCE * work
        self._price, self._last = min(excess, self._last), excess


prices = Prices()


def worth_a_region(nanoseconds: float, n_threads: int) -> bool:
    """Return whether this amount of work is done faster by several threads."""
    return nanoseconds * (1 - 1 / n_threads) > prices.price


def parts_for(n_rows: int, n_threads: int) -> int:
    """Return the number of parts for a short step over `n_rows` rows."""
    return 1 if n_rows * LEAST_NS < SERIAL_ROWS * prices.price else n_threads


def timed(step: Callable[[int], Result], n_rows: int, n_threads: int, work: float) -> Result:
    """Return ``step(n_parts)``, and learn the cost of regions from it; called once per tree."""
    if n_threads == 1 or n_rows < SERIAL_ROWS // 4 or not prices.trial():
        return step(1)
    start = time.perf_counter_ns()
    result = step(n_threads)
    prices.note(time.perf_counter_ns() - start, work)
    return result
