# mypy: ignore-errors
"""What trees give to rows, kept as the leaf that every row reaches in every tree."""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit


@njit(cache=True, nogil=True)
def add_trees(leaf, leaf_ptr, value, trees, weight, out):
    """Add weight[k] times what tree trees[k] gives to every row, in the order of `trees`."""
    for k in range(trees.size):
        t, w = trees[k], weight[k]
        first = leaf_ptr[t]
        for i in range(out.size):
            out[i] += w * value[first + leaf[t, i]]


@njit(cache=True, nogil=True)
def dots(leaf, leaf_ptr, value, trees, first, last, x, out):
    """Fill out[k] with the product of tree trees[k]'s scores and x, for k from first to last."""
    for k in range(first, last):
        t = trees[k]
        start = leaf_ptr[t]
        total = 0.0
        for i in range(x.size):
            total += value[start + leaf[t, i]] * x[i]
        out[k] = total


@njit(cache=True, nogil=True)
def squared_spread(leaf, leaf_ptr, value, query_ptr, scale, first, last, out):
    """Fill out[t] with the sum over queries of scale^2 times the squares around the query's mean.

    scale : in, one per query
    """
    for t in range(first, last):
        start = leaf_ptr[t]
        total = 0.0
        for q in range(query_ptr.size - 1):
            a, b = query_ptr[q], query_ptr[q + 1]
            mean = 0.0
            for i in range(a, b):
                mean += value[start + leaf[t, i]]
            mean /= b - a
            squares = 0.0
            for i in range(a, b):
                squares += (value[start + leaf[t, i]] - mean) ** 2
            total += scale[q] * scale[q] * squares
        out[t] = total


@njit(cache=True, nogil=True)
def centre(query_ptr, x):
    """Take the mean of every query away."""
    for q in range(query_ptr.size - 1):
        a, b = query_ptr[q], query_ptr[q + 1]
        mean = np.mean(x[a:b])
        for i in range(a, b):
            x[i] -= mean
