# mypy: ignore-errors
"""The lane scorer's kernels: blocks of documents, chunks of trees."""

from __future__ import annotations

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
TILE = 16  # columns that are turned from rows into columns at a time


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
def fill_bins(
    features, rows, first, last, width, feature, missing, n_rows, table_ptr, table, at, values, bins
):
    """Write the bins of the documents rows[first:last] (or first to last, where rows is empty).

    bins : a row of `width` documents a column; places behind the last document repeat it
    at, values : room for `width` places, and for TILE columns of `width` values
    """
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
def reach_leaves(bins, width, column, test, turn, row, group_ptr, first, last, leaf):
    """Write the leaves that a block's documents reach in the groups of trees first to last."""
    for g in range(first, last):
        begin = group_ptr[g]
        n_steps = (group_ptr[g + 1] - begin) // TREES
        if width == BLOCK:
            descend_2(bins, column, test, turn, row, leaf, begin, n_steps, g * TREES)
        else:
            descend_1(bins, column, test, turn, row, leaf, begin, n_steps, g * TREES)


@njit(cache=True, nogil=True)
def add_chunk(leaf, width, n_documents, value, value_at, first, last, n_columns, sums):
    """Add the values of the leaves reached in the trees first to last, in their order."""
    for c in range(n_columns):
        tree = first + (c - first) % n_columns
        n_trees = (last - tree + n_columns - 1) // n_columns
        for d in range(0, n_documents, SUMS):
            add_leaves(
                leaf, value, value_at, sums,
                n_trees, tree, (tree - first) * width + d, c * width + d, n_columns, width,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def score_rows(
    features, rows, begin, end,
    feature, missing, n_rows, table_ptr, table,
    column, test, turn, row, group_ptr, chunk_ptr, value, value_at,
    at, values, bins, leaf, sums, scores,
):  # fmt: skip
    """Add the values of all trees, in their order, to the scores of rows[begin:end].

    `scores` is of shape (columns, rows); tree t adds to column t modulo their number.
    """
    n_columns, n_trees = scores.shape[0], value_at.size
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        n = last - first
        width = LANES if n <= LANES else BLOCK
        fill_bins(
            features, rows, first, last, width,
            feature, missing, n_rows, table_ptr, table, at, values, bins,
        )  # fmt: skip
        for c in range(n_columns):
            for d in range(n):
                sums[c * width + d] = scores[c, first + d]
        for k in range(chunk_ptr.size - 1):
            reach_leaves(
                bins, width, column, test, turn, row, group_ptr, chunk_ptr[k], chunk_ptr[k + 1],
                leaf,
            )  # fmt: skip
            trees = k * CHUNK
            add_chunk(
                leaf, width, n, value, value_at, trees, min(trees + CHUNK, n_trees), n_columns, sums
            )
        for c in range(n_columns):
            for d in range(n):
                scores[c, first + d] = sums[c * width + d]
