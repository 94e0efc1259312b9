"""``rg.survey``: all rankers on one's own data, in one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.data.folds import hold_out
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError, RankgroveError
from rankgrove.evaluation.evaluate import Evaluation, evaluate
from rankgrove.evaluation.significance import paired_t
from rankgrove.experiments.classical import SYSTEMS
from rankgrove.experiments.cross_validation import Part, Pool, fitted, parts_of
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.study import Study, markdown, p_text
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.validation import check_choice, counted, nearest

MEASURES = ("ndcg@10", "ndcg@1", "map", "mrr", "err")
HELD_OUT = 0.2  # of the training queries, where there is test data and no validation data


@dataclass(frozen=True, eq=False)
class Surveyed:
    """One ranker of a survey.

    Attributes
    ----------
    name : its name in the table
    evaluation : on the test queries
    seconds : of training, all folds together
    scores : one a row of the test data
    model : the trained ranker; None where there were several folds
    """

    name: str
    evaluation: Evaluation
    seconds: float
    scores: np.ndarray
    model: Any


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """What :func:`survey` found.

    Attributes
    ----------
    rankers : the best first, by the first measure
    measures : by the names the caller gave them
    data : the judged data that all were measured on
    how : on what they were trained and measured, in words
    failed : rankers that could not be trained on this data, and why
    """

    rankers: list[Surveyed]
    measures: list[str]
    data: QueryDataset
    how: str
    failed: dict[str, str]

    def __repr__(self) -> str:
        return str(self)

    def p_against_best(self) -> dict[str, float | None]:
        """Return the p-value of the paired t-test against the best, by ranker; its own is None."""
        name = self.measures[0]
        best, *others = (one.evaluation.per_query[name] for one in self.rankers)
        values = [None, *(paired_t(_known(best - other)) for other in others)]
        return {one.name: p for one, p in zip(self.rankers, values, strict=True)}

    def __str__(self) -> str:
        """Return the table."""
        p = self.p_against_best()
        rows = []
        for one in self.rankers:
            means, intervals = one.evaluation.mean, one.evaluation.interval
            cells = [
                f"{means[m]:.4f} ({(intervals[m][1] - intervals[m][0]) / 2:.4f})"
                for m in self.measures
            ]
            own = p[one.name]
            rows.append([one.name, *cells, "" if own is None else p_text(own), _time(one.seconds)])
        header = ["", *self.measures, f"p against {self.rankers[0].name}", "training"]
        first = self.rankers[0].evaluation
        lines = [
            f"{counted(len(rows), 'ranker')}: {self.how}",
            markdown(header, rows),
            f"Means over queries (half width of the 95 % interval); p of the paired t-test of "
            f"{self.measures[0]}, not corrected for the number of rankers.",
            f"convention: {first.convention}{first._left_out()}",
            *(f"left out: {name}: {why}" for name, why in self.failed.items()),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values."""
        p = self.p_against_best()
        return {
            "how": self.how,
            "convention": self.rankers[0].evaluation.convention,
            "rankers": [
                {
                    "name": one.name,
                    "measures": one.evaluation.rows(),
                    "p against the best": p[one.name],
                    "seconds": round(one.seconds, 3),
                }
                for one in self.rankers
            ],
            "left out": self.failed,
        }


