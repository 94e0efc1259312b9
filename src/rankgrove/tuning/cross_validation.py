"""``rg.cross_validate``: one ranker on k folds of a data set, divided by query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.evaluation.evaluate import Evaluation, evaluate
from rankgrove.measures.base import Measure, exact_mean
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.rankers.base import Ranker
from rankgrove.showing import html_text
from rankgrove.tuning.tables import markdown
from rankgrove.validation import counted, refuse

# A fold: a mask of the test queries, and the training, validation and test data.
Part = tuple[np.ndarray, QueryDataset, QueryDataset | None, QueryDataset]


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """The result of :func:`cross_validate`.

    Attributes
    ----------
    ranker : the name of the ranker
    folds : the evaluation of every fold's test queries
    pooled : the evaluation of all queries, each scored by the model that did not see it
    scores : the scores of these models, one per row of the data, in the caller's order
    models : the trained rankers, one per fold
    """

    ranker: str
    folds: list[Evaluation]
    pooled: Evaluation
    scores: np.ndarray
    models: list[Any]

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_text("Cross-validation", str(self))

    def __str__(self) -> str:
        """Return the measures fold by fold, their mean, and those of all queries together."""
        names = list(self.pooled.mean)
        rows = [
            [f"fold {k}", fold.query_ids.size, *(f"{fold.mean[m]:.4f}" for m in names)]
            for k, fold in enumerate(self.folds, 1)
        ]
        total = self.pooled.query_ids.size
        means = {m: exact_mean(np.array([fold.mean[m] for fold in self.folds])) for m in names}
        rows.append(["mean of folds", total, *(f"{means[m]:.4f}" for m in names)])
        pooled = []
        for m in names:
            low, high = self.pooled.interval[m]
            pooled.append(f"{self.pooled.mean[m]:.4f} ({low:.4f} - {high:.4f})")
        rows.append(["all queries (95 % interval)", total, *pooled])
        return "\n".join(
            [
                f"{self.ranker}, {counted(len(self.folds), 'fold')} by query",
                markdown(["", "queries", *names], rows),
                f"convention: {self.pooled.convention}{self.pooled._left_out()}",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but scores and models as plain values."""
        return {
            "ranker": self.ranker,
            "convention": self.pooled.convention,
            "folds": [fold.rows() for fold in self.folds],
            "all queries": self.pooled.to_dict(),
        }


def cross_validate(
    base: Ranker,
    data: QueryDataset,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    n_folds: int = 5,
    *,
    valid: bool = False,
    convention: str = "papers",
    seed: int | None = 0,
    n_threads: int | None = None,
    callback: Callable[[int, Evaluation], None] | None = None,
) -> CrossValidation:
    """Train a ranker on every k - 1 of k parts of the queries, and measure it on the other part.

    Parameters
    ----------
    base : the untrained ranker
    data : judged data; the documents of a query stay together
    measures : measures to compute; None: the ranker's measure
    n_folds : number of parts
    valid : use the part after the test part as validation data, as in LETOR's folds, and not as
        training data; rankers with early stopping need it
    convention : how measures are defined where their names do not say it
    seed : seed of the split into parts; None: by the order of the queries
    n_threads : threads to use, None for all cores
    callback : called with the number of a fold (from 1) and its evaluation after each fold

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_artificial(40, seed=1)
    >>> result = rg.cross_validate(rg.LambdaMART(n_trees=5), data, ["ndcg@10", "map"], 4)
    >>> len(result.folds), result.pooled.query_ids.size
    (4, 40)
    """
    owner = "cross_validate"
    if not isinstance(base, Ranker) or "valid" not in base.fit_takes:
        refuse("base", owner, "a ranker to train, such as rg.LambdaMART()", base)
    if not isinstance(data, QueryDataset):
        raise DataError(f"{owner} needs a QueryDataset. Got {type(data).__name__}.")
    chosen: Any = getattr(base, "measure", "ndcg@10") if measures is None else measures
    names = [chosen] if isinstance(chosen, str | Measure) else list(chosen)
    for name in names:
        parse_measure(name, convention)
    check_valid_fold(base, valid, f"give {owner} valid=True (--valid-fold on the command line)")
    pool, folds, models = Pool(data), [], []
    for k, (tested, train, watched, test) in enumerate(parts_of(data, n_folds, valid, seed), 1):
        model = fitted(base, train, watched, names[0], n_threads)
        scores = model.predict(test, n_threads=n_threads)
        pool.put(tested, test, scores)
        folds.append(evaluate(scores, test, names, convention, n_threads=n_threads))
        models.append(model)
        if callback is not None:
            callback(k, folds[-1])
    pooled = evaluate(pool.scores, data, names, convention, n_threads=n_threads)
    return CrossValidation(base.title(), folds, pooled, pool.scores, models)


def check_valid_fold(base: Ranker, valid: bool, remedy: str) -> None:
    """Refuse a ranker that needs validation data if there is no fold for it."""
    try:
        base.check_valid(valid)
    except ParameterError as error:
        needs = str(error).partition(": give fit")[0]
        raise ParameterError(f"{needs}: {remedy}.") from None


class Pool:
    """The scores of every query by the model that was not trained on it."""

    def __init__(self, data: QueryDataset) -> None:
        self.data = data
        self._grouped = np.full(data.n_rows, np.nan)

    def put(self, tested: np.ndarray, test: QueryDataset, scores: np.ndarray) -> None:
        """Add the scores of the test queries; `tested` is their mask among all queries."""
        rows = np.repeat(tested, np.diff(self.data.query_ptr))
        self._grouped[rows] = test.grouped(scores)

    @property
    def scores(self) -> np.ndarray:
        """One score per row of the data, in the caller's order."""
        return self.data.ungrouped(self._grouped)


def parts_of(data: QueryDataset, n_folds: int, valid: bool, seed: int | None) -> Iterator[Part]:
    """Yield every fold: a mask of the test queries, and training, validation and test data."""
    part = assign_parts(data.query_keys, n_folds, seed, "k_fold", least=3 if valid else 2)
    for k in range(n_folds):
        after = (k + 1) % n_folds if valid else k
        watched = data.select(part == after) if valid else None
        yield part == k, data.select((part != k) & (part != after)), watched, data.select(part == k)


def fitted(
    base: Ranker,
    train: QueryDataset,
    valid: QueryDataset | None,
    measure: str | Measure,
    n_threads: int | None,
) -> Any:
    """Return a trained copy of `base`; Ctrl-C ends the whole run."""
    ranker: Any = clone(base)
    if n_threads is not None and "n_threads" in ranker.get_params(deep=False):
        ranker.set_params(n_threads=n_threads)
    ranker.fit(train, **({} if valid is None else {"valid": valid, "valid_measures": measure}))
    if getattr(ranker, "interrupted_", False):
        raise KeyboardInterrupt
    return ranker
