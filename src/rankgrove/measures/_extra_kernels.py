# mypy: ignore-errors
"""Rules that few measures have: values, expectations over tied orders, swap deltas.

They are apart from those of `_value_kernels`, which are compiled for everybody. With g[r] the gain
of the document at rank r (from 0) and w the weights:

========== ====================================================== ==========================
rule       value                                                   measures
========== ====================================================== ==========================
BPREF      sum over g > 0 of w[number of g < 0 above]             bpref
INFAP      w[0] * sum over g > 0 of the inferred precision there   infAP
KENDALL    tau-b, from pairs in the right order                    Kendall's correlation
SPEARMAN   sum g[r] w[r], over the spread of the scores' ranks     Spearman's correlation
PRECISIONS as ever, every tied document at its group's last rank   AP as scikit-learn has it
========== ====================================================== ==========================

Gains of BPREF and INFAP: 1 relevant, -1 judged not relevant, 0 not judged, -2 (INFAP) in the pool
but not judged.
"""

from __future__ import annotations

import math

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures import _swap_kernels
from rankgrove.measures._ranking_kernels import longest_query
from rankgrove.measures._value_kernels import (
    EXPECTED,
    gather_gains,
    pairs_value,
    sum_expected,
)

BPREF, INFAP, KENDALL, SPEARMAN = range(6, 10)
EPSILON = 0.00001  # trec_eval's smoothing of inferred precisions


# -- what the labels alone say ----------------------------------------------------------------


@njit(cache=True, nogil=True)
def bpref_weights(gain, query_ptr, first, last, weight):
    """Fill weight[c] with what a relevant document counts that has c irrelevant ones above it."""
    for q in range(first, last):
        own = gain[query_ptr[q] : query_ptr[q + 1]]
        relevant = np.sum(own > 0.0)
        bound = min(relevant, np.sum(own < 0.0))
        for c in range(own.size):
            missed = min(c, relevant) / bound if bound > 0 else 0.0
            weight[query_ptr[q] + c] = (1.0 - missed) / relevant if relevant > 0 else 0.0


@njit(cache=True, nogil=True)
def label_ranks(labels, query_ptr, first, last, gain):
    """Fill `gain` with the ranks of the labels (equal ones share the mean), mean 0, norm 1."""
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        own = labels[start:end]
        ordered = np.sort(own)
        squares = 0.0
        for i in range(own.size):
            below = np.searchsorted(ordered, own[i])
            equal = np.searchsorted(ordered, own[i], side="right") - below
            rank = below + 0.5 * (equal - own.size)
            gain[start + i] = rank
            squares += rank * rank
        for i in range(start, end):
            gain[i] = gain[i] / math.sqrt(squares) if squares > 0.0 else 0.0


# -- values -----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def bpref_value(g, w):
    """Return the sum over relevant documents of what the irrelevant ones above leave of each."""
    total = 0.0
    above = 0
    for r in range(g.size):
        if g[r] > 0.0:
            total += w[above]
        elif g[r] < 0.0:
            above += 1
    return total


@njit(cache=True, nogil=True)
def bpref_expected(g, w, tied):
    """Return bpref_value in expectation.

    Above a relevant document of a group stand 0, 1, ... or all of its m irrelevant ones, each
    number with the chance 1 / (m + 1).
    """
    total = 0.0
    above = 0
    start = 0
    while start < g.size:
        end = start
        relevant = 0
        irrelevant = 0
        while end < g.size and (end == start or tied[end]):
            relevant += g[end] > 0.0
            irrelevant += g[end] < 0.0
            end += 1
        if relevant > 0:
            total += relevant * np.sum(w[above : above + irrelevant + 1]) / (irrelevant + 1)
        above += irrelevant
        start = end
    return total


@njit(cache=True, nogil=True)
def inferred_precision(rank, relevant, irrelevant, unjudged):
    """Return the precision expected at a relevant document: the counts are of those above it.

    rank : from 0; unjudged : those of the pool
    """
    share = (relevant + EPSILON) / (relevant + irrelevant + 2.0 * EPSILON)
    return (1.0 + (relevant + irrelevant + unjudged) * share) / (rank + 1.0)


@njit(cache=True, nogil=True)
def infap_value(g, w):
    """Return the mean of inferred precisions at the relevant ranks (w[0] is 1 / their number)."""
    total = 0.0
    relevant = irrelevant = unjudged = 0.0
    for r in range(g.size):
        if g[r] > 0.0:
            total += inferred_precision(r, relevant, irrelevant, unjudged)
            relevant += 1.0
        elif g[r] == -1.0:
            irrelevant += 1.0
        elif g[r] == -2.0:
            unjudged += 1.0
    return total * w[0]


