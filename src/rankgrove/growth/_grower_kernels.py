"""Kernels of one split: divide a leaf, count its smaller child, search both children.

A split has two steps: in the first, every thread divides its part of the leaf's rows and at once
builds the histogram of the smaller child's rows among them; in the second, it copies its rows to
their place and, block of features by block, adds up the parts' histograms, subtracts for the
sibling and looks for the best splits. A step that is not worth a parallel region is done by one
thread; a small leaf takes both steps in one serial call.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

from numba import njit, prange

from rankgrove.growth._histogram_kernels import accumulate
from rankgrove.growth._kernel_tools import bounds
from rankgrove.growth._partition_kernels import divide
from rankgrove.growth._splitting_kernels import scan_block


@njit(cache=True, parallel=True)
def divide_and_count(
    column,
    bin,
    missing_left,
    order,
    start,
    end,
    lefts,
    rights,
    small_is_left,
    wanted,
    words,
    common,
    how,
    packed,
    n_parts,
    parts,
    n_left,
):  # fmt: how
    """First step: divide the parts of a leaf; if wanted, the smaller child's histograms."""
    for t in prange(n_parts):
        low, high = bounds(start, end, t, n_parts)
        n_left[t] = divide(column, bin, missing_left, order, low, high, lefts, rights)
        if wanted:
            if small_is_left:
                accumulate(words, common, how, packed, lefts[low : low + n_left[t]], parts[t])
            else:
                accumulate(words, common, how, packed, rights[low : high - n_left[t]], parts[t])


@njit(cache=True)
def _place(order, start, end, t, n_parts, lefts, rights, n_left):
    """Copy the divided rows of a part to their place in the order."""
    to_left = start
    to_right = start
    for u in range(n_parts):
        to_right += n_left[u]
    for u in range(t):
        low, high = bounds(start, end, u, n_parts)
        to_left += n_left[u]
        to_right += high - low - n_left[u]
    low, high = bounds(start, end, t, n_parts)
    m = n_left[t]
    for i in range(m):
        order[to_left + i] = lefts[low + i]
    for i in range(high - low - m):
        order[to_right + i] = rights[low + i]


@njit(cache=True)
def _finish_block(
    block,
    n_parts,
    parts,
    small,
    large,
    subtract,
    scan,
    n_bins,
    columns,
    allowed,
    totals,
    weights,
    step,
    l2,
    min_leaf,
    fields,
    out_gain,
    out,
):  # fmt: how
    """Add up a block's parts, subtract for the sibling, search what is to be searched."""
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
            scan_block(
                small if child == 0 else large,
                block,
                n_bins,
                columns,
                allowed[child],
                totals[child],
                weights[child],
                step,
                l2,
                min_leaf,
                fields,
                out_gain[child],
                out[child],
            )  # fmt: how


@njit(cache=True)
def place_and_search_part(
    order,
    start,
    end,
    lefts,
    rights,
    n_left,
    n_parts,
    parts,
    small,
    large,
    subtract,
    scan,
    n_bins,
    columns,
    allowed,
    totals,
    weights,
    step,
    l2,
    min_leaf,
    fields,
    out_gain,
    out,
    t,
    n_threads,
):  # fmt: how
    """One thread's share of the second step; child 0 is the smaller one, child 1 the larger."""
    for part in range(t, n_parts, n_threads):
        _place(order, start, end, part, n_parts, lefts, rights, n_left)
    if scan[0] or scan[1] or subtract:
        for block in range(t, small.shape[1], n_threads):
            _finish_block(
                block,
                n_parts,
                parts,
                small,
                large,
                subtract,
                scan,
                n_bins,
                columns,
                allowed,
                totals,
                weights,
                step,
                l2,
                min_leaf,
                fields,
                out_gain,
                out,
            )  # fmt: how


@njit(cache=True, parallel=True)
def place_and_search(
    order,
    start,
    end,
    lefts,
    rights,
    n_left,
    n_parts,
    parts,
    small,
    large,
    subtract,
    scan,
    n_bins,
    columns,
    allowed,
    totals,
    weights,
    step,
    l2,
    min_leaf,
    fields,
    out_gain,
    out,
    n_threads,
):  # fmt: how
    """All threads' shares."""
    for t in prange(n_threads):
        place_and_search_part(
            order,
            start,
            end,
            lefts,
            rights,
            n_left,
            n_parts,
            parts,
            small,
            large,
            subtract,
            scan,
            n_bins,
            columns,
            allowed,
            totals,
            weights,
            step,
            l2,
            min_leaf,
            fields,
            out_gain,
            out,
            t,
            n_threads,
        )  # fmt: how


@njit(cache=True)
def search(
    hist, n_bins, columns, allowed, total, weight, step, l2, min_leaf, fields, out_gain, out
):
    """Find the best split of every block of a leaf's histogram, in one thread."""
    for block in range(hist.shape[1]):
        scan_block(
            hist,
            block,
            n_bins,
            columns,
            allowed,
            total,
            weight,
            step,
            l2,
            min_leaf,
            fields,
            out_gain,
            out,
        )


@njit(cache=True)
def split_serial(
    column,
    bin,
    missing_left,
    order,
    start,
    end,
    lefts,
    rights,
    small_is_left,
    wanted,
    words,
    common,
    how,
    packed,
    small,
    large,
    subtract,
    scan,
    n_bins,
    columns,
    allowed,
    totals,
    weights,
    step,
    l2,
    min_leaf,
    fields,
    n_left,
    out_gain,
    out,
):  # fmt: how
    """Both steps for a small leaf, in one thread."""
    m = divide(column, bin, missing_left, order, start, end, lefts, rights)
    n_left[0] = m
    _place(order, start, end, 0, 1, lefts, rights, n_left)
    if wanted:
        middle = start + m
        rows = order[start:middle] if small_is_left else order[middle:end]
        accumulate(words, common, how, packed, rows, small)
        if subtract:
            for p in range(small.shape[0]):
                for b in range(small.shape[1]):
                    for k in range(small.shape[2]):
                        large[p, b, k] -= small[p, b, k]
        for child in range(2):
            if scan[child]:
                search(
                    small if child == 0 else large,
                    n_bins,
                    columns,
                    allowed[child],
                    totals[child],
                    weights[child],
                    step,
                    l2,
                    min_leaf,
                    fields,
                    out_gain[child],
                    out[child],
                )  # fmt: how
