# mypy: ignore-errors
"""Sums over all pairs of documents with different labels, query by query.

``order`` lists the rows of every query by ascending label, so that runs of equal labels are next
to each other; a pair counts ``factor[query] * weight[better] * weight[worse]``.
"""

from __future__ import annotations

import math

import numpy as np

from rankgrove.jit import njit


@njit(cache=True, nogil=True)
def run_end(labels, order, start, end):
    """Return where the run of equal labels that begins at `start` ends."""
    label = labels[order[start]]
    stop = start + 1
    while stop < end and labels[order[stop]] == label:
        stop += 1
    return stop


@njit(cache=True, nogil=True)
def widest_mistakes(some, scores, out, query_ptr, order, labels, weight, factor):
    """Fill for every query the largest score of a worse document less that of a better one."""
    for q in some:
        out[q] = -np.inf
        if factor[q] <= 0.0:
            continue
        start, end = query_ptr[q], query_ptr[q + 1]
        highest = -np.inf  # of lower labels
        while start < end:
            stop = run_end(labels, order, start, end)
            for at in range(start, stop):
                if weight[order[at]] > 0.0:
                    out[q] = max(out[q], highest - scores[order[at]])
            for at in range(start, stop):
                if weight[order[at]] > 0.0:
                    highest = max(highest, scores[order[at]])
            start = stop


@njit(cache=True, nogil=True)
def _sweep(order, start, end, step, labels, weight, scores, sign, factor, shift, out):
    """Fill for every row its weight times the sum of those of the rows passed before its run.

    A pair's weight is exp(sign * (passed - own) - shift). The sum of the rows passed is kept as
    total * exp(top), so that no exponential is of a number above 0 by more than rounding.
    """
    top, total = -np.inf, 0.0
    at = start
    while at != end:
        run = at
        label = labels[order[at]]
        while at != end and labels[order[at]] == label:
            i = order[at]
            out[i] = weight[i] * factor * total * math.exp(top - sign * scores[i] - shift)
            at += step
        while run != at:
            i = order[run]
            exponent = sign * scores[i]
            if exponent > top:
                total = total * math.exp(top - exponent) + weight[i]
                top = exponent
            else:
                total += weight[i] * math.exp(exponent - top)
            run += step


@njit(cache=True, nogil=True)
def exponential_queries(
    some, shift, scores, up, gradient, hessian, query_ptr, order, labels, weight, factor
):
    """Fill RankBoost's potentials, and half the weight of the pairs that a row is in.

    `up` is room for work, one number a row.
    """
    for q in some:
        start, end = query_ptr[q], query_ptr[q + 1]
        if factor[q] <= 0.0:
            gradient[start:end] = 0.0
            hessian[start:end] = 0.0
            continue
        _sweep(order, start, end, 1, labels, weight, scores, 1.0, factor[q], shift, up)
        _sweep(
            order, end - 1, start - 1, -1, labels, weight, scores, -1.0, factor[q], shift, hessian
        )
        for i in range(start, end):
            down = hessian[i]
            gradient[i] = up[i] - down
            hessian[i] = 0.5 * (up[i] + down)


@njit(cache=True, nogil=True)
def margin_queries(
    some, scale, tau, scores, gradient, hessian, query_ptr, order, labels, weight, factor
):
    """Fill sums and weights of GBRank's targets: of every pair that is not right by tau.

    The better document is to get the worse one's score plus tau, the worse one the better one's
    less tau; scores are taken times `scale`.
    """
    for q in some:
        start, end = query_ptr[q], query_ptr[q + 1]
        gradient[start:end] = 0.0
        hessian[start:end] = 0.0
        if factor[q] <= 0.0:
            continue
        run = start
        while run < end:
            stop = run_end(labels, order, run, end)
            for at in range(run, stop):
                i = order[at]
                own = scale * scores[i]
                for below in range(start, run):
                    j = order[below]
                    other = scale * scores[j]
                    if own < other + tau:
                        both = factor[q] * weight[i] * weight[j]
                        gradient[i] += both * (other + tau)
                        gradient[j] += both * (own - tau)
                        hessian[i] += both
                        hessian[j] += both
            run = stop