@njit(cache=True, nogil=True)
def log_choose(n, k):
    """Return the logarithm of n over k."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


@njit(cache=True, nogil=True)
def infap_expected(g, w, tied):
    """Return infap_value in expectation.

    Every place of a group holds a relevant document with the same chance. Of the m documents of
    the group above it, a are relevant and b irrelevant with a hypergeometric chance; of the rest
    above, the expected number is unjudged in the pool, and the precision is linear in it.
    """
    total = 0.0
    before = np.zeros(3)  # relevant, irrelevant, unjudged
    start = 0
    while start < g.size:
        end = start
        counts = np.zeros(3)
        while end < g.size and (end == start or tied[end]):
            counts[0] += g[end] > 0.0
            counts[1] += g[end] == -1.0
            counts[2] += g[end] == -2.0
            end += 1
        n = end - start
        others, irrelevant = int(counts[0]) - 1, int(counts[1])
        rest = n - 1 - others - irrelevant
        for m in range(n if counts[0] > 0 else 0):
            mean = 0.0
            for a in range(max(0, m - irrelevant - rest), min(m, others) + 1):
                for b in range(max(0, m - a - rest), min(m - a, irrelevant) + 1):
                    chance = math.exp(
                        log_choose(others, a)
                        + log_choose(irrelevant, b)
                        + log_choose(rest, m - a - b)
                        - log_choose(n - 1, m)
                    )
                    unjudged = (m - a - b) * counts[2] / rest if rest > 0 else 0.0
                    mean += chance * inferred_precision(
                        start + m, before[0] + a, before[1] + b, before[2] + unjudged
                    )
            total += mean * counts[0] / n
        before += counts
        start = end
    return total * w[0]


@njit(cache=True, nogil=True)
def tied_scores(tied, power):
    """Return the sum of t^power - t over the groups of t tied documents."""
    total = 0.0
    run = 1.0
    for r in range(1, tied.size + 1):
        if r < tied.size and tied[r]:
            run += 1.0
        else:
            total += run**power - run
            run = 1.0
    return total


@njit(cache=True, nogil=True)
def kendall_value(g, w, tied):
    """Return tau-b; w[0] is 2 / sqrt(pairs of unequal labels * all pairs)."""
    pairs = 0.5 * g.size * (g.size - 1.0)
    untied = pairs - 0.5 * tied_scores(tied, 2)
    if untied <= 0.0 or w[0] <= 0.0:
        return 0.0
    unequal = 4.0 / (w[0] * w[0] * pairs)
    surplus = pairs_value(g, w, tied, True) - math.sqrt(unequal / pairs)
    return surplus * math.sqrt(pairs / untied)


@njit(cache=True, nogil=True)
def spearman_value(g, w, tied):
    """Return the correlation of ranks; g and w are both of norm 1, w without tied scores."""
    spread = g.size**3.0 - g.size
    left = spread - tied_scores(tied, 3)
    return sum_expected(g, w, tied) * math.sqrt(spread / left) if left > 0.0 else 0.0


@njit(cache=True, nogil=True)
def precisions_together(g, w, tied):
    """Return the sum of precisions, every document of a tied group at the rank of its last."""
    total = 0.0
    found = 0.0
    start = 0
    while start < g.size:
        end = start
        relevant = 0.0
        while end < g.size and (end == start or tied[end]):
            relevant += g[end] > 0.0
            end += 1
        found += relevant
        total += relevant * found * w[end - 1]
        start = end
    return total


# -- the ladder -------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def value_of(rule, g, w, tied, expected):
    """Return the value of one query, with its tied documents in order or not (`expected`)."""
    if rule == BPREF:
        return bpref_expected(g, w, tied) if expected else bpref_value(g, w)
    if rule == INFAP:
        return infap_expected(g, w, tied) if expected else infap_value(g, w)
    if rule == KENDALL:
        return kendall_value(g, w, tied)
    if rule == SPEARMAN:
        return spearman_value(g, w, tied)
    return precisions_together(g, w, tied)


@njit(cache=True, nogil=True)
def ranked_value(rule, g, w):
    """Return the value of one query whose gains stand in ranked order."""
    return value_of(rule, g, w, np.zeros(g.size, np.bool_), False)


@njit(cache=True, nogil=True)
def evaluate_queries(
    rule, ties, gain, weight, query_ptr, order, tied, retrieved, depth, first, last, values
):
    """Like evaluate_queries of `_value_kernels`, but for the rules of this file."""
    g = np.empty(longest_query(query_ptr, first, last), np.float64)
    for q in range(first, last):
        a, b = query_ptr[q], query_ptr[q + 1]
        n, any_tied = gather_gains(gain, order[a:b], tied[a:b], retrieved[q], depth, ties, g)
        expected = ties == EXPECTED and any_tied
        values[q] = value_of(rule, g[:n], weight[a : a + n], tied[a : a + n], expected)


# -- swap deltas ------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def swap_row(rule, g, w, state, i, row):
    """BPREF: fill row[j], j > i, with the change of the value when ranks i and j change places."""
    last = g.size - 1
    above = 0  # irrelevant documents above rank i
    for r in range(i):
        above += g[r] < 0.0
    now = above + (g[i] < 0.0)  # and above rank j
    more = 0.0  # the change of the relevant ones between if one more stood above them
    fewer = 0.0
    for j in range(i + 1, g.size):
        step = int(g[j] < 0.0) - int(g[i] < 0.0)
        change = more if step > 0 else (fewer if step < 0 else 0.0)
        if g[i] > 0.0:
            change += w[min(now + step, last)] - w[above]
        if g[j] > 0.0:
            change += w[above] - w[now]
            more += w[min(now + 1, last)] - w[now]
            fewer += w[max(now - 1, 0)] - w[now]
        row[j] = change
        now += g[j] < 0.0


@njit(cache=True, nogil=True)
def swap_matrix(rule, g, w, deltas):
    """Fill `deltas` (n x n, symmetric) with the change for every pair of ranks."""
    if rule != BPREF:
        _swap_kernels.swap_matrix(rule, g, w, deltas)
        return
    row = np.zeros(g.size)
    for i in range(g.size):
        deltas[i, i] = 0.0
        swap_row(rule, g, w, deltas, i, row)
        for j in range(i + 1, g.size):
            deltas[i, j] = deltas[j, i] = row[j]
