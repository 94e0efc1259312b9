"""Scoring by trees: the choice of scorer, rows and threads.

Two scorers give the same bits: ``walk`` goes down every tree for one document at a time, ``lanes``
scores 64 documents at a time with trees that were compiled into another form. The choice depends
on the number of documents and the size of the trees, by measured costs.
"""

from __future__ import annotations

import math
import threading
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove import parallel
from rankgrove.errors import DataError
from rankgrove.model.ensemble import Ensemble
from rankgrove.validation import check_choice, counted

if TYPE_CHECKING:
    import scipy.sparse

    from rankgrove.data.arrays import Matrix
    from rankgrove.scoring.lanes import Lanes
    from rankgrove.scoring.walk import Walk

SCORERS = ("walk", "lanes")
EVERY_ROW = np.empty(0, np.int64)  # instead of row numbers: all rows
_SPARSE_ROWS_AT_ONCE = 8192
_SERIAL = 100_000.0  # nanoseconds of work that are not worth a second thread
_PIECE = 100_000.0  # nanoseconds of a piece of work, of which a call by Python takes 10,000

# Nanoseconds, measured on the machine of benchmarks/README.md. Only ratios matter.
_WALK = (5.0, 5.0)  # per tree, and per doubling of its leaves
_LANE_COLUMN = 1.5  # per bin that is looked up
_LANE_NODE = 0.013  # per document of 64
_LANE_SET = 0.007  # more for a node that tests a set of categories
_WIDE = 1.7  # times as much for more than 256 leaves
_BUILD_NODE = 500.0
MOST_BITS = 1 << 28  # bytes of a table of categories' bits; a longer one is not worth its memory


class Costs:
    """The costs of scoring by an ensemble, in nanoseconds.

    Attributes
    ----------
    walk, lanes : per document
    build : of compiling for lanes
    fits : whether lanes would not need too much memory
    least : number of documents from which on lanes are faster
    """

    def __init__(self, ensemble: Ensemble) -> None:
        leaves = np.diff(ensemble.leaf_ptr)
        widest = int(leaves.max(initial=0))
        columns = 0 if ensemble.feature.size == 0 else np.unique(ensemble.feature).size
        node = _LANE_NODE * (1.0 if widest <= 256 else _WIDE)
        self.walk = _WALK[0] * leaves.size + _WALK[1] * float(np.log2(leaves).sum())
        self.lanes = _LANE_COLUMN * columns + node * ensemble.feature.size + 0.2 * leaves.size
        self.lanes += _LANE_SET * np.count_nonzero(ensemble.set_of >= 0)
        self.build = _BUILD_NODE * ensemble.feature.size
        self.fits = table_of_bits(ensemble) <= MOST_BITS
        # a vector has 64 lanes: fewer documents cost the same
        pays = self.fits and self.lanes < self.walk
        self.least: float = math.ceil(64 * self.lanes / max(self.walk, 1e-9)) if pays else math.inf


