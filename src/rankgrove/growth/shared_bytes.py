"""Features that share a byte of the rows that histograms are counted from.

Counting takes the same time for every byte of a row, however few bins its feature has. So several
features share a byte where no more than 256 combinations of their bins occur: features of few bins,
features that are not 0 in the same rows, and copies of a feature. The byte is the number of the
combination, and a table has the bin of every feature::

    bins of f2, f7     0,0   1,0   0,1   0,2              occur
    byte                0     1     2     3
    table of f2         0     1     0     0
    table of f7         0     0     1     2

The sums by byte, added up by these tables, are the histograms of the features: exactly, whatever
the combinations are. Rows are divided by the features' own columns, which are stored besides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankgrove.data.binning import N_BINS, BinnedMatrix
from rankgrove.data.columns_file import evenly_spaced, forget
from rankgrove.growth import _shared_bytes_kernels as kernels
from rankgrove.growth._grower_kernels import Places
from rankgrove.parallel import run_pieces

LEAST_ROWS = 1 << 14  # with fewer rows, the search takes longer than it saves
SAMPLE_ROWS = 2048
MOST_IN_SAMPLE = 192  # combinations in the sample; more would probably be over 256 in all rows
MOST_TRIES = 24  # bytes that a feature is compared with in the sample
MOST_FAILURES = 16  # comparisons of all rows that ended with over 256 combinations
LEAST_SHARE = 16  # one byte in this number must be saved for a second copy of the rows to pay
LEAST_SHARE_OF_FILE = 2  # of rows in a file: the copy is in memory


def own_bytes(n_features: int) -> Places:
    """Return the places of features that have a byte each."""
    own = np.arange(n_features, dtype=np.int64)
    return Places(own, np.full(n_features, -1, np.int64), np.zeros((1, N_BINS), np.uint8))


@dataclass(frozen=True, eq=False)
class SharedBytes:
    """The words that histograms are counted from, and where the features are in them.

    Attributes
    ----------
    words : uint64 (n_rows, n_words), eight bytes per word; the binned rows themselves if no
        features share a byte
    n_bytes : number of bytes used
    places : ``byte_of[feature]``, ``table_of[feature]`` (-1: the byte is the bin), ``tables``
    """

    words: np.ndarray
    n_bytes: int
    places: Places

    @classmethod
    def none(cls, binned: BinnedMatrix) -> SharedBytes:
        """Return the binned rows as they are: every feature has its own byte."""
        return cls(binned.words, binned.n_kept, own_bytes(binned.n_kept))

    @classmethod
    def of(cls, binned: BinnedMatrix, n_threads: int | None = None) -> SharedBytes:
        """Find features that can share a byte; all their own, where few bytes would be saved."""
        if binned.n_rows < LEAST_ROWS:
            return cls.none(binned)
        groups = _Search(binned).groups()
        n_bytes = len(groups)
        fewer_words = -(-n_bytes // 8) < binned.words.shape[1]
        saved = binned.n_kept - n_bytes
        least = LEAST_SHARE if binned.columns is None else LEAST_SHARE_OF_FILE
        if not fewer_words or least * saved < binned.n_kept:
            return cls.none(binned)
        groups.sort(key=lambda group: group.features[0])  # dominant values stay together
        byte_of = np.empty(binned.n_kept, np.int64)
        table_of = np.full(binned.n_kept, -1, np.int64)
        tables: list[np.ndarray] = []
        numbers: list[np.ndarray] = []
        own = np.full(n_bytes, -1, np.int64)
        shared = np.full(n_bytes, -1, np.int64)
        for byte, group in enumerate(groups):
            byte_of[group.features] = byte
            if group.numbers is None:
                own[byte] = group.features[0]
                continue
            shared[byte] = len(numbers)
            numbers.append(group.numbers)
            for feature, table in zip(group.features, group.tables, strict=True):
                table_of[feature] = len(tables)
                tables.append(table)
        codes = np.zeros((binned.n_rows, -(-n_bytes // 8) * 8), np.uint8)
        stacked = np.stack(numbers)

        def fill(first: int, last: int) -> None:
            kernels.fill_bytes(binned.codes, own, shared, stacked, first, last, codes)
            forget(binned.codes)  # where they are a file: the rows that were read need no memory

        run_pieces(fill, np.linspace(0, binned.n_rows, 65).astype(np.int64), n_threads)
        places = Places(byte_of, table_of, np.stack(tables))
        return cls(codes.view(np.uint64), n_bytes, places)


@dataclass(eq=False)
class _Group:
    """Features that share a byte: their tables, and the byte of every row (None: one feature)."""

    features: list[int]
    sample: np.ndarray
    n_in_sample: int
    most: int  # combinations that are possible, but for missing values
    tables: list[np.ndarray]
    numbers: np.ndarray | None = None


class _Search:
    """The search for groups: greedily, the features of the fewest bins first."""

    def __init__(self, binned: BinnedMatrix) -> None:
        self._binned = binned
        self._n_features = binned.n_kept
        sample = evenly_spaced(binned.codes, SAMPLE_ROWS)
        self._sample = np.ascontiguousarray(sample[:, : binned.n_kept].T)
        self._seen = np.zeros(N_BINS * N_BINS, np.int64)
        self._stamp = 0
        self._failures = 0
        self._column = np.empty(binned.n_rows, np.uint8)
        self._n_bins = [thresholds.size + 1 for thresholds in binned.binner.thresholds]

    def groups(self) -> list[_Group]:
        """Return all groups."""
        distinct = [int(np.unique(column).size) for column in self._sample]
        groups: list[_Group] = []
        copies: dict[bytes, _Group] = {}
        for feature in sorted(range(self._n_features), key=lambda j: (distinct[j], j)):
            sample = self._sample[feature]
            pattern = _pattern(sample)
            known = copies.get(pattern)
            tried = [known] if known is not None else []
            n_bins = self._n_bins[feature]
            tried += [g for g in groups if g.most * n_bins <= N_BINS]
            if distinct[feature] <= MOST_IN_SAMPLE // 2:
                tried += [g for g in groups if g.n_in_sample <= MOST_IN_SAMPLE][:MOST_TRIES]
            place = next((g for g in tried if self._joins(g, feature)), None)
            if place is None:
                place = _Group([feature], sample, distinct[feature], n_bins, [])
                groups.append(place)
            copies.setdefault(pattern, place)
        return groups

    def _joins(self, group: _Group, feature: int) -> bool:
        """Add a feature to a group, if there are few enough combinations."""
        sample = self._sample[feature]
        self._stamp += 1
        joint = kernels.count_pairs(group.sample, sample, self._seen, self._stamp, N_BINS)
        possible = group.most * self._n_bins[feature]
        if possible > N_BINS:
            is_copy = joint == group.n_in_sample
            limit = N_BINS if is_copy else MOST_IN_SAMPLE
            if joint > limit or self._failures >= MOST_FAILURES:
                return False
        numbers = group.numbers
        if numbers is None:
            numbers = np.empty_like(self._column)
            self._read(group.features[0], numbers)
        self._read(feature, self._column)
        number_of = np.full(N_BINS * N_BINS, -1, np.int64)
        n_pairs = kernels.number_pairs(numbers, self._column, number_of, N_BINS)
        if n_pairs > N_BINS:
            self._failures += 1
            return False
        pairs = np.flatnonzero(number_of >= 0)
        first, second = np.divmod(pairs, N_BINS)
        before = group.tables or [np.arange(N_BINS, dtype=np.uint8)]
        group.tables = [_table(number_of[pairs], table[first]) for table in before]
        group.tables.append(_table(number_of[pairs], second))
        kernels.join_pairs(numbers, self._column, number_of)
        group.numbers = numbers
        group.sample = number_of[group.sample.astype(np.int64) * N_BINS + sample].astype(np.uint8)
        group.n_in_sample, group.most = joint, min(possible, n_pairs)
        group.features.append(feature)
        return True

    def _read(self, feature: int, out: np.ndarray) -> None:
        """Fill `out` with the bins of a feature."""
        if self._binned.columns is None:
            out[:] = self._binned.codes[:, feature]
        else:
            self._binned.columns.read(feature, out)


def _table(numbers: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """Return the table of a feature: by byte the bin."""
    table = np.zeros(N_BINS, np.uint8)
    table[numbers] = bins
    return table


def _pattern(sample: np.ndarray) -> bytes:
    """Return what copies of a feature have in common: values numbered as they first occur."""
    _, first, inverse = np.unique(sample, return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.uint8)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse].tobytes()
