"""Comparing systems query by query: differences, wins and losses, three significance tests."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.data.trec import as_qrels
from rankgrove.errors import DataError, ParameterError
from rankgrove.evaluation.evaluate import (
    Evaluation,
    Judged,
    QueryId,
    System,
    check_treatment,
    confidence_interval,
    evaluation_of,
    judged_data,
    named_measures,
    reasons_text,
    short,
    tied_text,
    unjudged_lines,
    usual_convention,
)
from rankgrove.evaluation.significance import holm, paired_t, randomisation, wilcoxon_signed_rank
from rankgrove.files import write_atomically
from rankgrove.measures.base import Measure, exact_mean
from rankgrove.measures.conventions import CONVENTIONS
from rankgrove.showing import html_table
from rankgrove.validation import check_choice, check_integer, counted


@dataclass(frozen=True)
class Contrast:
    """One system against another, on the queries for which both have a value.

    ``difference`` is the mean of `system` minus that of `against`, with its 95 % interval
    (``low``, ``high``); ``p_*`` are two-sided p-values, ``holm_*`` the same corrected for the
    number of contrasts in the comparison.
    """

    system: str
    against: str
    difference: float
    low: float
    high: float
    wins: int
    losses: int
    ties: int
    p_t: float
    p_wilcoxon: float
    p_randomisation: float
    holm_t: float = math.nan
    holm_wilcoxon: float = math.nan
    holm_randomisation: float = math.nan


@dataclass(frozen=True)
class Comparison:
    """The result of :func:`compare`; prints as a table.

    Attributes
    ----------
    measure : the measure
    mean : the mean of every system over the common queries
    query_ids : the ids of the common queries
    per_query : the values of every system for them
    contrasts : the pairs of systems that were compared
    convention : the convention for parameters that the measure's name does not give
    missing : for runs, the judged queries that each lacks
    missing_queries : how they were treated: ``"zero"`` (they count 0) or ``"drop"``
    dropped : a dict from the id of a query that the measure leaves out to the reason
    tied_queries : for every system, as in :class:`Evaluation`
    unjudged : how documents without a judgement were treated
    bounds : with ``unjudged="bounds"``, for every system its mean over the common queries in the
        worst and the best case. Differences and tests are those of irrelevant documents
    """

    measure: Measure
    measure_name: str
    mean: dict[str, float]
    query_ids: np.ndarray
    per_query: dict[str, np.ndarray]
    contrasts: tuple[Contrast, ...]
    convention: str
    missing: dict[str, tuple[QueryId, ...]]
    missing_queries: str
    dropped: dict[QueryId, str] = field(default_factory=dict)
    tied_queries: dict[str, int] = field(default_factory=dict)
    unjudged: str = "irrelevant"
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        names = [len(name) for name in self.mean]
        width = max(6, *names)
        wide = max(8, len(self.measure_name))
        lines = [f"{'system':<{width}}  {self.measure_name:>8}"]
        lines[0] += "   worst    best" if self.bounds else ""
        for name, mean in self.mean.items():
            edges = "".join(f"  {bound:6.4f}" for bound in self.bounds.get(name, ()))
            lines.append(f"{name:<{width}}  {mean:{wide}.4f}{edges}")
        several = len(self.contrasts) > 1
        pair_width = max(10, *(len(c.system) + len(c.against) + 3 for c in self.contrasts))
        title = "Holm-corrected p" if several else "p-value"
        lines += [
            "",
            f"{'':<{pair_width}}  {'':>10}  {'':>20}  {'':>15}  {title:>32}",
            f"{'comparison':<{pair_width}}  {'difference':>10}  {'95 % interval':>20}  "
            f"{'win/loss/tie':>15}  {'t-test':>8}  {'Wilcoxon':>8}  {'randomis.':>12}",
        ]
        for c in self.contrasts:
            pair = f"{c.system} - {c.against}"
            interval = _signed_interval(c.low, c.high)
            counts = f"{c.wins}/{c.losses}/{c.ties}"
            p_values = (
                (c.holm_t, c.holm_wilcoxon, c.holm_randomisation)
                if several
                else (c.p_t, c.p_wilcoxon, c.p_randomisation)
            )
            t, w, r = (_p_text(p) for p in p_values)
            lines.append(
                f"{pair:<{pair_width}}  {c.difference:>+10.4f}  {interval:>20}  {counts:>15}  "
                f"{t:>8}  {w:>8}  {r:>12}"
            )
        lines.append(self._footer())
        ties = {name: n for name, n in self.tied_queries.items() if n}
        lines += [f"{name}: equal scores {tied_text(n)}." for name, n in ties.items()]
        lines += unjudged_lines(self.unjudged)
        return "\n".join([*lines, *missing_lines(self.missing, self.missing_queries)])

    def _repr_html_(self) -> str:
        means = [
            [name, f"{mean:.4f}", *(f"{bound:.4f}" for bound in self.bounds.get(name, ()))]
            for name, mean in self.mean.items()
        ]
        several = len(self.contrasts) > 1
        rows = [
            [
                f"{c.system} - {c.against}",
                f"{c.difference:+.4f}",
                _signed_interval(c.low, c.high),
                f"{c.wins}/{c.losses}/{c.ties}",
                _p_text(c.holm_t if several else c.p_t),
                _p_text(c.holm_wilcoxon if several else c.p_wilcoxon),
                _p_text(c.holm_randomisation if several else c.p_randomisation),
            ]
            for c in self.contrasts
        ]
        header = ["comparison", "difference", "95 % interval", "win/loss/tie"]
        header += ["p: t-test", "Wilcoxon", "randomisation"]
        note = self._footer()
        note += "; p corrected by Holm" if several else ""
        note = "\n".join([note, *unjudged_lines(self.unjudged)])
        names = ["system", self.measure_name, *(["worst", "best"] if self.bounds else [])]
        return html_table("Comparison", names, means) + html_table("", header, rows, note)

    def _footer(self) -> str:
        n = self.query_ids.size
        text = f"{counted(n, 'query', 'queries')}; convention: {self.convention}"
        if self.dropped:
            total = counted(n + len(self.dropped), "query", "queries")
            text += f"; left out of {total}: {reasons_text(self.dropped)}"
        return text

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per contrast."""
        return [asdict(contrast) for contrast in self.contrasts]

    def to_pandas(self) -> Any:
        """Return the contrasts as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return {
            "measure": self.measure_name,
            "definition": str(self.measure),
            "convention": self.convention,
            "mean": self.mean,
            "contrasts": self.rows(),
            "queries": self.query_ids.tolist(),
            "per_query": {name: values.tolist() for name, values in self.per_query.items()},
            "missing": {name: list(queries) for name, queries in self.missing.items()},
            "missing_queries": self.missing_queries,
            "dropped": {str(qid): why for qid, why in self.dropped.items()},
            "unjudged": self.unjudged,
        } | (
            {"bounds": {name: list(both) for name, both in self.bounds.items()}}
            if self.bounds
            else {}
        )

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the values of all queries and systems as CSV text, and write it to `path`.

        Values are rounded to 12 significant digits.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["qid", *self.per_query])
        columns = [[short(value) for value in values] for values in self.per_query.values()]
        writer.writerows(zip(self.query_ids.tolist(), *columns, strict=True))
        if path is not None:
            write_atomically(path, out.getvalue())
        return out.getvalue()

    def to_json(self, path: str | Path | None = None) -> str:
        """Return everything as JSON text, and write it to `path` if one is given."""
        text = json.dumps(self.to_dict())
        if path is not None:
            write_atomically(path, text + "\n")
        return text


class Comparisons(dict[str, Comparison]):
    """Comparisons by several measures, by the measures' names; prints as one table each."""

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n\n".join(str(comparison) for comparison in self.values())

    def _repr_html_(self) -> str:
        return "".join(comparison._repr_html_() for comparison in self.values())

    def to_pandas(self) -> Any:
        """Return the contrasts by all measures as one pandas frame, with a column ``measure``."""
        import pandas as pd

        rows = [
            {"measure": name, **row}
            for name, comparison in self.items()
            for row in comparison.rows()
        ]
        return pd.DataFrame(rows)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return everything as JSON text, by measure, and write it to `path` if one is given."""
        text = json.dumps({name: comparison.to_dict() for name, comparison in self.items()})
        if path is not None:
            write_atomically(path, text + "\n")
        return text


@overload
def compare(  # type: ignore[overload-overlap]  # a str is an iterable of str
    systems: Mapping[str, System],
    dataset: Judged,
    measure: str | Measure,
    convention: str | None = ...,
    *,
    missing_queries: str = ...,
    unjudged: str = ...,
    against: str = ...,
    n_samples: int = ...,
    seed: int = ...,
    n_threads: int | None = ...,
) -> Comparison: ...


@overload
def compare(
    systems: Mapping[str, System],
    dataset: Judged,
    measure: Iterable[str | Measure],
    convention: str | None = ...,
    *,
    missing_queries: str = ...,
    unjudged: str = ...,
    against: str = ...,
    n_samples: int = ...,
    seed: int = ...,
    n_threads: int | None = ...,
) -> Comparisons: ...


def compare(
    systems: Mapping[str, System],
    dataset: Judged,
    measure: str | Measure | Iterable[str | Measure],
    convention: str | None = None,
    *,
    missing_queries: str = "zero",
    unjudged: str = "irrelevant",
    against: str = "first",
    n_samples: int = 100_000,
    seed: int = 0,
    n_threads: int | None = None,
) -> Comparison | Comparisons:
    """Compare systems query by query.

    Parameters
    ----------
    systems : mapping from name to model, scores or (with qrels) run, in the forms that
        :func:`evaluate` takes
    dataset : the judged data, as a data set or (X, y, qid); or qrels
    measure : the measure by which systems are compared, or several
    convention : the source of parameters that the name of the measure does not give; None:
        ``"papers"``, and ``"trec"`` for runs against qrels
    missing_queries : judged queries that a run lacks count 0 (``"zero"``), or are left out for all
        systems (``"drop"``)
    unjudged : documents of a run that the qrels lack, as in :func:`evaluate`. With ``"bounds"``
        they count as irrelevant, and every system's worst and best mean are added; the differences
        of two systems are not bounded, for a document may be in both rankings
    against : ``"first"`` compares every system with the first, ``"all"`` every pair
    n_samples, seed : of the randomisation test
    n_threads : threads to use; None: all cores

    Returns
    -------
    a :class:`Comparison`; for several measures, a dict of them by the names of the measures.
    Holm's correction counts the contrasts by one measure

    Warns
    -----
    UserWarning
        If a run lacks judged queries.

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_artificial(200, seed=1)
    >>> result = rg.compare({"f1": data.column(1), "f2": data.column(2)}, data, "ndcg@10")
    >>> len(result.contrasts), result.contrasts[0].system
    (1, 'f2')
    """
    if not isinstance(systems, Mapping) or len(systems) < 2:
        raise ParameterError("compare needs a mapping of at least two names to systems.")
    check_choice("against", "compare", against, ["first", "all"])
    check_integer("n_samples", "compare", n_samples, low=100)
    check_integer("seed", "compare", seed, low=0)
    check_choice("missing_queries", "compare", missing_queries, ["zero", "drop"])
    dataset = judged_data(dataset, next(iter(systems.values())), "compare")
    convention = convention or usual_convention(dataset)
    check_choice("convention", "compare", convention, CONVENTIONS)
    named = named_measures(measure, convention)
    check_treatment(unjudged, named, dataset, "compare")
    judged = dataset if isinstance(dataset, QueryDataset) else as_qrels(dataset)
    evaluations = {}
    for name, system in systems.items():
        try:
            evaluations[str(name)] = evaluation_of(
                system, judged, named, convention, missing_queries, n_threads, unjudged
            )
        except DataError as error:
            raise DataError(f"The system {name!r}: {error}") from None
    comparisons = Comparisons(
        {
            name: _comparison(evaluations, name, against, n_samples, seed, n_threads)
            for name in named
        }
    )
    first = next(iter(comparisons.values()))
    for line in missing_lines(first.missing, missing_queries):
        warnings.warn(line, stacklevel=2)
    return first if isinstance(measure, str | Measure) else comparisons


def missing_lines(missing: dict[str, tuple[QueryId, ...]], missing_queries: str) -> list[str]:
    """Return one line for every system whose run lacks judged queries, with their number."""
    effect = "counted as 0" if missing_queries == "zero" else "left out for all systems"
    return [
        f"{name} lacks {counted(len(queries), 'judged query', 'judged queries')}, {effect}."
        for name, queries in missing.items()
        if queries
    ]


def _comparison(
    evaluations: dict[str, Evaluation],
    measure: str,
    against: str,
    n_samples: int,
    seed: int,
    n_threads: int | None,
) -> Comparison:
    """Compare the systems by one of the measures that they were evaluated by."""
    ids, per_query = _common(evaluations, measure)
    shown = next(iter(evaluations.values())).measures[measure].shown
    names = list(per_query)
    pairs = (
        [(b, a) for a, b in itertools.combinations(names, 2)]
        if against == "all"
        else [(name, names[0]) for name in names[1:]]
    )
    contrasts = [
        _contrast(a, b, paired(per_query[a], per_query[b]), n_samples, seed, n_threads)
        for a, b in pairs
    ]
    first = evaluations[names[0]]
    return Comparison(
        first.measures[measure],
        measure,
        {name: shown(exact_mean(v)) for name, v in per_query.items()},
        ids,
        per_query,
        tuple(_with_holm(contrasts)),
        first.convention,
        {name: evaluation.missing for name, evaluation in evaluations.items()},
        first.missing_queries,
        {qid: why for e in evaluations.values() for qid, why in e.dropped[measure].items()},
        {name: evaluation.tied_queries for name, evaluation in evaluations.items()},
        first.unjudged,
        {
            name: (shown(exact_mean(worst)), shown(exact_mean(best)))
            for name, (worst, best) in _common_bounds(evaluations, measure, ids).items()
        },
    )


def _common_bounds(
    evaluations: dict[str, Evaluation], measure: str, ids: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the worst and the best values of every system for some queries, if there are any."""
    found = {}
    wanted = ids.tolist()
    for name, evaluation in evaluations.items():
        if measure in evaluation.per_query_bounds:
            place = {qid: i for i, qid in enumerate(evaluation.query_ids.tolist())}
            rows = [place[qid] for qid in wanted]
            worst, best = evaluation.per_query_bounds[measure]
            found[name] = (worst[rows], best[rows])
    return found


