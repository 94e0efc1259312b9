"""Learning from pairs: what RankNet and LambdaMART share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgrove.compiling import announce
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.objectives.preference_pairs import Preferences, check_preferences, components
from rankgrove.rankers.fitting import Callback, Training, listed_callbacks
from rankgrove.rankers.given import (
    check_qid,
    features_of,
    frame_names,
    row_count,
    valid_datasets,
)

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from rankgrove.rankers.base import Ranker as _Base
    from rankgrove.rankers.given import Documents
else:
    _Base = object


class PreferenceData(NamedTuple):
    """Documents without labels, and pairs of them.

    The queries of ``data`` are the groups; ``preferences`` are pairs of rows in query order;
    ``by_query`` says whether the caller gave the groups.
    """

    data: QueryDataset
    preferences: Preferences
    by_query: bool

    def of(self, training: Training) -> Training:
        """Return the training with these pairs instead of labels."""
        depends_on = {"pairs": self.digest()}
        pairs = self.preferences
        return replace(training, preferences=pairs, by_query=self.by_query, depends_on=depends_on)

    def digest(self) -> str:
        """Return a hash of the pairs."""
        digest = hashlib.blake2b(digest_size=16)
        for column in self.preferences:
            digest.update(np.ascontiguousarray(column).view(np.uint8).data)
        return digest.hexdigest()


def preference_data(
    X: Documents,
    pairs: ArrayLike,
    probability: ArrayLike,
    weight: ArrayLike | None,
    qid: ArrayLike | None,
    owner: str,
) -> PreferenceData:
    """Return the arguments of ``fit_pairs`` in the form that training takes."""
    names: Sequence[str] | None = frame_names(X)
    features: Any = X
    categorical = None
    if isinstance(X, QueryDataset):
        features, qid = X.X, X.qid if qid is None else qid
        names, categorical = X.given_names, X.categorical
    elif names is None:
        features = features_of(X, owner)[0]
    n_rows = row_count(features)
    preferences = check_preferences(pairs, n_rows, owner, probability, weight)
    first, second = preferences.first, preferences.second
    by_query = qid is not None
    if qid is None:
        qid = components(first, second, n_rows)
    else:
        check_qid(qid, n_rows, owner)
    data = QueryDataset(
        features, np.zeros(n_rows), qid, feature_names=names, categorical=categorical
    )
    query = data.query_of_row
    apart = np.flatnonzero(query[first] != query[second])
    if apart.size:
        i, j = int(first[apart[0]]), int(second[apart[0]])
        raise DataError(
            f"{owner}: pair {apart[0]} joins row {i} of query {data.qid[i]!r} and row {j} of query "
            f"{data.qid[j]!r}: leave qid out where documents of different queries are compared."
        )
    place = np.arange(n_rows)
    if data.order is not None:
        place[data.order] = np.arange(n_rows)
    in_query_order = preferences._replace(first=place[first], second=place[second])
    return PreferenceData(data, in_query_order, by_query)


class FitsPairs(_Base):
    """A ranker that can minimise RankNet's cost on pairs and predict probabilities of pairs."""

    sigma: float

    def fit_pairs(
        self,
        X: Documents,
        pairs: ArrayLike,
        probability: ArrayLike = 1.0,
        *,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        valid: Any = None,
        valid_measures: str | Measure | Iterable[str | Measure] | None = None,
        callbacks: Callback | Iterable[Callback] | None = None,
    ) -> Self:
        """Train on preferences instead of labels; judgements may contradict each other.

        The ranker follows the gradient of RankNet's cost. The `measure` of LambdaMART must be
        "pairs".

        Parameters
        ----------
        X : features, one row per document; or a QueryDataset, whose labels are not used
        pairs : array of two columns: rows of X, the preferred document's first
        probability : that the first is preferred, between 0 and 1; one number, or one per pair
        qid : the query of every row, where documents were judged by query: a net makes one update
            per query. None: documents connected by pairs form a query; a net makes one update for
            at most 1,000 pairs of it
        weight : weight of every pair; None: 1
        valid, valid_measures, callbacks : as in ``fit``

        Examples
        --------
        >>> import rankgrove as rg
        >>> model = rg.RankNet(hidden=(), n_epochs=300, learning_rate=0.05)
        >>> _ = model.fit_pairs([[0.0], [1.0], [2.0]], [[1, 0], [2, 1]], [0.9, 0.9])
        >>> model.predict_pairs([[0.0], [1.0]], [[1, 0]]).round(2)
        array([0.9])
        """
        owner = f"{type(self).__name__}.fit_pairs"
        self._check_fits_pairs(owner)
        announce()
        self.check_parameters()
        pairs_data = preference_data(X, pairs, probability, weight, qid, owner)
        watched = valid_datasets(valid, owner)
        called = listed_callbacks(callbacks, owner)
        training = self._training(pairs_data.data, watched, valid_measures, called, owner)
        return self.learn(pairs_data.of(training))

    def _check_fits_pairs(self, owner: str) -> None:
        """Refuse parameters with which pairs cannot be learned."""

    def predict_pairs(
        self, X: Documents, pairs: ArrayLike, n_threads: int | None = None
    ) -> np.ndarray:
        """Return for every pair the learned probability that its first document is preferred.

        P = 1 / (1 + exp(-sigma (s_i - s_j))) (overview paper, section 2).

        Parameters
        ----------
        X : a data set, or features as in training
        pairs : array of two columns: rows of X
        """
        scores = self.predict(X, n_threads)
        owner = f"{type(self).__name__}.predict_pairs"
        compared = check_preferences(pairs, scores.size, owner)
        x = self.sigma * (scores[compared.first] - scores[compared.second])
        small = np.exp(-np.abs(x))
        return np.where(x > 0, 1.0, small) / (1.0 + small)
