"""Scoring for services: one query at a time, on the caller's thread, as fast as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgrove.errors import DataError, ParameterError
from rankgrove.model.ensemble import Ensemble
from rankgrove.scoring.score import EVERY_ROW, check_features, known, lanes_of, plain
from rankgrove.validation import check_integer, counted, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.scoring._top_kernels import Bounds
    from rankgrove.scoring.lanes import Lanes, Room

FEW = 256  # up to this number of documents, scoring all is faster than leaving some out
FEW_WITH_EXITS = 64  # the same with learned exits, which leave out most


class Top(NamedTuple):
    """The first documents of a ranking.

    Attributes
    ----------
    rows : the documents, the best first; of equal scores, the lower row first
    scores : their scores, the same as if all documents were scored
    saved : the share of (document, tree) pairs that were not evaluated
    """

    rows: np.ndarray
    scores: np.ndarray
    saved: float


@dataclass(frozen=True)
class Exits:
    """A learned rule that leaves documents out early, at a small loss.

    After every chunk of trees, a document is left out if its score so far is below the k-th best of
    its query by more than the chunk's gap.

    Attributes
    ----------
    k : the number of first documents that the rule was learned for
    ends : number of trees after which there is a gap, rising
    gaps : one per end, not negative
    """

    k: int
    ends: np.ndarray
    gaps: np.ndarray


class Scorer:
    """A model ready to score queries of tens to thousands of documents.

    It compiles the model at once, keeps its buffers, and works on the calling thread. Several
    threads may share a scorer: each has its own buffers while it scores. ``model.scorer()`` makes
    one. With `exits`, ``top`` leaves documents out by a learned rule, and may lose some.
    """

    def __init__(self, ensemble: Ensemble, exits: Exits | None = None) -> None:
        from rankgrove.scoring.walk import Walk

        self.n_features = ensemble.n_features
        self._ensemble = ensemble
        self._kind = np.float32 if ensemble.single else np.float64
        costs = known(ensemble).costs
        self._lanes = lanes_of(ensemble) if costs.fits else None
        self._walk = Walk(ensemble)
        self._least = costs.least
        self._free: dict[np.dtype[Any], list[Room]] = {
            np.dtype(kind): [] for kind in (np.float32, np.float64)
        }
        self._bins: list[np.ndarray] = []
        self._bounds: Bounds | None = None
        self._exits = exits
        if ensemble.n_columns != 1:
            raise DataError(
                f"A Scorer gives one score per document; these trees give {ensemble.n_columns}."
            )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._ensemble.size_text()}, "
            f"{counted(self.n_features, 'feature')})"
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self._ensemble.n_trees

    def predict(self, X: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return one float64 score per row of features.

        Parameters
        ----------
        X : float32 or float64 array in C order; anything else is copied
        out : float64 array to write the scores to, instead of a new one
        """
        features = self._checked(X)
        n_rows = features.shape[0]
        scores = np.empty(n_rows) if out is None else _checked_out(out, n_rows)
        written = scores if self._kind is np.float64 else np.empty(n_rows, np.float32)
        written.fill(self._ensemble.base)
        if n_rows < self._least or self._lanes is None:
            self._walk.add(features, EVERY_ROW, 0, n_rows, None, written.reshape(1, -1))
        else:
            room = self._taken(self._lanes, features.dtype)
            self._lanes.add(features, EVERY_ROW, 0, n_rows, room, written.reshape(1, -1))
            self._free[features.dtype].append(room)
        if written is not scores:
            scores[...] = written
        return scores

    def top(self, X: ArrayLike, k: int) -> Top:
        """Return the first `k` documents of a ranking by score, with their exact scores.

        Documents are left out once the remaining trees cannot bring them among the first `k`. The
        result is the same as that of scoring all documents and sorting them stably, unless the
        scorer has learned exits.
        """
        check_integer("k", "Scorer.top", k, low=1)
        features = self._checked(X)
        document, scores, looked_at = self.contenders(features, k)
        order = np.argsort(-scores, kind="stable")[:k]
        pairs = features.shape[0] * self._ensemble.n_trees
        return Top(document[order], scores[order], 1.0 - looked_at / pairs if pairs else 0.0)

    def has_top(self, k: int) -> bool:
        """Return whether ``top`` is possible for `k`: learned exits are for a greatest one."""
        return self._exits is None or k <= self._exits.k

    def contenders(self, features: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Return documents that include the first `k`, however ties are broken, and their scores.

        Also returns the number of (document, tree) pairs that were evaluated.
        """
        n, n_trees = features.shape[0], self._ensemble.n_trees
        exits, few = self._exits, FEW
        if exits is not None:
            if not self.has_top(k):
                raise ParameterError(
                    f"The rule for leaving documents out was learned for the first {exits.k} of a "
                    f"query. Got k={k}: learn it with a measure of that cutoff."
                )
            k, few = exits.k, FEW_WITH_EXITS
        if n <= max(k, few) or not n_trees or self._lanes is None:
            return np.arange(n), self.predict(features), n * n_trees
        room = self._taken(self._lanes, features.dtype)
        bins = self._lanes.enough(self._bins, n)
        sums = np.full(-(-n // 128) * 128, self._ensemble.base, self._kind)
        document, looked_at = self._lanes.top(features, k, room, bins, sums, self._remaining())
        self._free[features.dtype].append(room)
        self._bins.append(bins)
        return document, sums[: document.size].astype(np.float64), looked_at

    def _taken(self, lanes: Lanes, dtype: np.dtype[Any]) -> Room:
        """Return buffers that no other thread uses."""
        try:
            return self._free[dtype].pop()
        except IndexError:
            return lanes.room(dtype)

    def _checked(self, X: ArrayLike) -> np.ndarray:
        features = np.asarray(X)
        if features.ndim != 2:
            got = f"an array of shape {features.shape}" if features.ndim else type(X).__name__
            raise DataError(
                "A Scorer takes an array of features, one row per document, such as data.X. "
                f"Got {got}."
            )
        check_features(self._ensemble, features)
        return plain(features)

    def _remaining(self) -> Bounds:
        """Return how far the trees that remain after every chunk can move scores."""
        from rankgrove.scoring.lanes import remaining

        if self._bounds is None:
            exact = remaining(self._ensemble)
            self._bounds = exact if self._exits is None else _with_exits(exact, self._exits)
        return self._bounds


def _with_exits(exact: Bounds, exits: Exits) -> Bounds:
    """Return the learned gaps where there are any and they are smaller than the exact bounds."""
    from rankgrove.scoring.lanes import chunk_ends

    learned = dict(zip(exits.ends.tolist(), exits.gaps.tolist(), strict=True))
    ends = chunk_ends(int(exits.ends[-1])).tolist()
    gaps = np.array([learned.get(end, np.inf) for end in ends])
    gaps[-1] = np.inf  # after the last tree nothing is saved
    smaller = gaps < exact.span
    return exact._replace(
        span=np.where(smaller, gaps, exact.span),
        size=np.where(smaller, 0.0, exact.size),
        slack=np.where(smaller, 0.0, exact.slack),
    )


def _checked_out(out: np.ndarray, n_rows: int) -> np.ndarray:
    fits = isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == (n_rows,)
    if not fits or not out.flags.c_contiguous or not out.flags.writeable:
        shown = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else out
        refuse("out", "Scorer.predict", f"a writeable float64 array of shape ({n_rows},)", shown)
    return out
