"""Kernels of partition: the rows of a leaf divided among its children, in order.

``order`` lists the rows leaf by leaf. A part of a leaf's rows is divided into two work arrays
without a branch (every row is written to both, and one of the two ends advances)::

    order    | . . . part 0 . . . | . . . part 1 . . . |
    lefts    | a c d              | g h                |      then copied to  a c d g h | b e f i
    rights   | b e                | f i                |

The order of rows within a child is that of its parent, whatever the number of parts.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove.growth._kernel_tools import bounds, unsigned
from rankgrove.jit import njit

ROWS_AT_ONCE = 2048  # rows that are routed down a tree while their codes stay in the cache


@njit(cache=True)
def divide(column, bin, missing_left, order, start, end, lefts, rights):
    """Divide rows ``order[start:end]`` into lefts and rights from `start` on; count the left.

    If missing values go left, 1 is added to all codes modulo 256: theirs, the highest, becomes 0,
    so that one comparison is enough.
    """
    turn = np.uint8(1 if missing_left else 0)
    limit = np.uint8(np.uint8(bin) + turn)
    n_left = start
    for i in range(start, end):
        row = order[i]
        left = np.int64(np.uint8(column[unsigned(row)] + turn) <= limit)
        lefts[np.uint64(n_left)] = row
        rights[np.uint64(start + i - n_left)] = row
        n_left += left
    return n_left - start


@njit(cache=True)
def divide_by_table(column, table, order, start, end, lefts, rights):
    """Like :func:`divide`: rows whose bin has a 1 in the table go left."""
    n_left = start
    for i in range(start, end):
        row = order[i]
        lefts[np.uint64(n_left)] = row
        rights[np.uint64(start + i - n_left)] = row
        n_left += np.int64(table[np.uint64(column[unsigned(row)])])
    return n_left - start


@njit(cache=True)
def route_chunk(codes, rows, position, bins, missing_left, left, right, set_of, tables, leaf_of):
    """Set ``leaf_of[row]`` of a few rows by dividing them down a tree, in one thread.

    Children have higher numbers than their parent, so one pass over the nodes is enough.
    """
    n_nodes = position.size
    order = rows.copy()
    rights = np.empty_like(order)
    start = np.zeros(n_nodes + 1, np.int64)
    end = np.zeros(n_nodes + 1, np.int64)
    end[0] = order.size
    if n_nodes == 0:
        for i in range(order.size):
            leaf_of[order[i]] = 0
    for node in range(n_nodes):
        turn = np.uint8(1 if missing_left[node] else 0)  # as in divide
        limit = np.uint8(np.uint8(bins[node]) + turn)
        feature = np.uint64(position[node])
        k = start[node]
        for i in range(start[node], end[node]):
            row = order[i]
            code = codes[unsigned(row), feature]
            if set_of[node] >= 0:
                goes = np.int64(tables[set_of[node], np.uint64(code)])
            else:
                goes = np.int64(np.uint8(code + turn) <= limit)
            order[np.uint64(k)] = row
            rights[np.uint64(i - k)] = row
            k += goes
        for i in range(end[node] - k):
            order[k + i] = rights[i]
        for side in range(2):
            child = right[node] if side else left[node]
            low = k if side else start[node]
            high = end[node] if side else k
            if child >= 0:
                start[child] = low
                end[child] = high
            else:
                for i in range(low, high):
                    leaf_of[unsigned(order[i])] = ~child


@njit(cache=True, parallel=True)
def route(codes, rows, position, bins, missing_left, left, right, set_of, tables, leaf_of):
    """Set ``leaf_of[row]`` of all `rows`, chunk by chunk."""
    n = rows.size
    for chunk in prange((n + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE):
        some = rows[chunk * ROWS_AT_ONCE : min((chunk + 1) * ROWS_AT_ONCE, n)]
        route_chunk(codes, some, position, bins, missing_left, left, right, set_of, tables, leaf_of)


@njit(cache=True)
def label_leaves_part(order, starts, ends, leaf_of, part, n_parts):
    """Set ``leaf_of[row]`` from the rows listed leaf by leaf, a part of every leaf."""
    for leaf in range(starts.size):
        low, high = bounds(starts[leaf], ends[leaf], part, n_parts)
        for i in range(low, high):
            leaf_of[unsigned(order[i])] = leaf


@njit(cache=True, parallel=True)
def label_leaves(order, starts, ends, leaf_of, n_parts):
    """All parts of :func:`label_leaves_part`."""
    for part in prange(n_parts):
        label_leaves_part(order, starts, ends, leaf_of, part, n_parts)
