"""A ranker on selected features, or on features normalised within every query."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from rankgrove.data.normalising import NORMALISATIONS, normalised
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError
from rankgrove.measures.base import Measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker
from rankgrove.rankers.declaring import choice, declares_parameters, learned, optional, parameter
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.inner_rankers import pack, unpack
from rankgrove.validation import counted, refuse

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents


@declares_parameters
class PreparedRanker(Ranker):
    """A ranker whose features are selected or normalised first, in training and in scoring.

    The preparation is part of the model and of its file: for scoring, give the features as they
    are before it.

    Attributes
    ----------
    ranker_ : the trained ranker on the prepared features
    columns_ : the columns of the data that it sees
    n_features_in_, feature_names_ : of the data before preparation

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

    fit_takes: ClassVar[frozenset[str]] = frozenset({"valid", "weight", "callbacks", "start"})
    ranker_: Ranker = learned()
    columns_: np.ndarray = learned()

    base: Any = parameter(None, "the ranker to train")
    features: Sequence[int | str] | None = parameter(
        None, "the features to use, by 1-based numbers or names; None: all"
    )
    normalise: str | None = parameter(
        None,
        'normalisation within every query, as in RankLib: ``"sum"``, ``"linear"`` or '
        '``"zscore"``; None: none',
        optional(choice(NORMALISATIONS)),
    )

    @property
    def measure(self) -> str | Measure:
        """The base's measure."""
        return getattr(self.base, "measure", "ndcg@10")

    @property
    def n_threads(self) -> int | None:
        """The base's number of threads."""
        threads: int | None = getattr(self.base, "n_threads", None)
        return threads

    # -- training ---------------------------------------------------------------------------------

    def _fit(self, training: Training) -> Learned:
        train = training.train
        columns = self._chosen(train)
        inner = replace(
            training,
            train=self._prepared(train, columns),
            valid={name: self._prepared(d, columns) for name, d in training.valid.items()},
            bins=None,
        )
        ranker: Ranker = clone(self.base)
        extras = {"callbacks": training.callbacks or None, "start": training.start}
        ranker._refuse_unused(training.owner, **extras)
        ranker._keep(ranker._fit(inner), inner.train)
        return {
            "columns_": columns,
            "ranker_": ranker,
            "saw_missing_": ranker.saw_missing_,
        }

    def _chosen(self, data: QueryDataset) -> np.ndarray:
        """Return the columns to use, in the data's order."""
        if self.features is None:
            return np.arange(data.n_features)
        columns = [data.feature_index(feature) for feature in self.features]
        for feature, column in zip(self.features, columns, strict=True):
            if columns.count(column) > 1:
                refuse("features", type(self).__name__, "different features", feature)
        return np.array(sorted(columns), np.int64)

    def _check_together(self) -> None:
        owner = type(self).__name__
        if not isinstance(self.base, Ranker) or "valid" not in self.base.fit_takes:
            refuse("base", owner, "a ranker to train, such as rg.LambdaMART()", self.base)
        if getattr(self.base, "submodel", None) is not None:
            refuse(
                "base", owner, "a ranker without a submodel, which sees other features", self.base
            )
        if self.features is not None and (isinstance(self.features, str) or not len(self.features)):
            refuse("features", owner, "a list of numbers or names of features", self.features)
        self.base.check_parameters()

    def _target(self) -> Measure:
        return self.base._target()

    def check_valid(self, given: bool) -> None:
        """Refuse a base that needs validation data where there is none."""
        self.base.check_valid(given)

    # -- the features ---------------------------------------------------------------------------

    def inside(self) -> Ranker:
        """Return the ranker that sees the prepared features; before training, this ranker."""
        return self.ranker_ if hasattr(self, "ranker_") else self

    def prepared(self, data: QueryDataset) -> QueryDataset:
        """Return the data as the ranker sees it: selected, normalised features of the same rows."""
        self._check_is_fitted()
        return self._prepared(data.with_n_features(self.n_features_in_), self.columns_)

    def _prepared(self, data: QueryDataset, columns: np.ndarray) -> QueryDataset:
        rows = slice(None) if data.rows is None else data.rows
        features = data.features[rows][:, columns]
        if self.normalise is not None:
            dense = features if isinstance(features, np.ndarray) else features.toarray()
            order = slice(None) if data.order is None else data.order
            features = np.empty(dense.shape, np.float32)
            features[order] = normalised(dense[order], data.query_ptr, self.normalise)
        names = data.given_names
        if names is None and columns.size < data.n_features:  # keep the original numbers
            names = tuple(f"f{j + 1}" for j in range(data.n_features))
        return QueryDataset.from_parts(
            features,
            data.y,
            data.query_ids,
            data.query_of_row,
            weight=data.weight,
            docid=data.docid_column,
            feature_names=None if names is None else tuple(names[j] for j in columns),
            query_weight=data.query_weight,
            base_score=data.base_score,
            absent=data.absent_given,
        )

    def predict(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set; or features as in training, where they are not normalised by query
        n_threads : number of threads; None: the ranker's own `n_threads`
        """
        features, rows, threads = self._checked_input(X, "predict", n_threads)
        if isinstance(X, QueryDataset):
            return self.ranker_.predict(self.prepared(X), n_threads=threads)
        if self.normalise is not None:
            raise DataError(
                f"PreparedRanker.predict: the model normalises features within every query "
                f"({self.normalise}), so it must know the queries: give it a QueryDataset."
            )
        del rows
        return self.ranker_.predict(features[:, self.columns_], n_threads=threads)

    def flat(self) -> Ensemble | None:
        if self.normalise is not None:
            return None
        trees = self.ranker_.flat()
        if trees is None:
            return None
        columns = self.columns_[trees.feature] if trees.feature.size else trees.feature
        return replace(trees, feature=columns, n_features=self.n_features_in_)

    @property
    def ensemble_(self) -> Ensemble:
        """The trees, on the columns of the original data; not with normalised features."""
        trees = self.flat() if hasattr(self, "ranker_") else None
        if trees is None:
            raise AttributeError("ensemble_")
        return trees

    def tree_count(self) -> int | None:
        """Return the number of trees; None with normalised features or without trees."""
        trees = self.flat()
        return None if trees is None else trees.n_trees

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the training."""
        return bool(getattr(self.ranker_, "interrupted_", False))

    def with_inside(self, ranker: Ranker) -> PreparedRanker:
        """Return the same preparation of features for another ranker, such as a pruned one."""
        changed = copy.copy(self)
        changed.ranker_ = ranker
        return changed

    def title(self) -> str:
        """Return the name of the ranker in tables: the base's name and the preparation."""
        steps = [] if self.features is None else ["chosen features"]
        steps += [] if self.normalise is None else [f"normalised features ({self.normalise})"]
        return " ".join([self.base.title(), *(["on", " and ".join(steps)] if steps else [])])

    def summary(self) -> str:
        """Return a text about the model: the ranker's summary and the preparation."""
        self._check_is_fitted()
        text = f"{counted(self.columns_.size, 'feature')} of {self.n_features_in_:,}"
        if self.normalise is not None:
            text += f", normalised within every query ({self.normalise})"
        return f"{self.ranker_.summary()}\n{text}"

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        content, arrays = pack(self.ranker_, "ranker")
        return {"ranker": content}, {"columns": self.columns_, **arrays}

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self.base = self.ranker_ = unpack(content["ranker"], arrays, "ranker")
        self.columns_ = np.asarray(arrays["columns"], np.int64)
        inside = (self.columns_ >= 0) & (self.columns_ < self.n_features_in_)
        if self.columns_.shape != (self.ranker_.n_features_in_,) or not inside.all():
            raise ModelFileError("The columns of the model file do not fit its ranker.")
        if self.normalise is not None and self.normalise not in NORMALISATIONS:
            raise ModelFileError(f"The model file has a normalisation {self.normalise!r}.")
