"""A ranker that stops scoring documents early, with a bound of what that may cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError, ParameterError
from rankgrove.measures.base import Measure, PreparedMeasure, rank
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model import sense
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker
from rankgrove.rankers.declaring import declares_parameters, integer, learned, parameter, real
from rankgrove.rankers.ensembles.calibrated import CalibratedRanker
from rankgrove.rankers.ensembles.relevance import Relevance
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.given import features_of
from rankgrove.rankers.inner_rankers import loaded, pack, unpack
from rankgrove.rankers.top_scores import contenders
from rankgrove.scoring.score import score
from rankgrove.scoring.scorer import Exits, Scorer
from rankgrove.validation import counted, refuse, with_article

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents

# From careful to bold: which share of the documents that count may fall short of a chunk's gap,
# and a factor of the gap. They are tried in this order, and the first that fails ends the search.
BOLDNESS = (
    *((0.0, factor) for factor in (3.0, 2.0, 1.5, 1.25, 1.1, 1.0)),
    *((share, 1.0) for share in (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)),
)


@dataclass(frozen=True)
class ExitCertificate:
    """The loss from leaving documents out, measured on queries that the gaps were not learned from.

    Attributes
    ----------
    measure : the measure, as text
    value : its mean when all documents are scored
    loss : the mean loss by leaving documents out; below 0: a gain
    bound : upper end of the one-sided confidence interval of this rule's loss, by Student's t over
        queries and one more query, which has the loss `unseen`. The search guarantees that the loss
        is at most `max_loss`; the bound of the rule that it ends with is a little less certain
    confidence : its confidence
    saved : the share of (document, tree) pairs that is not evaluated
    n_queries : number of queries
    unseen : the size of a query's loss where the boldest rule makes one (root mean square)
    """

    measure: str
    value: float
    loss: float
    bound: float
    confidence: float
    saved: float
    n_queries: int
    unseen: float

    @property
    def least(self) -> float:
        """The bound if no query lost anything: no smaller `max_loss` can be shown."""
        return _upper_bound(np.zeros(self.n_queries), self.confidence, self.unseen)[1]

    def __str__(self) -> str:
        if not self.saved:
            queries = counted(self.n_queries, "query", "queries")
            shown = f"{queries} can show no loss below {self.least:.5f}"
            return "no documents are left out" + (f" ({shown})" if self.unseen else "")
        fewer = 1.0 / max(1.0 - self.saved, 1e-9)
        return (
            f"{self.saved:.1%} of the pairs of document and tree are left out ({fewer:.1f} times "
            f"fewer); {self.measure} {self.value:.4f}, "
            f"loss {self.loss:+.5f}, at most {self.bound:.5f} with {self.confidence:.0%} "
            f"confidence ({counted(self.n_queries, 'query', 'queries')})"
        )


@declares_parameters
class EarlyExitRanker(Ranker):
    """A trained ranker whose ``predict_top`` and ``scorer().top`` stop early for most documents.

    After every 32 trees, documents whose score so far is far below the k-th best of their query are
    left out. ``fit`` learns how far, from judged queries: the documents that count are those of the
    first k with a label above the lowest, and the gap is what nearly all of them need. It becomes
    bolder step by step while the confidence bound of the loss, on queries that the gaps were not
    learned from, is at most `max_loss`. A loss that few queries have may be seen in none of them:
    so the bound counts one more query, which loses as much as queries do by the boldest rule.
    ``predict`` scores all documents, as before.

    Attributes
    ----------
    ranker_ : the ranker, loaded where it was given as a file
    exits_ : the rule, or None where no rule had a small enough loss
    certificate_ : the measured loss and its bound, an :class:`ExitCertificate`
    n_features_in_, feature_names_ : of the ranker's data

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, vali = (rg.make_web(n, 300, 10, seed=seed) for n, seed in ((40, 1), (60, 2)))
    >>> model = rg.LambdaMART(n_trees=96, n_leaves=8).fit(train)
    >>> fast = rg.EarlyExitRanker(model, "ndcg@5", max_loss=0.01).fit(vali)
    >>> bool(fast.certificate_.bound <= 0.01)
    True
    >>> fast.predict_top(vali, 5).saved > 0.2
    True
    """

    kind: ClassVar[str] = "early-exit"
    held: ClassVar[frozenset[str]] = frozenset({"ranker"})
    trained: ClassVar[frozenset[str]] = frozenset({"ranker"})
    fit_takes: ClassVar[frozenset[str]] = frozenset()
    takes_categories: ClassVar[bool] = True  # its ranker knows what it was trained on

    ranker_: Ranker = learned()
    exits_: Exits | None = learned()
    certificate_: ExitCertificate = learned()

    ranker: Any = parameter(
        None, "the trained ranker, one sum of trees, or the path of its model file"
    )
    measure: str | Measure = parameter(
        "ndcg@10", "measure whose loss is bounded, with a cutoff: the number of first documents"
    )
    max_loss: float = parameter(0.0005, "greatest loss of the measure", real(low=0.0))
    confidence: float = parameter(
        0.95, "confidence of the bound of the loss", real(low=0.5, high=0.9999)
    )
    folds: int = parameter(5, "number of parts for cross-fitting the gaps", integer(low=2))
    random_state: int = shared.RANDOM_STATE
    n_threads: int | None = shared.N_SCORING_THREADS

    # -- training ---------------------------------------------------------------------------------

    def _fit(self, training: Training) -> Learned:
        data, owner = training.train, training.owner
        ranker = loaded(self.ranker, "ranker", owner, "a trained ranker or a model file")
        if not isinstance(ranker, Ranker):
            refuse("ranker", owner, "a trained ranker of rankgrove, or a model file", self.ranker)
        measure = parse_measure(self.measure)
        if measure.cutoff is None:
            refuse("measure", owner, "a measure with a cutoff, such as ndcg@10", str(measure))
        if data.n_queries < self.folds:
            raise DataError(
                f"{owner} needs at least {self.folds} queries for folds={self.folds}. Got "
                f"{data.n_queries}."
            )
        trees = _trees_of(ranker, owner)
        data = ranker._aligned(data, owner)
        fold = assign_parts(data.query_keys, self.folds, self.random_state, owner, least=2)
        trial = _Trial(trees, measure, data, fold, self.n_threads)
        exits, certificate = trial.boldest(self.max_loss, self.confidence)
        return {
            "ranker_": ranker,
            "exits_": exits,
            "certificate_": certificate,
            "saw_missing_": ranker.saw_missing_,
        }

    # -- prediction -------------------------------------------------------------------------------

    def predict(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return the ranker's scores of all documents: one float64 per row."""
        self._check_is_fitted()
        threads = self.n_threads if n_threads is None else n_threads
        return self.ranker_.predict(X, n_threads=threads)

    def predict_relevance(self, X: Documents, n_threads: int | None = None) -> Relevance:
        """Return what the scores mean, if the ranker is calibrated; see :class:`CalibratedRanker`.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : number of threads; None: the ranker's own `n_threads`
        """
        self._check_is_fitted()
        calibrated = calibrated_in(self)
        if calibrated is None:
            raise ParameterError(
                f"EarlyExitRanker.predict_relevance: {with_article(type(self.ranker_).__name__)} "
                "has scores without a scale. Calibrate it: rg.calibrate(model, data) (rankgrove "
                "calibrate)."
            )
        return calibrated.relevance_of(self.predict(X, n_threads))

    def scorer(self) -> Scorer:
        """Return the ranker in a form for services, whose ``top`` stops early."""
        self._check_is_fitted()
        return Scorer(_trees_of(self.ranker_, f"{type(self).__name__}.scorer"), self.exits_)

    # -- parts ------------------------------------------------------------------------------------

    def members(self) -> list[Any]:
        """Return the ranker whose documents are left out early."""
        return [self.ranker_]

    def own_trees(self) -> Ensemble | None:
        """Return the ranker's trees."""
        return self.ranker_.own_trees()

    def flat(self) -> Ensemble | None:
        """Return the trees whose sum is the score."""
        return self.ranker_.flat()

    def title(self) -> str:
        """Return the name of the ranker in tables."""
        ranker = self.ranker_ if hasattr(self, "ranker_") else self.ranker
        return f"{ranker.title() if isinstance(ranker, Ranker) else ranker}, early exit"

    def summary(self) -> str:
        """Return a text about the model: the ranker's summary and the certificate."""
        self._check_is_fitted()
        inside: Any = self.ranker_
        return f"{inside.summary()}\nearly exit: {self.certificate_}"

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        content, arrays = pack(self.ranker_, "ranker")
        exits = self.exits_
        if exits is not None:
            arrays |= {"ends": exits.ends, "gaps": exits.gaps}
        top = None if exits is None else exits.k
        return {"ranker": content, "top": top, "certificate": asdict(self.certificate_)}, arrays

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self.ranker = self.ranker_ = unpack(content["ranker"], arrays, "ranker")
        trees = self.ranker_.flat()
        if trees is None:
            raise ModelFileError("The ranker of the model file is not one sum of trees.")
        record = sense.table(content["certificate"], "the certificate")
        name, n_queries = record["measure"], sense.whole(record["n_queries"], "n_queries")
        words = ("value", "loss", "bound", "confidence", "saved", "unseen")
        numbers = {word: sense.number(record[word], word) for word in words}
        if not isinstance(name, str):
            raise ModelFileError("The certificate of the model file names no measure.")
        self.certificate_ = ExitCertificate(measure=name, n_queries=n_queries, **numbers)
        self.exits_ = None
        if content["top"] is None:
            return
        ends = sense.typed(arrays["ends"], np.int64, "the ends")
        gaps = sense.numbers(arrays["gaps"], "the gaps")
        rising = ends.size and ends[0] > 0 and (np.diff(ends) > 0).all()
        if not rising or ends[-1] != trees.n_trees or gaps.size != ends.size or gaps.min() < 0:
            raise ModelFileError("The rule for leaving documents out does not fit the trees.")
        self.exits_ = Exits(sense.whole(content["top"], "top", low=1), ends, gaps)


