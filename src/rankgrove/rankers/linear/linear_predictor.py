"""The base class of rankers with a linear model: scaling by query, scores, feature weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.model.linear import BY_QUERY, Linear
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.given import as_dataset, check_qid, features_of
from rankgrove.rankers.linear.data import scaled_rows
from rankgrove.scoring.linear_scores import score_linear

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.data.arrays import Matrix
    from rankgrove.rankers.given import Documents


class LinearPredictor(Ranker):
    """A ranker whose model is linear: ``linear_``."""

    scaling: str | None
    n_threads: int | None
    linear_: Linear

    # -- prediction -------------------------------------------------------------------------------

    def predict(
        self, X: Documents, n_threads: int | None = None, *, qid: ArrayLike | None = None
    ) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : number of threads; None: the ranker's own `n_threads`
        qid : the query id of every row, where `X` is no data set and features are scaled by query
        """
        self._check_is_fitted()
        owner = f"{type(self).__name__}.predict"
        if self.linear_.scaling not in BY_QUERY:
            return super().predict(X, n_threads)
        if not isinstance(X, QueryDataset):
            if qid is None:
                raise DataError(
                    f"{owner}: the model scales features within every query (scaling="
                    f"{self.linear_.scaling!r}), so it needs the queries: give it a QueryDataset, "
                    "or qid=."
                )
            n_rows = features_of(X, owner)[0].shape[0]
            check_qid(qid, n_rows, owner)
            X = as_dataset(X, np.zeros(n_rows), qid, owner)
        data: QueryDataset = self._aligned(X, owner)
        threads = self._checked_input(data, "predict", n_threads, is_aligned=True)[2]
        features, rows = scaled_rows(data, self.linear_.scaling, threads)
        return data.ungrouped(score_linear(self.linear_, features, rows, threads))

    def _scores(self, features: Matrix, rows: Rows, n_threads: int | None) -> np.ndarray:
        return score_linear(self.linear_, features, rows, n_threads)

    def scaled_by_query(self) -> str | None:
        """Return the text for features, where the model scales them within every query."""
        by_query = self.linear_.scaling in BY_QUERY
        return f"features (scaling={self.linear_.scaling!r})" if by_query else None

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the scaled features, or of the thresholds."""
        return self.linear_.weights

    def _feature_lines(self, n_features: int) -> list[str]:
        """Return a table of the features with the largest influence on scores."""
        names = self._names()
        influence = self.linear_.influence()
        best = [j for j in np.argsort(-influence, kind="stable")[:n_features] if influence[j] > 0]
        width = max([7, *(len(names[j]) for j in best)])
        lines = [f"{'feature':<{width}}  {'weight':>9}"]
        for j in best:
            total = float(self.linear_.by_feature()[j][1].sum())
            lines.append(f"{names[j]:<{width}}  {total:+9.4f}")
        return lines
