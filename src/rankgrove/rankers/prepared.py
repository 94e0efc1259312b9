"""A ranker on some of the features, or on features normalised within every query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from rankgrove.data.normalising import NORMALISATIONS, normalised
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.given import valid_datasets
from rankgrove.rankers.nested import pack, unpack
from rankgrove.validation import check_choice, counted, refuse


class PreparedRanker(Ranker):
    """A ranker whose features are chosen or normalised first, in training and in scoring alike.

    What is done to the features is part of the model and of its file: whoever scores by it gives
    the features as they were before.

    Parameters
    ----------
    base : the ranker to train
    features : the features to use, by 1-based numbers or names; None: all
    normalise : within every query, as RankLib does: ``"sum"``, ``"linear"`` or ``"zscore"``;
        None: not at all

    Attributes
    ----------
    ranker_ : the trained ranker, of the prepared features
    columns_ : the columns of the data that it sees
    n_features_in_, feature_names_ : of the data before

    Examples
    --------
    >>> import rankgrove as rg
    >>> train = rg.make_artificial(40, seed=1)
    >>> base = rg.LambdaMART(n_trees=5)
    >>> model = rg.PreparedRanker(base, features=[1, 2, 16], normalise="zscore").fit(train)
    >>> model.columns_.tolist(), model.predict(train).shape
    ([0, 1, 15], (2000,))
    """

    kind: ClassVar[str] = "prepared"
    held: ClassVar[frozenset[str]] = frozenset({"base"})

    def __init__(
        self,
        base: Any = None,
        features: Sequence[int | str] | None = None,
        normalise: str | None = None,
    ) -> None:
        self.base = base
        self.features = features
        self.normalise = normalise

    @property
    def measure(self) -> Any:
        """The base's measure."""
        return getattr(self.base, "measure", "ndcg@10")

    @property
    def n_threads(self) -> int | None:
        """The base's number of threads."""
        threads: int | None = getattr(self.base, "n_threads", None)
        return threads

    # -- training -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        group: Any = None,
        eval_set: Any = None,
        eval_group: Any = None,
        eval_qid: Any = None,
        valid: Any = None,
        valid_measures: Any = None,
        weight: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
        **given: Any,
    ) -> Self:
        """Train the base on prepared features; arguments are those of its ``fit``."""
        owner = f"{type(self).__name__}.fit"
        self.check_parameters()
        weights = {"weight": weight, "query_weight": query_weight, "sample_weight": sample_weight}
        train = self._training_data(X, y, qid, group, owner, **weights)
        watched = valid_datasets(valid, owner, eval_set, eval_group, eval_qid)
        self.columns_ = self._chosen(train)
        self._keep_features(train)
        sets = {name: self.prepared(one) for name, one in watched.items()}
        if sets or valid_measures is not None:
            given |= {"valid": sets or None, "valid_measures": valid_measures}
        self.ranker_ = clone(self.base).fit(self.prepared(train), **given)
        return self

    def _chosen(self, data: QueryDataset) -> np.ndarray:
        """Return the columns to use, in the data's order."""
        if self.features is None:
            return np.arange(data.n_features)
        columns = [data.feature_index(one) for one in self.features]
        for one, column in zip(self.features, columns, strict=True):
            if columns.count(column) > 1:
                refuse("features", type(self).__name__, "different features", one)
        return np.array(sorted(columns), np.int64)

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        owner = type(self).__name__
        if not isinstance(self.base, Ranker) or not hasattr(self.base, "check_valid"):
            refuse("base", owner, "a ranker to train, such as rg.LambdaMART()", self.base)
        if getattr(self.base, "submodel", None) is not None:
            refuse(
                "base", owner, "a ranker without a submodel, which sees other features", self.base
            )
        if self.normalise is not None:
            check_choice("normalise", owner, self.normalise, NORMALISATIONS)
        if self.features is not None and (isinstance(self.features, str) or not len(self.features)):
            refuse("features", owner, "a list of numbers or names of features", self.features)
        self.base.check_parameters()

    def check_valid(self, given: bool) -> None:
        """Refuse a base that needs validation data where there is none."""
        self.base.check_valid(given)

    # -- the features ---------------------------------------------------------------------------

    def prepared(self, data: QueryDataset) -> QueryDataset:
        """Return the data as the ranker sees it: its features, normalised; rows as they were."""
        data = data.with_n_features(self.n_features_in_)
        rows = slice(None) if data.rows is None else data.rows
        features = data.features[rows][:, self.columns_]
        if self.normalise is not None:
            dense = features if isinstance(features, np.ndarray) else features.toarray()
            order = slice(None) if data.order is None else data.order
            features = np.empty(dense.shape, np.float32)
            features[order] = normalised(dense[order], data.query_ptr, self.normalise)
        names = data.given_names
        return QueryDataset.from_parts(
            features,
            data.y,
            data.query_ids,
            data.query_of_row,
            weight=data.weight,
            docid=data.docid_column,
            feature_names=None if names is None else tuple(names[j] for j in self.columns_),
            query_weight=data.query_weight,
            base_score=data.base_score,
            absent=data.absent_given,
        )

    def predict(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        """Return one float64 score a row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set; or features as in training, where they are not normalised by query
        n_threads : threads to use; None takes the ranker's own `n_threads`
        """
        features, rows, threads = self._checked_input(X, "predict", n_threads)
        if isinstance(X, QueryDataset):
            return self.ranker_.predict(self.prepared(X), n_threads=threads)
        if self.normalise is not None:
            raise DataError(
                f"PreparedRanker.predict: the model normalises features within every query "
                f"({self.normalise}), so that it must know the queries: give it a QueryDataset."
            )
        del rows
        return self.ranker_.predict(features[:, self.columns_], n_threads=threads)

    def _one_ensemble(self) -> Ensemble | None:
        if self.normalise is not None:
            return None
        trees = self.ranker_._one_ensemble()
        if trees is None:
            return None
        columns = self.columns_[trees.feature] if trees.feature.size else trees.feature
        return replace(trees, feature=columns, n_features=self.n_features_in_)

    @property
    def ensemble_(self) -> Ensemble:
        """The trees, on the columns of the data before; only where nothing is normalised."""
        trees = self._one_ensemble() if hasattr(self, "ranker_") else None
        if trees is None:
            raise AttributeError("ensemble_")
        return trees

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the training."""
        return bool(getattr(self.ranker_, "interrupted_", False))

    def summary(self) -> str:
        """Return a text about the model: what is done to the features, and the ranker's own."""
        self._check_is_fitted()
        text = f"{counted(self.columns_.size, 'feature')} of {self.n_features_in_:,}"
        if self.normalise is not None:
            text += f", normalised within every query ({self.normalise})"
        return f"{self.ranker_.summary()}\n{text}"

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        content, arrays = pack(self.ranker_, "ranker")
        return {"ranker": content}, {"columns": self.columns_, **arrays}

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.base = self.ranker_ = unpack(content["ranker"], arrays, "ranker")
        self.columns_ = np.asarray(arrays["columns"], np.int64)
        inside = (self.columns_ >= 0) & (self.columns_ < self.n_features_in_)
        if self.columns_.shape != (self.ranker_.n_features_in_,) or not inside.all():
            raise ModelFileError("The columns of the model file do not fit its ranker.")
        if self.normalise is not None and self.normalise not in NORMALISATIONS:
            raise ModelFileError(f"The model file has a normalisation {self.normalise!r}.")
