"""Kernels of one split: divide a leaf, count its smaller child, search both children.

A split has two steps. In the first, every thread divides its part of the leaf's rows and builds the
histogram of those that go to the smaller child. In the second, it copies its rows to their place
and, block of features by block, adds up the histograms of the parts, subtracts for the sibling and
searches the best splits. A step that is not worth a parallel region is done by one thread; a small
leaf takes both steps in one serial call.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from rankgrove.growth._histogram_kernels import accumulate
from rankgrove.growth._kernel_tools import bounds
from rankgrove.growth._partition_kernels import divide, divide_by_table
from rankgrove.growth._splitting_kernels import scan_block

# Arguments that belong together are one NamedTuple. It must be an argument by itself and must not
# contain other tuples: prange accepts neither nested tuples nor one taken out of another. Compared
# with single arguments, a tree of 63 leaves on 200,000 rows x 100 features takes the same time
# (21.2 ms of one thread); one of 31 leaves on 2,000 rows x 20 features takes 1.09 instead of
# 1.02 ms, because every call from Python converts the tuples.


class Order(NamedTuple):
    """The rows leaf by leaf, room to divide them, and the numbers of rows that parts send left."""

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
def divide_and_count(division, order, content, n_parts, parts):
    """First step: divide the parts of a leaf; if wanted, count those of the smaller child."""
    column, bin, missing_left, start, end, small_is_left, wanted, table = division
    lefts, rights, n_left = order.lefts, order.rights, order.n_left
    words, common, how, packed = content.words, content.common, content.how, content.packed
    for t in prange(n_parts):
        low, high = bounds(start, end, t, n_parts)
        n_left[t] = _divided(column, bin, missing_left, table, order.rows, low, high, lefts, rights)
        if wanted:
            if small_is_left:
                accumulate(words, common, how, packed, lefts[low : low + n_left[t]], parts[t])
            else:
                accumulate(words, common, how, packed, rights[low : high - n_left[t]], parts[t])


@njit(cache=True)
def _place(order, start, end, t, n_parts):
    """Copy the divided rows of a part to their place in the order."""
    to_left = start
    to_right = start
    for u in range(n_parts):
        to_right += order.n_left[u]
    for u in range(t):
        low, high = bounds(start, end, u, n_parts)
        to_left += order.n_left[u]
        to_right += high - low - order.n_left[u]
    low, high = bounds(start, end, t, n_parts)
    m = order.n_left[t]
    for i in range(m):
        order.rows[to_left + i] = order.lefts[low + i]
    for i in range(high - low - m):
        order.rows[to_right + i] = order.rights[low + i]


@njit(cache=True)
def _finish_block(block, n_parts, parts, small, large, scan, rules, out_gain, out):
    """Add up the parts of a block, subtract for the sibling, search the children."""
    subtract = scan[1]
    for p in range(small.shape[0]):
        for k in range(small.shape[2]):
            total = parts[0, p, block, k]
            for t in range(1, n_parts):
                total += parts[t, p, block, k]
            small[p, block, k] = total
            if subtract:
                large[p, block, k] -= total
    for child in range(2):
        if scan[child]:
            scan_block(small if child == 0 else large, block, child, rules, out_gain, out)


@njit(cache=True)
def place_and_search_part(
    order, start, end, n_parts, parts, small, large, scan, rules, out_gain, out, t, n_threads
):
    """One thread's share of the second step; see :class:`~rankgrove.growth.frontier.Search`."""
    for part in range(t, n_parts, n_threads):
        _place(order, start, end, part, n_parts)
    if scan[0] or scan[1]:
        for block in range(t, small.shape[1], n_threads):
            _finish_block(block, n_parts, parts, small, large, scan, rules, out_gain, out)


@njit(cache=True, parallel=True)
def place_and_search(
    order, start, end, n_parts, parts, small, large, scan, rules, out_gain, out, n_threads
):
    """The shares of all threads."""
    for t in prange(n_threads):
        place_and_search_part(
            order, start, end, n_parts, parts, small, large, scan, rules, out_gain, out, t,
            n_threads,
        )  # fmt: skip


@njit(cache=True)
def search_leaf(hist, child, rules, out_gain, out):
    """Find the best split of every block of a leaf's histogram, in one thread."""
    for block in range(hist.shape[1]):
        scan_block(hist, block, child, rules, out_gain, out)


@njit(cache=True)
def split_serial(division, order, content, small, large, scan, rules, out_gain, out):
    """Both steps for a small leaf, in one thread."""
    column, bin, missing_left, start, end, small_is_left, wanted, table = division
    lefts, rights = order.lefts, order.rights
    m = _divided(column, bin, missing_left, table, order.rows, start, end, lefts, rights)
    order.n_left[0] = m
    _place(order, start, end, 0, 1)
    if wanted:
        middle = start + m
        rows = order.rows[start:middle] if small_is_left else order.rows[middle:end]
        accumulate(content.words, content.common, content.how, content.packed, rows, small)
        if scan[1]:
            for p in range(small.shape[0]):
                for b in range(small.shape[1]):
                    for k in range(small.shape[2]):
                        large[p, b, k] -= small[p, b, k]
        for child in range(2):
            if scan[child]:
                search_leaf(small if child == 0 else large, child, rules, out_gain, out)
