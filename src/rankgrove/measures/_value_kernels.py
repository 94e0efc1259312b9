# mypy: ignore-errors
"""The value of one ranked query under every rule, plain and in expectation over tied orders.

A measure is the gains of documents, the weights of ranks, and a rule that combines them. With
g[r] the gain of the document at rank r (from 0) and w[r] the weight of that rank:

========== ==================================== ==========================================
rule       value                                 measures
========== ==================================== ==========================================
SUM        sum g[r] w[r]                        DCG, NDCG, MeanNDCG, P, recall, ROCArea
CASCADE    sum w[r] g[r] prod_{s<r} (1 - g[s])  ERR
PRECISIONS sum w[r] g[r] (g[0] + ... + g[r])    AP
FIRST      w of the first r with g[r] > 0       RR
THRESHOLD  best cut: w[0] * (right decisions)   best accuracy
PAIRS      w[0] * (pairs in the right order)    pairwise accuracy
========== ==================================== ==========================================

Expectations (all orders of a tied group equally likely) are closed forms; in them a group begins
after t documents and has n of them, r relevant, rho relevant ones stand before it.
"""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import longest_query, sort_descending

SUM, CASCADE, PRECISIONS, FIRST, THRESHOLD, PAIRS = range(6)
STABLE, WORST, EXPECTED = range(3)


# -- plain values -----------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def sum_value(g, w):
    """Return the sum of gain times weight."""
    total = 0.0
    for r in range(g.size):
        total += g[r] * w[r]
    return total


@njit(cache=True, nogil=True)
def cascade_value(g, w):
    """Return the expected weight of the rank at which a reader who stops at g stops."""
    total = 0.0
    reach = 1.0
    for r in range(g.size):
        total += w[r] * g[r] * reach
        reach *= 1.0 - g[r]
    return total


@njit(cache=True, nogil=True)
def precisions_value(g, w):
    """Return the sum of precisions at the relevant ranks."""
    total = 0.0
    found = 0.0
    for r in range(g.size):
        hit = np.float64(g[r] > 0.0)  # no branch: relevance is hard to predict
        found += hit
        total += hit * found * w[r]
    return total


@njit(cache=True, nogil=True)
def first_value(g, w):
    """Return the weight of the first relevant rank."""
    for r in range(g.size):
        if g[r] > 0.0:
            return w[r]
    return 0.0


@njit(cache=True, nogil=True)
def threshold_value(g, w):
    """Return the share of right decisions at the best cut of the ranking into two."""
    height = 0
    for r in range(g.size):
        if g[r] <= 0.0:
            height += 1  # cut before the first document: the irrelevant ones are right
    best = height
    for r in range(g.size):
        height += 1 if g[r] > 0.0 else -1
        best = max(best, height)
    return best * w[0]


@njit(cache=True, nogil=True)
def grade_classes(g, classes):
    """Fill `classes` with the rank of each gain among the distinct gains; return their number."""
    n = g.size
    if n == 0:
        return 0
    key, order = g.copy(), np.arange(n)
    sort_descending(key, order, np.empty(n), np.empty(n, np.int64))
    number = 0
    for r in range(n - 1, -1, -1):
        number += r < n - 1 and key[r] != key[r + 1]
        classes[order[r]] = number
    return number + 1


@njit(cache=True, nogil=True, inline="always")
def fenwick_add(tree, position):
    """Count one more item of class `position`."""
    i = position + 1
    while i < tree.size:
        tree[i] += 1
        i += i & -i


