"""The artificial data of the RankNet and LambdaMART papers: a random cubic polynomial."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.data.synthetic.common import (
    SKEWED,
    assembled,
    blocks,
    check_fractions,
    check_sizes,
    label_edges,
)
from rankgrove.random import generator

_REFERENCE_ROWS = 100_000
# "fitted" is the result of the experiment wu2010-labels.
PRESETS = {
    "skewed": SKEWED,
    "equal": (0.2,) * 5,
    "fitted": (0.5, 0.1, 0.34, 0.055, 0.005),
}


def make_artificial(
    n_queries: int,
    n_docs: int = 50,
    n_features: int = 50,
    *,
    labels: str | Sequence[float] = "skewed",
    seed: int = 0,
    task: int = 0,
) -> QueryDataset:
    """Make the artificial data of the RankNet and LambdaMART papers.

    Features are uniform on [-1, 1]. The target is the mean of three terms, each scaled to mean 0
    and variance 1: x.v; sum_i x_i x_Q(i); sum_i x_i x_R(i) x_S(i), with v a random vector and
    Q, R, S random permutations. It is cut into labels; the papers do not say where.

    Parameters
    ----------
    n_queries, n_docs, n_features : sizes; every query has n_docs documents
    labels : the shares of the labels 0, 1, ...: ``"skewed"`` (.52, .33, .105, .035, .01, as in web
        judgements), ``"equal"`` (five of .2), ``"fitted"`` (.5, .1, .34, .055, .005: fitted to
        the figures of Table 1 of the LambdaMART paper, which does not state them), or any shares
    seed : fixes the queries; a whole number of at least 0, like `task`
    task : fixes the polynomial, its scaling and the label edges

    Returns
    -------
    QueryDataset
        with query ids 1, 2, ...

    Examples
    --------
    >>> train = make_artificial(20, seed=1)
    >>> test = make_artificial(10, seed=2)
    >>> train.n_rows, train.n_features, test.n_queries
    (1000, 50, 10)
    """
    owner = "make_artificial"
    check_sizes(owner, seed, task, n_queries=n_queries, n_docs=n_docs, n_features=n_features)
    shares = check_fractions("labels", owner, labels, PRESETS)
    problem = _problem(task, n_features)
    edges = label_edges(problem.reference, shares)
    X = np.empty((n_queries * n_docs, n_features), np.float32)
    y = np.empty(n_queries * n_docs)
    for number, queries in blocks(n_queries):
        rows = slice(queries.start * n_docs, queries.stop * n_docs)
        draw = generator(seed, owner, n_docs, n_features, number)
        X[rows] = _uniform(draw, rows.stop - rows.start, n_features)
        y[rows] = np.searchsorted(edges, _target(problem, X[rows]), side="right")
    return assembled(X, y, np.full(n_queries, n_docs), None)


class _Problem(NamedTuple):
    v: np.ndarray
    q: np.ndarray
    r: np.ndarray
    s: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    reference: np.ndarray  # the target over a sample of documents


@lru_cache(maxsize=8)
def _problem(task: int, n_features: int) -> _Problem:
    draw = generator(task, "make_artificial", "task", n_features)
    v = draw.standard_normal(n_features)
    q, r, s = (draw.permutation(n_features) for _ in range(3))
    sample = generator(task, "make_artificial", "reference", n_features)
    chunks = [_uniform(sample, 5000, n_features) for _ in range(_REFERENCE_ROWS // 5000)]
    polynomial = _Problem(v, q, r, s, np.zeros(3), np.ones(3), np.empty(0))
    raw = np.concatenate([_terms(polynomial, chunk) for chunk in chunks])
    mean, scale = raw.mean(axis=0), raw.std(axis=0)
    target = ((raw - mean) / scale).mean(axis=1)
    return polynomial._replace(mean=mean, scale=scale, reference=target)


def _uniform(draw: np.random.Generator, n_rows: int, n_features: int) -> np.ndarray:
    return draw.random((n_rows, n_features), dtype=np.float32) * np.float32(2) - np.float32(1)


def _target(problem: _Problem, X: np.ndarray) -> np.ndarray:
    standard = (_terms(problem, X) - problem.mean) / problem.scale
    return np.asarray(standard.mean(axis=1))


def _terms(problem: _Problem, X: np.ndarray) -> np.ndarray:
    """Return the three terms of every row, not scaled; no row depends on another."""
    x = X.astype(np.float64)
    linear = (x * problem.v).sum(axis=1)
    quadratic = (x * np.take(x, problem.q, axis=1)).sum(axis=1)
    cubic = (x * np.take(x, problem.r, axis=1) * np.take(x, problem.s, axis=1)).sum(axis=1)
    return np.stack([linear, quadratic, cubic], axis=1)
