"""Scoring 64 documents at a time: every lane of a vector is a document.

A value is replaced by its bin, the number of the feature's thresholds below it, which fits a byte:
``x > threshold[j]`` is ``bin > j``. Leaves are numbered from left to right, and a document is at
the first leaf that it may still reach. All nodes of a tree are visited in their order, each by two
comparisons of bytes and one selection for all lanes; there are no branches to predict and no bits
to search. Where NaN goes depends only on its bin: a feature whose nodes send NaN both ways has two
columns of bins.

A node that tests a set of categories looks at one bit of a byte. The bits of a category, one for
every set that nodes of its feature test, are looked up in a table, and become columns beside those
of bins, 8 sets each. Nodes of such ensembles have masks: ``bin & mask > test``. Bits 0 to 6 say
that a document goes right (test 0). Bit 7 is the sign: it says that it goes left (test -1).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.model.ensemble import Ensemble, floor_float32
from rankgrove.scoring._lane_kernels import (
    BLOCK,
    CHUNK,
    TILE,
    Buffers,
    Columns,
    Memberships,
    Trees,
    flip_bits,
    known_codes,
    number_leaves,
    score_rows,
)
from rankgrove.scoring._lane_vectors import ABREAST, GROUPS, HIGHEST, LOWEST, TREES

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rankgrove.scoring._top_kernels import Bounds

# Columns, Trees, Memberships and Buffers as kernels take them: plain tuples
Arrays = tuple[np.ndarray, ...]
Room = tuple[Arrays, Arrays, Arrays | None, Arrays]
_FLOAT32 = np.dtype(np.float32)
MOST_THRESHOLDS = HIGHEST - LOWEST  # per column of bins
_NO_SETS = 0b0111_1111  # the bits of a category that is in no set
# The order of GROUPS - 1 numbers, counted from 1, in a search tree; entry 0 is not used.
_LEVEL_ORDER = np.array([1, 8, 4, 12, 2, 6, 10, 14, 1, 3, 5, 7, 9, 11, 13, 15])


@dataclass(frozen=True, eq=False)
class Lanes:
    """An ensemble compiled for lanes.

    Attributes
    ----------
    columns : the columns of bins, by the type of the numbers that are compared with thresholds
    trees : the nodes and leaves
    memberships : the sets of categories that nodes test; None if they test none
    n_columns : the number of scores per document
    single : whether scores are added in float32
    """

    columns: dict[np.dtype[Any], Columns]
    trees: Trees
    memberships: Memberships | None
    n_columns: int
    single: bool

    @property
    def n_bytes(self) -> int:
        """Number of bytes that scoring needs per document: columns of bins, and of bits."""
        n_bins = self.columns[_FLOAT32].feature.size
        return n_bins if self.memberships is None else int(self.memberships.column[-1])

    def room(self, dtype: DTypeLike) -> Room:
        """Return what scoring features of a type needs, for one thread at a time."""
        columns = self.columns.get(np.dtype(dtype), self.columns[_FLOAT32])
        buffers = Buffers(
            at=np.empty(BLOCK, np.int64),
            values=_aligned(TILE * BLOCK, columns.table.dtype),
            bins=_aligned((self.n_bytes + self._beyond) * BLOCK, np.int8),
            leaf=_aligned((CHUNK + 1) * BLOCK, self.trees.turn.dtype),
            sums=_aligned(self.n_columns * BLOCK, np.float32 if self.single else np.float64),
        )
        bits = self.memberships
        if bits is not None:
            bits = bits._replace(place=np.empty(BLOCK, np.int64))
        return (
            tuple(columns),
            tuple(self.trees),
            None if bits is None else tuple(bits),
            tuple(buffers),
        )

    @property
    def _beyond(self) -> int:
        """Columns after the last one that are written to: bits are written ABREAST at a time."""
        return 0 if self.memberships is None else ABREAST

    def add(
        self,
        features: np.ndarray,
        rows: np.ndarray,
        begin: int,
        end: int,
        room: Room,
        scores: np.ndarray,
    ) -> None:
        """Add the trees' values to the scores, of shape (columns, rows), of rows[begin:end]."""
        score_rows(features, rows, begin, end, *room, scores)

    def enough(self, kept: list[np.ndarray], n_rows: int) -> np.ndarray:
        """Return room for the bins of `n_rows` documents, twice: taken from `kept`, or new."""
        needed = (-(-n_rows // BLOCK) * self.n_bytes + self._beyond) * BLOCK
        try:
            bins = kept.pop()
        except IndexError:
            bins = np.empty((2, 0), np.int8)
        if bins.shape[1] < needed:
            bins = _aligned(2 * needed, np.int8).reshape(2, -1)
        return bins

    def top(
        self,
        features: np.ndarray,
        k: int,
        room: Room,
        bins: np.ndarray,
        sums: np.ndarray,
        bounds: Bounds,
    ) -> tuple[np.ndarray, int]:
        """Return the documents that were scored to the end, and the number of trees evaluated.

        In: `sums`, the start values of all documents. Out: the scores of the returned documents.
        """
        from rankgrove.scoring._top_kernels import Contenders, score_top

        n = features.shape[0]
        contenders = Contenders(
            np.empty(n, np.int64), sums, np.empty(n, np.bool_), np.empty(k, sums.dtype)
        )
        n_left, looked_at = score_top(features, *room, tuple(bounds), bins, tuple(contenders))
        return contenders.document[:n_left], looked_at


def compile_lanes(ensemble: Ensemble) -> Lanes:
    """Compile an ensemble for lanes."""
    columns, column, test = _binned(ensemble)
    memberships = None
    if ensemble.has_sets:
        memberships = _memberships(ensemble, columns[_FLOAT32].feature.size, column, test)
    n_nodes, n_leaves = np.diff(ensemble.node_ptr), np.diff(ensemble.leaf_ptr)
    begin, right = (np.empty(ensemble.feature.size, np.int64) for _ in range(2))
    place = np.empty(ensemble.n_leaves, np.int64)
    number_leaves(
        ensemble.node_ptr, ensemble.leaf_ptr, ensemble.left, ensemble.right, begin, right, place
    )
    leaf_type = np.min_scalar_type(int(n_leaves.max(initial=1)) - 1)
    slots, row, group_ptr, chunk_ptr = _grouped(ensemble.node_ptr, n_nodes)
    empty = slots < 0
    at = np.where(empty, 0, slots)
    turn = np.zeros((slots.size, 2), leaf_type)
    if ensemble.feature.size:
        turn[:, 0], turn[:, 1] = begin[at], right[at]
        column, test = column[at], test[at]
        column[empty], test[empty] = 0, HIGHEST
    if memberships is not None:
        memberships = memberships._replace(mask=memberships.mask[at])
    value = np.empty(ensemble.n_leaves)
    value[np.repeat(ensemble.leaf_ptr[:-1], n_leaves) + place] = ensemble.value
    trees = Trees(
        column=column.astype(np.int32),
        test=test.astype(np.int8),
        turn=turn.ravel(),
        row=row,
        group_ptr=group_ptr,
        chunk_ptr=chunk_ptr,
        value=value,
        value_at=np.array(ensemble.leaf_ptr[:-1]),
    )
    return Lanes(columns, trees, memberships, ensemble.n_columns, ensemble.single)


def chunk_ends(n_trees: int) -> np.ndarray:
    """Return the number of trees up to the end of every chunk."""
    return np.minimum(np.arange(1, -(-n_trees // CHUNK) + 1) * CHUNK, n_trees)


def remaining(ensemble: Ensemble) -> Bounds:
    """Return bounds of the effect of the trees that remain after every chunk.

    These are: how far they can move two documents apart; how far they can move one document; and
    the rounding error of the remaining sum and of these bounds, relative to the numbers that are
    summed (see ``_leave_out``; 8 times the error of one sum, for two sums and the bounds).
    """
    from rankgrove.scoring._top_kernels import Bounds

    first = ensemble.leaf_ptr[:-1]
    low = np.minimum.reduceat(ensemble.value, first)
    high = np.maximum.reduceat(ensemble.value, first)
    ends = chunk_ends(first.size)

    def after(per_tree: np.ndarray) -> np.ndarray:
        return np.append(np.cumsum(per_tree[::-1])[::-1], 0.0)[ends]

    unit = float(np.finfo(np.float32 if ensemble.single else np.float64).eps)
    # for the smallest float32 numbers the rounding error is not relative
    smallest = 1e-44 if ensemble.single else 0.0
    size = after(np.maximum(abs(low), abs(high)))
    span = after(high - low) + smallest * first.size
    return Bounds(span, size, slack=8.0 * unit * (first.size - ends + 2))


def _binned(
    ensemble: Ensemble,
) -> tuple[dict[np.dtype[Any], Columns], np.ndarray, np.ndarray]:
    """Return the columns of bins, and the column and test of every node with a threshold."""
    kind = 2 * ensemble.feature.astype(np.int64) + ~ensemble.missing_left
    order = np.lexsort((ensemble.threshold, kind))
    order = order[ensemble.set_of[order] < 0]
    kinds, thresholds = kind[order], ensemble.threshold[order]
    first_of_kind, is_new = np.ones(order.size, bool), np.ones(order.size, bool)
    first_of_kind[1:] = kinds[1:] != kinds[:-1]
    is_new[1:] = first_of_kind[1:] | (thresholds[1:] != thresholds[:-1])
    distinct = np.cumsum(is_new) - 1
    group = np.cumsum(first_of_kind) - 1
    rank = distinct - distinct[first_of_kind][group]  # among the thresholds of its kind
    first_of_column = first_of_kind | (is_new & (rank % MOST_THRESHOLDS == 0))
    column, test = np.zeros(kind.size, np.int64), np.zeros(kind.size, np.int64)
    column[order] = np.cumsum(first_of_column) - 1
    test[order] = rank % MOST_THRESHOLDS + LOWEST
    column_kind = kinds[first_of_column]
    bounds = [*distinct[first_of_column].tolist(), int(is_new.sum())]
    exact = thresholds[is_new]
    parts = [exact[a:b] for a, b in itertools.pairwise(bounds)]
    n_rows = np.array([-(-(part.size + 1) // GROUPS) for part in parts], np.int64)
    tables = {_FLOAT32: _table([floor_float32(part) for part in parts], _FLOAT32)}
    if exact.dtype == np.float64:
        tables[exact.dtype] = _table(parts, exact.dtype)
    feature, missing = column_kind // 2, np.where(column_kind % 2, HIGHEST, LOWEST)
    table_ptr = np.cumsum(n_rows * GROUPS) - n_rows * GROUPS
    columns = {
        dtype: Columns(feature, missing, n_rows, table_ptr, table)
        for dtype, table in tables.items()
    }
    return columns, column, test


def _memberships(
    ensemble: Ensemble, n_bins: int, column: np.ndarray, test: np.ndarray
) -> Memberships:
    """Return the columns of bits, which come after `n_bins` columns of bins.

    column, test : inout, by node: those of nodes that test sets are filled
    """
    nodes = np.flatnonzero(ensemble.set_of >= 0)
    sets = ensemble.sets
    # One bit per feature, set and place of missing values, in the order of the nodes: trees that
    # are walked one after the other look at neighbouring columns.
    keys = np.stack([ensemble.feature[nodes], ensemble.set_of[nodes], ensemble.missing_left[nodes]])
    different, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    order = np.lexsort((first, different[0]))
    feature, number, missing_left = different[:, order]
    features, begin, n_bits = np.unique(feature, return_index=True, return_counts=True)
    n_columns = -(-n_bits // 8)
    columns = n_bins + np.cumsum([0, *n_columns])
    of_feature = np.repeat(np.arange(features.size), n_bits)
    bit = np.arange(order.size) - begin[of_feature]
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    at = place[which.ravel()]  # the bit of every node
    column[nodes] = columns[of_feature[at]] + bit[at] // 8
    test[nodes] = np.where(bit[at] % 8 < 7, 0, -1)
    mask = np.full(ensemble.feature.size, -1, np.int8)
    mask[nodes] = (1 << (bit[at] % 8)).astype(np.uint8).view(np.int8)

    rows, tables, unknown, missing, size = [], [], [], [], 0
    for k, a in enumerate(begin.tolist()):
        own = np.ascontiguousarray(number[a : a + n_bits[k]])
        n_codes = 32 * int(np.diff(sets.ptr)[own].max())
        known = np.zeros(n_codes, np.int64)
        known_codes(own, sets.ptr, sets.words, known)
        # the first row: categories in no set; the second one: NaN
        row = np.where(known, (np.cumsum(known) + 1) * n_columns[k], 0)
        table = np.full((2 + int(known.sum())) * n_columns[k], _NO_SETS, np.uint8)
        flip_bits(own, sets.ptr, sets.words, row, table)
        left = missing_left[a : a + n_bits[k]].astype(np.uint8)
        table[n_columns[k] : 2 * n_columns[k]] ^= np.packbits(left, bitorder="little")
        rows.append(row + size)
        tables.append(table)
        unknown.append(size)
        missing.append(size + n_columns[k])
        size += table.size
    tables.append(np.zeros(ABREAST, np.uint8))  # read together with the last columns
    return Memberships(
        mask=mask,
        feature=features.astype(np.int64),
        column=columns,
        code_ptr=np.cumsum([0, *(row.size for row in rows)]),
        row=np.concatenate(rows),
        unknown=np.array(unknown, np.int64),
        missing=np.array(missing, np.int64),
        table=np.concatenate(tables).view(np.int8),
        place=np.empty(0, np.int64),
    )


def _table(parts: list[np.ndarray], dtype: DTypeLike) -> np.ndarray:
    """Return the thresholds of all columns in the order in which `bins_of` searches them."""
    rows = [np.empty((0, GROUPS), dtype)]
    for part in parts:
        n = -(-(part.size + 1) // GROUPS)
        padded = np.full(GROUPS * n, np.inf, part.dtype)
        padded[: part.size] = part
        grouped = padded.reshape(GROUPS, n)
        rows += [grouped[_LEVEL_ORDER - 1, -1][None], grouped[:, :-1].T]
    return np.concatenate(rows).ravel()


def _grouped(
    node_ptr: np.ndarray, n_nodes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Group trees of similar size within every chunk.

    Returns the node of every slot (-1: none), the row of every tree of a group, and where the slots
    of every group and the groups of every chunk begin.
    """
    slots, rows, group_ptr, chunk_ptr = [np.empty(0, np.int64)], [], [0], [0]
    for first in range(0, n_nodes.size, CHUNK):
        sizes = n_nodes[first : first + CHUNK]
        by_size = np.argsort(-sizes, kind="stable")
        for start in range(0, by_size.size, TREES):
            members = by_size[start : start + TREES]
            steps = int(sizes[members].max())
            block = np.full((steps, TREES), -1, np.int64)
            for k, tree in enumerate(members.tolist()):
                n = int(sizes[tree])
                block[:n, k] = node_ptr[first + tree] + np.arange(n)
            slots.append(block.ravel())
            rows += [*members.tolist(), *[CHUNK] * (TREES - members.size)]
            group_ptr.append(group_ptr[-1] + block.size)
        chunk_ptr.append(len(group_ptr) - 1)
    return (
        np.concatenate(slots),
        np.array(rows, np.int32),
        np.array(group_ptr),
        np.array(chunk_ptr),
    )


def _aligned(n: int, dtype: DTypeLike) -> np.ndarray:
    """Return an array of zeros that is aligned to the size of a vector register."""
    size = n * np.dtype(dtype).itemsize
    room = np.zeros(size + 64, np.uint8)
    first = -room.ctypes.data % 64
    return room[first : first + size].view(dtype)
