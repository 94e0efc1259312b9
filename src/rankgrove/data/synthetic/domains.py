"""Two related domains: a source with much data, and a target that differs in two known ways."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.data.synthetic.common import assembled, blocks, check_sizes, label_edges
from rankgrove.random import generator
from rankgrove.validation import check_real

_SHARES = np.array([0.4, 0.25, 0.2, 0.1, 0.05])
_REFERENCE_ROWS = 100_000
_GROUP = 5  # features that share a factor
_OWNER = "make_domains"


def make_domains(
    n_source: int,
    n_target: int,
    n_docs: int = 40,
    n_features: int = 50,
    *,
    feature_shift: float = 0.3,
    relevance_shift: float = 0.3,
    seed: int = 0,
    task: int = 0,
    noise: float = 1.0,
) -> tuple[QueryDataset, QueryDataset]:
    """Make a source and a target domain, such as two markets of one search engine.

    Every feature depends on a hidden variable, standard normal in both domains. Relevance is a
    function of the hidden variables with linear parts, products and thresholds. Labels are 0
    to 4 with shares of about .4, .25, .2, .1 and .05 in both domains.

    Parameters
    ----------
    n_source, n_target : numbers of queries
    n_docs, n_features : sizes; every query has n_docs documents
    feature_shift : how far the target's features are from the source's. At 0 both are the same
        function of the hidden variables. At s each target feature is shifted by s * u and scaled
        by exp(s * v / 2), with normal random numbers u and v per feature; a share s / 10 of the
        features is missing (NaN) in the target, and as many other features in the source
    relevance_shift : how far relevance differs. The target's relevance function is
        (1 - s) times the source's plus s times another one that is uncorrelated with it, scaled
        to the same variance: at 0 it is the same function, at 1 an unrelated one
    seed : fixes the queries; a whole number of at least 0, like `task`
    task : fixes the functions, the shifts' directions and the label edges
    noise : standard deviation of the judges' noise; relevance itself has 1

    Returns
    -------
    source, target : QueryDataset
        with query ids ``s1``, ``s2``, ... and ``t1``, ``t2``, ...

    Examples
    --------
    >>> source, target = make_domains(30, 5, relevance_shift=0.3)
    >>> source.n_queries, target.n_queries, str(target.query_ids[0])
    (30, 5, 't1')
    """
    sizes = {"n_source": n_source, "n_target": n_target}
    check_sizes(_OWNER, seed, task, **sizes, n_docs=n_docs, n_features=n_features)
    feature_shift = check_real("feature_shift", _OWNER, feature_shift, low=0, high=1)
    relevance_shift = check_real("relevance_shift", _OWNER, relevance_shift, low=0, high=1)
    noise = check_real("noise", _OWNER, noise, low=0)
    problem = _problem(task, n_features)
    domains = []
    for name, n_queries, moved, turned in [
        ("source", n_source, 0.0, 0.0),
        ("target", n_target, feature_shift, relevance_shift),
    ]:
        sight = _sight(problem, moved)
        absent = _absent(problem, name, feature_shift)
        edges = label_edges(_mixed(problem.reference, turned) + noise * problem.judges, _SHARES)
        X = np.empty((n_queries * n_docs, n_features), np.float32)
        y = np.empty(n_queries * n_docs)
        for number, queries in blocks(n_queries):
            rows = slice(queries.start * n_docs, queries.stop * n_docs)
            stream = (seed, _OWNER, name, number)
            hidden = _hidden(stream, queries.stop - queries.start, n_docs, n_features)
            judges = generator(*stream, "judges").standard_normal(hidden.shape[0])
            worth = _mixed(_functions(problem, hidden), turned)
            y[rows] = np.searchsorted(edges, worth + noise * judges, side="right")
            X[rows] = _seen(sight, hidden)
            X[rows, absent] = np.nan
        domains.append(assembled(X, y, np.full(n_queries, n_docs), None, prefix=name[0]))
    return domains[0], domains[1]


# -- hidden variables and relevance -----------------------------------------------------------


class _Function(NamedTuple):
    linear: np.ndarray
    pairs: np.ndarray  # two columns of features
    pair_weights: np.ndarray
    steps: np.ndarray  # features with a threshold
    step_weights: np.ndarray
    mean: float = 0.0
    scale: float = 1.0


class _Problem(NamedTuple):
    functions: tuple[_Function, _Function]
    overlap: float  # the correlation of both, which is removed from the second
    reference: np.ndarray  # both functions over a sample, rows x 2
    judges: np.ndarray
    shapes: np.ndarray  # 0: as it is, 1: exponential, 2: cut at zero
    location: np.ndarray
    stretch: np.ndarray
    order: np.ndarray  # which features go missing first


@lru_cache(maxsize=8)
def _problem(task: int, n_features: int) -> _Problem:
    draw = generator(task, _OWNER, "task", n_features)
    raw = _function(draw, n_features), _function(draw, n_features)
    blocks_of_rows = [
        _hidden((task, _OWNER, "reference", i), 500, 10, n_features)
        for i in range(_REFERENCE_ROWS // 5000)
    ]
    values = [np.concatenate([_value(f, hidden) for hidden in blocks_of_rows]) for f in raw]
    scaled = [
        f._replace(mean=float(v.mean()), scale=float(v.std()))
        for f, v in zip(raw, values, strict=True)
    ]
    first, second = ((v - v.mean()) / v.std() for v in values)
    overlap = float(np.mean(first * second))
    reference = np.stack([first, _without(first, second, overlap)], axis=1)
    return _Problem(
        (scaled[0], scaled[1]),
        overlap,
        reference,
        generator(task, _OWNER, "reference judges").standard_normal(first.size),
        draw.integers(3, size=n_features),
        draw.standard_normal(n_features),
        draw.standard_normal(n_features),
        draw.permutation(n_features),
    )


def _function(draw: np.random.Generator, n_features: int) -> _Function:
    """Return a random function of about a third of the features."""
    linear = np.where(draw.random(n_features) < 0.25, draw.standard_normal(n_features), 0.0)
    pairs = draw.integers(n_features, size=(max(2, n_features // 6), 2))
    steps = draw.integers(n_features, size=max(1, n_features // 8))
    return _Function(
        linear,
        pairs,
        1.5 * draw.standard_normal(len(pairs)),
        steps,
        1.5 * draw.standard_normal(len(steps)),
    )


def _hidden(
    stream: tuple[int | str, ...], n_queries: int, n_docs: int, n_features: int
) -> np.ndarray:
    """Return standard normal variables, correlated in groups and (by a fifth) within queries."""
    seed, *names = stream
    n_groups = -(-n_features // _GROUP)
    group = np.arange(n_features) // _GROUP
    of_query = generator(int(seed), *names, "queries").standard_normal((n_queries, n_features))
    factor = generator(int(seed), *names, "factors")
    shared = factor.standard_normal((n_queries * n_docs, n_groups))
    draw = generator(int(seed), *names, "documents")
    document_part = draw.standard_normal((n_queries * n_docs, n_features))
    hidden = np.sqrt(0.5) * document_part + np.sqrt(0.3) * np.take(shared, group, axis=1)
    hidden += np.sqrt(0.2) * np.repeat(of_query, n_docs, axis=0)
    return np.asarray(hidden)


def _value(f: _Function, hidden: np.ndarray) -> np.ndarray:
    value = (hidden * f.linear).sum(axis=1)
    for (i, j), weight in zip(f.pairs, f.pair_weights, strict=True):
        value += weight * np.tanh(hidden[:, i]) * np.tanh(hidden[:, j])
    for i, weight in zip(f.steps, f.step_weights, strict=True):
        value += weight * (hidden[:, i] > 0.5)
    return np.asarray((value - f.mean) / f.scale)


def _functions(problem: _Problem, hidden: np.ndarray) -> np.ndarray:
    """Return the source's function and one uncorrelated with it, rows x 2."""
    first, second = (_value(f, hidden) for f in problem.functions)
    return np.stack([first, _without(first, second, problem.overlap)], axis=1)


