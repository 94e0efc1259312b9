"""``rg.survey``: all rankers on the user's data, in one table."""

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
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.showing import html_text
from rankgrove.tuning.cross_validation import Part, Pool, fitted, parts_of
from rankgrove.tuning.survey_rankers import RANKERS, Size, size_at
from rankgrove.tuning.tables import markdown, p_text
from rankgrove.validation import check_choice, counted, nearest

MEASURES = ("ndcg@10", "ndcg@1", "map", "mrr", "err")
HELD_OUT = 0.2  # share of training queries held out for validation if only test data is given


@dataclass(frozen=True, eq=False)
class Surveyed:
    """One ranker of a survey.

    Attributes
    ----------
    name : its name in the table
    evaluation : the evaluation of the test queries
    seconds : time of training, all folds together
    scores : one score per row of the test data
    model : the trained ranker; None if there were several folds
    """

    name: str
    evaluation: Evaluation
    seconds: float
    scores: np.ndarray
    model: Any


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """The result of :func:`survey`.

    Attributes
    ----------
    rankers : the best first, by the first measure
    measures : the measures, by the names that the caller used
    data : the judged data on which all were measured
    how : a description of the training and test data
    failed : rankers that could not be trained on this data, with the error message
    """

    rankers: list[Surveyed]
    measures: list[str]
    data: QueryDataset
    how: str
    failed: dict[str, str]

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_text("Survey", str(self))

    def p_against_best(self) -> dict[str, float | None]:
        """Return the p-value of the paired t-test against the best, by ranker; its own is None."""
        name = self.measures[0]
        best, *others = (ranker.evaluation.per_query[name] for ranker in self.rankers)
        values = [None, *(paired_t(_known(best - other)) for other in others)]
        return {ranker.name: p for ranker, p in zip(self.rankers, values, strict=True)}

    def __str__(self) -> str:
        """Return the table."""
        p = self.p_against_best()
        rows = []
        for ranker in self.rankers:
            means, intervals = ranker.evaluation.mean, ranker.evaluation.interval
            cells = [
                f"{means[m]:.4f} ({(intervals[m][1] - intervals[m][0]) / 2:.4f})"
                for m in self.measures
            ]
            p_value = p[ranker.name]
            shown = "" if p_value is None else p_text(p_value)
            rows.append([ranker.name, *cells, shown, _time(ranker.seconds)])
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
                    "name": ranker.name,
                    "measures": ranker.evaluation.rows(),
                    "p against the best": p[ranker.name],
                    "seconds": round(ranker.seconds, 3),
                }
                for ranker in self.rankers
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
    """Train every ranker of the toolkit on the given data, and compare them on unseen queries.

    Settings are those of the experiment ``rankgrove reproduce classical-letor``: rounds and C are
    chosen by the first measure on validation queries.

    Parameters
    ----------
    train : judged data to train on. Without `test` it is divided into folds by query, each of
        which is test data once and validation data once
    valid : validation data; None: a fifth of the training queries
    test : test data for all rankers; None: folds of `train`, and then no `valid` either
    rankers : names, as in the table; None: all
    measures : measures to compute; the first chooses rounds and C, and sorts the table
    convention : how measures are defined where their names do not say it
    scale : "small": few rounds, minutes; "full": as many rounds as in the papers
    n_folds, seed : number of folds, and seed of the split
    n_threads : threads to use, None for all cores
    callback : called with the name of a ranker and None before it is trained, and with the name
        and its result afterwards

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_artificial(30, seed=1), rg.make_artificial(20, seed=2)
    >>> survey = rg.survey(train, test=test, rankers=["RankBoost", "AdaRank-MAP"], measures="map")
    >>> sorted(ranker.name for ranker in survey.rankers)
    ['AdaRank-MAP', 'RankBoost']
    """
    owner = "survey"
    check_choice("scale", owner, scale, ["small", "full"])
    names = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not names:
        raise ParameterError("survey needs at least one measure, such as 'ndcg@10'.")
    for measure in names:
        parse_measure(measure, convention)
    chosen = _chosen(list(RANKERS) if rankers is None else list(rankers))
    if test is None and valid is not None:
        raise DataError("survey: validation data needs test data too; or leave both out for folds.")
    parts, judged, how = _divided(train, valid, test, n_folds, seed)
    size = size_at(scale)
    surveyed: list[Surveyed] = []
    failed: dict[str, str] = {}
    for name in chosen:
        if callback is not None:
            callback(name, None)
        try:
            result = _surveyed(name, size, parts, judged, names, convention, n_threads)
        except RankgroveError as error:
            failed[name] = str(error)
            continue
        surveyed.append(result)
        if callback is not None:
            callback(name, result)
    if not surveyed:
        raise DataError(f"survey: no ranker could be trained. {next(iter(failed.values()))}")
    first = str(names[0])
    surveyed.sort(key=lambda ranker: -np.nan_to_num(ranker.evaluation.mean[first], nan=-np.inf))
    return Survey(surveyed, [str(measure) for measure in names], judged, how, failed)


def _chosen(names: list[str]) -> list[str]:
    """Return the names of rankers as in the table; upper and lower case do not matter."""
    known = {name.lower(): name for name in RANKERS}
    for name in names:
        if name.lower() not in known:
            raise ParameterError(
                f"survey has no ranker {name!r}{nearest(name.lower(), known)}. It has: "
                f"{'; '.join(RANKERS)}."
            )
    return list(dict.fromkeys(known[name.lower()] for name in names))


def _divided(
    train: QueryDataset,
    valid: QueryDataset | None,
    test: QueryDataset | None,
    n_folds: int,
    seed: int,
) -> tuple[list[Part], QueryDataset, str]:
    """Return the folds, the data of all their test queries, and a description of both."""
    if test is None:
        how = (
            f"{counted(n_folds, 'fold')} by query, each used once for testing; rounds and C are "
            f"chosen on the next; {counted(train.n_queries, 'query', 'queries')}"
        )
        return list(parts_of(train, n_folds, True, seed)), train, how
    how = "rounds and C are chosen on the validation data"
    if valid is None:
        train, valid = hold_out(train, HELD_OUT, seed=seed)
        how = f"rounds and C are chosen on {HELD_OUT:.0%} of the training queries, held out"
    every = np.ones(test.n_queries, np.bool_)
    n_queries = counted(test.n_queries, "test query", "test queries")
    return [(every, train, valid, test)], test, f"{how}; {n_queries}"


def _surveyed(
    name: str,
    size: Size,
    parts: list[Part],
    judged: QueryDataset,
    measures: list[str | Measure],
    convention: str,
    n_threads: int | None,
) -> Surveyed:
    pool, seconds, model = Pool(judged), 0.0, None
    for tested, train, valid, test in parts:
        began = time.perf_counter()
        model = fitted(RANKERS[name](size), train, valid, measures[0], n_threads)
        seconds += time.perf_counter() - began
        pool.put(tested, test, model.predict(test, n_threads=n_threads))
    evaluation = evaluate(pool.scores, judged, measures, convention, n_threads=n_threads)
    return Surveyed(name, evaluation, seconds, pool.scores, model if len(parts) == 1 else None)


def _known(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
