"""A trained ranker whose scores have a meaning: expected grade, probability of every grade."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError, ParameterError
from rankgrove.evaluation.reliability import Reliability, reliability
from rankgrove.measures.base import Measure
from rankgrove.model import sense
from rankgrove.model.ensemble import Ensemble
from rankgrove.random import generator
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker
from rankgrove.rankers.declaring import (
    choice,
    declares_parameters,
    flag,
    integer,
    learned,
    parameter,
    real,
)
from rankgrove.rankers.ensembles.relevance import Relevance
from rankgrove.rankers.ensembles.relevance_curves import (
    Curves,
    Lines,
    Observed,
    Rows,
    Sigmoids,
    isotonic,
    never_falling,
    sigmoid,
)
from rankgrove.rankers.estimator import clone
from rankgrove.rankers.fitting import Training, row_weights
from rankgrove.rankers.inner_rankers import loaded, member_scores, pack, unpack
from rankgrove.validation import refuse, with_article

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents

METHODS: dict[str, Callable[[Observed], Curves]] = {"isotonic": isotonic, "sigmoid": sigmoid}
MOST_GRADES = 32
MOST_SCORE = 1e150  # squares of scores are summed
_GRID = 201  # scores at which intervals are kept


@dataclass(frozen=True)
class _Scale:
    """Which targets stand for a label: thresholds of grades, or the label itself (soft labels)."""

    grades: np.ndarray | None

    @classmethod
    def of(cls, labels: np.ndarray, method: str, owner: str) -> _Scale:
        grades = np.unique(labels)
        if grades.size < 2:
            raise DataError(
                f"{owner} needs documents of at least two grades. All labels are {grades[0]:g}."
            )
        if grades.size <= MOST_GRADES:
            return cls(grades)
        if method != "isotonic":
            raise ParameterError(
                f"{owner}: method={method!r} needs grades, and the labels have {grades.size:,} "
                f"different values. Use method='isotonic', or round them to at most {MOST_GRADES}."
            )
        return cls(None)

    def targets(self, labels: np.ndarray) -> np.ndarray:
        """Return one column per curve."""
        if self.grades is None:
            return np.asarray(labels[:, None], np.float64)
        return (labels[:, None] >= self.grades[None, 1:]).astype(np.float64)

    def expected(self, above: np.ndarray) -> np.ndarray:
        """Return the expected grade from the curves' values."""
        if self.grades is None:
            return above[:, 0]
        total = np.full(above.shape[0], self.grades[0])
        for k, step in enumerate(np.diff(self.grades).tolist()):  # column by column: no BLAS
            total += step * above[:, k]
        return total

    def probabilities(self, above: np.ndarray) -> np.ndarray | None:
        """Return the probability of every grade."""
        if self.grades is None:
            return None
        edge = np.ones((above.shape[0], 1))
        return np.asarray(-np.diff(np.concatenate([edge, above, 0 * edge], axis=1), axis=1))


