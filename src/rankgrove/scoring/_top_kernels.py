# mypy: ignore-errors
"""Scoring for the top k alone: documents that cannot get there any more are left out."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankgrove.scoring._lane_kernels import BLOCK, CHUNK, add_chunk, fill_bins, reach_leaves
from rankgrove.scoring._lane_vectors import LANES


@njit(cache=True, nogil=True)
def _width(n_documents):
    return LANES if n_documents <= LANES else BLOCK


@njit(cache=True, nogil=True)
def _kth_largest(sums, alive, n, heap):
    """Return the largest number that at least heap.size live sums are not below."""
    k, held = heap.size, 0
    for i in range(n):
        x = sums[i]
        if not alive[i] or (held == k and x <= heap[0]):
            continue
        if held < k:  # up from the end
            at = held
            held += 1
            while at and heap[(at - 1) // 2] > x:
                heap[at] = heap[(at - 1) // 2]
                at = (at - 1) // 2
        else:  # down from the least
            at = 0
            while 2 * at + 1 < k:
                child = 2 * at + 1
                if child + 1 < k and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= x:
                    break
                heap[at] = heap[child]
                at = child
        heap[at] = x
    return heap[0]


@njit(cache=True, nogil=True)
def _leave_out(sums, alive, n, n_alive, span, size, slack, heap):
    """Mark documents that end below k others, whichever leaves are still to come; count the rest.

    span : what the remaining trees can move two documents apart
    size, slack : bounds of the remaining trees' sum, and of its rounding as a share of all sums

    A sum of r numbers in floating point is off by at most r u / (1 - r u) times the sum of their
    magnitudes (u: half a unit in the last place). A document is left out where k others are ahead
    by more than the span and the rounding of both sums: it would be strictly below them, so that
    ties decide nothing.
    """
    low, high = np.inf, -np.inf
    for i in range(n):
        if alive[i]:
            x = np.float64(sums[i])
            low, high = min(low, x), max(high, x)
    gap = span + slack * (max(abs(low), abs(high)) + size)
    if n_alive <= heap.size or not high - low > gap or not gap < 1e30:
        return n_alive
    bound = np.float64(_kth_largest(sums, alive, n, heap)) - gap
    for i in range(n):
        if alive[i] and np.float64(sums[i]) < bound:
            alive[i] = False
            n_alive -= 1
    return n_alive


@njit(cache=True, nogil=True)
def _move_together(old, new, n_columns, n, n_alive, alive, document, sums):
    """Copy the bins of the documents that are left from `old` to `new`; their order stays."""
    to = 0
    for i in range(n):
        if alive[i]:
            alive[i], alive[to] = False, True
            document[to], sums[to] = document[i], sums[i]
            old_block, new_block = i // BLOCK * BLOCK, to // BLOCK * BLOCK
            old_width, new_width = _width(n - old_block), _width(n_alive - new_block)
            old_at = old_block * n_columns + i - old_block
            new_at = new_block * n_columns + to - new_block
            for c in range(n_columns):
                new[new_at + c * new_width] = old[old_at + c * old_width]
            to += 1


@njit(cache=True, nogil=True)
def score_top(
    features, rows,
    feature, missing, n_rows, table_ptr, table,
    column, test, turn, row, group_ptr, chunk_ptr, value, value_at,
    span, size, slack, at, values, bins, leaf, alive, document, sums, heap,
):  # fmt: skip
    """Score all documents, and stop with those that cannot be among the first heap.size.

    span, size, slack : see _leave_out, one after every chunk
    bins : two rows, each with room for all documents; moved together they go to the other one
    document, sums : the documents that were not left out, in their order, and their scores, which
        `sums` begins with

    Returns how many documents were not left out, and how many trees were looked at for documents.
    """
    n, n_trees, n_columns = document.size, value_at.size, feature.size
    side, n_alive, looked_at = 0, n, 0
    for i in range(n):
        alive[i], document[i] = True, i
    for first in range(0, n, BLOCK):
        fill_bins(
            features, rows, first, min(first + BLOCK, n), _width(n - first),
            feature, missing, n_rows, table_ptr, table, at, values, bins[0, first * n_columns :],
        )  # fmt: skip
    for k in range(chunk_ptr.size - 1):
        trees, end = k * CHUNK, min((k + 1) * CHUNK, n_trees)
        for first in range(0, n, BLOCK):
            width = _width(n - first)
            reach_leaves(
                bins[side, first * n_columns :], width,
                column, test, turn, row, group_ptr, chunk_ptr[k], chunk_ptr[k + 1], leaf,
            )  # fmt: skip
            add_chunk(
                leaf, width, min(n - first, width), value, value_at, trees, end, 1, sums[first:]
            )
        looked_at += n * (end - trees)
        n_alive = _leave_out(sums, alive, n, n_alive, span[k], size[k], slack[k], heap)
        # moving a document's bins takes as long as about two trees a column
        spared, moved = (n - n_alive) * (n_trees - end), 2 * n_alive * n_columns
        if spared > moved and (n - 1) // LANES > (n_alive - 1) // LANES:
            _move_together(bins[side], bins[1 - side], n_columns, n, n_alive, alive, document, sums)
            side, n = 1 - side, n_alive
    to = 0
    for i in range(n):
        if alive[i]:
            document[to], sums[to] = document[i], sums[i]
            to += 1
    return to, looked_at
