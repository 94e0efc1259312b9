# mypy: ignore-errors
"""Shapley values of trees, in time linear in the leaves and the depth.

A leaf of value v, whose path tests d different features, contributes to feature k

    v (o_k - z_k) sum over sets S of the others: |S|! (d - 1 - |S|)! / d! prod_S o prod_rest z

where o_j is 1 if the document meets all conditions on feature j, else 0, and z_j is the share of
the rows that do, by the counts along the path. The factorials are the integral of t^|S| (1 -
t)^(d-1-|S|) from 0 to 1, so that the sum is

    integral over t of prod_{j != k} (o_j t + z_j (1 - t)),

the integral of a polynomial of degree d - 1: Gauss-Legendre quadrature with d/2 points is exact,
and nothing cancels, because all its terms are positive. The product is computed down the tree edge
by edge, the sums over leaves on the way up. An edge adds, for all leaves below it, the term of its
feature, minus the term of the nearest edge above on the same feature, which it replaces. All
factors depend on the tree only, and are kept in tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.jit import njit
from rankgrove.scoring._walk_kernels import in_set


class Trees(NamedTuple):
    """All trees of an ensemble: its nodes, leaves, and the arrays that follow_paths fills."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    value: np.ndarray
    above: np.ndarray
    share: np.ndarray


# The sets of categories that nodes test are an argument of their own: `set_of`, `set_ptr` and
# `set_words` of an ensemble, or None for trees without sets, which are compiled by themselves: in
# one kernel for both they would take 1.6 times the time.


@njit(cache=True, nogil=True)
def _goes_left(x, at, otherwise, sets):
    """Return whether a value goes left at a node; `otherwise`, where it tests no set, or NaN."""
    set_of, set_ptr, set_words = sets
    s = set_of[at]
    if s < 0 or np.isnan(x):
        return otherwise
    return in_set(x, set_words, set_ptr[s], set_ptr[s + 1])


@njit(cache=True, nogil=True)
def count_leaves(
    features, rows, node_ptr, leaf_ptr, feature, threshold, left, right, missing_left, sets, cover
):
    """Add to cover[leaf] the number of rows that reach it."""
    for t in range(node_ptr.size - 1):
        nodes, leaves = node_ptr[t], leaf_ptr[t]
        is_leaf = node_ptr[t + 1] == nodes
        for r in rows:
            node = -1 if is_leaf else 0
            while node >= 0:
                at = nodes + node
                x = features[r, feature[at]]
                go_left = missing_left[at] if np.isnan(x) else x <= threshold[at]
                if sets is not None:
                    go_left = _goes_left(x, at, go_left, sets)
                node = left[at] if go_left else right[at]
            cover[leaves + ~node] += 1.0


