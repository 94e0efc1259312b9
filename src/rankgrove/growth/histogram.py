"""Histograms of leaves, kept in a pool of bounded size.

The histogram of a leaf has, for every bin of every feature, the sum of the packed gradients of its
rows. A parent's histogram is the sum of its children's, so only the smaller child is counted. If
the pool is full, the histogram least likely to be needed is dropped; if needed, it is recounted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankgrove.data.columns_file import evenly_spaced
from rankgrove.growth import _histogram_kernels as kernels

N_BINS = 256
BLOCK_BINS = 8 * N_BINS
SAMPLE_ROWS = 4096
SKIP_SHARE = 0.3  # if fewer rows have the common word, testing for it costs more than it saves


class HistogramPool:
    """Memory for the histograms of some leaves, each (planes, blocks, 2048) int64."""

    def __init__(self, n_blocks: int, planes: int, n_leaves: int, most_bytes: int) -> None:
        self.shape = (planes, n_blocks, BLOCK_BINS)
        size = max(1, int(np.prod(self.shape)) * 8)
        self.n_slots = min(n_leaves + 1, max(3, most_bytes // size))
        self._slots: list[np.ndarray] = []
        self._free: list[int] = []

    def __getitem__(self, slot: int) -> np.ndarray:
        return self._slots[slot]

    def take(self) -> int:
        """Return a free slot, or -1 if there is none."""
        if self._free:
            return self._free.pop()
        if len(self._slots) < self.n_slots:
            self._slots.append(np.empty(self.shape, np.int64))
            return len(self._slots) - 1
        return -1

    def give_back(self, slot: int) -> None:
        """Free a slot."""
        self._free.append(slot)

    def clear(self) -> None:
        """Free all slots."""
        self._free = list(range(len(self._slots)))[::-1]


@dataclass(frozen=True)
class CommonWords:
    """The most frequent word of every block, and the best way to add the block.

    The result of counting does not depend on it; a sample of the rows is sufficient.
    """

    words: np.ndarray
    how: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray, n_bytes: int) -> CommonWords:
        """Choose by a sample of evenly spaced rows; columns beyond the bytes are padding."""
        sample = evenly_spaced(codes, SAMPLE_ROWS)
        modes = [np.bincount(column, minlength=1).argmax() for column in sample.T]
        common = np.array(modes, np.uint8).view(np.uint64)
        share = (sample.view(np.uint64) == common).mean(axis=0) if len(sample) else common * 0.0
        used = np.minimum(8, n_bytes - 8 * np.arange(common.size))
        return cls(common, np.where(share > SKIP_SHARE, kernels.SKIP, used).astype(np.int64))


def histogram(
    codes: np.ndarray, packed: np.ndarray, rows: np.ndarray, planes: int = 1
) -> np.ndarray:
    """Return the histogram of `rows` as (planes, features, 256), by one thread.

    In: codes (n, width) uint8, the binned rows; packed (n,) int64; rows int32.
    """
    words = codes.view(np.uint64)
    common = CommonWords.of(codes, codes.shape[1])
    parts, narrow = room_for_parts(1, planes, words.shape[1])
    kernels.accumulate(words, common.words, common.how, packed, rows, parts[0], narrow[0])
    by_byte = parts[0].reshape(planes, words.shape[1] * 8, kernels.STRIDE)
    return np.ascontiguousarray(by_byte[:, :, :N_BINS])


def room_for_parts(n_parts: int, planes: int, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays for the sums by byte that every part of the rows has; see `accumulate`."""
    parts = np.empty((n_parts, planes, n_words, 8 * kernels.STRIDE), np.int64)
    narrow = np.empty((n_parts, n_words if planes == 2 else 0, 8 * kernels.STRIDE), np.int64)
    return parts, narrow
