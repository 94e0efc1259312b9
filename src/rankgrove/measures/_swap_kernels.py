# mypy: ignore-errors
"""What a measure changes by when two documents of a ranking change places.

For a query with gains g in ranked order and rank weights w, `swap_row` gives, for a fixed rank i,
the change for every rank j > i. Each row costs O(n) (times log n for PAIRS), so all pairs of a
query cost O(n^2), ERR included. Running sums along j replace the prefix arrays and the division
by 1 - R_i of the overview paper's section 3: no cancellation, and R_i = 1 is no special case.
"""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._value_kernels import (
    CASCADE,
    FIRST,
    PRECISIONS,
    SUM,
    THRESHOLD,
    fenwick_add,
    fenwick_below,
    grade_classes,
)


@njit(cache=True, nogil=True)
def swap_setup(rule, g, state):
    """Fill `state` (3 x (n+1)) with what the rows of one ranked query share.

    CASCADE: the chance to reach rank r. PRECISIONS: relevant documents up to and with rank r.
    FIRST: the first and second relevant rank. THRESHOLD: right decisions of the cut before rank
    r, their maximum up to it and from it on. PAIRS: the classes of the gains and their number.
    """
    n = g.size
    if rule == CASCADE:
        reach = 1.0
        for r in range(n):
            state[0, r] = reach
            reach *= 1.0 - g[r]
    elif rule == PRECISIONS:
        found = 0.0
        for r in range(n):
            if g[r] > 0.0:
                found += 1.0
            state[0, r] = found
    elif rule == FIRST:
        state[0, 0] = n
        state[0, 1] = n
        for r in range(n - 1, -1, -1):
            if g[r] > 0.0:
                state[0, 1] = state[0, 0]
                state[0, 0] = r
    elif rule == THRESHOLD:
        height = 0.0
        for r in range(n):
            if g[r] <= 0.0:
                height += 1.0
        best = height
        for r in range(n + 1):
            best = max(best, height)
            state[0, r] = height
            state[1, r] = best
            if r < n:
                height += 1.0 if g[r] > 0.0 else -1.0
        for r in range(n, -1, -1):
            above = state[2, r + 1] if r < n else state[0, r]
            state[2, r] = max(state[0, r], above)
    elif rule != SUM:
        classes = np.empty(n, np.int64)
        state[1, 0] = grade_classes(g, classes)
        for r in range(n):
            state[0, r] = classes[r]


@njit(cache=True, nogil=True)
def _sum_row(g_i, w_i, g, w, row):
    """SUM, for slices that begin below rank i: vector code."""
    for j in range(g.size):
        row[j] = (g[j] - g_i) * (w_i - w[j])


@njit(cache=True, nogil=True)
def swap_row(rule, g, w, state, i, row):
    """Fill row[j], j > i, with the change of the value when ranks i and j change places."""
    n = g.size
    if rule == SUM:
        _sum_row(g[i], w[i], g[i + 1 :], w[i + 1 :], row[i + 1 :])
    elif rule == CASCADE:
        between = 0.0  # sum of w g prod(1-g) over the ranks between, as if reached surely from i
        passing = 1.0  # prod(1-g) over the ranks between
        reach = state[0, i]
        for j in range(i + 1, n):
            # 1 - g of j, less that of i, is g[i] - g[j]
            row[j] = reach * (
                w[i] * (g[j] - g[i])
                + (g[i] - g[j]) * between
                + w[j] * passing * ((1.0 - g[j]) * g[i] - (1.0 - g[i]) * g[j])
            )
            between += w[j] * g[j] * passing
            passing *= 1.0 - g[j]
    elif rule == PRECISIONS:
        found = state[0]
        between = 0.0  # sum of w over the relevant ranks between
        for j in range(i + 1, n):
            if (g[i] > 0.0) == (g[j] > 0.0):
                row[j] = 0.0
            elif g[i] > 0.0:
                row[j] = found[j] * w[j] - found[i] * w[i] - between
            else:
                row[j] = (found[i] + 1.0) * w[i] + between - found[j] * w[j]
            if g[j] > 0.0:
                between += w[j]
    elif rule == FIRST:
        first, second = int(state[0, 0]), int(state[0, 1])
        for j in range(i + 1, n):
            row[j] = 0.0
            if i == first and g[j] <= 0.0:
                row[j] = w[min(second, j)] - w[first]
            elif i < first and g[j] > 0.0:
                row[j] = w[i] - w[first]
    elif rule == THRESHOLD:
        height, best_to, best_from = state[0], state[1], state[2]
        now = best_from[0]
        inside = -np.inf
        for j in range(i + 1, n):
            inside = max(inside, height[j])
            row[j] = 0.0
            if (g[i] > 0.0) != (g[j] > 0.0):
                moved = inside + (-2.0 if g[i] > 0.0 else 2.0)
                row[j] = (max(best_to[i], moved, best_from[j + 1]) - now) * w[0]
    else:
        _pairs_row(g, w, state, i, row)


@njit(cache=True, nogil=True)
def _pairs_row(g, w, state, i, row):
    """PAIRS: count the documents between by class while j moves away from i."""
    n = g.size
    n_classes = int(state[1, 0])
    tree = np.zeros(n_classes + 1, np.int64)
    own = int(state[0, i])
    for j in range(i + 1, n):
        other = int(state[0, j])
        between = j - i - 1
        gained = 0
        for first, second, sign in ((other, own, 1), (own, other, -1)):
            # right pairs of `first` at rank i and `second` at rank j with all between
            below_first = fenwick_below(tree, first)
            above_second = between - fenwick_below(tree, second + 1)
            gained += sign * (below_first + above_second)
            if first > second:
                gained += sign
        row[j] = gained * w[0]
        fenwick_add(tree, other)


@njit(cache=True, nogil=True)
def swap_matrix(rule, g, w, deltas):
    """Fill `deltas` (n x n, symmetric) with the change for every pair of ranks."""
    n = g.size
    state = np.zeros((3, n + 2))
    swap_setup(rule, g, state)
    row = np.zeros(n)
    for i in range(n):
        deltas[i, i] = 0.0
        swap_row(rule, g, w, state, i, row)
        for j in range(i + 1, n):
            deltas[i, j] = row[j]
            deltas[j, i] = row[j]