@declares_parameters
class CalibratedRanker(Ranker):
    """A trained ranker whose scores are mapped to relevance by functions that never fall.

    ``predict`` returns the ranker's own scores, so the order of documents is unchanged;
    ``predict_relevance`` returns the expected grade and the probability of every grade. ``fit``
    learns the functions from judged data and does not change the ranker.

    Attributes
    ----------
    ranker_ : the ranker, loaded where it was given as a file
    grades_ : the grades of the data, lowest first; None where it had soft labels
    calibration_error_ : expected calibration error of the expected grade, as a share of the range
        of grades, on queries that the functions were not learned from (by cross-fitting)
    reliability_ : the same as a table of bins, a :class:`Reliability`
    n_features_in_, feature_names_ : of that data

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, vali, test = (rg.make_web(100, 20, 10, seed=seed) for seed in (1, 2, 3))
    >>> model = rg.calibrate(rg.LambdaMART(n_trees=20).fit(train), vali)
    >>> relevance = model.predict_relevance(test)
    >>> relevance.probabilities.shape
    (1921, 5)
    >>> bool(((relevance.expected >= 0) & (relevance.expected <= 4)).all())
    True
    """

    kind: ClassVar[str] = "calibrated"
    held: ClassVar[frozenset[str]] = frozenset({"ranker"})
    trained: ClassVar[frozenset[str]] = frozenset({"ranker"})
    fit_takes: ClassVar[frozenset[str]] = frozenset({"weight"})
    takes_categories: ClassVar[bool] = True  # its ranker knows what it was trained on

    ranker_: Ranker = learned()
    grades_: np.ndarray | None = learned()
    curves_: Curves = learned()
    calibration_error_: float = learned()
    reliability_: Reliability = learned()
    _edges: np.ndarray = learned()

    ranker: Any = parameter(None, "the trained ranker, or the path of its model file")
    method: str = parameter(
        "isotonic",
        'form of the functions: ``"isotonic"``, any that never falls; ``"sigmoid"``, logistic, '
        "which needs less data and can be written for engines that have it",
        choice(METHODS),
    )
    retrain: bool = parameter(
        False,
        "for data that the ranker was trained on: learn from the scores of copies of the ranker "
        "that are trained without the fold of a query. Otherwise the data must be other queries",
        flag,
    )
    folds: int = parameter(
        5, "number of parts for cross-fitting the calibration error and for `retrain`", integer(2)
    )
    samples: int = parameter(
        200, "number of bootstrap samples of queries for the intervals", integer(low=20)
    )
    level: float = parameter(
        0.95, "probability that an interval should hold", real(above=0.0, high=0.999)
    )
    random_state: int = shared.RANDOM_STATE
    n_threads: int | None = shared.N_SCORING_THREADS

    @property
    def measure(self) -> str | Measure:
        """The ranker's measure."""
        return getattr(self._own(), "measure", "ndcg@10")

    def _own(self) -> Ranker:
        return self.ranker_ if hasattr(self, "ranker_") else self.ranker

    # -- training ---------------------------------------------------------------------------------

    def _fit(self, training: Training) -> Learned:
        data, owner = training.train, training.owner
        ranker = loaded(self.ranker, "ranker", owner, "a trained ranker or a model file")
        if not isinstance(ranker, Ranker):
            refuse("ranker", owner, "a trained ranker of rankgrove, or a model file", self.ranker)
        ranker._check_is_fitted()
        data, weight = _counting(data)
        labels = data.grouped(data.y)
        scale = _Scale.of(labels[weight > 0], self.method, owner)
        if data.n_queries < max(self.folds, 2):
            raise DataError(
                f"{owner} needs at least {self.folds} queries for folds={self.folds}, each with a "
                f"row whose weight is not 0. Got {data.n_queries}."
            )
        fold = assign_parts(data.query_keys, self.folds, self.random_state, owner, least=2)
        sizes = np.diff(data.query_ptr)
        query = np.repeat(np.arange(data.n_queries), sizes)
        held_out = np.repeat(fold, sizes)
        scores = self._scores_of(ranker, data, held_out)
        if not np.isfinite(scores).all():
            raise DataError(f"{owner} needs finite scores, and the ranker has others.")
        if np.abs(scores).max() > MOST_SCORE:
            raise DataError(
                f"{owner} needs scores between -{MOST_SCORE:g} and {MOST_SCORE:g}, as their "
                f"squares are summed. Got {scores[np.abs(scores).argmax()]:g}: divide the leaves "
                "or weights of the model by a constant, which changes no ranking."
            )
        learn, rows = METHODS[self.method], Rows(scores, scale.targets(labels))
        curves = learn(rows.observed(weight))
        unseen = np.empty(data.n_rows)
        for k in range(self.folds):
            inside = held_out == k
            others = learn(rows.observed(np.where(inside, 0.0, weight)))
            unseen[inside] = scale.expected(others.at(scores[inside]))
        table = reliability("expected grade", unseen, labels, query, weight)
        return {
            "ranker_": ranker,
            "grades_": scale.grades,
            "curves_": curves,
            "calibration_error_": table.ece,
            "reliability_": table,
            "_edges": self._intervals(rows, weight, query, scale),
            "saw_missing_": ranker.saw_missing_,
        }

    def _scores_of(self, ranker: Ranker, data: QueryDataset, fold: np.ndarray) -> np.ndarray:
        """Return scores in query order; with `retrain`, of models that did not see the query."""
        if not self.retrain:
            return data.grouped(member_scores(ranker, data, self.n_threads))
        scores = np.empty(data.n_rows)
        for k in range(self.folds):
            query_fold = fold[data.query_ptr[:-1]]
            copy = _without_validation(ranker).fit(data.select(query_fold != k))
            part = data.select(query_fold == k)
            scores[fold == k] = part.grouped(member_scores(copy, part, self.n_threads))
        return scores

    def _intervals(
        self, rows: Rows, weight: np.ndarray, query: np.ndarray, scale: _Scale
    ) -> np.ndarray:
        """Return scores, and the lower and upper ends of the expected grade there.

        Every sample gives the queries exponential weights (Rubin's Bayesian bootstrap).
        """
        places = np.linspace(0, rows.order.size - 1, _GRID).astype(np.int64)
        first = rows.first
        at = np.unique(rows.distinct[np.searchsorted(first, places, side="right") - 1])
        learn = METHODS[self.method]
        drawn = np.empty((self.samples, at.size))
        for b in range(self.samples):
            factor = generator(self.random_state, "calibration", b).exponential(
                size=int(query[-1]) + 1
            )
            drawn[b] = scale.expected(learn(rows.observed(weight * factor[query])).at(at))
        tail = (1 - self.level) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=0, method="weibull")
        ends = [np.maximum.accumulate(low), np.maximum.accumulate(high)]
        return np.stack([at, *ends])

    # -- prediction -------------------------------------------------------------------------------

    def predict(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return the ranker's own scores: one float64 per row, the higher, the better."""
        self._check_is_fitted()
        threads = self.n_threads if n_threads is None else n_threads
        return self.ranker_.predict(X, n_threads=threads)

    def predict_relevance(self, X: Documents, n_threads: int | None = None) -> Relevance:
        """Return the expected grade, its interval, and the probability of every grade, per row.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : number of threads; None: the ranker's own `n_threads`
        """
        return self.relevance_of(self.predict(X, n_threads))

    def relevance_of(self, scores: np.ndarray) -> Relevance:
        """Return what scores of the ranker say about documents."""
        scores = np.asarray(scores, np.float64)
        if np.isnan(scores).any():
            raise DataError("relevance_of needs scores that are numbers. Got NaN.")
        scale, above = _Scale(self.grades_), self.curves_.at(scores)
        expected = scale.expected(above)
        at, low, high = self._edges
        return Relevance(
            expected,
            np.minimum(never_falling(scores, at, low), expected),
            np.maximum(never_falling(scores, at, high), expected),
            self.grades_,
            scale.probabilities(above),
        )

    def reliability(self, data: QueryDataset, bins: int = 15) -> Reliability:
        """Compare expected grades with the labels of judged data, in bins.

        Parameters
        ----------
        data : judged data; use queries that the ranker was neither trained nor calibrated on
        bins : the greatest number of bins
        """
        expected = data.grouped(self.predict_relevance(data).expected)
        query = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
        labels = data.grouped(data.y)
        return reliability("expected grade", expected, labels, query, row_weights(data), bins)

    # -- parts ------------------------------------------------------------------------------------

    def members(self) -> list[Any]:
        """Return the ranker that is calibrated."""
        return [self.ranker_]

    def scaled_by_query(self) -> str | None:
        """Return what the ranker scales within every query."""
        return self.ranker_.scaled_by_query()

    def own_trees(self) -> Ensemble | None:
        """Return the ranker's trees."""
        return self.ranker_.own_trees()

    def flat(self) -> Ensemble | None:
        """Return the trees whose sum is the score."""
        return self.ranker_.flat()

    def title(self) -> str:
        """Return the name of the ranker in tables."""
        ranker = self._own()
        name = ranker.title() if isinstance(ranker, Ranker) else str(ranker)
        return f"{name}, calibrated"

    def summary(self) -> str:
        """Return a text about the model: the ranker's summary and the calibration."""
        self._check_is_fitted()
        inside: Any = self.ranker_
        error = f"calibration error {self.calibration_error_:.4f} of the range, on held-out queries"
        labels = "soft labels"
        if self.grades_ is not None:
            labels = f"grades {', '.join(f'{grade:g}' for grade in self.grades_)}"
        return f"{inside.summary()}\ncalibrated ({self.method}) on {labels}: {error}"

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        content, arrays = pack(self.ranker_, "ranker")
        table = self.reliability_
        arrays = {
            "edges": self._edges.ravel(),
            "bins": np.stack([table.predicted, table.observed, table.error]).ravel(),
            "counts": table.count.astype(np.int64),
            **arrays,
        }
        if isinstance(self.curves_, Lines):
            lines = self.curves_
            arrays |= {"starts": lines.starts, "knots": lines.knots, "values": lines.values}
        else:
            curves: Any = self.curves_
            arrays |= {"slope": np.array([curves.slope]), "intercepts": curves.intercepts}
        grades = None if self.grades_ is None else self.grades_.tolist()
        return {"ranker": content, "grades": grades, "scale": table.scale}, arrays

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self.ranker = self.ranker_ = unpack(content["ranker"], arrays, "ranker")
        grades = content["grades"]
        self.grades_ = None if grades is None else sense.numbers(grades, "the grades")
        if self.grades_ is not None and not (np.diff(self.grades_) > 0).all():
            raise ModelFileError("The grades of the calibration are not in order.")
        if self.method not in METHODS:
            raise ModelFileError(f"The model file has method={self.method!r}.")
        if self.method == "isotonic":
            starts = sense.typed(arrays["starts"], np.int64, "the calibration's starts")
            knots = sense.numbers(arrays["knots"], "the calibration's knots")
            lines = Lines(starts, knots, sense.numbers(arrays["values"], "its values"))
            lines.check()
            self.curves_, n = lines, starts.size - 1
        else:
            (slope,) = sense.numbers(arrays["slope"], "the calibration's slope")
            intercepts = sense.numbers(arrays["intercepts"], "the calibration's intercepts")
            sigmoids = Sigmoids(float(slope), intercepts)
            sigmoids.check()
            self.curves_, n = sigmoids, intercepts.size
        if n != (1 if self.grades_ is None else self.grades_.size - 1):
            raise ModelFileError("The calibration has another number of curves than of grades.")
        self._edges = sense.numbers(arrays["edges"], "the intervals").reshape(3, -1)
        if not self._edges.size or (np.diff(self._edges[0]) <= 0).any():
            raise ModelFileError("The intervals of the calibration are not in order.")
        counts = sense.typed(arrays["counts"], np.int64, "the bins")
        bins = sense.numbers(arrays["bins"], "the bins").reshape(3, counts.size)
        scale = sense.number(content["scale"], "the scale")
        if scale <= 0 or counts.size == 0 or counts.min() < 1:
            raise ModelFileError("The bins of the calibration are damaged.")
        predicted, observed, error = bins
        self.reliability_ = Reliability("expected grade", counts, predicted, observed, error, scale)
        self.calibration_error_ = self.reliability_.ece


def _counting(data: QueryDataset) -> tuple[QueryDataset, np.ndarray]:
    """Return the queries that have weight, and the weights of their rows, whose mean is 1.

    Rows of weight 0 count nothing: neither as queries, nor as rows in the mean. Only ratios of
    weights matter: the shrinking by one row would otherwise be by many rows or by none.
    """
    weight = row_weights(data)
    if weight is None:
        return data, np.ones(data.n_rows)
    some = np.add.reduceat((weight > 0).astype(np.int64), data.query_ptr[:-1]) > 0
    data, weight = data.select(some), weight[np.repeat(some, np.diff(data.query_ptr))]
    weight = weight / weight.max()
    return data, weight / weight[weight > 0].mean()


def _without_validation(ranker: Ranker) -> Any:
    """Return an untrained copy that learns the same number of rounds without validation data."""
    if not ranker.trainable and not isinstance(getattr(ranker, "base", None), Ranker):
        raise ParameterError(
            f"CalibratedRanker: retrain=True trains copies of the ranker, and "
            f"{with_article(type(ranker).__name__)} cannot be trained from data alone. Calibrate "
            "it on queries that it was not trained on, without retrain."
        )
    copy: Any = clone(ranker)
    if getattr(copy, "early_stopping", None) is not None:
        n_trees = ranker.tree_count()
        copy.set_params(early_stopping=None, **({} if n_trees is None else {"n_trees": n_trees}))
    if getattr(copy, "checkpoint", None) is not None:
        copy.set_params(checkpoint=None)
    return copy


def calibrate(
    model: Any,
    data: QueryDataset,
    *,
    method: str = "isotonic",
    retrain: bool = False,
    folds: int = 5,
    samples: int = 200,
    level: float = 0.95,
    seed: int = 0,
    n_threads: int | None = None,
) -> CalibratedRanker:
    """Give a trained ranker's scores a meaning: expected grade, and probability of every grade.

    The order of documents is unchanged. Scores of a ranker that was trained for the order within
    queries are compared across queries here: how well that works is what the reliability says, per
    bin, on queries that the calibration was not learned from.

    Parameters
    ----------
    model : a trained ranker, or the path of a model file
    data : judged queries that the ranker was not trained on; with `retrain`, those it was trained
        on
    method, retrain, folds, samples, level : as in :class:`CalibratedRanker`
    seed : seed of the folds and the bootstrap
    n_threads : number of threads that score; None: all cores

    Returns
    -------
    a ranker with ``predict_relevance``

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, vali = rg.make_web(60, 20, 10, seed=1), rg.make_web(60, 20, 10, seed=2)
    >>> model = rg.calibrate(rg.LambdaMART(n_trees=10).fit(train), vali, method="sigmoid")
    >>> model.calibration_error_ < 0.1
    True
    """
    calibrated = CalibratedRanker(
        model, method, retrain, folds, samples, level, seed, n_threads=n_threads
    )
    return calibrated.fit(data)
