"""Histograms of leaves, kept in a pool of bounded size.

The histogram of a leaf is the sum of its rows' packed gradients in every bin of every feature. A
parent's is the sum of its children's: only the smaller child is counted. Where the pool is full,
the histogram least likely to be wanted is dropped, and counted anew if it is wanted after all.
"""

from __future__ import annotations

import numpy as np

from rankgrove.growth import _histogram_kernels as kernels

N_BINS = 256
BLOCK_BINS = 8 * N_BINS


class HistogramPool:
    """Room for some leaves' histograms, each (planes, blocks, 2048) int64."""

    def __init__(self, n_blocks: int, planes: int, n_leaves: int, most_bytes: int) -> None:
        self.shape = (planes, n_blocks, BLOCK_BINS)
        size = max(1, int(np.prod(self.shape)) * 8)
        self.n_slots = min(n_leaves + 1, max(3, most_bytes // size))
        self._slots: list[np.ndarray] = []
        self._free: list[int] = []

    def __getitem__(self, slot: int) -> np.ndarray:
        return self._slots[slot]

    def take(self) -> int:
        """Return a free slot, or -1 where there is none."""
        if self._free:
            return self._free.pop()
        if len(self._slots) < self.n_slots:
            self._slots.append(np.empty(self.shape, np.int64))
            return len(self._slots) - 1
        return -1

    def give_back(self, slot: int) -> None:
        """Make a slot free again."""
        self._free.append(slot)

    def clear(self) -> None:
        """Make all slots free."""
        self._free = list(range(len(self._slots)))[::-1]


def histogram(words: np.ndarray, packed: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the histogram of `rows` as (planes, features, 256), by one thread.

    In: words (n, blocks) uint64, the binned rows; packed (planes, n) int64; rows int32.
    """
    out = np.empty((packed.shape[0], words.shape[1], BLOCK_BINS), np.int64)
    kernels.accumulate(words, packed, rows, out)
    return out.reshape(packed.shape[0], words.shape[1] * 8, N_BINS)
