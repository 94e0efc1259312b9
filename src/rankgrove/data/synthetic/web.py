"""Web-like data: counts with heavy tails, ratios, logs, many zeros, and judgements that disagree.

A document has latent properties (`_LATENTS`), a query has a nature (`_NATURE`); neither is
observed. Features are noisy observations of the latents, some only of the query. Relevance is a
function of latents and nature; judges add noise to it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.data.synthetic.common import (
    SKEWED,
    assembled,
    blocks,
    check_sizes,
    combine,
    label_edges,
)
from rankgrove.random import generator
from rankgrove.validation import check_real

_REFERENCE_QUERIES, _REFERENCE_DOCS = 4000, 25
_LATENTS = ("match", "quality", "spam", "freshness", "length", "clicks") + ("nuisance",) * 6
_NATURE = ("navigational", "newsy", "generous", "popularity", "terms", "idf")
_STREAMS = ("body", "anchor", "title", "url", "whole")
# Kinds of features and their shares; all others are counts.
_SHARES = {
    "log": 0.16,
    "ratio": 0.16,
    "score": 0.20,
    "sparse": 0.18,
    "flag": 0.03,
    "query": 0.04,
    "constant": 0.02,
}
_OWNER = "make_web"


def make_web(
    n_queries: int,
    n_docs: int = 120,
    n_features: int = 136,
    *,
    seed: int = 0,
    task: int = 0,
    noise: float = 1.0,
) -> QueryDataset:
    """Make data that looks like that of a web search engine.

    Features are counts with heavy tails, logarithms, ratios, scores, columns that are mostly
    zero, flags, features of the query only and a few constants; features of a stream (body, anchor,
    title, url, whole) are correlated, and values shift from query to query. Labels are 0 to 4
    with shares of about .52, .33, .105, .035 and .01.

    Parameters
    ----------
    n_queries : number of queries
    n_docs : the mean number of documents per query; the number varies
    n_features : number of features
    seed : fixes the queries; a whole number of at least 0, like `task`
    task : fixes the meaning of features, the relevance function and the label edges
    noise : standard deviation of the judges' noise; relevance itself has 1

    Returns
    -------
    QueryDataset
        with query ids 1, 2, ... and feature names such as ``body.count.1``

    Examples
    --------
    >>> data = make_web(50, n_docs=20, n_features=30)
    >>> data.n_queries, data.n_features
    (50, 30)
    """
    check_sizes(_OWNER, seed, task, n_queries=n_queries, n_docs=n_docs, n_features=n_features)
    noise = check_real("noise", _OWNER, noise, low=0)
    problem = _problem(task)
    edges = label_edges(_with_noise(problem, noise), np.array(SKEWED))
    sights = _sights(task, n_features)
    sizes = _numbers_of_documents(n_queries, n_docs, seed)
    ends = np.cumsum(sizes)
    X = np.empty((int(ends[-1]), n_features), np.float32)
    y = np.empty(int(ends[-1]))
    for number, queries in blocks(n_queries):
        rows = slice(int(ends[queries.start] - sizes[queries.start]), int(ends[queries.stop - 1]))
        drawn = _draw(seed, number, sizes[queries])
        _observe(sights, drawn, generator(seed, _OWNER, number, "sights"), X[rows])
        worth = (_worth(problem.weights, drawn) - problem.mean) / problem.scale
        judges = generator(seed, _OWNER, number, "judges").standard_normal(worth.size)
        y[rows] = np.searchsorted(edges, worth + noise * judges, side="right")
    return assembled(X, y, sizes, sights.names)


# -- documents, queries and relevance ---------------------------------------------------------


class _Drawn(NamedTuple):
    latents: np.ndarray  # rows x latents, float32
    nature: np.ndarray  # queries x nature
    query_of_row: np.ndarray


def _numbers_of_documents(n_queries: int, mean: int, seed: int) -> np.ndarray:
    spread = generator(seed, _OWNER, "documents").gamma(4.0, 0.25, n_queries)
    return 1 + np.floor((mean - 1) * spread + 0.5).astype(np.int64)


def _draw(seed: int, block: int, sizes: np.ndarray) -> _Drawn:
    """Draw the queries and documents of a block; a longer block begins like a shorter one."""
    of_query = generator(seed, _OWNER, block, "queries")
    width = len(_NATURE) + len(_LATENTS)
    normal = of_query.standard_normal((sizes.size, width)).astype(np.float32)
    nature, shift = normal[:, : len(_NATURE)], normal[:, len(_NATURE) :]
    query_of_row = np.repeat(np.arange(sizes.size), sizes)
    draw = generator(seed, _OWNER, block, "documents")
    document_part = draw.standard_normal((query_of_row.size, len(_LATENTS)), dtype=np.float32)
    # Documents of a query are similar: a tenth of the variance belongs to the query.
    latents = np.float32(0.95) * document_part + np.float32(0.31) * shift[query_of_row]
    return _Drawn(latents, nature, query_of_row)


class _Problem(NamedTuple):
    weights: np.ndarray
    mean: float
    scale: float
    worth: np.ndarray  # standardised, over a sample of documents
    judges: np.ndarray


@lru_cache(maxsize=8)
def _problem(task: int) -> _Problem:
    weights = generator(task, _OWNER, "task").uniform(0.7, 1.3, 8)
    sizes = np.full(_REFERENCE_QUERIES, _REFERENCE_DOCS)
    worth = _worth(weights, _draw(task, -1, sizes))
    mean, scale = float(worth.mean()), float(worth.std())
    judges = generator(task, _OWNER, "reference judges").standard_normal(worth.size)
    return _Problem(weights, mean, scale, (worth - mean) / scale, judges)


def _with_noise(problem: _Problem, noise: float) -> np.ndarray:
    return problem.worth + noise * problem.judges


def _worth(weights: np.ndarray, drawn: _Drawn) -> np.ndarray:
    """Return the relevance of documents: thresholds and interactions, not a sum of features."""
    match, quality, spam, fresh, length, clicks = (
        drawn.latents[:, j].astype(np.float64) for j in range(6)
    )
    navigational, newsy, generous = drawn.nature[drawn.query_of_row, :3].T.astype(np.float64)
    parts = [
        0.9 * match,
        1.1 * quality * (navigational > 0.3),
        -1.5 * np.maximum(spam - 0.3, 0),
        1.0 * fresh * (newsy > 0.5),
        1.2 * ((clicks > 0.5) & (match > 0)),
        -0.8 * np.abs(length),
        0.7 * np.tanh(2 * match) * clicks,
        0.6 * np.maximum(match, 0) * np.maximum(quality, 0),
    ]
    worth: np.ndarray = 0.5 * generous
    for weight, part in zip(weights, parts, strict=True):
        worth = worth + weight * part
    return worth


# -- features ---------------------------------------------------------------------------------


class _Sights(NamedTuple):
    """The observations behind features: columns in order of kind, `place` is their feature."""

    kinds: dict[str, slice]
    place: np.ndarray
    loadings: np.ndarray  # latents x features
    shift: np.ndarray  # nature x features: how values move from query to query
    blur: np.ndarray
    location: np.ndarray
    names: list[str]


@lru_cache(maxsize=8)
def _sights(task: int, n_features: int) -> _Sights:
    draw = generator(task, _OWNER, "features", n_features)
    counts = {kind: round(share * n_features) for kind, share in _SHARES.items()}
    counts["count"] = n_features - sum(counts.values())
    ends = np.cumsum(list(counts.values()))
    kinds = {
        kind: slice(int(end) - size, int(end))
        for (kind, size), end in zip(counts.items(), ends, strict=True)
    }
    place = draw.permutation(n_features)
    stream = draw.integers(len(_STREAMS), size=n_features)
    # Every stream observes the latents in its own way; its features are similar to each other.
    views = draw.standard_normal((len(_LATENTS), len(_STREAMS))) * 0.2
    feature_part = draw.standard_normal((len(_LATENTS), n_features))
    feature_part *= draw.random(feature_part.shape) < 0.2
    loadings = views[:, stream] + feature_part
    loadings /= np.sqrt((loadings**2).sum(axis=0))
    shift = draw.standard_normal((len(_NATURE), n_features)) * 0.25
    names = [""] * n_features
    for kind, columns in kinds.items():
        for j in range(columns.start, columns.stop):
            place_name = "query" if kind == "query" else _STREAMS[stream[j]]
            names[place[j]] = f"{place_name}.{kind}.{place[j] + 1}"
    blur = draw.uniform(0.3, 1.2, n_features)
    return _Sights(kinds, place, loadings, shift, blur, draw.uniform(-1.0, 1.0, n_features), names)


def _observe(sights: _Sights, drawn: _Drawn, draw: np.random.Generator, out: np.ndarray) -> None:
    """Write the features of a block's documents into `out`."""
    seen = draw.standard_normal(out.shape, dtype=np.float32)
    seen *= sights.blur.astype(np.float32)
    seen += combine(drawn.latents, sights.loadings)
    seen += combine(drawn.nature, sights.shift)[drawn.query_of_row]
    for kind, columns in sights.kinds.items():
        place = sights.location[columns].astype(np.float32)
        if kind == "query":
            by_query = _nature_features(drawn.nature, sights.shift[:, columns])
            seen[:, columns] = by_query[drawn.query_of_row]
        elif kind == "constant":
            seen[:, columns] = np.round(place * 2)
        else:
            _TRANSFORMS[kind](seen[:, columns], place)
    out[:, sights.place] = seen