def _without(first: np.ndarray, second: np.ndarray, overlap: float) -> np.ndarray:
    return np.asarray((second - overlap * first) / np.sqrt(1 - overlap**2))


def _mixed(functions: np.ndarray, shift: float) -> np.ndarray:
    mixed = (1 - shift) * functions[:, 0] + shift * functions[:, 1]
    return np.asarray(mixed / np.hypot(1 - shift, shift))


# -- features ---------------------------------------------------------------------------------


class _Sight(NamedTuple):
    shapes: np.ndarray
    location: np.ndarray
    stretch: np.ndarray


def _sight(problem: _Problem, shift: float) -> _Sight:
    return _Sight(problem.shapes, shift * problem.location, np.exp(0.5 * shift * problem.stretch))


def _seen(sight: _Sight, hidden: np.ndarray) -> np.ndarray:
    u = sight.location + sight.stretch * hidden
    cut = np.where(sight.shapes == 2, np.maximum(u, 0), u)
    return np.asarray(np.where(sight.shapes == 1, np.exp(u), cut))


def _absent(problem: _Problem, name: str, shift: float) -> np.ndarray:
    """Return the features that a domain lacks: the first of `order` in the target, or the next."""
    count = round(0.1 * shift * problem.order.size)
    return problem.order[:count] if name == "target" else problem.order[count : 2 * count]