def survey(
    train: QueryDataset,
    valid: QueryDataset | None = None,
    test: QueryDataset | None = None,
    *,
    rankers: Iterable[str] | None = None,
    measures: str | Measure | Iterable[str | Measure] = MEASURES,
    convention: str = "papers",
    scale: str = "small",
    n_folds: int = 5,
    seed: int = 0,
    n_threads: int | None = None,
    callback: Callable[[str, Surveyed | None], None] | None = None,
) -> Survey:
    """Train every ranker of the toolkit on some data, and compare them on queries not seen.

    Settings are those of the experiment ``rankgrove reproduce classical-letor``: rounds and C are
    chosen by the first measure on validation queries.

    Parameters
    ----------
    train : judged data to train on. Alone, it is divided into folds by query, each of which tests
        once and validates once
    valid : validation data; None: a fifth of the training queries
    test : what all are measured on; None: folds of `train`, and then no `valid` either
    rankers : names, as the table has them; None: all
    measures : what to measure; the first decides
    convention : what measures' names do not say
    scale : "small": few rounds, minutes; "full": as many as in the papers
    n_folds, seed : of the folds
    n_threads : threads to use, None for all cores
    callback : called with every ranker's name before it is trained, and when it is done also with
        what was found

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_artificial(30, seed=1), rg.make_artificial(20, seed=2)
    >>> found = rg.survey(train, test=test, rankers=["RankBoost", "AdaRank-MAP"], measures="map")
    >>> sorted(one.name for one in found.rankers)
    ['AdaRank-MAP', 'RankBoost']
    """
    owner = "survey"
    check_choice("scale", owner, scale, ["small", "full"])
    names = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not names:
        raise ParameterError("survey needs at least one measure, such as 'ndcg@10'.")
    for one in names:
        parse_measure(one, convention)
    chosen = _chosen(list(SYSTEMS) if rankers is None else list(rankers))
    if test is None and valid is not None:
        raise DataError("survey: validation data needs test data too; or leave both out for folds.")
    parts, judged, how = _divided(train, valid, test, n_folds, seed)
    study = Study(scale, ResultStore(None, {}), n_threads)
    found: list[Surveyed] = []
    failed: dict[str, str] = {}
    for name in chosen:
        if callback is not None:
            callback(name, None)
        try:
            line = _surveyed(name, study, parts, judged, names, convention)
        except RankgroveError as error:
            failed[name] = str(error)
            continue
        found.append(line)
        if callback is not None:
            callback(name, line)
    if not found:
        raise DataError(f"survey: no ranker could be trained. {next(iter(failed.values()))}")
    first = str(names[0])
    found.sort(key=lambda one: -np.nan_to_num(one.evaluation.mean[first], nan=-np.inf))
    return Survey(found, [str(one) for one in names], judged, how, failed)


def _chosen(names: list[str]) -> list[str]:
    """Return the names of systems, in whatever case they were given."""
    known = {name.lower(): name for name in SYSTEMS}
    for name in names:
        if name.lower() not in known:
            raise ParameterError(
                f"survey has no ranker {name!r}{nearest(name.lower(), known)}. It has: "
                f"{'; '.join(SYSTEMS)}."
            )
    return list(dict.fromkeys(known[name.lower()] for name in names))


def _divided(
    train: QueryDataset,
    valid: QueryDataset | None,
    test: QueryDataset | None,
    n_folds: int,
    seed: int,
) -> tuple[list[Part], QueryDataset, str]:
    """Return what to train, choose and test on, the data of all tests, and how in words."""
    if test is None:
        parts = list(parts_of(train, n_folds, True, seed))
        return (
            parts,
            train,
            (
                f"{counted(n_folds, 'fold')} by query, each tests once; rounds and C are "
                f"chosen on the next; {counted(train.n_queries, 'query', 'queries')}"
            ),
        )
    how = "rounds and C are chosen on the validation data"
    if valid is None:
        train, valid = hold_out(train, HELD_OUT, seed=seed)
        how = f"rounds and C are chosen on {HELD_OUT:.0%} of the training queries, held out"
    every = np.ones(test.n_queries, np.bool_)
    n_queries = counted(test.n_queries, "test query", "test queries")
    return [(every, train, valid, test)], test, f"{how}; {n_queries}"


def _surveyed(
    name: str,
    study: Study,
    parts: list[Part],
    judged: QueryDataset,
    measures: list[Any],
    convention: str,
) -> Surveyed:
    pool, seconds, model = Pool(judged), 0.0, None
    for chosen, train, valid, test in parts:
        began = time.perf_counter()
        model = fitted(SYSTEMS[name](study), train, valid, measures[0], study.n_threads)
        seconds += time.perf_counter() - began
        pool.put(chosen, test, model.predict(test, n_threads=study.n_threads))
    found = evaluate(pool.scores, judged, measures, convention, n_threads=study.n_threads)
    return Surveyed(name, found, seconds, pool.scores, model if len(parts) == 1 else None)


def _known(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
