# mypy: ignore-errors
"""What each group of documents contributes to a query's value, as whole numbers.

Under the rules SUM, CASCADE, PRECISIONS and FIRST a value is a sum over the groups. The
contribution of a group depends on the number of documents above it (`begin`) and on one whole
number, the sum of their steps, which does not depend on their order (`state`)::

    rule        state                           a group contributes
    SUM         -                               sum of   coef[m]                 w[begin + m]
    CASCADE     sum of -log2(1 - g)             2^-state coef[m]                 w[begin + m]
    PRECISIONS  number of relevant documents    (coef[m] + state * share[m])     w[begin + m]
    FIRST       number of relevant documents    coef[m], where state is 0,       w[begin + m]

So when two neighbours change places, only their own contributions change. The coefficients are
the closed forms of the measures' kernels (expectations over tied orders), split into a part that
depends on the group and a part that depends on the documents above it. Every contribution is
rounded to fixed point: equal orders have equal values, whatever came before them, and sums do not
depend on the order of addition.
"""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._value_kernels import CASCADE, EXPECTED, FIRST, PRECISIONS, STABLE, SUM

LOG_UNIT = 2.0**50  # fixed point of CASCADE's state
MOST_LOG = 64.0  # 2^-64: nobody continues to read
MOST_STATE = 2.0**62  # of all documents of a query together


@njit(cache=True, nogil=True)
def log_of_staying(g):
    """Return -log2(1 - g)."""
    return MOST_LOG if g >= 1.0 else min(-np.log2(1.0 - g), MOST_LOG)


@njit(cache=True, nogil=True)
def unit_of_state(rule, gain):
    """Return the number that represents 1 in states, so that no sum of a query can overflow."""
    unit = LOG_UNIT
    if rule == CASCADE:
        total = 0.0
        for i in range(gain.size):
            if gain[i] != 0.0:
                total += log_of_staying(gain[i])
        while total * unit > MOST_STATE:
            unit *= 0.5
    return unit


@njit(cache=True, nogil=True)
def describe_groups(query, lines, n_groups, E):
    """Fill the numbers of the groups that do not depend on other groups.

    lines : in, size, member, and order: the query's documents, group by group
        out, by place in `order`: g (gains, ascending within a group unless ties are stable), coef
        and share (coefficients); by group: step (what it adds to the state of groups below it) and
        single (the gain of a single document, NaN for several)
    E : scratch of n + 1
    """
    rule, ties, gain, unit = query.rule, query.ties, query.gain, query.unit
    order, size, member, g = lines.order, lines.size, lines.member, lines.g
    coef, share, step, single = lines.coef, lines.share, lines.step, lines.single
    for k in range(n_groups):
        a = member[k]
        n = size[k]
        for r in range(a, a + n):
            g[r] = gain[order[r]]
        if n == 1:
            hit = np.float64(g[a] > 0.0)
            single[k] = g[a]
            share[a] = hit
            coef[a] = g[a] if rule in (SUM, CASCADE) else hit
            step[k] = np.int64(hit)
            if rule == CASCADE and g[a] != 0.0:
                step[k] = np.int64(np.rint(log_of_staying(g[a]) * unit))
            continue
        single[k] = np.nan
        if ties != STABLE:
            g[a : a + n].sort()
        step[k] = 0
        for r in range(a, a + n):
            if rule == CASCADE:
                step[k] += np.int64(np.rint(log_of_staying(g[r]) * unit))
            else:
                step[k] += np.int64(g[r] > 0.0)
        own, rise = coef[a : a + n], share[a : a + n]
        if ties == EXPECTED:
            expected_coefficients(rule, g[a : a + n], step[k], own, rise, E)
        else:
            ordered_coefficients(rule, g[a : a + n], own, rise)


@njit(cache=True, nogil=True)
def expected_coefficients(rule, g, relevant, coef, share, E):
    """Fill the coefficients of a tied group, all its orders equally likely."""
    n = g.size
    if rule == SUM:
        total = 0.0
        for m in range(n):
            total += g[m]
        coef[:] = total / n
    elif rule == PRECISIONS:
        share[:] = relevant / n
        for m in range(n):
            coef[m] = (relevant / n) * (1.0 + m * (relevant - 1.0) / (n - 1.0))
    elif rule == FIRST:
        chance = relevant / n
        for m in range(n):
            coef[m] = chance
            left = n - m - 1
            chance = chance * (left + 1 - relevant) / left if left > 0 else 0.0
    elif rule == CASCADE:
        E[0] = 1.0
        for k in range(1, n + 1):
            stay = 1.0 - g[k - 1]
            E[k] = stay * E[k - 1]
            for m in range(k - 1, 0, -1):
                E[m] = ((k - m) * E[m] + m * stay * E[m - 1]) / k
        for m in range(n):
            coef[m] = E[m] - E[m + 1]


@njit(cache=True, nogil=True)
def ordered_coefficients(rule, g, coef, share):
    """Fill the coefficients of a group whose documents keep their order."""
    found = 0.0
    reach = 1.0
    for m in range(g.size):
        hit = np.float64(g[m] > 0.0)
        share[m] = hit
        if rule == SUM:
            coef[m] = g[m]
        elif rule == CASCADE:
            coef[m] = g[m] * reach
            reach *= 1.0 - g[m]
        elif rule == PRECISIONS:
            coef[m] = hit * (found + 1.0)
        else:
            coef[m] = hit if found == 0.0 else 0.0
        found += hit


@njit(cache=True, nogil=True)
def contribution(rule, begin, state, unit, first, n, coef, share, weight, depth, scale):
    """Return the contribution of a group below `begin` documents whose steps sum to `state`.

    first, n : the group's places in `coef` and `share`

    Single arguments: with a Query instead, a sweep for ERR took 5 % longer.
    """
    n = min(n, depth - begin)
    if n <= 0 or (rule == FIRST and state > 0):
        return np.int64(0)
    total = 0.0
    if rule == PRECISIONS:
        for m in range(n):
            total += (coef[first + m] + state * share[first + m]) * weight[begin + m]
    else:
        for m in range(n):
            total += coef[first + m] * weight[begin + m]
        if rule == CASCADE and total != 0.0:
            total *= np.exp2(-state / unit)
    return np.int64(np.rint(total * scale))


@njit(cache=True, nogil=True)
def pairs_between(g, a, n, b, m):
    """Return the pairs in the right order minus those in the wrong one, group a above b."""
    balance = 0
    for i in range(a, a + n):
        for j in range(b, b + m):
            balance += np.int64(g[i] > g[j]) - np.int64(g[i] < g[j])
    return balance


@njit(cache=True, nogil=True)
def pairs_within(g, a, n, ties):
    """Return the balance of pairs within a group: none in expectation, all wrong at worst."""
    balance = 0
    if ties != EXPECTED:
        for i in range(a, a + n):
            for j in range(i + 1, a + n):
                balance += np.int64(g[i] > g[j]) - np.int64(g[i] < g[j])
    return balance
