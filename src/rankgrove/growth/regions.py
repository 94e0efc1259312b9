"""Whether a parallel region pays on this machine just now.

Entering a region costs ten microseconds where all cores are free, and ten milliseconds where other
processes hold them: every region waits until the last of its threads had its turn. So a short
region is timed in every tree, and what it took too long is the price that other work must save.
Trees do not depend on it: they are the same to the bit for any number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

LEAST_NS = 100_000.0  # a region must save so much, whatever it was found to cost
SERIAL_ROWS = 1 << 14  # a step over fewer rows saves less than that
TREES_BETWEEN = 16  # while regions are dear they are tried once in so many trees
# Processors are slower than our estimates, and one thread waits for the other a little.
ALLOWANCE = 4.0


class Prices:
    """What regions cost lately; needs two slow ones in a row to rise, and a quick one to fall."""

    def __init__(self) -> None:
        self._last = 0.0
        self._price = 0.0
        self._waited = 0

    @property
    def price(self) -> float:
        """Nanoseconds that work must save to be worth a region."""
        return max(self._price, LEAST_NS)

    def trial(self) -> bool:
        """Return whether to enter the next timed region; called once a tree."""
        self._waited += 1
        if self.price > LEAST_NS and self._waited < TREES_BETWEEN:
            return False
        self._waited = 0
        return True

    def note(self, took: float, work: float) -> None:
        """Take note of a region: how long it took, and roughly its work on one thread."""
        excess = took - ALLOWANCE * work
        self._price, self._last = min(excess, self._last), excess


prices = Prices()


def worth_a_region(nanoseconds: float, n_threads: int) -> bool:
    """Return whether so much work is done sooner by several threads."""
    return nanoseconds * (1 - 1 / n_threads) > prices.price


def parts_for(n_rows: int, n_threads: int) -> int:
    """Return into how many parts a short step over so many rows is to be cut."""
    return 1 if n_rows * LEAST_NS < SERIAL_ROWS * prices.price else n_threads


def timed(step: Callable[[int], Found], n_rows: int, n_threads: int, work: float) -> Found:
    """Return ``step(n_parts)``, and learn from it what regions cost; once a tree."""
    if n_threads == 1 or n_rows < SERIAL_ROWS // 4 or not prices.trial():
        return step(1)
    begun = time.perf_counter_ns()
    found = step(n_threads)
    prices.note(time.perf_counter_ns() - begun, work)
    return found