def calibrated_in(ranker: object) -> CalibratedRanker | None:
    """Return the calibrated ranker that a ranker is, or whose scores it has; None: there is none.

    Early exit does not change scores, so that they mean the same before and after it.
    """
    while isinstance(ranker, EarlyExitRanker):
        ranker = ranker.ranker_
    return ranker if isinstance(ranker, CalibratedRanker) else None


def _trees_of(ranker: Ranker, owner: str) -> Ensemble:
    ranker._check_is_fitted()
    trees = ranker.flat()
    if trees is None or trees.n_columns != 1:
        raise ParameterError(
            f"{owner} needs a ranker that is one sum of trees, and "
            f"{with_article(type(ranker).__name__)} is not: use boosted trees, or a bag of "
            "them with combine='mean'."
        )
    return trees


class _Trial:
    """Judged queries on which rules are learned and tried, each fold by the rule of the others."""

    def __init__(
        self,
        trees: Ensemble,
        measure: Measure,
        data: QueryDataset,
        fold: np.ndarray,
        n_threads: int | None,
    ) -> None:
        assert measure.cutoff is not None
        self.trees, self.data, self.fold, self.n_threads = trees, data, fold, n_threads
        self.k = measure.cutoff
        self.name = str(measure)
        self.prepared: PreparedMeasure = measure.prepare(
            data.grouped(data.y), data.query_ptr, n_threads
        )
        self.ends, self.shortfall, self.query = _shortfalls(trees, data, self.k, n_threads)
        self.full = self._values(score(trees, *_rows_of(data, trees), n_threads))
        self.defined = ~np.isnan(self.full)
        if not self.query.size or not self.defined.any():
            raise DataError(
                f"EarlyExitRanker.fit: {self.name} is not defined on the data (nothing relevant, "
                "or all labels equal), so that no loss can be measured. Use other queries."
            )

    def boldest(self, max_loss: float, confidence: float) -> tuple[Exits | None, ExitCertificate]:
        """Return the boldest rule whose loss has a small enough bound, and its certificate.

        Rules are tested from careful to bold, up to the first that fails: to choose one that loses
        more than `max_loss`, the search must pass the first such rule, which it does as seldom as
        the confidence says, without a correction for the number of rules. A fold's loss is by gaps
        from the other folds; the final gaps are learned from all, and are more careful on average.
        """
        n, value = int(self.defined.sum()), float(self.full[self.defined].mean())
        chosen: tuple[float, float] | None = None
        loss = bound = saved = 0.0
        unseen = self._size_of_losses()
        for share, factor in BOLDNESS:
            losses, part = self._losses(share, factor)
            mean, high = _upper_bound(losses, confidence, unseen if part > 0 else None)
            if not high <= max_loss:
                break
            chosen, loss, bound, saved = (share, factor), mean, high, part
        certificate = ExitCertificate(self.name, value, loss, bound, confidence, saved, n, unseen)
        if chosen is None:
            return None, certificate
        return Exits(self.k, self.ends, self._gaps(*chosen)), certificate

    def _size_of_losses(self) -> float:
        """Return the root mean square of the losses, or gains, that the boldest rule makes.

        Where it leaves out documents and changes no query, nothing is known of a loss: it may be
        all that a query has.
        """
        losses, part = self._losses(*BOLDNESS[-1])
        changed = losses[losses != 0]
        if not changed.size:
            changed = self.full[self.defined] if part > 0 else np.zeros(1)
        return float(np.sqrt(np.mean(changed**2)))

    def _losses(self, share: float, factor: float) -> tuple[np.ndarray, float]:
        """Return the loss of every query, and the share of pairs that was not evaluated."""
        scores, pairs, total = np.full(self.data.n_rows, -np.inf), 0.0, 0
        for k in range(int(self.fold.max()) + 1):
            exits = Exits(self.k, self.ends, self._gaps(share, factor, self.fold != k))
            inside = self.fold == k
            part = self.data.select(inside)
            best, saved = contenders(Scorer(self.trees, exits), part, self.k, self.n_threads)
            scores[np.repeat(inside, np.diff(self.data.query_ptr))] = best
            pairs += part.n_rows * (1.0 - saved)
            total += part.n_rows
        values = self._values(self.data.ungrouped(scores))
        return (self.full - values)[self.defined], 1.0 - pairs / total

    def _values(self, scores: np.ndarray) -> np.ndarray:
        ranking = rank(self.data.grouped(scores), self.data.query_ptr, self.n_threads)
        return self.prepared.values(ranking, self.n_threads)

    def _gaps(self, share: float, factor: float, queries: np.ndarray | None = None) -> np.ndarray:
        """Return the gaps that all but a share of the documents that count do not exceed."""
        rows = self.shortfall if queries is None else self.shortfall[queries[self.query]]
        if not rows.size:
            return np.full(self.ends.size, np.finfo(np.float64).max ** 0.5)
        return np.asarray(factor * np.maximum(np.quantile(rows, 1.0 - share, axis=0), 0.0))


