"""Hypotheses of lost trees: the last ones, as in a file that was cut; the first ones; any one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rankgrove.model.ensemble import Ensemble
from rankgrove.parity.case import Case, Hypothesis
from rankgrove.parity.fitted import RANK, common
from rankgrove.parity.production import single

_MOST_ROWS = 60  # documents whose trees are added one by one


def fewer_trees(case: Case, rows: np.ndarray) -> Iterator[Hypothesis]:
    """Yield the lost trees without which most rows fit, except for a constant."""
    trees, with_trees = case.production.ensemble, case.production.with_trees
    if trees is None or with_trees is None or trees.n_trees < 2:
        return
    rows = rows[:: max(1, rows.size // _MOST_ROWS)]
    sums = _sums(trees, case.values[rows])
    logged, allowed = case.log.score[rows], 4 * case.allowed(rows) + case.noise
    best: tuple[int, int, int] | None = None
    for first, last in _spans(trees.n_trees):
        kept = sums[-1] - (sums[last] - sums[first])
        if np.unique(kept).size < 3:
            continue
        constant = common(logged - kept, allowed)
        if constant is None:
            continue
        fits = np.abs(logged - kept - constant) <= allowed
        n = int(fits.sum())
        if n >= 3 and np.unique(kept[fits]).size >= 3 and (best is None or n > best[0]):
            best = (n, first, last)
    if best is None:
        return
    n, first, last = best
    by = replace(case.production, scores=with_trees(_without(trees, first, last)), fast=None)
    fewer = case.scored(None, rows, by)
    agree = case.agree(fewer, rows, case.noise)
    detail = _said(first, last, trees.n_trees)
    if agree.sum() * 2 > n:
        yield Hypothesis(
            "truncated", detail, lambda at: case.scored(None, at, by), RANK + 10, 3, case.noise
        )
        return
    c = common(logged - fewer, allowed)
    if c is not None:
        detail += f", and scores are {'higher' if c > 0 else 'lower'} by {abs(c):.9g}"
        yield Hypothesis(
            "truncated", detail, lambda at: case.scored(None, at, by) + c, RANK + 11, 4, case.noise
        )


def _spans(n: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of the trees that may be lost, of n trees."""
    yield from ((k, n) for k in range(1, n))
    yield from ((0, k) for k in range(1, n))
    yield from ((k, k + 1) for k in range(1, n - 1))


def _said(first: int, last: int, n: int) -> str:
    if last == n:
        return f"only the first {first:,} of {n:,} trees are added"
    if first == 0 and last > 1:
        return f"the first {last:,} of {n:,} trees are not added"
    return f"tree {last:,} of {n:,} is not added"


def _without(trees: Ensemble, first: int, last: int) -> Ensemble:
    kept = [trees.tree(t) for t in range(trees.n_trees) if not first <= t < last]
    return Ensemble.from_trees(kept, trees.n_features, trees.base, single=trees.single)


def _sums(trees: Ensemble, values: np.ndarray) -> np.ndarray:
    """Return the sum of the first k trees for every k and document."""
    x = values if trees.threshold.dtype == np.float64 else single(values)
    sums = np.zeros((trees.n_trees + 1, len(values)))
    sums[0] = trees.base
    for t in range(trees.n_trees):
        sums[t + 1] = sums[t] + trees.tree(t).predict(x)
    return sums