def table_of_bits(ensemble: Ensemble) -> int:
    """Return an upper bound of the bytes that lanes need for the bits of categories."""
    nodes = np.flatnonzero(ensemble.set_of >= 0)
    sets, n_bytes = ensemble.sets, 0
    for column in np.unique(ensemble.feature[nodes]).tolist():
        here = ensemble.set_of[nodes[ensemble.feature[nodes] == column]]
        n_codes = 32 * int(np.diff(sets.ptr)[here].max())
        if n_codes * here.size > MOST_BITS:  # only categories in sets count: maybe few
            n_codes = min(n_codes, sum(sets.codes(int(s)).size for s in np.unique(here)))
        n_bytes += n_codes * (here.size // 8 + 1)
    return n_bytes


class _Known:
    """The cached costs of an ensemble, and its compiled form once that pays."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.costs = Costs(ensemble)
        self.lanes: Lanes | None = None
        self.narrow: tuple[np.ndarray, Ensemble] | None = None
        self.walked = 0.0  # nanoseconds
        self.lock = threading.Lock()


_known: weakref.WeakKeyDictionary[Ensemble, _Known] = weakref.WeakKeyDictionary()
_knowing = threading.Lock()


def known(ensemble: Ensemble) -> _Known:
    """Return the cache of an ensemble, which is deleted with the ensemble and never saved."""
    with _knowing:
        cache = _known.get(ensemble)
        if cache is None:
            cache = _known[ensemble] = _Known(ensemble)
        return cache


def lanes_of(ensemble: Ensemble) -> Lanes:
    """Return an ensemble compiled for ``lanes``; it is compiled only once."""
    from rankgrove.scoring.lanes import compile_lanes

    cache = known(ensemble)
    with cache.lock:
        if cache.lanes is None:
            cache.lanes = compile_lanes(ensemble)
        return cache.lanes


def _narrow(ensemble: Ensemble) -> tuple[np.ndarray, Ensemble]:
    """Return the features that trees test, and the ensemble with only these (cached)."""
    cache = known(ensemble)
    with cache.lock:
        if cache.narrow is None:
            used, feature = np.unique(ensemble.feature, return_inverse=True)
            cache.narrow = used, replace(ensemble, n_features=used.size, feature=feature)
        return cache.narrow


def choose(ensemble: Ensemble, n_rows: int) -> Walk | Lanes:
    """Return the faster scorer for `n_rows` documents.

    An ensemble is compiled for lanes once walking has taken more time than compiling would take.
    So it is never compiled for a few documents, but soon in a service that keeps scoring.
    """
    from rankgrove.scoring.walk import Walk

    cache = known(ensemble)
    if n_rows < cache.costs.least:
        return Walk(ensemble)
    if cache.lanes is None:
        cache.walked += n_rows * cache.costs.walk
        if cache.walked < cache.costs.build:
            return Walk(ensemble)
    return lanes_of(ensemble)


def score(
    ensemble: Ensemble,
    features: Matrix,
    rows: np.ndarray | slice | None = None,
    n_threads: int | None = None,
    start: np.ndarray | None = None,
    scorer: str | None = None,
) -> np.ndarray:
    """Return one float64 score per row of `features` (dense or CSR), for all rows or some.

    Values are compared as float32, or as float64 if the ensemble has float64 thresholds and the
    features are float64. The trees are added to the scores `start`, those of a submodel. If
    the ensemble has several columns, the result is of shape (columns, rows). `scorer` is
    ``"walk"`` or ``"lanes"``; None takes the faster one.
    """
    check_features(ensemble, features)
    chosen = EVERY_ROW
    n_rows = features.shape[0]
    if rows is not None and not (isinstance(rows, slice) and rows == slice(None)):
        chosen = np.arange(n_rows)[rows]
        n_rows = chosen.size
    kind = np.float32 if ensemble.single else np.float64
    scores = np.full((ensemble.n_columns, n_rows), ensemble.base, kind)
    if start is not None:  # without a base, not even -0.0 becomes 0.0
        scores[...] = start + ensemble.base if ensemble.base else start
    if n_rows and ensemble.n_trees:
        if not isinstance(features, np.ndarray):  # only the features that are used become dense
            used, ensemble = _narrow(ensemble)
            features = features[:, used]
        by = _named(ensemble, scorer) if scorer is not None else choose(ensemble, n_rows)
        if isinstance(features, np.ndarray):
            _add(ensemble, by, plain(features), chosen, n_threads, scores)
        else:
            _add_sparse(ensemble, by, features, chosen, n_threads, scores)
    result = scores.astype(np.float64, copy=False)
    return result[0] if ensemble.n_columns == 1 else result


def check_features(ensemble: Ensemble, features: Matrix) -> None:
    """Refuse data with another number of features."""
    if features.shape[1] != ensemble.n_features:
        raise DataError(
            f"The model was trained on {counted(ensemble.n_features, 'feature')}; the data "
            f"has {features.shape[1]}. Give it the same features in the same order."
        )


def plain(features: np.ndarray) -> np.ndarray:
    """Return features as a float32 or float64 array in C order, mostly without copying."""
    kind = np.float64 if features.dtype == np.float64 else np.float32
    return np.ascontiguousarray(features, kind)


def _named(ensemble: Ensemble, scorer: str) -> Walk | Lanes:
    from rankgrove.scoring.walk import Walk

    check_choice("scorer", "score", scorer, SCORERS)
    return Walk(ensemble) if scorer == "walk" else lanes_of(ensemble)


def _add_sparse(
    ensemble: Ensemble,
    by: Walk | Lanes,
    features: scipy.sparse.csr_matrix,
    rows: np.ndarray,
    n_threads: int | None,
    scores: np.ndarray,
) -> None:
    for first in range(0, scores.shape[1], _SPARSE_ROWS_AT_ONCE):
        block = slice(first, first + _SPARSE_ROWS_AT_ONCE)
        part = features[rows[block] if rows.size else block].toarray()
        part_scores = scores[:, block].copy()
        _add(ensemble, by, plain(part), EVERY_ROW, n_threads, part_scores)
        scores[:, block] = part_scores


def _add(
    ensemble: Ensemble,
    by: Any,  # Walk or Lanes, each with its own kind of buffers
    features: np.ndarray,
    rows: np.ndarray,
    n_threads: int | None,
    scores: np.ndarray,
) -> None:
    n_rows = scores.shape[1]
    costs = known(ensemble).costs
    work = n_rows * min(costs.walk, costs.lanes)
    n_used = parallel.thread_count(n_threads)
    if n_used == 1 or work < _SERIAL:
        by.add(features, rows, 0, n_rows, by.room(features.dtype), scores)
        return
    n_blocks = -(-n_rows // 128)  # whole blocks: only the last one has empty lanes
    per_thread = int(min(max(work / n_used / _PIECE, 1.0), 8.0))
    bounds = 128 * parallel.piece_bounds(np.arange(n_blocks + 1), n_used, per_thread)
    bounds = np.minimum(bounds, n_rows)
    rooms: list[Any] = []  # one per thread; pop and append are atomic

    def add(first: int, last: int) -> None:
        try:
            room = rooms.pop()
        except IndexError:
            room = by.room(features.dtype)
        by.add(features, rows, first, last, room, scores)
        rooms.append(room)

    parallel.run_pieces(add, bounds, n_used)
