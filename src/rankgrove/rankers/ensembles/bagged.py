"""Bags: many rankers on samples of the queries, with combined scores (BL-MART)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.bagging.aggregate import COMBINE
from rankgrove.bagging.out_of_bag import missed_part, out_of_bag_scores
from rankgrove.bagging.sample import named_sample, sampled_queries
from rankgrove.cluster.client import check_cluster
from rankgrove.cluster.engine import run_tasks
from rankgrove.data.binned_dataset import BinnedDataset
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ModelFileError, ParameterError
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.measures.base import Measure
from rankgrove.model import sense
from rankgrove.model.ensemble import Ensemble
from rankgrove.objectives.position_bias import PositionTable
from rankgrove.random import derive_seed
from rankgrove.rankers import parameters as shared
from rankgrove.rankers import positions
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker, plain_parameters
from rankgrove.rankers.binned_scores import scores_of_bins
from rankgrove.rankers.declaring import (
    choice,
    declares_parameters,
    integer,
    learned,
    optional,
    parameter,
    real,
)
from rankgrove.rankers.ensembles.bag_folder import BagFolder
from rankgrove.rankers.ensembles.bag_scores import BagScores
from rankgrove.rankers.estimator import clone
from rankgrove.rankers.fitting import Training, fingerprint
from rankgrove.rankers.given import with_queries
from rankgrove.rankers.inner_rankers import (
    described,
    pack_members,
    undescribed,
    unpack_members,
)
from rankgrove.training.progress import TaskBar
from rankgrove.validation import counted, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.rankers.given import Documents


# Parameters of the base ranker that a bag sets for every model, or has itself.
_OF_THE_BAG = ("random_state", "n_threads", "progress", "checkpoint")


@declares_parameters
class BaggedRanker(Ranker):
    """A bag of rankers, each trained on a random sample of whole queries.

    Bagging reduces variance, boosting reduces bias (BL-MART paper). Every model sees its own sample
    of the queries, drawn without replacement, and uses the same validation data for early stopping;
    the models' scores are scaled within every query and averaged.

    Attributes
    ----------
    models_ : the trained models
    weights_ : weights of the models; all 1 unless the bag was pruned
    out_of_bag_ : the mean of the measure over the training queries, each scored by the models
        that did not see it; None where every model saw every query
    out_of_bag_scores_ : one score for every training document, in the caller's order, by the models
        that did not see its query, combined as in the bag; NaN where every model saw it. Not in
        model files: None after loading, and after pruning
    position_bias_ : the mean over the models of what they have learned about positions; None
        without `position_bias`
    n_features_in_, feature_names_ : of the training data

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, vali = rg.make_artificial(60, seed=1), rg.make_artificial(40, seed=2)
    >>> base = rg.LambdaMART(n_trees=10, query_fraction=0.5, feature_fraction=0.3)
    >>> bag = rg.BaggedRanker(base, n_models=5).fit(train, valid=vali)
    >>> len(bag.models_)
    5
    """

    kind: ClassVar[str] = "bag"
    is_bag: ClassVar[bool] = True
    held: ClassVar[frozenset[str]] = frozenset({"base"})
    fit_takes: ClassVar[frozenset[str]] = frozenset({"valid", "weight"})
    models_: list[Ranker] = learned()
    weights_: np.ndarray = learned()
    out_of_bag_: float | None = learned()
    out_of_bag_scores_: np.ndarray | None = learned()

    base: Any = parameter(None, "the ranker to train many times: any that can be trained")
    n_models: int = parameter(45, "number of models", integer(low=1))
    query_fraction: float = parameter(
        0.67, "share of the queries that a model sees", real(high=1.0, above=0.0)
    )
    combine: str = parameter(
        "minmax",
        '``"minmax"``: scores scaled to 0 ... 1 within every query, averaged (as in the paper); '
        '``"borda"``: the number of documents ranked lower, averaged; ``"mean"``: plain scores',
        choice(COMBINE),
    )
    overfitting_tolerance: float | None = parameter(
        None,
        "set on the base: models keep trees after their best round until the validation measure is "
        "this share below its best, at most 250 (in the paper 0.02); None: the base's own value",
        optional(real(low=0.0, high=1.0)),
    )
    cluster: Any = parameter(
        None,
        'where models are trained: None: in this process, one after the other; ``"local"``: in '
        'parallel processes on this machine; ``"tcp://..."`` or a Dask client: on its workers. The '
        "bag is the same to the bit",
        lambda _, owner, value: check_cluster(value, owner),
    )
    checkpoint: str | Path | None = parameter(
        None,
        "folder for the trained models, from which an interrupted run is resumed",
    )
    random_state: int = shared.RANDOM_STATE(0, "seed of the samples and of the models")
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS

    @property
    def measure(self) -> str | Measure:
        """The base's measure."""
        return getattr(self.base, "measure", "ndcg@10")

    @property
    def takes_categories(self) -> bool:  # type: ignore[override]
        """Whether the base can use categorical features."""
        return bool(self.base.takes_categories)

    @property
    def uses_bins(self) -> bool:  # type: ignore[override]
        """Whether the base trains on data that has bins instead of features."""
        return bool(self.base.uses_bins)

    # -- training ---------------------------------------------------------------------------------

    def check_categories(self, data: QueryDataset, owner: str) -> None:
        """Refuse categorical features that the base cannot use."""
        self.base.check_categories(data, owner)

    def _fit(self, training: Training) -> Learned:
        train = training.train
        base = self._prepared_base()
        measures = list(training.measures.values())
        # Bins of all training data, which all models share: a quarter of the features' size
        data = base.shared_bins(train) or (train, None)
        common = (base, *data, training.valid, measures, self.query_fraction)
        folder = self._folder(base, training)
        models = {} if folder is None else folder.read(self.n_models)
        open_tasks = [(m, self.random_state) for m in range(self.n_models) if m not in models]
        bar = TaskBar(type(self).__name__, self.n_models, "models") if self.progress else None

        def on_done(i: int, model: Ranker) -> None:
            if folder is not None:
                folder.write(open_tasks[i][0], model)
            if bar is not None:
                bar.advance()

        try:
            if bar is not None:
                bar.advance(len(models))
            trained = run_tasks(
                train_one,
                common,
                open_tasks,
                cluster=self.cluster,
                n_threads=self.n_threads,
                on_done=on_done,
            )
        finally:
            if bar is not None:
                bar.close()
        models |= {m: model for (m, _), model in zip(open_tasks, trained, strict=True)}
        listed = [models[m] for m in range(self.n_models)]
        weights = np.ones(self.n_models)
        learned: Learned = {"models_": listed, "weights_": weights}
        # built now, so that predict does not change the ranker
        learned["_bag_scores"] = BagScores(listed, weights, self.combine, train.n_features)
        return learned | self._out_of_bag(listed, train)

    def _check_together(self) -> None:
        if not isinstance(self.base, Ranker) or "valid" not in self.base.fit_takes:
            refuse(
                "base",
                type(self).__name__,
                "a ranker to train, such as rg.LambdaMART()",
                self.base,
            )
        if self.base.is_bag:
            raise ParameterError("A bag of bags is one bag: set 'base' to the inner bag's base.")
        known = self.base.get_params(deep=False)
        if self.overfitting_tolerance is not None and "overfitting_tolerance" not in known:
            raise ParameterError(
                f"overfitting_tolerance is for boosted trees; {type(self.base).__name__} has "
                "no such parameter: leave it out."
            )
        self._prepared_base().check_parameters()

    def check_valid(self, given: bool) -> None:
        """Refuse a base that needs validation data where there is none."""
        self._prepared_base().check_valid(given)

    def _prepared_base(self) -> Ranker:
        """Return the base ranker with the bag's settings."""
        base = clone(self.base)
        if self.overfitting_tolerance is not None:
            base.set_params(overfitting_tolerance=self.overfitting_tolerance)
        return _with(base, progress=False, checkpoint=None)

    def _folder(self, base: Ranker, training: Training) -> BagFolder | None:
        if self.checkpoint is None:
            return None
        run = {
            "base": type(base).__name__,
            **_settings(base, "the base's"),
            "submodel": str(getattr(base, "submodel", None)),
            "query_fraction": self.query_fraction,
            "random_state": self.random_state,
            "training data": fingerprint(training.train),
            "validation data": [[n, fingerprint(data)] for n, data in training.valid.items()],
            "valid_measures": list(training.measures),
        }
        return BagFolder(self.checkpoint, run)

    def _out_of_bag(self, models: list[Ranker], train: QueryDataset) -> Learned:
        """Return every query's scores by the models that did not see it, and their mean measure."""
        scorers = [partial(model.predict, n_threads=self.n_threads) for model in models]
        drawn = (self.query_fraction, self.random_state)
        scores = out_of_bag_scores(scorers, train, *drawn, self.combine, self.n_threads)
        part, mean = missed_part(scores, train), None
        if part is not None:
            mean = float(next(iter(evaluate(*part, self.measure).mean.values())))
        return {"out_of_bag_scores_": scores, "out_of_bag_": mean}

    def members(self) -> list[Any]:
        """Return the models of the bag."""
        return list(self.models_)

    def averaged(self) -> tuple[list[Ranker], np.ndarray]:
        """Return the models of the bag and their weights."""
        return self.models_, self.weights_

    def scaled_by_query(self) -> str | None:
        """Return the text for the models' scores; of a plain mean, what its models scale."""
        if self.combine != "mean":
            return f"its models' scores (combine={self.combine!r})"
        return next(filter(None, (model.scaled_by_query() for model in self.models_)), None)

    def tree_count(self) -> int | None:
        """Return the number of trees of all models; None where one of them has no trees."""
        counts = [model.tree_count() for model in self.models_]
        return None if None in counts else sum(count for count in counts if count is not None)

    def with_models(
        self, models: list[Ranker], weights: np.ndarray, combine: str | None = None
    ) -> BaggedRanker:
        """Return a copy of the bag with other models, weights and, if given, `combine`."""
        changed = copy.copy(self)
        changed.models_, changed.weights_ = models, weights
        changed.combine = self.combine if combine is None else combine
        return changed

    # -- the trained bag --------------------------------------------------------------------------

    def predict(
        self, X: Documents, n_threads: int | None = None, *, qid: ArrayLike | None = None
    ) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : number of threads; None: the bag's own `n_threads`
        qid : the query id of every row, where `X` is no data set; needed unless ``combine="mean"``
            and no model scales features within queries
        """
        self._check_is_fitted()
        owner = f"{type(self).__name__}.predict"
        if isinstance(X, BinnedDataset):
            return scores_of_bins(self, X, lambda part: self.predict(part, n_threads), owner)
        X = self._aligned(with_queries(self, X, qid, owner), owner)
        threads = self._checked_input(X, "predict", n_threads, is_aligned=True)[2]
        return self._fast().predict(X, threads)

    def submodel_scores(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return every model's own scores, of shape (models, rows), in the caller's order."""
        self._check_is_fitted()
        X = self._aligned(X, f"{type(self).__name__}.submodel_scores")
        threads = self._checked_input(X, "submodel_scores", n_threads, is_aligned=True)[2]
        return self._fast().columns(X, threads)

    def submodel_values(
        self, data: QueryDataset, measure: str | Measure | None = None
    ) -> np.ndarray:
        """Return the mean of a measure for every single model, which shows their variance."""
        chosen = self.measure if measure is None else measure
        if not isinstance(chosen, str | Measure):
            refuse("measure", "submodel_values", "one measure", chosen)
        columns = self.submodel_scores(data)
        return np.array(
            [next(iter(evaluate(scores, data, chosen).mean.values())) for scores in columns]
        )

    def _fast(self) -> BagScores:
        scores: BagScores | None = self.__dict__.get("_bag_scores")
        if scores is None or scores.models is not self.models_:
            scores = BagScores(self.models_, self.weights_, self.combine, self.n_features_in_)
            self._bag_scores = scores
        return scores

    def flat(self) -> Ensemble | None:
        return self._fast().one_ensemble()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {k: v for k, v in state.items() if k != "_bag_scores"}

    @property
    def n_trees_(self) -> int:
        """Number of trees of all models."""
        n_trees = self.tree_count()
        if n_trees is None:
            raise AttributeError("n_trees_: not all models have trees.")
        return n_trees

    def summary(self) -> str:
        """Return a text about the bag."""
        self._check_is_fitted()
        lines = [
            f"BaggedRanker for {self.measure}: {counted(len(self.models_), 'model')} "
            f"({type(self.models_[0]).__name__}), each on {self.query_fraction:.0%} of the "
            f"queries, combined by {self.combine}"
        ]
        n_trees = self.tree_count()
        if n_trees is not None:
            lines.append(f"{counted(n_trees, 'tree')} in all")
        if self.out_of_bag_ is not None:
            lines.append(f"out of bag {self.measure}: {self.out_of_bag_:.4f}")
        if self.position_bias_ is not None:
            lines += [f"mean over models: {line}" for line in self.position_bias_.lines()]
        return "\n".join(lines)

    @property
    def position_bias_(self) -> PositionTable | None:  # type: ignore[override]
        """The mean of what the models have learned about positions, or None."""
        tables = [model.position_bias_ for model in vars(self).get("models_", ())]
        learned = [table for table in tables if table is not None]
        return positions.averaged(learned) if learned else None

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the training of a model."""
        return any(getattr(model, "interrupted_", False) for model in self.models_)

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        packed, arrays = pack_members(self.models_, "a bag", "model")
        for model, content in zip(self.models_, packed, strict=True):
            if model.categories_ == self.categories_:  # names need not be in the file many times
                content.pop("categories", None)
        return {
            "base": described(self.base),
            "models": packed,
            "weights": self.weights_.tolist(),
            "out_of_bag": self.out_of_bag_,
        }, arrays

    def _restore(self, content: Content, arrays: Arrays) -> None:
        shared = {"categories": content["categories"]} if "categories" in content else {}
        members = [shared | sense.table(model, "a model") for model in content["models"]]
        self.models_ = list(unpack_members(members, arrays, "model"))
        self.weights_ = np.array(content["weights"], np.float64)
        self.out_of_bag_ = content["out_of_bag"]
        self.out_of_bag_scores_ = None
        fits = self.models_ and self.weights_.shape == (len(self.models_),)
        if not fits or self.weights_.min() < 0.0 or not self.weights_.sum() > 0.0:
            raise ModelFileError("The weights of the bag do not fit its models.")
        sense.number(self.query_fraction, "query_fraction")
        if self.combine not in COMBINE:
            raise ModelFileError(f"The bag combines by {self.combine!r}, which is not known.")
        self.base = undescribed(content["base"])


def _with(ranker: Ranker, **values: Any) -> Ranker:
    """Return the ranker with values of those parameters that it or its own base ranker has."""
    names = {name: name.rpartition("__")[2] for name in ranker.get_params()}
    return ranker.set_params(**{k: values[last] for k, last in names.items() if last in values})


def _settings(ranker: Ranker, whose: str) -> dict[str, Any]:
    """Return the parameters that models depend on, those of the ranker's own base included."""
    plain = plain_parameters(ranker)
    values = {f"{whose} {k}": v for k, v in plain.items() if k not in _OF_THE_BAG}
    inner = getattr(ranker, "base", None)
    if isinstance(inner, Ranker):
        values |= {f"{whose} base": type(inner).__name__, **_settings(inner, f"{whose} base's")}
    return values


def train_one(
    common: tuple[
        Ranker,
        QueryDataset,
        BinnedMatrix | None,
        Mapping[str, QueryDataset],
        list[Measure],
        float,
    ],
    task: tuple[int, int],
    n_threads: int | None,
) -> Ranker:
    """Train one model of a bag."""
    base, train, bins, valid, measures, fraction = common
    number, seed = task
    model: Ranker = clone(base)
    _with(model, random_state=derive_seed(seed, "bagged model", number) % (1 << 31))
    if n_threads is not None:
        _with(model, n_threads=n_threads)
    seen = sampled_queries(train.query_keys, fraction, seed, number)
    sample = train if seen.all() else train.select(seen)
    if bins is not None:
        bins = bins.some(np.repeat(seen, np.diff(train.query_ptr)))
    with named_sample(f"Model {number + 1} of the bag", seen):
        model.fit_binned(sample, bins, valid=valid, valid_measures=measures if valid else None)
    if getattr(model, "interrupted_", False):
        raise KeyboardInterrupt
    return model