def _common(
    evaluations: dict[str, Evaluation], measure: str
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the queries for which all systems have a value, in the first system's order."""
    tables = []
    for result in evaluations.values():
        values = result.per_query[measure]
        pairs = zip(result.query_ids.tolist(), values.tolist(), strict=True)
        tables.append({qid: v for qid, v in pairs if not math.isnan(v)})
    ids = [qid for qid in tables[0] if all(qid in table for table in tables)]
    if not ids:
        raise DataError(f"There is no query for which all systems have a value of {measure}.")
    values_of = {
        name: np.array([table[qid] for qid in ids])
        for name, table in zip(evaluations, tables, strict=True)
    }
    return np.array(ids), values_of


def paired(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return the difference of every query; 0 if the values differ by rounding only.

    Equal values may differ in their last bits if they were summed in another order. Such a
    difference must count neither as a win nor in the ranks of the tests.
    """
    difference = ours - theirs
    larger = np.maximum(np.abs(ours), np.abs(theirs))
    difference[np.abs(difference) <= 1e-13 * larger] = 0.0
    return difference


def _contrast(
    a: str, b: str, difference: np.ndarray, n_samples: int, seed: int, n_threads: int | None
) -> Contrast:
    low, high = confidence_interval(difference)
    return Contrast(
        a,
        b,
        exact_mean(difference),
        low,
        high,
        int((difference > 0).sum()),
        int((difference < 0).sum()),
        int((difference == 0).sum()),
        paired_t(difference),
        wilcoxon_signed_rank(difference),
        randomisation(difference, n_samples, seed, n_threads),
    )


def _with_holm(contrasts: list[Contrast]) -> list[Contrast]:
    adjusted = {
        f"holm_{test}": holm([getattr(c, f"p_{test}") for c in contrasts])
        for test in ("t", "wilcoxon", "randomisation")
    }
    return [
        Contrast(**(asdict(c) | {name: values[i] for name, values in adjusted.items()}))
        for i, c in enumerate(contrasts)
    ]


def _p_text(p: float) -> str:
    if math.isnan(p):
        return "-"
    return "<.0001" if p < 0.0001 else f"{p:.4f}"


def _signed_interval(low: float, high: float) -> str:
    """Return an interval as ``-0.1000 to +0.3000``; for a single query, which has none, ``-``."""
    return "-" if math.isnan(low) else f"{low:+.4f} to {high:+.4f}"
