"""A ranker on features that are selected, transformed or normalised within every query."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.categories import Categories
from rankgrove.data.normalising import NORMALISATIONS, TRANSFORMS
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ModelFileError
from rankgrove.measures.base import Measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker
from rankgrove.rankers.declaring import (
    choice,
    declares_parameters,
    flag,
    learned,
    optional,
    parameter,
)
from rankgrove.rankers.ensembles.encoding import (
    ENCODINGS,
    Encoding,
    fit_encoding,
    packed,
    unpacked,
)
from rankgrove.rankers.ensembles.preparation import Preparation
from rankgrove.rankers.estimator import clone
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.given import with_queries
from rankgrove.rankers.inner_rankers import pack, unpack
from rankgrove.validation import counted, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.rankers.given import Documents


@declares_parameters
class PreparedRanker(Ranker):
    """A ranker whose features are prepared first, in training and in scoring.

    Features are selected, then transformed value by value, then normalised within every query.
    Categorical features are neither transformed nor normalised; `encode` makes numbers of them, for
    rankers that cannot use categories.

    The preparation is part of the model and of its file: for scoring, give the features as they
    are before it.

    Attributes
    ----------
    ranker_ : the trained ranker on the prepared features
    columns_ : the columns of the data that it sees
    encodings_ : how categorical columns become numbers, by column; empty without `encode`
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
    encodings_: Mapping[int, Encoding] = MappingProxyType({})

    base: Any = parameter(None, "the ranker to train")
    features: Sequence[int | str] | None = parameter(
        None, "the features to use, by 1-based numbers or names; None: all"
    )
    normalise: str | None = parameter(
        None,
        'normalisation within every query: ``"sum"``, ``"linear"`` or ``"zscore"`` as in RankLib, '
        'or ``"percentile"``, the share of the query\'s values that are lower; None: none',
        optional(choice(NORMALISATIONS)),
    )
    transform: str | None = parameter(
        None,
        'function of every single value, before normalisation: ``"log1p"``, the logarithm of 1 + '
        "abs(x) with the sign of x, which suits nets on counts and other values of very different "
        "sizes; None: none",
        optional(choice(TRANSFORMS)),
    )
    append: bool = parameter(
        False,
        "append the normalised features to the original ones, instead of replacing them",
        flag,
    )
    encode: str | None = parameter(
        None,
        'numbers for categorical features: ``"onehot"``, one indicator per category; ``"target"``, '
        "the mean label of the category, shrunk to that of all rows as if that had 10 rows more "
        '(in training by queries of other folds); ``"auto"``, one-hot up to 20 categories, the '
        "mean label beyond; None: none",
        optional(choice(ENCODINGS)),
    )

    @property
    def takes_categories(self) -> bool:  # type: ignore[override]
        """Whether categorical features are encoded, or the base can use them."""
        return self.encode is not None or bool(self.base.takes_categories)

    def check_categories(self, data: QueryDataset, owner: str) -> None:
        """Refuse categorical features, among those chosen, that the base cannot use."""
        if self.takes_categories:
            return
        chosen = set(self._chosen(data).tolist())
        kept: Categories = {j: names for j, names in data.categories.items() if j in chosen}
        self.base.check_categories(data.with_codes_of(kept), owner)

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
        encodings: dict[int, Encoding] = {}
        own: dict[int, np.ndarray] = {}
        if self.encode is not None:
            for j in [j for j in train.categories if j in set(columns.tolist())]:
                encodings[j], own[j] = fit_encoding(train, j, self.encode)
        how = Preparation(columns, encodings, self.transform, self.normalise, self.append)
        inner = replace(
            training,
            train=how.prepared(train, train.given_names, own),
            valid={name: how.prepared(d, train.given_names) for name, d in training.valid.items()},
            bins=None,
        )
        ranker: Ranker = clone(self.base)
        extras = {"callbacks": training.callbacks or None, "start": training.start}
        ranker._refuse_unused(training.owner, **extras)
        ranker._keep(ranker._fit(inner), inner.train)
        return {
            "columns_": columns,
            **({"encodings_": encodings} if encodings else {}),
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
        if self.append and self.normalise is None:
            refuse("append", owner, "False without normalise: nothing would be appended", True)
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
        """Return the data as the ranker sees it: prepared features of the same rows."""
        self._check_is_fitted()
        trained, names = getattr(self, "feature_names_", None), data.given_names
        if trained is None or names is None:  # the ranker knows the names of training, or numbers
            names = trained
        data = self.recoded(data.with_n_features(self.n_features_in_), type(self).__name__)
        return self._preparation().prepared(data, names)

    def _preparation(self) -> Preparation:
        """Return the trained preparation of features."""
        return Preparation(
            self.columns_, self.encodings_, self.transform, self.normalise, self.append
        )

    def origins(self) -> np.ndarray:
        """Return the column of the data that every prepared feature is made from."""
        return self._preparation().origins(set(self.categories_))

    def predict(
        self, X: Documents, n_threads: int | None = None, *, qid: ArrayLike | None = None
    ) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : number of threads; None: the ranker's own `n_threads`
        qid : the query id of every row, where `X` is no data set; needed where features are
            normalised by query
        """
        self._check_is_fitted()
        X = with_queries(self, X, qid, "PreparedRanker.predict")
        features, rows, threads = self._checked_input(X, "predict", n_threads)
        if isinstance(X, QueryDataset):
            return self.ranker_.predict(self.prepared(X), n_threads=threads)
        del rows
        chosen = self._preparation().features(features, set(self.categories_))
        return self.ranker_.predict(chosen, n_threads=threads)

    def scaled_by_query(self) -> str | None:
        """Return the text for features, where they are normalised within every query."""
        return None if self.normalise is None else f"features (normalise={self.normalise!r})"

    def flat(self) -> Ensemble | None:
        if self.normalise is not None or self.transform is not None or self.encodings_:
            return None
        trees = self.ranker_.flat()
        if trees is None:
            return None
        columns = self.columns_[trees.feature] if trees.feature.size else trees.feature
        return replace(trees, feature=columns, n_features=self.n_features_in_)

    @property
    def ensemble_(self) -> Ensemble:
        """The trees, on the columns of the original data; not with features that are changed."""
        trees = self.flat() if hasattr(self, "ranker_") else None
        if trees is None:
            raise AttributeError("ensemble_")
        return trees

    def tree_count(self) -> int | None:
        """Return the number of trees; None with features that are changed, or without trees."""
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
        steps += [] if self.transform is None else [f"transformed features ({self.transform})"]
        steps += [] if self.encode is None else [f"encoded categories ({self.encode})"]
        added = "added" if self.append else "normalised"
        steps += [] if self.normalise is None else [f"{added} features ({self.normalise})"]
        return " ".join([self.base.title(), *(["on", " and ".join(steps)] if steps else [])])

    def summary(self) -> str:
        """Return a text about the model: the ranker's summary and the preparation."""
        self._check_is_fitted()
        text = f"{counted(self.columns_.size, 'feature')} of {self.n_features_in_:,}"
        if self.transform is not None:
            text += f", transformed ({self.transform})"
        if self.normalise is not None:
            also = "and again " if self.append else ""
            text += f", {also}normalised within every query ({self.normalise})"
        for j, encoding in self.encodings_.items():
            how = "indicators" if encoding.kind == "onehot" else "mean labels"
            text += f"\n{self._names()[j]}: {how} of {encoding.values.size:,} categories"
        return f"{self.ranker_.summary()}\n{text}"

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        content, arrays = pack(self.ranker_, "ranker")
        arrays = {"columns": self.columns_, **arrays}
        if not self.encodings_:
            return {"ranker": content}, arrays
        listed, values = packed(self.encodings_)
        return {"ranker": content, "encodings": listed}, arrays | values

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self.base = self.ranker_ = unpack(content["ranker"], arrays, "ranker")
        self.columns_ = np.asarray(arrays["columns"], np.int64)
        inside = (self.columns_ >= 0) & (self.columns_ < self.n_features_in_)
        if not isinstance(self.append, bool) or (self.append and self.normalise is None):
            raise ModelFileError(f"The model file has append={self.append!r}.")
        if "encodings" in content:
            self.encodings_ = unpacked(content["encodings"], arrays, self.categories_)
            if not set(self.encodings_) <= set(self.columns_.tolist()):
                raise ModelFileError("The encodings of the model file are of other columns.")
        width = self.origins().size if self.columns_.ndim == 1 and inside.all() else -1
        fits = self.columns_.ndim == 1 and width == self.ranker_.n_features_in_ and inside.all()
        if not fits or not (np.diff(self.columns_) > 0).all():  # in order, each once
            raise ModelFileError("The columns of the model file do not fit its ranker.")
        if self.normalise is not None and self.normalise not in NORMALISATIONS:
            raise ModelFileError(f"The model file has a normalisation {self.normalise!r}.")
        if self.transform is not None and self.transform not in TRANSFORMS:
            raise ModelFileError(f"The model file has a transform {self.transform!r}.")
        if self.encode is not None and self.encode not in ENCODINGS:
            raise ModelFileError(f"The model file has an encoding {self.encode!r}.")
