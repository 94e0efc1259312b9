# mypy: ignore-errors
"""Scoring for the top k only: documents that cannot reach it any more are left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.jit import njit
from rankgrove.scoring._lane_kernels import (
    BLOCK,
    CHUNK,
    Buffers,
    Columns,
    Memberships,
    Trees,
    add_chunk,
    fill_bins,
    reach_leaves,
)
from rankgrove.scoring._lane_vectors import LANES


class Bounds(NamedTuple):
    """What the remaining trees can still change, after every chunk: see :func:`_leave_out`."""

    span: np.ndarray
    size: np.ndarray
    slack: np.ndarray


class Contenders(NamedTuple):
    """The documents that were not left out, in their order.

    document, sums : the documents, and their scores so far
    alive : scratch, whether the document at a place was not left out
    heap : scratch, as long as the top
    """

    document: np.ndarray
    sums: np.ndarray
    alive: np.ndarray
    heap: np.ndarray


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
def _leave_out(contenders, n, n_alive, span, size, slack):
    """Mark documents that end below k others, whatever leaves they reach; count the rest.

    span : the largest change of the difference of two documents by the remaining trees
    size, slack : bounds of the remaining trees' sum, and of its rounding error relative to all sums

    The error of a floating-point sum of r numbers is at most r u / (1 - r u) times the sum of their
    magnitudes (u: half a unit in the last place). A document is left out where k others are ahead
    by more than the span and the rounding of both sums: it would be strictly below them, so the
    result does not depend on how ties are broken.
    """
    sums, alive, heap = contenders.sums, contenders.alive, contenders.heap
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
def _move_together(old, new, n_columns, n, n_alive, contenders):
    """Copy the bins of the documents that remain from `old` to `new`, in the same order."""
    alive, document, sums = contenders.alive, contenders.document, contenders.sums
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
def score_top(features, columns, trees, bits, buffers, bounds, bins, contenders):
    """Score all documents, but stop for those that cannot be among the first heap.size.

    bins : two rows, each with room for all documents; the bins of the documents that remain are
        moved from one to the other
    contenders : in, `sums`, the start values of all documents

    Returns the number of documents that were not left out, and the number of (document, tree) pairs
    that were evaluated.
    """
    columns, trees, buffers = Columns(*columns), Trees(*trees), Buffers(*buffers)
    memberships = None if bits is None else Memberships(*bits)
    bounds, contenders = Bounds(*bounds), Contenders(*contenders)
    document, sums, alive, _ = contenders
    leaf, every_row = buffers.leaf, np.empty(0, np.int64)
    n, n_trees, n_columns = document.size, trees.value_at.size, columns.feature.size
    if bits is not None:
        n_columns = memberships.column[-1]
    side, n_alive, looked_at = 0, n, 0
    for i in range(n):
        alive[i], document[i] = True, i
    for first in range(0, n, BLOCK):
        last, width = min(first + BLOCK, n), _width(n - first)
        fill_bins(
            features, every_row, first, last, width, columns, memberships, buffers,
            bins[0, first * n_columns :],
        )  # fmt: skip
    for k in range(trees.chunk_ptr.size - 1):
        for first in range(0, n, BLOCK):
            width = _width(n - first)
            reach_leaves(bins[side, first * n_columns :], width, trees, memberships, k, leaf)
            add_chunk(leaf, width, min(n - first, width), trees, k, 1, sums[first:])
        end = min((k + 1) * CHUNK, n_trees)
        looked_at += n * (end - k * CHUNK)
        n_alive = _leave_out(
            contenders, n, n_alive, bounds.span[k], bounds.size[k], bounds.slack[k]
        )
        # moving a document's bins takes as long as about two trees per column
        spared, moved = (n - n_alive) * (n_trees - end), 2 * n_alive * n_columns
        if spared > moved and (n - 1) // LANES > (n_alive - 1) // LANES:
            _move_together(bins[side], bins[1 - side], n_columns, n, n_alive, contenders)
            side, n = 1 - side, n_alive
    to = 0
    for i in range(n):
        if alive[i]:
            document[to], sums[to] = document[i], sums[i]
            to += 1
    return to, looked_at
