"""``rg.cross_validate``: one ranker on k folds of a data set, divided by query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.evaluation.evaluate import Evaluation, evaluate
from rankgrove.experiments.study import markdown
from rankgrove.measures.base import Measure, exact_mean
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.rankers.base import Ranker
from rankgrove.validation import counted, refuse

# Numbered parts of a data set: which queries test, and what to train and validate on.
Part = tuple[np.ndarray, QueryDataset, QueryDataset | None, QueryDataset]


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """What :func:`cross_validate` found.

    Attributes
    ----------
    ranker : its name
    folds : the evaluation of every fold's test queries
    pooled : that of all queries, each scored by the model that did not see it
    scores : one a row of the data, in the caller's order, of those models
    models : the trained rankers, one a fold
    """

    ranker: str
    folds: list[Evaluation]
    pooled: Evaluation
    scores: np.ndarray
    models: list[Any]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """Return the figures fold by fold, their mean, and those of all queries together."""
        names = list(self.pooled.mean)
        rows = [
            [f"fold {k}", one.query_ids.size, *(f"{one.mean[m]:.4f}" for m in names)]
            for k, one in enumerate(self.folds, 1)
        ]
        total = self.pooled.query_ids.size
        means = {m: exact_mean(np.array([one.mean[m] for one in self.folds])) for m in names}
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
            "folds": [one.rows() for one in self.folds],
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
    """Train a ranker on every k - 1 of k parts of the queries, and measure it on the other.

    Parameters
    ----------
    base : the ranker, untrained
    data : judged data; no query is cut
    measures : what to measure; None: the ranker's own measure
    n_folds : number of parts
    valid : whether the part after the one that tests is validation data, as in LETOR's folds, and
        not training data; rankers that stop early need it
    convention : what measures' names do not say
    seed : of the division; None: by the order of the queries
    n_threads : threads to use, None for all cores
    callback : called with the number of a fold (from 1) and its evaluation, when it is done

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_artificial(40, seed=1)
    >>> found = rg.cross_validate(rg.LambdaMART(n_trees=5), data, ["ndcg@10", "map"], 4)
    >>> len(found.folds), found.pooled.query_ids.size
    (4, 40)
    """
    owner = "cross_validate"
    if not isinstance(base, Ranker) or not hasattr(base, "check_valid"):
        refuse("base", owner, "a ranker to train, such as rg.LambdaMART()", base)
    if not isinstance(data, QueryDataset):
        raise DataError(f"{owner} needs a QueryDataset. Got {type(data).__name__}.")
    given: Any = getattr(base, "measure", "ndcg@10") if measures is None else measures
    names = [given] if isinstance(given, str | Measure) else list(given)
    for one in names:
        parse_measure(one, convention)
    base.check_valid(valid)
    pool, folds, models = Pool(data), [], []
    for k, (chosen, train, watched, test) in enumerate(parts_of(data, n_folds, valid, seed), 1):
        model = fitted(base, train, watched, names[0], n_threads)
        scores = model.predict(test, n_threads=n_threads)
        pool.put(chosen, test, scores)
        folds.append(evaluate(scores, test, names, convention, n_threads=n_threads))
        models.append(model)
        if callback is not None:
            callback(k, folds[-1])
    pooled = evaluate(pool.scores, data, names, convention, n_threads=n_threads)
    return CrossValidation(type(base).__name__, folds, pooled, pool.scores, models)


class Pool:
    """The scores of every query by the model that did not see it."""

    def __init__(self, data: QueryDataset) -> None:
        self.data = data
        self._grouped = np.full(data.n_rows, np.nan)

    def put(self, chosen: np.ndarray, test: QueryDataset, scores: np.ndarray) -> None:
        """Take the scores of the chosen queries."""
        rows = np.repeat(chosen, np.diff(self.data.query_ptr))
        self._grouped[rows] = test.grouped(scores)

    @property
    def scores(self) -> np.ndarray:
        """One a row of the data, in the caller's order."""
        return self.data.ungrouped(self._grouped)


def parts_of(data: QueryDataset, n_folds: int, valid: bool, seed: int | None) -> Iterator[Part]:
    """Give every fold: which queries test, and the data to train, validate and test on."""
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
    """Return a ranker like `base`, trained; Ctrl-C ends the whole run."""
    made: Any = clone(base)
    if n_threads is not None and "n_threads" in made.get_params(deep=False):
        made.set_params(n_threads=n_threads)
    made.fit(train, **({} if valid is None else {"valid": valid, "valid_measures": measure}))
    if getattr(made, "interrupted_", False):
        raise KeyboardInterrupt
    return made
