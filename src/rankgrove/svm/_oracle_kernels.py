# mypy: ignore-errors
"""Most violated rankings, query by query.

All losses here depend on a ranking only by its pattern of relevant and irrelevant documents, so
both kinds stand sorted by score in the most violated one (Observation 1), and the ranking is what
the numbers ``before[i]`` say: the number of irrelevant documents before the i-th relevant one.
They never fall with i. With P relevant and N irrelevant documents, scores s+ and s-,

    H = loss - 2 / (P N) * sum over i, j <= before[i] of (s+_i - s-_j)

since every pair in the wrong order changes Psi by 2 / (P N) times its difference.
"""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import longest_query, sort_descending

MAP, ROC, MRR, NDCG = range(4)


@njit(cache=True, nogil=True)
def interleave_greedy(rule, good, bad, weight, before):
    """Algorithm 2: put every irrelevant document where it raises H most, one after the other.

    delta_j(k, k+1) of equation 5 is what it gains to put the j-th irrelevant document before the
    k-th relevant one as well. Its first part is what the k-th relevant document loses when j, not
    j - 1, irrelevant ones stand before it: of average precision, 1/P times j/(j+k) - (j-1)/(j+k-1)
    = k / ((j+k)(j+k-1)); of a sum of weights of ranks, weight[k+j-1] - weight[k+j]. Lemma 1 and
    Theorem 2 need of it only that it falls with j, which it does where weights fall ever more
    slowly, as the discount of NDCG does. So no document belongs above the place of the one before
    it, and the search ends there.

    weight : in, for NDCG the weights of ranks, here from 0 on
    """
    p, n = good.size, bad.size
    pairs = 2.0 / (p * n)
    place = 1  # opt_j: the first relevant document (from 1) after the j-th irrelevant one
    passed = 0  # relevant documents whose number of irrelevant ones before them is known
    for j in range(1, n + 1):
        total, best, found = 0.0, 0.0, p + 1
        score = bad[j - 1]
        for k in range(p, place - 1, -1):
            if rule == MAP:
                lost = k / (p * float((j + k) * (j + k - 1)))
            else:
                lost = weight[k + j - 2] - weight[k + j - 1]
            total += lost - pairs * (good[k - 1] - score)
            if total > best:
                best, found = total, k
        place = found
        while passed < place - 1:
            before[passed] = j - 1
            passed += 1
        if place > p:
            break
    while passed < p:
        before[passed] = n
        passed += 1


@njit(cache=True, nogil=True)
def interleave_roc(good, bad, before):
    """Put a pair in the wrong order where that gains: 1/(PN) - 2/(PN) (s+ - s-) > 0."""
    j = 0
    for i in range(good.size):
        while j < bad.size and bad[j] + 0.5 > good[i]:
            j += 1
        before[i] = j


@njit(cache=True, nogil=True)
def interleave_mrr(good, bad, before):
    """Try every rank of the first relevant document; all else is then a matter of scores alone.

    With r irrelevant documents before it, those stand before every relevant one, and the others
    stand behind it; any other pair stands as its scores say.
    """
    p, n = good.size, bad.size
    pairs = 2.0 / (p * n)
    best, found = 0.0, 0
    value = 0.0  # H less what it is with the first relevant document on top
    after, rest = 1, good[0]  # relevant documents that the next irrelevant one passes, their sum
    for r in range(n + 1):
        if 1.0 - 1.0 / (r + 1) + value > best:
            best, found = 1.0 - 1.0 / (r + 1) + value, r
        if r < n:
            while after < p and good[after] >= bad[r]:
                rest += good[after]
                after += 1
            value -= pairs * (rest - after * bad[r])
    j = 0
    before[0] = found
    for i in range(1, p):
        while j < n and bad[j] > good[i]:
            j += 1
        before[i] = max(found, j)


@njit(cache=True, nogil=True)
def loss_of(rule, before, n, weight):
    """Return the loss of a ranking: 1 - AP, 1 - ROC area, 1 - RR, or 1 - NDCG."""
    p = before.size
    if rule == MAP:
        total = 0.0
        for i in range(p):
            total += (i + 1) / (i + 1 + before[i])
        return 1.0 - total / p
    if rule == ROC:
        wrong = 0
        for i in range(p):
            wrong += before[i]
        return wrong / (p * n)
    if rule == MRR:
        return 1.0 - 1.0 / (1 + before[0])
    total = 0.0
    for i in range(p):
        total += weight[i + before[i]]
    return 1.0 - total


@njit(cache=True, nogil=True)
def fill_coefficients(before, n, good_rows, bad_rows, coefficient):
    """Fill what every row counts in Psi(true) - Psi(found): 2/(PN) for every wrong pair it is in.

    coefficient : out, one per row; plus for relevant documents, minus for irrelevant ones
    """
    p = before.size
    pairs = 2.0 / (p * n)
    j = 0
    for i in range(p):
        while j < before[i]:
            coefficient[bad_rows[j]] = -pairs * (p - i)  # before relevant document i and on
            j += 1
        coefficient[good_rows[i]] = pairs * before[i]
    while j < n:
        coefficient[bad_rows[j]] = 0.0
        j += 1


@njit(cache=True, nogil=True)
def most_violated(
    rule, discount, query_ptr, relevant, scores, first, last, coefficient, loss, before
):
    """Find the most violated rankings of the queries from `first` to before `last`.

    discount : in, for NDCG the weight of ranks from 0 on; an empty array otherwise
    query_ptr, relevant, scores : in, rows in query order; every query has both kinds
    coefficient : out, one per row (see fill_coefficients)
    loss : out, one per query
    before : out, laid out as rows are: the numbers of a query's relevant documents come first
    """
    longest = longest_query(query_ptr, first, last)
    good, bad = np.empty(longest), np.empty(longest)
    good_rows, bad_rows = np.empty(longest, np.int64), np.empty(longest, np.int64)
    other_key, other_index = np.empty(longest), np.empty(longest, np.int64)
    weight = np.empty(longest if rule == NDCG else 0)
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        p, n = 0, 0
        for row in range(start, end):
            if relevant[row]:
                good[p], good_rows[p] = scores[row], row
                p += 1
            else:
                bad[n], bad_rows[n] = scores[row], row
                n += 1
        sort_descending(good[:p], good_rows[:p], other_key, other_index)
        sort_descending(bad[:n], bad_rows[:n], other_key, other_index)
        own = before[start : start + p]
        if rule == NDCG:
            ideal = 0.0
            for i in range(p):
                ideal += discount[i]
            for i in range(p + n):
                weight[i] = discount[i] / ideal
        if rule == ROC:
            interleave_roc(good[:p], bad[:n], own)
        elif rule == MRR:
            interleave_mrr(good[:p], bad[:n], own)
        else:
            interleave_greedy(rule, good[:p], bad[:n], weight, own)
        loss[q] = loss_of(rule, own, n, weight)
        fill_coefficients(own, n, good_rows[:p], bad_rows[:n], coefficient)
