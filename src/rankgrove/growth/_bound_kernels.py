"""Kernel of bounds: the values of leaves under monotone constraints."""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np

from rankgrove.jit import njit


@njit(cache=True)
def _clip(value, low, high):
    return min(max(value, low), high)


@njit(cache=True)
def bound_leaves(left, right, signs, mean, out):
    """Fill `out` with the values of leaves: see :func:`~rankgrove.growth.constraints.bounded`."""
    n_nodes = left.size
    low = np.full(mean.size, -np.inf)
    high = np.full(mean.size, np.inf)
    for node in range(n_nodes):
        a = left[node] if left[node] >= 0 else n_nodes + ~left[node]
        b = right[node] if right[node] >= 0 else n_nodes + ~right[node]
        low[a] = low[b] = low[node]
        high[a] = high[b] = high[node]
        if signs[node] == 0:
            continue
        below, above = (a, b) if signs[node] > 0 else (b, a)
        lower = _clip(mean[below], low[node], high[node])
        higher = _clip(mean[above], low[node], high[node])
        if lower <= higher:
            middle = _clip(0.5 * (lower + higher), lower, higher)
        else:
            middle = _clip(mean[node], low[node], high[node])
        high[below] = low[above] = middle
    for leaf in range(out.size):
        at = n_nodes + leaf
        out[leaf] = _clip(mean[at], low[at], high[at])