def _nature_features(nature: np.ndarray, loadings: np.ndarray) -> np.ndarray:
    """Return features of the query only, in steps, like a number of terms."""
    return np.round(2 * combine(nature, 3 * loadings)) / 2


def _count(u: np.ndarray, place: np.ndarray) -> None:
    u *= 1.1
    u += 1 + 2 * place
    np.floor(np.exp(u, out=u), out=u)


def _log(u: np.ndarray, place: np.ndarray) -> None:
    _count(u, place)
    np.log1p(u, out=u)


def _ratio(u: np.ndarray, place: np.ndarray) -> None:
    u += place - 0.5
    u[...] = 1 / (1 + np.exp(-1.5 * u))
    u[u < 0.2] = 0


def _score(u: np.ndarray, place: np.ndarray) -> None:
    u += 1.5 + place
    np.maximum(u, 0, out=u)
    u *= 10


def _sparse(u: np.ndarray, place: np.ndarray) -> None:
    u -= 1.2 + 0.7 * place
    np.maximum(u, 0, out=u)


def _flag(u: np.ndarray, place: np.ndarray) -> None:
    u[...] = u > place


_TRANSFORMS = {
    "count": _count,
    "log": _log,
    "ratio": _ratio,
    "score": _score,
    "sparse": _sparse,
    "flag": _flag,
}
