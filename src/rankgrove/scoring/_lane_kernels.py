# mypy: ignore-errors
"""The lane scorer's kernels: blocks of documents, chunks of trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from rankgrove.scoring._lane_vectors import (
    LANES,
    SUMS,
    TREES,
    TURNED,
    add_leaves,
    bins_of,
    descend_1,
    descend_2,
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
def fill_bins(features, rows, first, last, width, columns, buffers, bins):
    """Write the bins of the documents rows[first:last] (first, ..., last - 1 if rows is empty).

    bins : one row of `width` documents per column; places after the last document repeat it
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


@njit(cache=True, nogil=True)
def reach_leaves(bins, width, trees, k, leaf):
    """Write the leaves that a block's documents reach in the trees of chunk `k`."""
    column, test, turn, row = trees.column, trees.test, trees.turn, trees.row
    group_ptr = trees.group_ptr
    for g in range(trees.chunk_ptr[k], trees.chunk_ptr[k + 1]):
        begin = group_ptr[g]
        n_steps = (group_ptr[g + 1] - begin) // TREES
        if width == BLOCK:
            descend_2(bins, column, test, turn, row, leaf, begin, n_steps, g * TREES)
        else:
            descend_1(bins, column, test, turn, row, leaf, begin, n_steps, g * TREES)


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
def score_rows(features, rows, begin, end, columns, trees, buffers, scores):
    """Add the values of all trees, in their order, to the scores of rows[begin:end].

    `scores` has the shape (columns, rows); tree t adds to column t modulo the number of columns.
    """
    columns, trees, buffers = Columns(*columns), Trees(*trees), Buffers(*buffers)
    n_columns, bins, leaf, sums = scores.shape[0], buffers.bins, buffers.leaf, buffers.sums
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        n = last - first
        width = LANES if n <= LANES else BLOCK
        fill_bins(features, rows, first, last, width, columns, buffers, bins)
        for c in range(n_columns):
            for d in range(n):
                sums[c * width + d] = scores[c, first + d]
        for k in range(trees.chunk_ptr.size - 1):
            reach_leaves(bins, width, trees, k, leaf)
            add_chunk(leaf, width, n, trees, k, n_columns, sums)
        for c in range(n_columns):
            for d in range(n):
                scores[c, first + d] = sums[c * width + d]