def _rows_of(data: QueryDataset, trees: Ensemble) -> tuple[Any, Any]:
    features, rows = features_of(data, "EarlyExitRanker.fit")
    return features[:, : trees.n_features], rows


def _chunks(trees: Ensemble, ends: np.ndarray) -> Iterator[Ensemble]:
    """Yield the trees between two ends as ensembles."""
    for first, last in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        yield Ensemble.from_trees([trees.tree(t) for t in range(first, last)], trees.n_features)


def _shortfalls(
    trees: Ensemble, data: QueryDataset, k: int, n_threads: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how far documents that count are below the k-th best, after every chunk of trees.

    Documents that count are those of the final first k whose label is above the data's lowest.

    Returns
    -------
    the ends of the chunks; the shortfall, of shape (documents that count, chunks); their queries
    """
    from rankgrove.scoring.lanes import chunk_ends

    ends, ptr = chunk_ends(trees.n_trees), data.query_ptr
    sums, scores = np.empty((ends.size, data.n_rows)), np.full(data.n_rows, trees.base)
    features, rows = _rows_of(data, trees)
    for i, chunk in enumerate(_chunks(trees, ends)):
        scores = scores + score(chunk, features, rows, n_threads)
        sums[i] = data.grouped(scores)
    labels = data.grouped(data.y)
    counting, kth = [], np.empty((ends.size, data.n_queries))
    for q, (a, b) in enumerate(zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)):
        top = min(k, b - a)
        kth[:, q] = np.partition(sums[:, a:b], -top, axis=1)[:, -top]
        first = a + np.argsort(-sums[-1, a:b], kind="stable")[:top]
        counting.append(first[labels[first] > labels.min()])
    rows_of = np.concatenate(counting)
    query = np.repeat(np.arange(data.n_queries), [part.size for part in counting])
    return ends, (kth[:, query] - sums[:, rows_of]).T, query


def _upper_bound(
    losses: np.ndarray, confidence: float, unseen: float | None = None
) -> tuple[float, float]:
    """Return the mean and the upper end of its one-sided interval, by Student's t.

    Where a loss is rare, n queries may have none, and an interval without width: then the share p
    of queries with a loss is below 3 / n, with 95 % confidence, as (1 - p)^n >= .05 ("rule of
    three"). One more query, with the loss `unseen`, makes the bound (1 + 1.65) unseen / n instead,
    and with m losses in n about m + 1 + 1.65 sqrt(m + 1) of them: close to Poisson's limits.
    """
    from scipy.special import stdtrit

    mean = float(losses.mean())
    if losses.size < 2:
        return mean, np.inf
    sample = losses if unseen is None else np.append(losses, unseen)
    error = float(sample.std(ddof=1)) / np.sqrt(sample.size)
    return mean, float(sample.mean() + stdtrit(sample.size - 1, confidence) * error)
