"""``rg.variance_analysis``: how much a ranker hangs on the queries it was trained on (Table 5)."""

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
from rankgrove.experiments.study import markdown
from rankgrove.measures.base import Measure, exact_mean
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.rankers.base import Ranker
from rankgrove.validation import check_integer, check_real, refuse


@dataclass(frozen=True, eq=False)
class Variance:
    """What :func:`variance_analysis` found.

    Attributes
    ----------
    values : ranker -> measure -> one mean a sample
    """

    values: dict[str, dict[str, np.ndarray]]

    def variance(self, ranker: str, measure: str) -> float:
        """Return the variance over the samples."""
        values = self.values[ranker][measure]
        if np.all(values == values[0]):  # by way of the mean, rounding would leave a little
            return 0.0
        return float(values.var(ddof=1))

    def change(self, ranker: str, against: str, measure: str) -> float:
        """Return the change of the variance from one ranker to another: -0.5 is half of it.

        NaN where the other one has no variance.
        """
        before = self.variance(against, measure)
        return self.variance(ranker, measure) / before - 1.0 if before > 0.0 else math.nan

    def table(self) -> str:
        """Return means, variances, and their change against the first ranker (-: it has none)."""
        first, rows = next(iter(self.values)), []
        measures = list(self.values[first])
        for name, own in self.values.items():
            row = [name]
            for m in measures:
                row += [f"{exact_mean(own[m]):.4f}", f"{1e6 * self.variance(name, m):.1f}"]
                change = self.change(name, first, m)
                shown = "-" if math.isnan(change) else f"{100 * change:+.1f} %"
                row.append("" if name == first else shown)
            rows.append(row)
        header = ["", *(h for m in measures for h in (m, "variance x 10^6", "change"))]
        return markdown(header, rows)

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
    """Train rankers on random samples of the queries; compare the variance of their figures.

    Parameters
    ----------
    rankers : untrained rankers by name; the first is what others are compared with
    train, test, valid : samples are drawn from the training queries
    measures, convention : what to measure on the test data
    n_samples, query_fraction : the paper's 10 samples of 67 % of the queries, without replacement
    cluster, n_threads : as in a BaggedRanker
    random_state : seed of the samples, and of the rankers' own draws

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_artificial(60, seed=1), rg.make_artificial(40, seed=2)
    >>> one = rg.LambdaMART(n_trees=5)
    >>> found = rg.variance_analysis(
    ...     {"one": one, "bag": rg.BaggedRanker(one, 3)}, train, test, n_samples=3, measures="map"
    ... )
    >>> list(found.values), found.values["bag"]["map"].shape
    (['one', 'bag'], (3,))
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
    for one in listed:
        prepared_on(parse_measure(one, convention), test, f"{owner}, test data", n_threads)
    shared = (dict(rankers), train, test, valid, listed, convention, query_fraction, random_state)
    tasks = [(name, sample) for name in rankers for sample in range(n_samples)]
    found = run_tasks(fit_sample, shared, tasks, cluster=cluster, n_threads=n_threads)
    values: dict[str, dict[str, np.ndarray]] = {}
    for i, name in enumerate(rankers):
        own = found[i * n_samples : (i + 1) * n_samples]
        values[name] = {m: np.array([one[m] for one in own]) for m in own[0]}
    return Variance(values)


def fit_sample(shared: Any, task: tuple[str, int], n_threads: int | None) -> dict[str, float]:
    """Train one ranker on one sample; return its means on the test data."""
    rankers, train, test, valid, measures, convention, fraction, seed = shared
    name, sample = task
    made = clone(rankers[name])
    own = made.get_params(deep=False)
    if "random_state" in own:
        made.set_params(random_state=int(own["random_state"]) + sample)
    if n_threads is not None and "n_threads" in own:
        made.set_params(n_threads=n_threads)
    seen = sampled_queries(train.query_keys, fraction, seed, sample)
    with named_sample(f"Sample {sample + 1} of {name!r}", seen):
        made.fit(train.select(seen), **({} if valid is None else {"valid": valid}))
    means: dict[str, float] = evaluate(made, test, measures, convention).mean
    return means
