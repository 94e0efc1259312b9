"""Scoring for services: one query at a time, on the caller's thread, as soon as can be."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankgrove.errors import DataError
from rankgrove.model.ensemble import Ensemble
from rankgrove.scoring.score import EVERY_ROW, check_features, known, lanes_of, plain
from rankgrove.validation import check_integer, counted, refuse

FEW = 256  # documents: so few are scored sooner than it is seen which of them to leave out


class Top(NamedTuple):
    """The first documents of a ranking.

    Attributes
    ----------
    rows : which documents, the best first; of equal scores, the one that stood first
    scores : their scores, as of all documents' scoring
    saved : the share of (document, tree) pairs that were not looked at
    """

    rows: np.ndarray
    scores: np.ndarray
    saved: float


class Scorer:
    """A model ready to score queries of tens to thousands of documents.

    It makes the model's other form at once, keeps its buffers, and works on the calling thread.
    Several threads may use one: each has buffers of its own while it scores.

    Made by ``model.scorer()``.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        from rankgrove.scoring.walk import Walk

        self.n_features = ensemble.n_features
        self._ensemble = ensemble
        self._kind = np.float32 if ensemble.single else np.float64
        self._lanes = lanes_of(ensemble)
        self._walk = Walk(ensemble)
        self._least = known(ensemble).costs.least
        self._free: dict[np.dtype[Any], list[Any]] = {
            np.dtype(kind): [] for kind in (np.float32, np.float64)
        }
        self._bins: list[np.ndarray] = []
        self._bounds: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        if ensemble.n_columns != 1:
            raise DataError(
                f"A Scorer gives one score a document; these trees give {ensemble.n_columns}."
            )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._ensemble.size_text()}, "
            f"{counted(self.n_features, 'feature')})"
        )

    def predict(self, X: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return one float64 score a row of features.

        Parameters
        ----------
        X : float32 or float64, rows one after the other; anything else is copied
        out : float64 array to write the scores to, in the place of a new one
        """
        features = self._checked(X)
        n_rows = features.shape[0]
        scores = np.empty(n_rows) if out is None else _checked_out(out, n_rows)
        written = scores if self._kind is np.float64 else np.empty(n_rows, np.float32)
        written.fill(self._ensemble.base)
        if n_rows < self._least:
            self._walk.add(features, EVERY_ROW, 0, n_rows, None, written.reshape(1, -1))
        else:
            room = self._taken(features.dtype)
            self._lanes.add(features, EVERY_ROW, 0, n_rows, room, written.reshape(1, -1))
            self._free[features.dtype].append(room)
        if written is not scores:
            scores[...] = written
        return scores

    def top(self, X: Any, k: int) -> Top:
        """Return the first `k` documents of a ranking by score, with their exact scores.

        Documents that cannot be among them any more, whatever the remaining trees say, are left
        out of the rest. The result is that of scoring all documents and a stable sort.
        """
        check_integer("k", "Scorer.top", k, low=1)
        features = self._checked(X)
        document, scores, looked_at = self.contenders(features, k)
        order = np.argsort(-scores, kind="stable")[:k]
        pairs = features.shape[0] * self._ensemble.n_trees
        return Top(document[order], scores[order], 1.0 - looked_at / pairs if pairs else 0.0)

    def contenders(self, features: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Return documents among which are the first `k`, however ties are broken; their scores.

        Also returns how many (document, tree) pairs were looked at.
        """
        n, n_trees = features.shape[0], self._ensemble.n_trees
        if n <= max(k, FEW) or not n_trees:
            return np.arange(n), self.predict(features), n * n_trees
        room = self._taken(features.dtype)
        bins = self._lanes.enough(self._bins, n)
        sums = np.full(-(-n // 128) * 128, self._ensemble.base, self._kind)
        document, looked_at = self._lanes.top(features, k, room, bins, sums, *self._remaining())
        self._free[features.dtype].append(room)
        self._bins.append(bins)
        return document, sums[: document.size].astype(np.float64), looked_at

    def _taken(self, dtype: np.dtype[Any]) -> Any:
        """Return buffers that no other thread has."""
        try:
            return self._free[dtype].pop()
        except IndexError:
            return self._lanes.room(dtype)

    def _checked(self, X: Any) -> np.ndarray:
        features = np.asarray(X)
        if features.ndim != 2:
            got = f"an array of shape {features.shape}" if features.ndim else type(X).__name__
            raise DataError(
                "A Scorer takes an array of features, a row a document, such as data.X of a query. "
                f"Got {got}."
            )
        check_features(self._ensemble, features)
        return plain(features)

    def _remaining(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return, after every chunk, how far the remaining trees can move scores."""
        from rankgrove.scoring.lanes import remaining

        if self._bounds is None:
            self._bounds = remaining(self._ensemble)
        return self._bounds


def _checked_out(out: Any, n_rows: int) -> np.ndarray:
    fits = isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == (n_rows,)
    if not fits or not out.flags.c_contiguous or not out.flags.writeable:
        shown = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else out
        refuse("out", "Scorer.predict", f"a writeable float64 array of shape ({n_rows},)", shown)
    return out
