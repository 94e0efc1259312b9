"""Sorting the changes of all queries by alpha, on several threads."""

from __future__ import annotations

import numpy as np

from rankgrove import parallel

PER_BUCKET = 1 << 13  # changes that are sorted at once: they stay in the cache
MOST_BUCKETS = 1 << 10
CELLS = 1 << 12  # a table that gives the bucket of most keys without a search
SMALLEST = 1e-290  # smallest range that can be divided into cells
SAMPLED = 32  # keys per bucket in the sample that determines the borders


def sort_changes(
    parts: list[tuple[np.ndarray, np.ndarray]], n_threads: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys (-alpha) and changes of all parts by ascending alpha.

    They are put into buckets, and every bucket is sorted separately. The borders come from a
    sample, so that all buckets are about equally full.
    """
    from rankgrove.sweep._curve_kernels import count_buckets, fill_buckets, sort_bucket

    total = sum(part[0].size for part in parts)
    n_buckets = min(max(1, total // PER_BUCKET), MOST_BUCKETS)
    if n_buckets == 1:
        keys = np.concatenate([part[0] for part in parts])
        changes = np.concatenate([part[1] for part in parts])
        sort_bucket(keys, changes)
        return keys, changes
    step = max(1, total // (n_buckets * SAMPLED))
    sample = np.sort(np.concatenate([part[0][::step] for part in parts]))[::-1]
    borders = np.unique(sample[np.arange(1, n_buckets) * sample.size // n_buckets])[::-1].copy()
    n_buckets = borders.size + 1
    bucket_of = [np.empty(part[0].size, np.uint16) for part in parts]
    counts = np.zeros((len(parts), n_buckets), np.int64)
    spread = float(borders[0] - borders[-1])
    per_alpha = CELLS / spread if spread > SMALLEST else 0.0
    cell_of = np.minimum((borders[0] - borders) * per_alpha, CELLS - 1).astype(np.int64)
    first_border = np.searchsorted(cell_of, np.arange(CELLS + 1))

    def count(first: int, last: int) -> None:
        for p in range(first, last):
            count_buckets(parts[p][0], borders, first_border, per_alpha, bucket_of[p], counts[p])

    pieces = np.arange(len(parts) + 1)
    parallel.run_pieces(count, pieces, n_threads)
    # A bucket holds its changes of the first part, then those of the second, ...
    ends = np.cumsum(counts.T.ravel())
    places = (ends - counts.T.ravel()).reshape(n_buckets, len(parts)).T.copy()
    keys, changes = np.empty(total), np.empty(total, np.int64)

    def fill(first: int, last: int) -> None:
        for p in range(first, last):
            fill_buckets(*parts[p], bucket_of[p], places[p], keys, changes)

    parallel.run_pieces(fill, pieces, n_threads)
    cuts = np.concatenate([[0], ends[len(parts) - 1 :: len(parts)]]).tolist()

    def sort(first: int, last: int) -> None:
        for k in range(first, last):
            bucket = slice(cuts[k], cuts[k + 1])
            sort_bucket(keys[bucket], changes[bucket])

    parallel.run_pieces(sort, np.arange(n_buckets + 1), n_threads)
    return keys, changes