@njit(cache=True, nogil=True, inline="always")
def fenwick_below(tree, position):
    """Return the number of items counted so far whose class is below `position`."""
    total = 0
    i = position
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit(cache=True, nogil=True)
def pairs_value(g, w, tied, use_ties):
    """Return the share of pairs of unequal gain in the right order; a tied pair counts half."""
    n = g.size
    classes = np.empty(n, np.int64)
    n_classes = grade_classes(g, classes)
    tree = np.zeros(n_classes + 1, np.int64)
    inside = np.zeros(n_classes, np.int64)
    twice_right = 0
    start = 0
    while start < n:
        end = start + 1
        if use_ties:
            while end < n and tied[end]:
                end += 1
        equal = 0
        for r in range(start, end):
            higher = start - fenwick_below(tree, classes[r] + 1)
            twice_right += 2 * higher
            equal += inside[classes[r]]
            inside[classes[r]] += 1
        size = end - start
        twice_right += size * (size - 1) // 2 - equal
        for r in range(start, end):
            inside[classes[r]] = 0
            fenwick_add(tree, classes[r])
        start = end
    return 0.5 * twice_right * w[0]


# -- expectations over tied orders ------------------------------------------------------------


@njit(cache=True, nogil=True)
def sum_expected(g, w, tied):
    """Return sum_value in expectation: every rank of a group holds the group's mean gain."""
    total = 0.0
    start = 0
    while start < g.size:
        end = start + 1
        gains = g[start]
        weights = w[start]
        while end < g.size and tied[end]:
            gains += g[end]
            weights += w[end]
            end += 1
        total += gains * weights / (end - start)
        start = end
    return total


@njit(cache=True, nogil=True)
def cascade_expected(g, w, tied):
    """Return cascade_value in expectation.

    E[m] is the mean of prod (1 - g) over the subsets of m documents of a group (an elementary
    symmetric polynomial over its number of terms), built document by document:
    E_k[m] = (k-m)/k E_{k-1}[m] + m/k (1 - g_k) E_{k-1}[m-1].
    """
    total = 0.0
    reach = 1.0
    E = np.empty(g.size + 1)
    start = 0
    while start < g.size:
        end = start + 1
        while end < g.size and tied[end]:
            end += 1
        E[0] = 1.0
        for k in range(1, end - start + 1):
            stay = 1.0 - g[start + k - 1]
            E[k] = stay * E[k - 1]
            for m in range(k - 1, 0, -1):
                E[m] = ((k - m) * E[m] + m * stay * E[m - 1]) / k
        for m in range(end - start):
            total += reach * (E[m] - E[m + 1]) * w[start + m]
        reach *= E[end - start]
        start = end
    return total


@njit(cache=True, nogil=True)
def precisions_expected(g, w, tied):
    """Return precisions_value in expectation: (r/n)(rho + 1 + (j-1)(r-1)/(n-1)) at place j."""
    total = 0.0
    before = 0.0
    start = 0
    while start < g.size:
        end = start
        relevant = 0.0
        while end < g.size and (end == start or tied[end]):
            if g[end] > 0.0:
                relevant += 1.0
            end += 1
        n = end - start
        slope = (relevant - 1.0) / (n - 1.0) if n > 1 else 0.0
        part = 0.0
        for j in range(n):
            part += (before + 1.0 + j * slope) * w[start + j]
        total += part * (relevant / n)
        before += relevant
        start = end
    return total


@njit(cache=True, nogil=True)
def first_expected(g, w, tied):
    """Return first_value in expectation: place j is the first with C(n-j, r-1)/C(n, r)."""
    start = 0
    while start < g.size:
        end = start
        relevant = 0
        while end < g.size and (end == start or tied[end]):
            if g[end] > 0.0:
                relevant += 1
            end += 1
        if relevant > 0:
            n = end - start
            chance = relevant / n
            total = 0.0
            for j in range(n - relevant + 1):
                total += chance * w[start + j]
                # C(n-j-2, r-1) / C(n-j-1, r-1)
                if n - j - 1 > 0:
                    chance *= (n - j - relevant) / (n - j - 1)
            return total
        start = end
    return 0.0


