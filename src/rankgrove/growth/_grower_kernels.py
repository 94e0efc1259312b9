"""Kernels of one split: divide a leaf, count its smaller child, search both children.

A split has two steps. In the first, threads divide the leaf's rows piece by piece and build the
histograms of those that go to the smaller child. In the second, they copy the rows to their place
and, block of features by block, add up the histograms of all threads, subtract for the sibling and
search the best splits. A step that is not worth a parallel region is done by one thread; a small
leaf takes both steps in one serial call.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from rankgrove._piece_kernels import next_number
from rankgrove.growth._histogram_kernels import accumulate, add_rows, take_feature
from rankgrove.growth._kernel_tools import bounds
from rankgrove.growth._partition_kernels import divide, divide_by_table
from rankgrove.growth._splitting_kernels import scan_block
from rankgrove.jit import njit

# Arguments that belong together are one NamedTuple. It must be an argument by itself and must not
# contain other tuples: prange accepts neither nested tuples nor one taken out of another. Compared
# with single arguments, a tree of 63 leaves on 200,000 rows x 100 features takes the same time
# (21.2 ms of one thread); one of 31 leaves on 2,000 rows x 20 features takes 1.09 instead of
# 1.02 ms, because every call from Python converts the tuples.


class Order(NamedTuple):
    """The rows leaf by leaf, room to divide them, and how many rows of every piece go left."""

    rows: np.ndarray
    lefts: np.ndarray
    rights: np.ndarray
    n_left: np.ndarray


class Content(NamedTuple):
    """What rows add to histograms: their words, how to add these, and their packed gradients."""

    words: np.ndarray
    common: np.ndarray
    how: np.ndarray
    packed: np.ndarray


class Places(NamedTuple):
    """Where features are in the words: see :class:`~rankgrove.growth.shared_bytes.SharedBytes`."""

    byte_of: np.ndarray
    table_of: np.ndarray
    tables: np.ndarray


class Division(NamedTuple):
    """How the rows ``order[start:end]`` of a leaf are divided.

    column, bin, missing_left : the split: a column of bins, the last bin that goes left
    table : of a set of categories, by bin whether it goes left; empty: by `bin`
    wanted, small_is_left : whether the smaller child is counted, and which one it is
    """

    column: np.ndarray
    bin: int
    missing_left: bool
    start: int
    end: int
    small_is_left: bool
    wanted: bool
    table: np.ndarray


@njit(cache=True)
def _divided(column, bin, missing_left, table, rows, low, high, lefts, rights):
    """Divide some rows; return how many go left."""
    if table.size:
        return divide_by_table(column, table, rows, low, high, lefts, rights)
    return divide(column, bin, missing_left, rows, low, high, lefts, rights)


@njit(cache=True, parallel=True)
def divide_and_count(division, order, content, n_threads, n_pieces, counter, parts, narrow):
    """First step: divide a leaf piece by piece; if wanted, count rows of the smaller child.

    Threads take pieces as they become free: one that waits for its core holds up nobody else.
    counter : one number, 0 before the call
    """
    column, bin, missing_left, start, end, small_is_left, wanted, table = division
    lefts, rights, n_left = order.lefts, order.rights, order.n_left
    words, common, how, packed = content.words, content.common, content.how, content.packed
    for t in prange(n_threads):
        if wanted:
            parts[t] = 0
        piece = next_number(counter)
        while piece < n_pieces:
            low, high = bounds(start, end, piece, n_pieces)
            m = _divided(column, bin, missing_left, table, order.rows, low, high, lefts, rights)
            n_left[piece] = m
            if wanted:
                rows = lefts[low : low + m] if small_is_left else rights[low : high - m]
                add_rows(words, common, how, packed, rows, parts[t], narrow[t])
            piece = next_number(counter)


@njit(cache=True)
def _copy(rows, out):
    for i in range(rows.size):
        out[np.uint64(i)] = rows[np.uint64(i)]


@njit(cache=True)
def _place(order, start, end, piece, n_pieces):
    """Copy the divided rows of a piece to their place in the order."""
    to_left = start
    to_right = start
    for other in range(n_pieces):
        to_right += order.n_left[other]
    for other in range(piece):
        low, high = bounds(start, end, other, n_pieces)
        to_left += order.n_left[other]
        to_right += high - low - order.n_left[other]
    low, high = bounds(start, end, piece, n_pieces)
    m = order.n_left[piece]
    _copy(order.lefts[low : low + m], order.rows[to_left : to_left + m])
    rest = high - low - m
    _copy(order.rights[low : low + rest], order.rows[to_right : to_right + rest])


@njit(cache=True)
def _finish_block(block, places, n_parts, parts, small, large, scan, rules, out_gain, out):
    """Add up the parts of eight features, subtract for the sibling, search the children."""
    byte_of, table_of, tables = places
    for p in range(small.shape[0]):
        for place in range(8):
            feature = block * 8 + place
            sums = small[p, block, 256 * place : 256 * place + 256]
            if feature < byte_of.size:
                table = tables[table_of[feature], : 256 * (table_of[feature] >= 0)]
                take_feature(parts, n_parts, p, byte_of[feature], table, sums)
            else:
                sums[:] = 0
        if scan[1]:
            for k in range(small.shape[2]):
                large[p, block, k] -= small[p, block, k]
    for child in range(2):
        if scan[child]:
            scan_block(small if child == 0 else large, block, child, rules, out_gain, out)


@njit(cache=True)
def place_and_search_part(
    order,
    start,
    end,
    n_pieces,
    places,
    n_parts,
    parts,
    small,
    large,
    scan,
    rules,
    out_gain,
    out,
    t,
    n_threads,
):
    """One thread's share of the second step; see :class:`~rankgrove.growth.frontier.Search`."""
    for piece in range(t, n_pieces, n_threads):
        _place(order, start, end, piece, n_pieces)
    if scan[0] or scan[1]:
        for block in range(t, small.shape[1], n_threads):
            _finish_block(block, places, n_parts, parts, small, large, scan, rules, out_gain, out)


@njit(cache=True, parallel=True)
def place_and_search(
    order,
    start,
    end,
    n_pieces,
    places,
    n_parts,
    parts,
    small,
    large,
    scan,
    rules,
    out_gain,
    out,
    n_threads,
):
    """The shares of all threads."""
    for t in prange(n_threads):
        place_and_search_part(
            order, start, end, n_pieces, places, n_parts, parts, small, large, scan, rules,
            out_gain, out, t, n_threads,
        )  # fmt: skip


@njit(cache=True)
def search_leaf(hist, child, rules, out_gain, out):
    """Find the best split of every block of a leaf's histogram, in one thread."""
    for block in range(hist.shape[1]):
        scan_block(hist, block, child, rules, out_gain, out)


@njit(cache=True)
def split_serial(
    division, order, content, narrow, places, parts, small, large, scan, rules, out_gain, out
):
    """Both steps for a small leaf, in one thread."""
    column, bin, missing_left, start, end, small_is_left, wanted, table = division
    lefts, rights = order.lefts, order.rights
    m = _divided(column, bin, missing_left, table, order.rows, start, end, lefts, rights)
    order.n_left[0] = m
    _place(order, start, end, 0, 1)
    if wanted:
        middle = start + m
        rows = order.rows[start:middle] if small_is_left else order.rows[middle:end]
        words, common, how, packed = content
        accumulate(words, common, how, packed, rows, parts[0], narrow[0])
        for block in range(small.shape[1]):
            _finish_block(block, places, 1, parts, small, large, scan, rules, out_gain, out)
