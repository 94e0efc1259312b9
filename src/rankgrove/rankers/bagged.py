"""Bags: many rankers on samples of the queries, their scores made one (BL-MART)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from rankgrove.bagging.aggregate import COMBINE
from rankgrove.bagging.out_of_bag import missed_part, out_of_bag_scores
from rankgrove.bagging.sample import named_sample, sampled_queries
from rankgrove.cluster.client import check_cluster
from rankgrove.cluster.engine import run_tasks
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError, ParameterError
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model import sense
from rankgrove.model.ensemble import Ensemble
from rankgrove.random import derive_seed
from rankgrove.rankers.bag_folder import BagFolder
from rankgrove.rankers.bag_scores import BagScores
from rankgrove.rankers.base import Ranker, plain_parameters, untrained
from rankgrove.rankers.boosted_data import fingerprint, named_measures
from rankgrove.rankers.given import as_dataset, valid_datasets
from rankgrove.rankers.nested import pack, unpack
from rankgrove.training.progress import TaskBar
from rankgrove.validation import check_choice, check_integer, check_real, counted, refuse

if TYPE_CHECKING:
    from typing import Self

# Of the base ranker's, what a bag sets for every model, or has itself.
_OF_THE_BAG = ("random_state", "n_threads", "progress", "checkpoint")


class BaggedRanker(Ranker):
    """A bag of rankers, each trained on a random sample of whole queries.

    Bagging takes variance away, boosting takes bias away (BL-MART paper). Every model sees its own
    sample of the queries, drawn without replacement, and stops early on the same validation data;
    their scores are brought to one scale within every query and averaged.

    Parameters
    ----------
    base : the ranker to train many times: any trainable one, untrained
    n_models : number of models
    query_fraction : share of the queries that a model sees
    combine : ``"minmax"``: scores scaled to 0 ... 1 within every query, averaged (the paper's);
        ``"borda"``: the number of documents ranked lower, averaged; ``"mean"``: plain scores
    overfitting_tolerance : set on the base: models keep trees after their best round until the
        validation measure is this share below its best, 250 at the most (the paper's: 0.02); None
        leaves the base as it is
    cluster : where models are trained: None: here, one after the other; ``"local"``: side by side
        in processes of this machine; ``"tcp://..."`` or a Dask client: on its workers. The bag is
        the same to the bit
    checkpoint : folder that keeps every model as it is trained; an interrupted run goes on from it
    random_state : seed of the samples and of the models
    n_threads : threads to use; None: all cores
    progress : show a progress bar

    Attributes
    ----------
    models_ : the trained models
    weights_ : what each counts; all 1 unless the bag was pruned
    out_of_bag_ : the mean of the measure over the training queries, each scored by the models
        that did not see it; None where every model saw every query
    out_of_bag_scores_ : one score for every training document, in the caller's order, by the models
        that did not see its query, combined as the bag combines; NaN where every model saw it.
        Model files do not hold them: None after loading, and after pruning
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
    out_of_bag_: float | None
    out_of_bag_scores_: np.ndarray | None
    held: ClassVar[frozenset[str]] = frozenset({"base"})

    def __init__(
        self,
        base: Any = None,
        n_models: int = 45,
        query_fraction: float = 0.67,
        combine: str = "minmax",
        overfitting_tolerance: float | None = None,
        cluster: Any = None,
        checkpoint: str | Path | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.base = base
        self.n_models = n_models
        self.query_fraction = query_fraction
        self.combine = combine
        self.overfitting_tolerance = overfitting_tolerance
        self.cluster = cluster
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    @property
    def measure(self) -> Any:
        """The base's measure."""
        return getattr(self.base, "measure", "ndcg@10")

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
        valid_measures: str | Measure | Iterable[str | Measure] | None = None,
        weight: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train all models.

        Parameters
        ----------
        X : a QueryDataset; or features, with labels `y` and query ids `qid`
        group : in place of `qid`, the number of rows of every query in turn, as LightGBM has it
        valid : validation data of every model, as the base's ``fit`` takes it
        eval_set, eval_group, eval_qid : in place of `valid`, a list of (X, y) with the numbers of
            rows of every query, or with query ids: as LightGBM and XGBoost have them
        valid_measures : what to measure there; the first decides. Default: the base's `measure`
        weight, query_weight : where `X` is not a data set
        sample_weight : scikit-learn's name of `weight`
        """
        owner = f"{type(self).__name__}.fit"
        self.check_parameters()
        weights = {"weight": weight, "sample_weight": sample_weight, "query_weight": query_weight}
        train = self._training_data(X, y, qid, group, owner, **weights)
        watched = valid_datasets(valid, owner, eval_set, eval_group, eval_qid)
        self.check_valid(bool(watched))
        base = self._prepared_base()
        measures = named_measures(valid_measures, parse_measure(self.measure), bool(watched))
        # Bins of all training data, which all models share: a quarter of the features' size
        ready = base.with_bins(train) if hasattr(base, "with_bins") else None
        data = (train, None) if ready is None else ready
        shared = (base, *data, watched or None, list(measures.values()), self.query_fraction)
        folder = self._folder(base, train, watched, list(measures))
        known = {} if folder is None else folder.read(self.n_models)
        open_ = [(m, self.random_state) for m in range(self.n_models) if m not in known]
        bar = TaskBar(type(self).__name__, self.n_models, "models") if self.progress else None

        def on_done(i: int, model: Ranker) -> None:
            if folder is not None:
                folder.write(open_[i][0], model)
            if bar is not None:
                bar.advance()

        try:
            if bar is not None:
                bar.advance(len(known))
            made = run_tasks(
                train_one,
                shared,
                open_,
                cluster=self.cluster,
                n_threads=self.n_threads,
                on_done=on_done,
            )
        finally:
            if bar is not None:
                bar.close()
        known |= {m: model for (m, _), model in zip(open_, made, strict=True)}
        self.__dict__.pop("pruning_", None)  # it was that of other models
        self.models_ = [known[m] for m in range(self.n_models)]
        self.weights_ = np.ones(self.n_models)
        self._keep_features(train)
        self._keep_out_of_bag(train)
        self._fast()  # now, so that predict changes nothing
        return self

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        owner = type(self).__name__
        if isinstance(self.base, BaggedRanker):
            raise ParameterError("A bag of bags is one bag: give 'base' the inner one's base.")
        if not isinstance(self.base, Ranker) or not hasattr(self.base, "check_valid"):
            refuse("base", owner, "a ranker to train, such as rg.LambdaMART()", self.base)
        check_integer("n_models", owner, self.n_models, low=1)
        check_real("query_fraction", owner, self.query_fraction, above=0.0, high=1.0)
        check_choice("combine", owner, self.combine, COMBINE)
        if self.overfitting_tolerance is not None:
            check_real(
                "overfitting_tolerance", owner, self.overfitting_tolerance, low=0.0, high=1.0
            )
            if "overfitting_tolerance" not in self.base.get_params(deep=False):
                raise ParameterError(
                    f"overfitting_tolerance is for boosted trees; {type(self.base).__name__} has "
                    "no such parameter: leave it out."
                )
        check_integer("random_state", owner, self.random_state, low=0)
        check_cluster(self.cluster, owner)
        self._prepared_base().check_parameters()

    def check_valid(self, given: bool) -> None:
        """Refuse a base that needs validation data where there is none."""
        self._prepared_base().check_valid(given)

    def _prepared_base(self) -> Any:
        """Return the base as every model begins with it."""
        base = clone(self.base)
        if self.overfitting_tolerance is not None:
            base.set_params(overfitting_tolerance=self.overfitting_tolerance)
        own = base.get_params(deep=False)
        off = {"progress": False, "checkpoint": None}
        return base.set_params(**{name: value for name, value in off.items() if name in own})

    def _folder(
        self,
        base: Ranker,
        train: QueryDataset,
        watched: dict[str, QueryDataset],
        measures: list[str],
    ) -> BagFolder | None:
        if self.checkpoint is None:
            return None
        settings = {k: v for k, v in plain_parameters(base).items() if k not in _OF_THE_BAG}
        run = {
            "base": type(base).__name__,
            **{f"the base's {k}": v for k, v in settings.items()},
            "submodel": str(getattr(base, "submodel", None)),
            "query_fraction": self.query_fraction,
            "random_state": self.random_state,
            "training data": fingerprint(train),
            "validation data": [[name, fingerprint(data)] for name, data in watched.items()],
            "valid_measures": measures,
        }
        return BagFolder(self.checkpoint, run)

    def _keep_out_of_bag(self, train: QueryDataset) -> None:
        """Keep what models that missed a query say of it, and the mean of the measure by that."""
        scorers = [partial(model.predict, n_threads=self.n_threads) for model in self.models_]
        drawn = (self.query_fraction, self.random_state)
        made = out_of_bag_scores(scorers, train, *drawn, self.combine, self.n_threads)
        self.out_of_bag_scores_, self.out_of_bag_ = made, None
        part = missed_part(made, train)
        if part is not None:
            found = evaluate(*part, self.measure).mean
            self.out_of_bag_ = float(next(iter(found.values())))

    # -- the trained bag --------------------------------------------------------------------------

    def predict(self, X: Any, n_threads: int | None = None, *, qid: Any = None) -> np.ndarray:
        """Return one float64 score a row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : threads to use; None takes the bag's own `n_threads`
        qid : the query id of every row, where `X` is no data set; ``combine="mean"`` needs none
        """
        X = self._aligned(X, f"{type(self).__name__}.predict")
        threads = self._checked_input(X, "predict", n_threads)[2]
        if self.combine != "mean" and not isinstance(X, QueryDataset):
            if qid is None:
                raise DataError(
                    f"{type(self).__name__}.predict: scores are brought to one scale within every "
                    f"query (combine={self.combine!r}), so it needs the queries: give it a "
                    "QueryDataset, or qid=."
                )
            X = as_dataset(X, np.zeros(len(qid)), qid, f"{type(self).__name__}.predict")
        return self._fast().predict(X, threads)

    def submodel_scores(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        """Return every model's own scores, of shape (models, rows), in the caller's order."""
        X = self._aligned(X, f"{type(self).__name__}.submodel_scores")
        threads = self._checked_input(X, "submodel_scores", n_threads)[2]
        return self._fast().columns(X, threads)

    def submodel_values(
        self, data: QueryDataset, measure: str | Measure | None = None
    ) -> np.ndarray:
        """Return the mean of a measure of every model by itself; their variance is of interest."""
        chosen = self.measure if measure is None else measure
        if not isinstance(chosen, str | Measure):
            refuse("measure", "submodel_values", "one measure", chosen)
        columns = self.submodel_scores(data)
        return np.array(
            [next(iter(evaluate(scores, data, chosen).mean.values())) for scores in columns]
        )

    def _fast(self) -> BagScores:
        made = self.__dict__.get("_bag_scores")
        if made is None or made.models is not self.models_:
            made = BagScores(self.models_, self.weights_, self.combine, self.n_features_in_)
            self._bag_scores = made
        return made

    def _one_ensemble(self) -> Ensemble | None:
        return self._fast().one_ensemble()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {k: v for k, v in state.items() if k != "_bag_scores"}

    @property
    def n_trees_(self) -> int:
        """Number of trees of all models."""
        return sum(getattr(one, "ensemble_").n_trees for one in self.models_)  # noqa: B009

    def summary(self) -> str:
        """Return a text about the bag."""
        self._check_is_fitted()
        lines = [
            f"BaggedRanker for {self.measure}: {counted(len(self.models_), 'model')} "
            f"({type(self.models_[0]).__name__}), each on {self.query_fraction:.0%} of the "
            f"queries, combined by {self.combine}"
        ]
        if all(hasattr(one, "ensemble_") for one in self.models_):
            lines.append(f"{counted(self.n_trees_, 'tree')} in all")
        if self.out_of_bag_ is not None:
            lines.append(f"out of bag {self.measure}: {self.out_of_bag_:.4f}")
        return "\n".join(lines)

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the training of some model."""
        return any(getattr(one, "interrupted_", False) for one in self.models_)

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        packed: list[dict[str, Any]] = []
        arrays: dict[str, np.ndarray] = {}
        for m, model in enumerate(self.models_):
            content, own = pack(model, f"model {m}")
            packed.append(content)
            arrays |= own
        return {
            "base": {"kind": self.base.kind, "parameters": plain_parameters(self.base)},
            "models": packed,
            "weights": self.weights_.tolist(),
            "out_of_bag": self.out_of_bag_,
        }, arrays

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        packed = content["models"]
        self.models_ = [unpack(one, arrays, f"model {m}") for m, one in enumerate(packed)]
        self.weights_ = np.array(content["weights"], np.float64)
        self.out_of_bag_ = content["out_of_bag"]
        self.out_of_bag_scores_ = None
        fits = self.models_ and self.weights_.shape == (len(self.models_),)
        if not fits or self.weights_.min() < 0.0 or not self.weights_.sum() > 0.0:
            raise ModelFileError("The weights of the bag do not fit its models.")
        sense.number(self.query_fraction, "query_fraction")
        if self.combine not in COMBINE:
            raise ModelFileError(f"The bag combines by {self.combine!r}, which is not known here.")
        self.base = untrained(content["base"]["kind"], content["base"]["parameters"])


def train_one(shared: Any, task: tuple[int, int], n_threads: int | None) -> Ranker:
    """Train one model of a bag."""
    base, train, bins, watched, measures, fraction = shared
    model, seed = task
    made = clone(base)
    own = made.get_params(deep=False)
    if "random_state" in own:
        made.set_params(random_state=derive_seed(seed, "bagged model", model) % (1 << 31))
    if n_threads is not None and "n_threads" in own:
        made.set_params(n_threads=n_threads)
    seen = sampled_queries(train.query_keys, fraction, seed, model)
    sample = train if seen.all() else train.select(seen)
    if bins is not None:
        made.take_bins(bins.some(np.repeat(seen, np.diff(train.query_ptr))))
    with named_sample(f"Model {model + 1} of the bag", seen):
        made.fit(sample, valid=watched, valid_measures=measures if watched else None)
    if getattr(made, "interrupted_", False):
        raise KeyboardInterrupt
    return made