@njit(cache=True, nogil=True)
def follow_paths(node_ptr, leaf_ptr, feature, left, right, leaf_cover, above, share, points):
    """Fill the numbers that depend on the trees only.

    Edge 2 n leads left from node n, edge 2 n + 1 right.

    above[n] : the nearest edge above node n (numbered within its tree) on the same feature, or -1
    share[e] : the share of the node's rows that follow edge e; 0.5 where the node has no rows
    points[t] : the number of quadrature points that tree t needs
    """
    for t in range(node_ptr.size - 1):
        a, b, first_leaf = node_ptr[t], node_ptr[t + 1], leaf_ptr[t]
        n = b - a
        cover = np.zeros(n)
        comes_by = np.full(n, -1)  # the edge that leads to a node
        n_unique = np.zeros(n, np.int64)  # number of different features above a node
        for k in range(n - 1, -1, -1):
            for side in range(2):
                child = left[a + k] if side == 0 else right[a + k]
                cover[k] += cover[child] if child >= 0 else leaf_cover[first_leaf + ~child]
        most = 1
        for k in range(n):
            edge = comes_by[k]
            while edge >= 0 and feature[a + edge // 2] != feature[a + k]:
                edge = comes_by[edge // 2]
            above[a + k] = edge
            unique = n_unique[k] + (1 if edge < 0 else 0)
            most = max(most, unique)
            for side in range(2):
                child = left[a + k] if side == 0 else right[a + k]
                if child >= 0:
                    rows = cover[child]
                    comes_by[child] = 2 * k + side
                    n_unique[child] = unique
                else:
                    rows = leaf_cover[first_leaf + ~child]
                share[2 * (a + k) + side] = rows / cover[k] if cover[k] > 0.0 else 0.5
        points[t] = (most + 1) // 2


@njit(cache=True, nogil=True)
def expected_values(node_ptr, leaf_ptr, left, right, share, value, expected):
    """Fill every tree's expected value: the mean of its leaves, weighted by shares of rows."""
    for t in range(node_ptr.size - 1):
        a, n, leaves = node_ptr[t], node_ptr[t + 1] - node_ptr[t], leaf_ptr[t]
        if n == 0:
            expected[t] = value[leaves]
            continue
        reach = np.zeros(n)
        reach[0] = 1.0
        total = 0.0
        for k in range(n):
            for side in range(2):
                child = left[a + k] if side == 0 else right[a + k]
                share_here = reach[k] * share[2 * (a + k) + side]
                if child >= 0:
                    reach[child] = share_here
                else:
                    total += share_here * value[leaves + ~child]
        expected[t] = total


@njit(cache=True, nogil=True)
def fill_tables(first, n, above, share, t, w, table):
    """Fill the factors of the edges of a tree that has n nodes, from `first` on.

    They are evaluated at the points t of the quadrature, which have the weights w.

    table[e, 0] and [e, 1] : factor of the product if the document follows the edge, and if not,
        having met the conditions of the edge above
    table[e, 2] and [e, 3] : factor of the sum over the leaves below, in the same two cases
    """
    met = np.empty(2 * n)  # z: the share of rows that meet all conditions on the feature so far
    for k in range(n):
        up = above[first + k]
        z_up = met[up] if up >= 0 else 1.0
        for side in range(2):
            e = 2 * k + side
            z = z_up * share[2 * first + e]
            met[e] = z
            for q in range(t.size):
                before = t[q] + z_up * (1.0 - t[q])
                now = t[q] + z * (1.0 - t[q])
                replaced = (1.0 - z_up) / before
                table[e, 0, q] = now / before
                table[e, 1, q] = z * (1.0 - t[q]) / before
                table[e, 2, q] = w[q] * ((1.0 - z) / now - replaced)
                table[e, 3, q] = w[q] * (-1.0 / (1.0 - t[q]) - replaced)


@njit(cache=True, nogil=True)
def add_tree(features, begin, end, first, n, leaves, trees, sets, table, phi):
    """Add the Shapley values of one tree to phi[begin:end].

    The tree has n nodes, from `first` on, and its leaves begin at `leaves`.

    trees : Trees, as a plain tuple: Numba takes 0.4 microseconds less for each of the calls, which
        are 5 % of the time for one document
    """
    feature, threshold, left, right, missing_left, value, above, share = trees
    n_points = table.shape[2]
    # For nodes, then leaves: first the product down to it, then the sum over the leaves below it.
    work = np.empty((2 * n + 1, n_points))
    taken = np.empty(2 * n, np.bool_)  # whether the document meets the feature's conditions so far
    for i in range(begin, end):
        work[0] = 1.0
        for k in range(n):
            at = first + k
            x = features[i, feature[at]]
            go_left = missing_left[at] if np.isnan(x) else x <= threshold[at]
            if sets is not None:
                go_left = _goes_left(x, at, go_left, sets)
            up = above[at]
            met = up < 0 or taken[up]
            for side in range(2):
                e = 2 * k + side
                child = left[at] if side == 0 else right[at]
                taken[e] = met and go_left == (side == 0)
                to = child if child >= 0 else n + ~child
                factor = 1.0 if child >= 0 else value[leaves + ~child]
                if met:
                    which = 0 if taken[e] else 1
                    for q in range(n_points):
                        work[to, q] = work[k, q] * table[e, which, q] * factor
                else:  # z (1 - t) of both edges: their ratio is the share
                    factor *= share[2 * first + e]
                    for q in range(n_points):
                        work[to, q] = work[k, q] * factor
        for k in range(n - 1, -1, -1):
            at = first + k
            l = left[at] if left[at] >= 0 else n + ~left[at]
            r = right[at] if right[at] >= 0 else n + ~right[at]
            up = above[at]
            if up < 0 or taken[up]:  # else the edge has the same term as the one it replaces
                a = 2 if taken[2 * k] else 3
                b = 2 if taken[2 * k + 1] else 3
                total = 0.0
                for q in range(n_points):
                    total += work[l, q] * table[2 * k, a, q] + work[r, q] * table[2 * k + 1, b, q]
                phi[i, feature[at]] += total
            for q in range(n_points):
                work[k, q] = work[l, q] + work[r, q]
