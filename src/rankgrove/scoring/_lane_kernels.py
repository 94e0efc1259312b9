# mypy: ignore-errors
"""The lane scorer's kernels: blocks of documents, chunks of trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.jit import njit
from rankgrove.scoring._lane_vectors import (
    ABREAST,
    LANES,
    SUMS,
    TREES,
    TURNED,
    add_leaves,
    bins_of,
    descend_1,
    descend_2,
    descend_masked_1,
    descend_masked_2,
    turn_bytes,
)
from rankgrove.scoring._lane_vectors import (
    turn as turn_values,
)

BLOCK = 2 * LANES  # documents whose bins are in the nearest cache
CHUNK = 32  # trees whose leaves are, until they are added up
TILE = 16  # columns that are transposed at a time

# Arguments that belong together are one NamedTuple. Python passes them as plain tuples, to which
# kernels give their names back: scoring a query of 100 documents by 200 trees takes 16
# microseconds, and Numba needs 2 more for NamedTuples than for single arrays, 0.3 for plain tuples.


class Columns(NamedTuple):
    """The columns of bins.

    feature, missing, n_rows, table_ptr : by column: the feature, the bin of NaN, and the size and
        place of its table of thresholds
    table : the tables of all columns
    """

    feature: np.ndarray
    missing: np.ndarray
    n_rows: np.ndarray
    table_ptr: np.ndarray
    table: np.ndarray


class Trees(NamedTuple):
    """The trees of an ensemble in the form that lanes use.

    column, test, turn : by node: the column, the bin that must be exceeded, and its first leaf with
        the first one on the right; the nodes of TREES trees are interleaved
    row : for every tree of a group, its place in its chunk
    group_ptr, chunk_ptr : where the nodes of every group, and the groups of every chunk, begin
    value, value_at : the values of leaves from left to right, and where those of every tree begin
    """

    column: np.ndarray
    test: np.ndarray
    turn: np.ndarray
    row: np.ndarray
    group_ptr: np.ndarray
    chunk_ptr: np.ndarray
    value: np.ndarray
    value_at: np.ndarray


class Memberships(NamedTuple):
    """The sets of categories that nodes test, as columns of 8 bits; for ensembles without: None.

    mask : by node: the bit that it tests, in a column of bits; all bits in a column of bins
    feature : by categorical feature: its number
    column : its first column, which come after the columns of bins; one more entry for the end
    code_ptr, row : for code c of a categorical feature, row[code_ptr[k] + c] is where its bits
        begin in the table, with one byte per column
    unknown, missing : by categorical feature: where the bits of other values, and of NaN, begin
    table : the bits
    place : scratch, by document: where its bits begin
    """

    mask: np.ndarray
    feature: np.ndarray
    column: np.ndarray
    code_ptr: np.ndarray
    row: np.ndarray
    unknown: np.ndarray
    missing: np.ndarray
    table: np.ndarray
    place: np.ndarray


class Buffers(NamedTuple):
    """The buffers of one thread while it scores: see :meth:`~.lanes.Lanes.room`."""

    at: np.ndarray
    values: np.ndarray
    bins: np.ndarray
    leaf: np.ndarray
    sums: np.ndarray


@njit(cache=True, nogil=True)
def number_leaves(node_ptr, leaf_ptr, left, right, begin, turn, place):
    """Number the leaves of every tree from left to right.

    begin, turn : for a node, its first leaf, and its first leaf on the right
    place : for a leaf of the ensemble, its number in its tree
    """
    for t in range(node_ptr.size - 1):
        nodes, n_nodes = node_ptr[t], node_ptr[t + 1] - node_ptr[t]
        leaves = leaf_ptr[t]
        if n_nodes == 0:
            place[leaves] = 0
        for node in range(n_nodes - 1, -1, -1):  # the number of leaves, for now
            begin[nodes + node] = 0
            for child in (left[nodes + node], right[nodes + node]):
                begin[nodes + node] += 1 if child < 0 else begin[nodes + child]
            on_left = left[nodes + node]
            turn[nodes + node] = 1 if on_left < 0 else begin[nodes + on_left]
        if n_nodes:
            begin[nodes] = 0
        for node in range(n_nodes):
            at = nodes + node
            turn[at] += begin[at]
            for child, first in ((left[at], begin[at]), (right[at], turn[at])):
                if child < 0:
                    place[leaves + ~child] = first
                else:
                    begin[nodes + child] = first


@njit(cache=True, nogil=True)
def known_codes(sets, set_ptr, set_words, row):
    """Set row[code] to 1 for every code that is in one of the sets, whose numbers are given."""
    for s in sets:
        for w in range(set_ptr[s], set_ptr[s + 1]):
            word = set_words[w]
            for bit in range(32):
                if (word >> np.uint32(bit)) & np.uint32(1):
                    row[32 * (w - set_ptr[s]) + bit] = 1


@njit(cache=True, nogil=True)
def flip_bits(sets, set_ptr, set_words, row, table):
    """Flip bit i % 8 of byte i // 8, in the rows of all codes that are in sets[i].

    row : by code, where its bytes begin in the table
    """
    for i in range(sets.size):
        s = sets[i]
        flipped = np.uint8(1 << (i % 8))
        for w in range(set_ptr[s], set_ptr[s + 1]):
            word = set_words[w]
            for bit in range(32):
                if (word >> np.uint32(bit)) & np.uint32(1):
                    table[row[32 * (w - set_ptr[s]) + bit] + i // 8] ^= flipped


@njit(cache=True, nogil=True)
def fill_bins(features, rows, first, last, width, columns, memberships, buffers, bins):
    """Write the bins of the documents rows[first:last] (first, ..., last - 1 if rows is empty).

    bins : one row of `width` documents per column, and room for ABREAST more; places after the last
        document repeat it
    """
    feature, missing, n_rows, table_ptr, table = columns
    at, values = buffers.at, buffers.values
    for d in range(width):
        i = min(first + d, last - 1)
        at[d] = (rows[i] if rows.size else i) * features.shape[1]
    step = 256 // values.itemsize
    for tile in range(0, feature.size, TILE):
        end = min(tile + TILE, feature.size)
        for d in range(0, width, TURNED):
            for c in range(tile, end):
                turn_values(features, at, values, d, feature[c], (c - tile) * width + d)
        for c in range(tile, end):
            for d in range(0, width, step):
                bins_of(
                    values, table, bins,
                    (c - tile) * width + d, table_ptr[c], n_rows[c], missing[c], c * width + d,
                )  # fmt: skip
    if memberships is not None:
        _fill_bits(features, width, memberships, at, values, bins)


@njit(cache=True, nogil=True)
def _fill_bits(features, width, memberships, at, values, bins):
    """Write the columns of bits; whatever comes after them is overwritten by other bits.

    at : where every document's features begin; values : scratch, of the type that is compared
    """
    _, feature, column, code_ptr, row, unknown, missing, table, place = memberships
    for k in range(feature.size):
        for d in range(0, width, TURNED):
            turn_values(features, at, values, d, feature[k], d)
        begin, n_codes = code_ptr[k], code_ptr[k + 1] - code_ptr[k]
        for d in range(width):
            x = values[d]
            if x >= 0 and x < n_codes:
                place[d] = row[begin + np.int64(x)]
            else:
                place[d] = missing[k] if np.isnan(x) else unknown[k]
        for c in range(column[k], column[k + 1], ABREAST):
            for d in range(0, width, TURNED):
                turn_bytes(table, place, bins, d, c - column[k], c * width + d, width)


@njit(cache=True, nogil=True)
def reach_leaves(bins, width, trees, memberships, k, leaf):
    """Write the leaves that a block's documents reach in the trees of chunk `k`."""
    column, test, turn, row = trees.column, trees.test, trees.turn, trees.row
    group_ptr = trees.group_ptr
    for g in range(trees.chunk_ptr[k], trees.chunk_ptr[k + 1]):
        begin = group_ptr[g]
        n_steps = (group_ptr[g + 1] - begin) // TREES
        if memberships is None:
            if width == BLOCK:
                descend_2(bins, column, test, turn, row, leaf, begin, n_steps, g * TREES)
            else:
                descend_1(bins, column, test, turn, row, leaf, begin, n_steps, g * TREES)
        else:
            mask = memberships.mask
            if width == BLOCK:
                descend_masked_2(
                    bins, column, test, turn, row, leaf, mask, begin, n_steps, g * TREES
                )
            else:
                descend_masked_1(
                    bins, column, test, turn, row, leaf, mask, begin, n_steps, g * TREES
                )