@njit(cache=True, nogil=True)
def threshold_expected(g, w, tied):
    """Return threshold_value in expectation.

    Within a group the count of right decisions walks up u times and down d times in random
    order; by the reflection principle it gets m or more above its start with the chance
    C(u+d, d+m) / C(u+d, u), for m >= max(0, u-d). The groups' maxima are independent.
    """
    n = g.size
    below = np.ones(n + 2)  # below[h]: the chance that no cut reaches more than h right decisions
    height = 0
    for r in range(n):
        if g[r] <= 0.0:
            height += 1
    for h in range(height):
        below[h] = 0.0
    start = 0
    while start < n:
        end = start
        up = 0
        while end < n and (end == start or tied[end]):
            if g[end] > 0.0:
                up += 1
            end += 1
        down = end - start - up
        least = max(0, up - down)
        for h in range(height + least):
            below[h] = 0.0
        # chance of reaching `least` is 1; going up a step multiplies it by (up-m)/(down+m+1)
        chance = 1.0
        for m in range(least, up):
            chance *= (up - m) / (down + m + 1.0)
            below[height + m] *= 1.0 - chance
        height += up - down
        start = end
    total = 0.0
    for h in range(n + 1):
        total += 1.0 - below[h]
    return total * w[0]


# -- the ladder: one query, then all of them --------------------------------------------------


@njit(cache=True, nogil=True)
def ranked_value(rule, g, w):
    """Return the value of one query whose gains stand in ranked order."""
    if rule == SUM:
        return sum_value(g, w)
    if rule == CASCADE:
        return cascade_value(g, w)
    if rule == PRECISIONS:
        return precisions_value(g, w)
    if rule == FIRST:
        return first_value(g, w)
    if rule == THRESHOLD:
        return threshold_value(g, w)
    return pairs_value(g, w, np.zeros(0, np.bool_), False)


@njit(cache=True, nogil=True)
def expected_value(rule, g, w, tied):
    """Return the value of one query in expectation over the orders of tied documents."""
    if rule == SUM:
        return sum_expected(g, w, tied)
    if rule == CASCADE:
        return cascade_expected(g, w, tied)
    if rule == PRECISIONS:
        return precisions_expected(g, w, tied)
    if rule == FIRST:
        return first_expected(g, w, tied)
    if rule == THRESHOLD:
        return threshold_expected(g, w, tied)
    return pairs_value(g, w, tied, True)


@njit(cache=True, nogil=True)
def gather_gains(gain, order, tied, n_retrieved, depth, ties, g):
    """Fill `g` with the gains in ranked order; return how many count, and if any are tied.

    order, tied : in, this query's part of a ranking
    n_retrieved : in, documents from there on were not retrieved and gain nothing
    depth : in, ranks from there on have no weight (a tied group across it counts whole)
    ties : in; unless STABLE, a tied group's gains are put in ascending order: the worst one, and
        one that does not depend on the order of the input
    """
    n = min(order.size, depth)
    while n < order.size and tied[n]:
        n += 1
    for r in range(n):
        g[r] = gain[order[r]] if r < n_retrieved else 0.0
    any_tied = False
    if ties != STABLE:
        start = 0
        while start < n:
            end = start + 1
            while end < n and tied[end]:
                end += 1
            if end - start > 1:
                any_tied = True
                g[start:end].sort()
            start = end
    return n, any_tied


@njit(cache=True, nogil=True)
def evaluate_queries(
    rule, ties, gain, weight, query_ptr, order, tied, retrieved, depth, first, last, values
):
    """Fill `values` of the queries from `first` to before `last`.

    gain : in, one per row in query order; weight : in, one per rank, laid out by query_ptr
    order, tied, retrieved : in, a ranking made by rank_queries
    """
    g = np.empty(longest_query(query_ptr, first, last), np.float64)
    for q in range(first, last):
        a, b = query_ptr[q], query_ptr[q + 1]
        n, any_tied = gather_gains(gain, order[a:b], tied[a:b], retrieved[q], depth, ties, g)
        if ties == EXPECTED and any_tied:
            values[q] = expected_value(rule, g[:n], weight[a : a + n], tied[a : a + n])
        else:
            values[q] = ranked_value(rule, g[:n], weight[a : a + n])
