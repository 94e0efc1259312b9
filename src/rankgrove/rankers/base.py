"""The base class of all rankers: scikit-learn's interface, ``fit``, the model file."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from rankgrove.compiling import announce
from rankgrove.data.arrays import Rows
from rankgrove.data.binned_dataset import BinnedDataset
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.categories import Categories, Names, extended, without_unknown
from rankgrove.data.dataset_checks import check_absent, is_frame
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import (
    DataError,
    DataWarning,
    ModelFileError,
    ParameterError,
    UnknownParameterError,
)
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.store import write_model
from rankgrove.objectives.position_bias import PositionTable
from rankgrove.rankers import positions
from rankgrove.rankers.binned_scores import scores_of_bins
from rankgrove.rankers.categorical import coded_frame, coded_like, packed, refusal, unpacked
from rankgrove.rankers.declaring import Parameter
from rankgrove.rankers.estimator import Estimator, become_estimators
from rankgrove.rankers.fitting import (
    Callback,
    Training,
    check_alike,
    listed_callbacks,
    named_measures,
)
from rankgrove.rankers.given import (
    WORDS,
    as_dataset,
    check_names,
    features_of,
    frame_names,
    is_other_width,
    one_weight,
    query_ids,
    training_data_last,
    valid_datasets,
    width_text,
)
from rankgrove.rankers.peer_names import meant
from rankgrove.showing import html_text
from rankgrove.validation import warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.boosting.loop import Objective
    from rankgrove.data.arrays import Matrix
    from rankgrove.model.ensemble import Ensemble
    from rankgrove.rankers.given import Documents
    from rankgrove.rankers.top_scores import TopScores
    from rankgrove.scoring.scorer import Scorer

_Base: Any = Estimator  # later scikit-learn's, which has more
Learned = dict[str, Any]  # the result of training: attributes by name
# The parts of a ranker in a model file: plain values by name, and arrays by name.
Content = dict[str, Any]
Arrays = dict[str, np.ndarray]
# Ranker classes by kind: `__init_subclass__` registers them, `rankgrove.load` looks them up.
KINDS: dict[str, type[Ranker]] = {}
# Parameters that say how to run, not what to learn: they are not saved with a model.
OF_THE_RUN = frozenset({"checkpoint", "cluster", "group", "progress", "n_threads"})
# Arguments of `fit` that not all rankers can use.
EXTRAS = {
    "valid": "validation data",
    "weight": "weights of rows or queries",
    "callbacks": "callbacks",
    "start": "a net to start from",
}


class HasFeatures(Protocol):
    """The features of training data: those of a data set, or of several files together."""

    @property
    def n_features(self) -> int: ...

    @property
    def given_names(self) -> tuple[str, ...] | None: ...

    @property
    def absent(self) -> str: ...

    @property
    def categories(self) -> Categories: ...


class Ranker(_Base):  # type: ignore[misc]
    """Base of the rankers.

    A subclass declares its parameters (`declares_parameters`) and has ``kind``, its name in model
    files; ``_fit(training)``, which returns the learned attributes by name; ``_scores``; ``_state``
    and ``_restore``.
    """

    kind: ClassVar[str]
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    # Those of EXTRAS that the ranker's `fit` can use; the others are refused. A ranker that does
    # not use weights must leave "weight" out, or it ignores them silently.
    fit_takes: ClassVar[frozenset[str]] = frozenset({"valid", "weight", "callbacks"})
    takes_row_weights: ClassVar[bool] = True  # where it takes weights: those of rows too
    bins_depend_on: ClassVar[frozenset[str]] = frozenset()  # parameters; see `shared_bins`
    _saved: ClassVar[dict[str, str]] = {}  # words of a model file -> attributes

    n_features_in_: int
    feature_names_: tuple[str, ...]
    absent_: str | None = None  # as a data set's `absent`; None: the model file does not say
    # whether values were missing in training; None: not known, as in older files
    saw_missing_: bool | None = None
    # as a data set's `categories`; data is coded by the names when it is scored
    categories_: Mapping[int, Names] = MappingProxyType({})
    position_bias_: PositionTable | None = None  # what was learned about positions
    pruning_: dict[str, Any]  # of a ranker that `prune` made: trees and measures, pass by pass
    # parameters that are rankers or data: _state saves them, not plain_parameters
    held: ClassVar[frozenset[str]] = frozenset()
    # parameters that are trained models: clone does not copy them, and their parameters are hidden
    trained: ClassVar[frozenset[str]] = frozenset()
    takes_categories: ClassVar[bool] = False  # fit can use categorical features
    uses_bins: ClassVar[bool] = False  # trains on data that has bins instead of features
    takes_datasets: ClassVar[bool] = True  # predict and score take a QueryDataset
    trainable: ClassVar[bool] = False  # from parameters and data alone, as `rankgrove train` does
    is_bag: ClassVar[bool] = False  # many models like its `base`, whose scores are averaged
    # scikit-learn passes these on where metadata routing is enabled.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "qid": True,
        "weight": True,
        "sample_weight": True,
        "query_weight": True,
        "base_score": True,
    }
    __metadata_request__score: ClassVar[dict[str, bool]] = {
        "qid": True,
        "sample_weight": True,
        "base_score": True,
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" not in cls.__dict__:
            return
        before = KINDS.get(cls.kind, cls)
        # defining a class again, as in a notebook, replaces it
        if (before.__module__, before.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ParameterError(
                f"{cls.__qualname__}: the kind {cls.kind!r} is that of {before.__module__}."
                f"{before.__qualname__}, whose model files it would read. Give it another kind."
            )
        KINDS[cls.kind] = cls

    def __new__(cls, *_: Any, **params: Any) -> Self:
        """Refuse an unknown parameter, with the nearest name in the message."""
        signature = inspect.signature(cls.__init__).parameters.values()
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature):
            cls._refuse_unknown(params)
        return super().__new__(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with `deep` also those of rankers to be trained."""
        params: dict[str, Any] = super().get_params(deep)
        return {k: v for k, v in params.items() if not self._is_inside_trained(k)}

    @classmethod
    def _refuse_unknown(cls, names: Iterable[str]) -> None:
        known = cls._get_param_names()
        for name in names:
            if name not in known:
                raise UnknownParameterError(
                    f"{cls.__name__} has no parameter {name!r}{meant(name, known)}. "
                    f"It has: {', '.join(known)}."
                )

    def set_params(self, **params: Any) -> Ranker:
        """Set parameters by name; the error on an unknown name suggests the nearest one."""
        self._refuse_unknown(name.partition("__")[0] for name in params)
        for name in params:
            if self._is_inside_trained(name):
                raise ParameterError(
                    f"{name!r} cannot be set: the {name.partition('__')[0]} of "
                    f"{type(self).__name__} is a trained model."
                )
        super().set_params(**params)
        return self

    def _is_inside_trained(self, name: str) -> bool:
        outer, inside, _ = name.partition("__")
        return bool(inside) and outer in self.trained

    def _repr_html_(self) -> str:
        summary: Any = getattr(self, "summary", None)
        trained = hasattr(self, "n_features_in_") and summary is not None
        return html_text(repr(self), summary() if trained else "not trained yet")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    def __sklearn_clone__(self) -> Ranker:
        bare = copy.copy(self)
        trained = self.trained.intersection(self._get_param_names())
        for name in trained:
            setattr(bare, name, None)
        cloned: Ranker = super(Ranker, bare).__sklearn_clone__()
        for name in trained:
            setattr(cloned, name, getattr(self, name))
        return cloned

    def predict(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : number of threads; None: the ranker's own `n_threads`
        """
        if isinstance(X, BinnedDataset):
            self._check_is_fitted()
            owner = f"{type(self).__name__}.predict"
            return scores_of_bins(self, X, lambda part: self.predict(part, n_threads), owner)
        return self._scores(*self._checked_input(X, "predict", n_threads))

    def predict_top(self, data: QueryDataset, k: int, n_threads: int | None = None) -> TopScores:
        """Return the scores of every query's first `k` documents; all others are minus infinity.

        Documents that tie with the k-th keep their scores too. Where the ranker is one sum of
        trees, scoring of a document stops as soon as it cannot reach the first `k`.

        Parameters
        ----------
        data : a data set
        k : number of documents per query
        n_threads : number of threads; None: the ranker's own `n_threads`
        """
        from rankgrove.rankers.top_scores import predict_top

        return predict_top(self, data, k, n_threads)

    def scorer(self) -> Scorer:
        """Return the ranker in a form for services: it scores single queries with low latency.

        Only rankers that are one sum of trees have a scorer.
        """
        from rankgrove.scoring.scorer import Scorer

        self._check_is_fitted()
        trees = self.flat()
        if trees is None:
            raise ParameterError(
                f"This {type(self).__name__} is not one sum of trees, so it has no scorer. "
                "Use predict."
            )
        return Scorer(trees)

    def _checked_input(
        self, X: Documents, method: str, n_threads: int | None, *, is_aligned: bool = False
    ) -> tuple[Matrix, Rows, int | None]:
        """Return the features, which of their rows to score, and the number of threads."""
        self._check_is_fitted()
        owner = f"{type(self).__name__}.{method}"
        X = X if is_aligned else self._aligned(X, owner)
        features, rows = self._features(X, owner)
        if features.shape[1] != self.n_features_in_:
            raise DataError(
                f"X has {features.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: give it those of training, in their "
                "order."
            )
        if self.categories_ and not isinstance(X, QueryDataset):
            features = without_unknown(features, self.categories_)
        names = frame_names(X)
        if isinstance(X, QueryDataset) and X.has_feature_names:
            names = list(X.feature_names)
        check_names(getattr(self, "feature_names_", None), names, owner)
        threads = getattr(self, "n_threads", None) if n_threads is None else n_threads
        return features, rows, threads

    def _aligned(self, X: Documents, owner: str) -> Any:
        """Return data as the model knows it: its number of features, and its categories' codes.

        A table becomes an array where the model has categorical features.
        """
        if isinstance(X, QueryDataset):
            return self.recoded(self._as_wide(X, owner), owner)
        if not self.categories_ or not is_frame(X):
            return X
        names = frame_names(X)
        if names is not None and len(names) == self.n_features_in_:
            check_names(getattr(self, "feature_names_", None), names, owner)
        return coded_frame(X, self.categories_)

    def recoded(self, data: QueryDataset, owner: str) -> QueryDataset:
        """Return data with the model's codes of categories; unknown categories are missing."""
        if not self.categories_ and not data.categories:
            return data
        return coded_like(data, self.categories_, self.n_features_in_, owner)

    def _as_wide(self, X: QueryDataset, owner: str) -> QueryDataset:
        """Return data read from text with the model's number of features, and warn.

        Text leaves features out, so the last features may occur in no row, here or in training.
        Other data is returned unchanged.
        """
        if X.absent_given is None:
            return X
        if self.absent_ not in (None, X.absent):
            warn(
                f"{owner}: features that a row does not mention are {WORDS[X.absent]} in the data, "
                f"and were {WORDS[self.absent_]} in training: read it with "
                f"absent={self.absent_!r}.",
                DataWarning,
            )
        known = self.n_features_in_
        if X.has_feature_names or not is_other_width(self, X.n_features):
            return X
        warn(
            f"{owner}: {width_text('the model', known, 'the data', X.n_features, X.absent)}",
            DataWarning,
        )
        return X.with_n_features(known)

    def _features(self, X: Documents, owner: str) -> tuple[Matrix, Rows]:
        """Return the feature matrix, and which of its rows to score."""
        return features_of(X, owner)

    def score(
        self,
        X: Documents,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        *,
        base_score: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean of the ranker's own measure, which scikit-learn's searches maximise.

        `sample_weight` is accepted because scikit-learn passes it where fit has it; as in
        `evaluate`, weights do not change the result.
        """
        from rankgrove.evaluation.evaluate import evaluate

        del sample_weight
        data = as_dataset(X, y, qid, f"{type(self).__name__}.score", base_score=base_score)
        measure = getattr(self, "measure", "ndcg@10")
        (value,) = evaluate(self, data, measure).mean.values()
        return value

    def save(self, path: str | Path) -> None:
        """Write the trained ranker to a file; :func:`rankgrove.load` reads it."""
        write_model(path, self.kind, *self.to_state())

    def to_state(self) -> tuple[Content, Arrays]:
        """Return the content of the model file; :meth:`restore` builds the ranker from it."""
        self._check_is_fitted()
        content, arrays = self._state()
        content = {
            "parameters": plain_parameters(self),
            "n_features": self.n_features_in_,
            **({} if self.saw_missing_ is None else {"saw_missing": self.saw_missing_}),
            **content,
        }
        if self.absent_ is not None:
            content["absent"] = self.absent_
        names = getattr(self, "feature_names_", None)
        if names is not None:
            content["feature_names"] = list(names)
        if self.categories_:
            content["categories"] = packed(self.categories_)
        if hasattr(self, "pruning_"):
            content["pruning"] = self.pruning_
        learned = vars(self).get("position_bias_")  # a bag's is that of its models
        if learned is not None:
            content["position_bias"] = positions.packed(learned)
        return content, arrays

    @classmethod
    def restore(cls, content: Content, arrays: Arrays) -> Ranker:
        """Build the trained ranker of a model file."""
        ranker = untrained(cls.kind, content["parameters"])
        ranker.saw_missing_ = content.get("saw_missing")
        if ranker.saw_missing_ not in (None, True, False):
            raise ModelFileError("Its 'saw_missing' is neither true nor false: it is damaged.")
        ranker.n_features_in_ = int(content["n_features"])
        if "absent" in content:
            ranker.absent_ = check_absent(content["absent"], cls.__name__)
        if "feature_names" in content:
            ranker.feature_names_ = tuple(content["feature_names"])
        if "categories" in content:
            ranker.categories_ = unpacked(content["categories"], ranker.n_features_in_)
        if "pruning" in content:
            ranker.pruning_ = content["pruning"]
        if "position_bias" in content:
            ranker.position_bias_ = positions.unpacked(content["position_bias"])
        ranker._restore(content, arrays)
        return ranker

    # -- parts of a trained ranker ----------------------------------------------------------------

    def members(self) -> list[Any]:
        """Return the trained models that the score is computed from: a bag's, or a submodel."""
        return []

    def combined(self) -> list[tuple[Any, float | None]]:
        """Return the trained rankers whose scores a combination or a stack combines.

        Each has its weight, or None where the score is not their weighted sum. Other rankers return
        an empty list.
        """
        return []

    def averaged(self) -> tuple[list[Ranker], np.ndarray]:
        """Return the models of a bag and their weights; any other ranker is its only model."""
        return [self], np.ones(1)

    def scaled_by_query(self) -> str | None:
        """Return the name of what is scaled within every query; None where nothing is."""
        return None

    def adapted_from(self) -> Ranker | None:
        """Return the base model whose trees were adapted, or None."""
        return None

    def own_trees(self) -> Ensemble | None:
        """Return the ranker's trees, without those of a submodel; None where it has none."""
        return None

    def all_trees(self) -> Ensemble | None:
        """Return the ranker's trees, after those of its submodel; None where it has none.

        Where the two are not one ensemble, a DataError says why.
        """
        return self.own_trees()

    def flat(self) -> Ensemble | None:
        """Return the trees whose sum is the score, or None where the score is no such sum."""
        return None

    def tree_count(self) -> int | None:
        """Return the number of trees (of a bag: in all models); None where there are none."""
        trees = self.own_trees()
        return None if trees is None else trees.n_trees

    def widened(self, data: QueryDataset) -> Self:
        """Return the ranker for data with more features than the model file mentions.

        Only another library's file may not say how many there were; other rankers return
        themselves.
        """
        return self

    # -- a ranker on prepared features ------------------------------------------------------------

    def inside(self) -> Ranker:
        """Return the ranker that sees prepared features; itself where features are not prepared."""
        return self

    def prepared(self, data: QueryDataset) -> QueryDataset:
        """Return the data as the ranker's own model sees it: prepared, or unchanged."""
        return data

    def with_inside(self, ranker: Ranker) -> Ranker:
        """Return a copy whose inner ranker is `ranker`."""
        return ranker

    # -- the objective of its trees ---------------------------------------------------------------

    @property
    def trained_for(self) -> str | None:
        """The objective of another library's model, "lambdas" or "squared"; None: not known."""
        return None

    def objective_on(self, train: QueryDataset, keys: np.ndarray) -> Objective | None:
        """Return the objective of the trees on rows in query order; `keys` are the rows' keys.

        None where it is not known.
        """
        return None

    # -- training ---------------------------------------------------------------------------------

    def fit(
        self,
        X: Documents,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        eval_set: Any = None,
        eval_group: Any = None,
        eval_qid: Any = None,
        valid: Any = None,
        valid_measures: str | Measure | Iterable[str | Measure] | None = None,
        weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        base_score: ArrayLike | None = None,
        callbacks: Callback | Iterable[Callback] | None = None,
        start: Any = None,
    ) -> Self:
        """Train.

        A fit that fails leaves the ranker unchanged. Ctrl-C raises KeyboardInterrupt and leaves the
        best model so far (``interrupted_`` is True), if there is one.

        Parameters
        ----------
        X : a QueryDataset; or features, with labels `y` and query ids `qid`
        group : instead of `qid`, the number of rows of every query, in order, as in LightGBM
        valid : a QueryDataset or (X, y, qid), or several in a dict or list, measured after every
            round; the model keeps the best round (or the best C) of the first
        eval_set, eval_group, eval_qid : instead of `valid`, a list of (X, y) with the numbers of
            rows of every query, or with query ids, as in LightGBM and XGBoost. Training data among
            them is measured, but does not decide if there is other data
        valid_measures : measures on that data; the first decides. Default: the ranker's `measure`
        weight, query_weight, base_score : as in a QueryDataset, where `X` is not one
        sample_weight : scikit-learn's name for `weight`
        callbacks : one function or several, called after every round with a ``Progress``;
            returning True ends training
        start : for nets: a trained net of the same sizes, or its model file. Training starts from
            its weights (and standardisation); None: random weights. LambdaRank finds better optima
            if it starts from RankNet's weights
        """
        announce()
        owner = f"{type(self).__name__}.fit"
        self.check_parameters()
        weight = one_weight(weight, sample_weight, owner)
        self._refuse_unused(
            owner,
            valid=valid if eval_set is None else eval_set,
            weight=weight if query_weight is None else query_weight,
            callbacks=callbacks,
            start=start,
        )
        called = listed_callbacks(callbacks, owner)
        if base_score is not None:
            self._check_takes_base_score(owner)
        weights = {"weight": weight, "query_weight": query_weight, "base_score": base_score}
        train = self._training_data(X, y, qid, group, owner, **weights)
        watched = valid_datasets(valid, owner, eval_set, eval_group, eval_qid)
        watched = training_data_last(watched, eval_set, X)
        training = self._training(train, watched, valid_measures, called, owner)
        return self.learn(training if start is None else replace(training, start=start))

    def fit_binned(
        self,
        train: QueryDataset,
        bins: BinnedMatrix | None,
        *,
        valid: Mapping[str, QueryDataset] | None = None,
        valid_measures: Iterable[str | Measure] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train as ``fit`` does on data whose bins were made before (see `shared_bins`).

        The caller has checked the parameters, once for all of its fits.
        """
        owner = f"{type(self).__name__}.fit"
        training = self._training(train, valid or {}, valid_measures, callbacks, owner)
        return self.learn(replace(training, bins=bins))

    def shared_bins(self, train: QueryDataset) -> tuple[QueryDataset, BinnedMatrix] | None:
        """Return data and its bins, of one byte each, for use in many fits.

        None where the ranker uses the features themselves.
        """
        return None

    def _training(
        self,
        train: QueryDataset,
        watched: Mapping[str, QueryDataset],
        valid_measures: str | Measure | Iterable[str | Measure] | None,
        callbacks: Sequence[Callback],
        owner: str,
    ) -> Training:
        """Return the argument of ``_fit``; refuse validation data with other features."""
        measures = self.check_validation(bool(watched), valid_measures)
        train = self._with_codes_before(train, owner)
        for name, data in watched.items():
            check_alike(data, name, train.n_features, train.given_names, type(self).__name__)
        coded = {
            name: coded_like(
                data,
                train.categories,
                train.n_features,
                f"{owner}, the {name} data",
                whose="the training data",
            )
            for name, data in watched.items()
        }
        return Training(train, coded, measures, callbacks, owner)

    def _with_codes_before(self, train: QueryDataset, owner: str) -> QueryDataset:
        """Return training data with the codes of the model that training starts from.

        Categories that the model does not know have the codes after its own.
        """
        before = self._categories_before(train)
        if not before:
            return train
        both = {j: extended(names, train.categories.get(j, ())) for j, names in before.items()}
        return coded_like(train, both | _others(train, before), train.n_features, owner)

    def _categories_before(self, train: QueryDataset) -> Mapping[int, Names]:
        """Return the categories of the model that training starts from, by column of the data."""
        return {}

    def check_categories(self, data: QueryDataset, owner: str) -> None:
        """Refuse categorical features that the ranker cannot use."""
        if data.categories and not self.takes_categories:
            names = [data.feature_names[j] for j in data.categories]
            raise refusal(owner, names, type(self).__name__)

    def check_uses_bins(self, owner: str) -> None:
        """Refuse data that has bins instead of features, where bins are not enough."""
        if not self.uses_bins:
            raise ParameterError(
                f"{owner} needs the features, and the data has bins only: read the data with "
                "rg.read_letor or rg.read_table. Rankers that train on bins are LambdaMART, MART, "
                "McRank, GBRank and RandomForest."
            )

    def learn(self, training: Training) -> Self:
        """Train on the arguments that ``fit`` has checked, and keep the result.

        After Ctrl-C the ranker holds the best model so far, and the interrupt is raised: neither a
        loop over fits nor a search should take such a model for a trained one.
        """
        train = training.train
        self.check_categories(train, training.owner)
        if isinstance(train, BinnedDataset):
            self.check_uses_bins(training.owner)
        if "weight" not in self.fit_takes and not (train.weight is train.query_weight is None):
            raise ParameterError(
                f"{training.owner} cannot use {EXTRAS['weight']}: give it data without them."
            )
        self._keep(self._fit(training), training.train)
        if getattr(self, "interrupted_", False):
            raise KeyboardInterrupt(
                f"{training.owner} was interrupted: the ranker holds the best model so far."
            )
        return self

    def _keep(self, learned: Mapping[str, Any], train: HasFeatures) -> Self:
        """Replace all learned attributes."""
        for name in [attribute for attribute in vars(self) if attribute.endswith("_")]:
            delattr(self, name)
        self.__dict__.update(learned)
        self._keep_features(train)
        return self

    def _refuse_unused(self, owner: str, **extras: Any) -> None:
        """Refuse arguments of ``fit`` that the ranker cannot use."""
        for name, value in extras.items():
            if value is not None and name not in self.fit_takes:
                raise ParameterError(f"{owner} cannot use {EXTRAS[name]}: leave {name} out.")

    def _check_takes_base_score(self, owner: str) -> None:
        """Refuse base scores that would not be used."""
        raise ParameterError(
            f"{owner} got base scores, but this ranker does not start from base scores: leave them "
            "out."
        )

    def _training_data(
        self,
        X: Documents,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        owner: str,
        *,
        weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        base_score: ArrayLike | None = None,
    ) -> QueryDataset:
        """Return the training data as a data set."""
        n_rows = None if y is None else np.size(y)
        if group is not None or not isinstance(X, QueryDataset):
            qid = query_ids(qid, group, owner, n_rows)
            if qid is None and n_rows is not None:
                qid = self._default_qid(n_rows)
        train = as_dataset(X, y, qid, owner, weight, query_weight, base_score)
        if train.n_features == 0:
            raise DataError(
                f"{owner} needs data with at least one feature: it has 0 feature(s) (shape="
                f"{train.features.shape}) while a minimum of 1 is required."
            )
        if train.n_rows == 1:
            raise DataError(f"{owner} needs rows to tell apart. Got n_samples = 1.")
        return train

    def _default_qid(self, n_rows: int) -> np.ndarray | None:
        """Return query ids for rows without any, or None where training needs query ids."""
        return None

    def _target(self) -> Measure:
        """Return the measure that decides on validation data by default."""
        return parse_measure(getattr(self, "measure", "ndcg@10"))

    # -- parameters -------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        owner = type(self).__name__
        known = self._get_param_names()
        for name, declared in self.parameters.items():
            if declared.rule is not None and name in known:
                declared.rule(name, owner, getattr(self, name))
        self._check_together()

    def _check_together(self) -> None:
        """Refuse combinations of values; the declarations check single values."""

    def check_valid(self, given: bool) -> None:
        """Refuse training without validation data where a parameter needs it."""
        if self._needs_valid is not None and not given:
            raise ParameterError(
                f"{type(self).__name__}: {self._needs_valid} needs validation data: give fit a "
                "valid= (--valid on the command line)."
            )

    def check_validation(
        self, watched: bool, valid_measures: str | Measure | Iterable[str | Measure] | None = None
    ) -> dict[str, Measure]:
        """Return the measures on validation data, by name; `watched`: whether there is such data.

        Refuse training without it where a parameter or `valid_measures` needs it.
        """
        self.check_valid(watched)
        return named_measures(valid_measures, self._target(), watched)

    @property
    def _needs_valid(self) -> str | None:
        """The parameter that needs validation data, or None."""
        return "early_stopping" if getattr(self, "early_stopping", None) is not None else None

    # -- attributes of a trained ranker -----------------------------------------------------------

    def _content(self) -> dict[str, Any]:
        """Return the attributes that a model file holds, by their keys in the file."""
        return {word: getattr(self, name) for word, name in self._saved.items()}

    def _take(self, content: Content) -> None:
        """Set the attributes from the content of a model file."""
        for word, name in self._saved.items():
            setattr(self, name, content[word])

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the features, as in scikit-learn; AttributeError where there are none."""
        if not hasattr(self, "feature_names_"):
            raise AttributeError(f"The features of this {type(self).__name__} have no names.")
        return np.array(self.feature_names_, dtype=object)

    def _keep_features(self, train: HasFeatures) -> None:
        """Remember the training data's features: number, names, categories, absent ones."""
        self.n_features_in_ = train.n_features
        self.absent_ = train.absent
        if train.given_names is not None:
            self.feature_names_ = tuple(train.given_names)
        if train.categories:
            self.categories_ = dict(train.categories)

    def _names(self) -> Sequence[str]:
        """Return the names of the features; ``f1``, ``f2``, ... where they have none."""
        numbered = (f"f{i + 1}" for i in range(self.n_features_in_))
        return getattr(self, "feature_names_", None) or tuple(numbered)

    def title(self) -> str:
        """Return the name of the ranker in tables."""
        return type(self).__name__

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {type(self).__name__} is not trained yet: call fit first.")

    # -- methods that a subclass defines ----------------------------------------------------------

    def _fit(self, training: Training) -> Learned:
        raise NotImplementedError

    def _scores(self, features: Matrix, rows: Rows, n_threads: int | None) -> np.ndarray:
        raise NotImplementedError

    def _state(self) -> tuple[Content, Arrays]:
        raise NotImplementedError

    def _restore(self, content: Content, arrays: Arrays) -> None:
        raise NotImplementedError


def _others(train: QueryDataset, known: Mapping[int, Names]) -> Categories:
    """Return the categorical columns of training data that a model does not know."""
    return {j: names for j, names in train.categories.items() if j not in known}


def class_of(kind: str) -> type[Ranker]:
    """Return the class of a kind that a model file names."""
    if kind not in KINDS:
        raise ModelFileError(
            f"The file holds a {kind!r}, and no ranker of that kind is known. A class of your own "
            "must be imported before its models are loaded; the command line knows only the "
            "rankers of rankgrove."
        )
    return KINDS[kind]


def untrained(kind: str, parameters: Mapping[str, Any]) -> Ranker:
    """Return the ranker of a kind with the parameters of a model file; ignore unknown ones."""
    ranker = class_of(kind)
    known = ranker().get_params(deep=False)
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in parameters.items()}
    return ranker(**{k: v for k, v in values.items() if k in known})


def plain_parameters(ranker: Ranker) -> dict[str, Any]:
    """Return the parameters of learning as plain values; any other value becomes its text."""
    plain: dict[str, Any] = {}
    for name, value in ranker.get_params(deep=False).items():
        if name in OF_THE_RUN or name in ranker.held:
            continue
        plain[name] = _plain(value)
    return plain


def _plain(value: Any) -> Any:
    value = positions.plain(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


become_estimators(Ranker)
