"""``rg.variance_analysis``: how much measures vary over samples of training queries (Table 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from rankgrove.bagging.sample import named_sample, sampled_queries
from rankgrove.cluster.engine import run_tasks
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.evaluation.evaluate import evaluate, prepared_on
from rankgrove.measures.base import Measure, exact_mean
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.rankers.base import Ranker
from rankgrove.showing import html_text
from rankgrove.tuning.tables import markdown
from rankgrove.validation import check_integer, check_real, refuse


@dataclass(frozen=True, eq=False)
class Variance:
    """The result of :func:`variance_analysis`.

    Attributes
    ----------
    values : ranker -> measure -> one mean per sample
    """

    values: dict[str, dict[str, np.ndarray]]

    def variance(self, ranker: str, measure: str) -> float:
        """Return the variance over the samples."""
        values = self.values[ranker][measure]
        if np.all(values == values[0]):  # the rounded mean would give a tiny variance
            return 0.0
        return float(values.var(ddof=1))

    def change(self, ranker: str, against: str, measure: str) -> float:
        """Return the relative change of the variance against another ranker: -0.5 is half of it.

        NaN if the other ranker has no variance.
        """
        before = self.variance(against, measure)
        return self.variance(ranker, measure) / before - 1.0 if before > 0.0 else math.nan

    def table(self) -> str:
        """Return means, variances, and their change against the first ranker.

        A change of "-" says that the first ranker has no variance.
        """
        first, rows = next(iter(self.values)), []
        measures = list(self.values[first])
        for name, values in self.values.items():
            row = [name]
            for m in measures:
                row += [f"{exact_mean(values[m]):.4f}", f"{1e6 * self.variance(name, m):.1f}"]
                change = self.change(name, first, m)
                shown = "-" if math.isnan(change) else f"{100 * change:+.1f} %"
                row.append("" if name == first else shown)
            rows.append(row)
        header = ["", *(h for m in measures for h in (m, "variance x 10^6", "change"))]
        return markdown(header, rows)

    def _repr_html_(self) -> str:
        return html_text("Variance over training data", self.table())

    def __repr__(self) -> str:
        return self.table()


def variance_analysis(
    rankers: Mapping[str, Ranker],
    train: QueryDataset,
    test: QueryDataset,
    *,
    valid: QueryDataset | None = None,
    measures: str | Measure | Sequence[str | Measure] = ("ndcg@3", "map"),
    convention: str = "papers",
    n_samples: int = 10,
    query_fraction: float = 0.67,
    cluster: Any = None,
    n_threads: int | None = None,
    random_state: int = 0,
) -> Variance:
    """Train rankers on random samples of the queries; compare the variance of their measures.

    Parameters
    ----------
    rankers : untrained rankers by name; the others are compared with the first
    train, test, valid : samples are drawn from the training queries
    measures, convention : measures to compute on the test data
    n_samples, query_fraction : the paper's 10 samples of 67 % of the queries, without replacement
    cluster, n_threads : as in a BaggedRanker
    random_state : seed of the samples

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_artificial(60, seed=1), rg.make_artificial(40, seed=2)
    >>> ranker = rg.LambdaMART(n_trees=5)
    >>> rankers = {"single": ranker, "bag": rg.BaggedRanker(ranker, 3)}
    >>> variance = rg.variance_analysis(rankers, train, test, n_samples=3, measures="map")
    >>> list(variance.values), variance.values["bag"]["map"].shape
    (['single', 'bag'], (3,))
    """
    owner = "variance_analysis"
    if not isinstance(rankers, Mapping) or not rankers:
        refuse("rankers", owner, "rankers by name, as in {'one': rg.LambdaMART()}", rankers)
    for ranker in rankers.values():
        if not isinstance(ranker, Ranker) or not hasattr(ranker, "fit"):
            refuse("rankers", owner, "untrained rankers", ranker)
    check_integer("n_samples", owner, n_samples, low=2)
    check_real("query_fraction", owner, query_fraction, above=0.0, high=1.0)
    listed = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not isinstance(test, QueryDataset):
        raise DataError(f"{owner} needs a QueryDataset to test on. Got {type(test).__name__}.")
    for measure in listed:
        prepared_on(parse_measure(measure, convention), test, f"{owner}, test data", n_threads)
    shared = (dict(rankers), train, test, valid, listed, convention, query_fraction, random_state)
    tasks = [(name, sample) for name in rankers for sample in range(n_samples)]
    means = run_tasks(fit_sample, shared, tasks, cluster=cluster, n_threads=n_threads)
    values: dict[str, dict[str, np.ndarray]] = {}
    for i, name in enumerate(rankers):
        of_ranker = means[i * n_samples : (i + 1) * n_samples]
        values[name] = {m: np.array([sample[m] for sample in of_ranker]) for m in of_ranker[0]}
    return Variance(values)


def fit_sample(shared: Any, task: tuple[str, int], n_threads: int | None) -> dict[str, float]:
    """Train one ranker on one sample; return its means on the test data."""
    rankers, train, test, valid, measures, convention, fraction, seed = shared
    name, sample = task
    ranker = clone(rankers[name])
    parameters = ranker.get_params(deep=False)
    if "random_state" in parameters:
        ranker.set_params(random_state=int(parameters["random_state"]) + sample)
    if n_threads is not None and "n_threads" in parameters:
        ranker.set_params(n_threads=n_threads)
    seen = sampled_queries(train.query_keys, fraction, seed, sample)
    with named_sample(f"Sample {sample + 1} of {name!r}", seen):
        ranker.fit(train.select(seen), **({} if valid is None else {"valid": valid}))
    means: dict[str, float] = evaluate(ranker, test, measures, convention).mean
    return means
