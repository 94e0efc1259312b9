"""Learning from pairs: what the rankers with ``fit_pairs`` share, and LambdaMART's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgrove.boosting.loop import Callback
from rankgrove.compiling import announce
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.objectives.pairs import Preferences, check_preferences, components
from rankgrove.rankers.fitting import Training, listed_callbacks
from rankgrove.rankers.given import check_qid, features_of, frame_names, valid_datasets

if TYPE_CHECKING:
    from typing import Self

    from rankgrove.rankers.base import Ranker as _Base
else:
    _Base = object


class PreferenceData(NamedTuple):
    """Documents without labels, and pairs of them.

    ``data`` has the groups as its queries; ``preferences`` are of rows in query order;
    ``by_query`` whether the caller said what the groups are.
    """

    data: QueryDataset
    preferences: Preferences
    by_query: bool

    def of(self, training: Training) -> Training:
        """Return a training on these pairs in place of labels."""
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
    X: Any, pairs: Any, probability: Any, weight: Any, qid: Any, owner: str
) -> PreferenceData:
    """Return what ``fit_pairs`` was given in the form that training takes."""
    names: Sequence[str] | None = frame_names(X)
    if isinstance(X, QueryDataset):
        features, qid = X.X, X.qid if qid is None else qid
        names = X.given_names
    else:
        features = features_of(X, owner)[0]
    n_rows = features.shape[0]
    given = check_preferences(pairs, n_rows, owner, probability, weight)
    by_query = qid is not None
    if by_query:
        check_qid(qid, n_rows, owner)
    else:
        qid = components(given.first, given.second, n_rows)
    data = QueryDataset(features, np.zeros(n_rows), qid, feature_names=names)
    query = data.query_of_row
    apart = np.flatnonzero(query[given.first] != query[given.second])
    if apart.size:
        i, j = int(given.first[apart[0]]), int(given.second[apart[0]])
        raise DataError(
            f"{owner}: pair {apart[0]} joins row {i} of query {data.qid[i]!r} and row {j} of query "
            f"{data.qid[j]!r}: leave qid out where documents of different queries are compared."
        )
    place = np.arange(n_rows)
    if data.order is not None:
        place[data.order] = np.arange(n_rows)
    moved = given._replace(first=place[given.first], second=place[given.second])
    return PreferenceData(data, moved, by_query)


class PairProbabilities(_Base):
    """A ranker whose scores make probabilities of pairs."""

    sigma: float

    def predict_pairs(self, X: Any, pairs: Any, n_threads: int | None = None) -> np.ndarray:
        """Return for every pair the learned probability that its first document is preferred.

        P = 1 / (1 + exp(-sigma (s_i - s_j))) (overview paper, section 2).

        Parameters
        ----------
        X : a data set, or features as in training
        pairs : array of two columns: rows of X
        """
        scores = self.predict(X, n_threads)
        owner = f"{type(self).__name__}.predict_pairs"
        given = check_preferences(pairs, scores.size, owner)
        x = self.sigma * (scores[given.first] - scores[given.second])
        small = np.exp(-np.abs(x))
        return np.where(x > 0, 1.0, small) / (1.0 + small)


class FitsPairs(PairProbabilities):
    """A boosted ranker that can follow RankNet's cost on given pairs."""

    measure: str | Measure
    step_on: str
    if TYPE_CHECKING:

        @property
        def _is_exact(self) -> bool: ...

    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        probability: Any = 1.0,
        *,
        qid: Any = None,
        weight: Any = None,
        valid: Any = None,
        valid_measures: str | Measure | Iterable[str | Measure] | None = None,
        callbacks: Callback | Iterable[Callback] | None = None,
    ) -> Self:
        """Train on preferences: no labels, and judgements may contradict each other.

        The trees follow the gradient of RankNet's cost; the ranker's `measure` must be "pairs".

        Parameters
        ----------
        X : features, one row a document; or a QueryDataset, whose labels are not looked at
        pairs : array of two columns: rows of X, the preferred document's first
        probability : that the first is preferred, between 0 and 1; one number, or one a pair
        qid : the query of every row, where documents were judged by query; None: documents that
            pairs connect make a query
        weight : what a pair counts; None: 1
        valid, valid_measures, callbacks : as in ``fit``
        """
        owner = f"{type(self).__name__}.fit_pairs"
        if parse_measure(self.measure).name != "pairs":
            raise ParameterError(
                f"{owner} follows RankNet's cost of pairs, and needs measure='pairs'. Got "
                f"{str(self.measure)!r}; measures of rankings need labels."
            )
        if self._is_exact and self.step_on == "train":
            raise ParameterError(
                f"{owner}: exact weights are found on labels, and pairs have none: set "
                "step='newton' and a number as submodel_weight, or step_on='valid' with validation "
                "data that has labels."
            )
        announce()
        self.check_parameters()
        pairs_data = preference_data(X, pairs, probability, weight, qid, owner)
        watched = valid_datasets(valid, owner)
        called = listed_callbacks(callbacks, owner)
        training = self._training(pairs_data.data, watched, valid_measures, called, owner)
        return self.learn(pairs_data.of(training))