@njit(cache=True, nogil=True)
def add_chunk(leaf, width, n_documents, trees, k, n_columns, sums):
    """Add the values of the leaves reached in the trees of chunk `k`, in their order."""
    value, value_at = trees.value, trees.value_at
    first, last = k * CHUNK, min((k + 1) * CHUNK, value_at.size)
    for c in range(n_columns):
        tree = first + (c - first) % n_columns
        n_trees = (last - tree + n_columns - 1) // n_columns
        for d in range(0, n_documents, SUMS):
            add_leaves(
                leaf, value, value_at, sums,
                n_trees, tree, (tree - first) * width + d, c * width + d, n_columns, width,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def score_rows(features, rows, begin, end, columns, trees, bits, buffers, scores):
    """Add the values of all trees, in their order, to the scores of rows[begin:end].

    `scores` has the shape (columns, rows); tree t adds to column t modulo the number of columns.
    """
    columns, trees, buffers = Columns(*columns), Trees(*trees), Buffers(*buffers)
    memberships = None if bits is None else Memberships(*bits)
    n_columns, bins, leaf, sums = scores.shape[0], buffers.bins, buffers.leaf, buffers.sums
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        n = last - first
        width = LANES if n <= LANES else BLOCK
        fill_bins(features, rows, first, last, width, columns, memberships, buffers, bins)
        for c in range(n_columns):
            for d in range(n):
                sums[c * width + d] = scores[c, first + d]
        for k in range(trees.chunk_ptr.size - 1):
            reach_leaves(bins, width, trees, memberships, k, leaf)
            add_chunk(leaf, width, n, trees, k, n_columns, sums)
        for c in range(n_columns):
            for d in range(n):
                scores[c, first + d] = sums[c * width + d]
