"""Combining trained rankers: two of them exactly, and several."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.combine.interpolate import weighted_sum
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.files import write_atomically
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.rankers.ensembles.combination import CombinedRanker, run_search, search_weights
from rankgrove.rankers.inner_rankers import loaded
from rankgrove.showing import html_text
from rankgrove.sweep.sweep import Curve, sweep
from rankgrove.validation import check_choice, check_real, check_scores, refuse

RULE = "a trained ranker, the path of a model file, or one score per row"
FORMULAS = {"convex": "(1 - alpha) a + alpha b", "additive": "a + alpha b"}
POINTS = ("include", "exclude")


# -- results --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Result:
    """The common part of all results: weights of rankers, a value, predictions."""

    measure: Measure
    weights: np.ndarray
    value: float
    values: tuple[float, ...]
    names: tuple[str, ...]
    ranker: CombinedRanker | None

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_text(type(self).__name__, str(self))

    def predict(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        """Return the combined scores, one per row in the caller's order.

        Parameters
        ----------
        X : a data set or features; if scores were combined instead of rankers, the rankers'
            scores for the same rows, one array per ranker
        """
        if self.ranker is not None:
            return self.ranker.predict(X, n_threads)
        n = self.weights.size
        if isinstance(X, QueryDataset) or not hasattr(X, "__len__") or len(X) != n:
            raise DataError(
                f"Scores were combined, not rankers, so predict takes {n} arrays of scores, in "
                f"the same order: predict([{', '.join(self.names)}])."
            )
        n_rows = len(X[0])
        columns = [check_scores(scores, n_rows, "predict") for scores in X]
        return weighted_sum(columns, self.weights)

    def save(self, path: str | Path) -> None:
        """Write the combined ranker to a file; :func:`rankgrove.load` reads it."""
        if self.ranker is None:
            raise ParameterError(
                "Scores were combined, not rankers: there is no ranker to save. Combine rankers, "
                "or keep the weights."
            )
        self.ranker.save(path)

    def _table(self, rows: list[tuple[str, str]]) -> str:
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


@dataclass(frozen=True, eq=False, repr=False)
class OptimalCombination(_Result):
    """The result of :func:`optimal_combination`; prints as a table.

    Attributes
    ----------
    alpha : the best weight
    value : the mean of the measure there
    values : the two rankers' own means
    curve : the mean as a step function of alpha: ``curve.alpha`` (m + 1 points from the lowest to
        the highest weight), ``curve.value`` (m values between them), ``curve.at_low`` and
        ``curve.at_high``; ``curve.point_alpha`` and ``curve.point_value``, the single weights at
        which documents are tied and the mean is higher than on both sides
    stretch : the weights around alpha that all have this value; (alpha, alpha) for a single weight
    form, bounds : the form of the combination, and the range of alpha
    weights : the weights of the two rankers
    ranker : the combined ranker, or None if scores were given
    n_crossings : number of crossings of documents
    """

    alpha: float
    curve: Curve
    stretch: tuple[float, float]
    form: str
    bounds: tuple[float, float]
    n_crossings: int

    def __str__(self) -> str:
        a, b = self.names
        rows = [
            ("measure", str(self.measure)),
            (f"a: {a}", f"{self.values[0]:.4f}"),
            (f"b: {b}", f"{self.values[1]:.4f}"),
            ("combined", f"{self.value:.4f}"),
            ("alpha", f"{self.alpha:.6g} in {FORMULAS[self.form]}"),
            ("range", f"{self.bounds[0]:g} to {self.bounds[1]:g}"),
            (
                "crossings",
                f"{self.n_crossings:,}; the mean changes at {self.curve.value.size - 1:,} of them",
            ),
        ]
        if self.alpha in self.curve.point_alpha:
            single = "a single one, at which documents are tied; points='exclude' takes a stretch"
            rows.append(("weight", single))
        return self._table(rows)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the curve as CSV text, one stretch or point per line; write it to `path`.

        A point is a line whose `from` and `to` are equal: the ends of the range, and the single
        weights of ``curve.point_alpha``. Lines are in the order of `from`.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["from", "to", "value"])
        curve = self.curve
        low, high = curve.alpha[:1], curve.alpha[-1:]
        left = np.concatenate([low, curve.point_alpha, curve.alpha])
        right = np.concatenate([low, curve.point_alpha, curve.alpha[1:], high])
        value = np.concatenate([[curve.at_low], curve.point_value, curve.value, [curve.at_high]])
        order = np.argsort(left, kind="stable")
        columns = (column[order].tolist() for column in (left, right, value))
        writer.writerows(tuple(map(repr, row)) for row in zip(*columns, strict=True))
        if path is not None:
            write_atomically(path, out.getvalue())
        return out.getvalue()


@dataclass(frozen=True, eq=False, repr=False)
class Interpolation(_Result):
    """The result of :func:`interpolate`; prints as a table.

    Attributes
    ----------
    weights : one per ranker, adding up to 1
    value : the mean of the measure at the weights
    values : the rankers' own means
    history : the mean after every step of the search
    method : how the weights were found
    ranker : the combined ranker, or None if scores were given
    """

    method: str
    history: list[float]

    def __str__(self) -> str:
        rows = [("measure", f"{self.measure}   weight")]
        rows += [
            (name, f"{value:.4f}   {weight:.6g}")
            for name, value, weight in zip(
                self.names, self.values, self.weights.tolist(), strict=True
            )
        ]
        rows.append((f"combined ({self.method})", f"{self.value:.4f}"))
        return self._table(rows)


# -- combining ------------------------------------------------------------------------------------


def optimal_combination(
    a: Any,
    b: Any,
    dataset: QueryDataset,
    measure: str | Measure,
    form: str = "convex",
    bounds: tuple[float, float] | None = None,
    convention: str = "papers",
    *,
    points: str = "include",
    names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> OptimalCombination:
    """Find the best combination of two rankers for a measure, exactly.

    Every weight at which two documents change places is examined (LambdaMART paper, section 4), so
    the result is the best of all weights, not of a grid.

    Exactly where score lines meet, documents are tied. By the measure's rule for ties, such a
    single weight can be better than all weights next to it. It is chosen only if it is better than
    every stretch of weights, and if the rounded combined scores really give its value: evaluating
    the combination always gives the reported value.

    Parameters
    ----------
    a, b : trained rankers, paths of their model files, any models with ``predict``, or one score
        per row each
    dataset : the judged data to find the weight on
    measure : the measure to maximise, a name such as ``"ndcg@10"`` or a measure
    form : ``"convex"`` combines as (1 - alpha) a + alpha b, ``"additive"`` as a + alpha b
    bounds : lowest and highest alpha; None is (0, 1) for the convex form, which reaches every
        combination of positive weights. The additive form needs bounds.
    convention : how measures are defined where their names do not say it (see
        :func:`rankgrove.measure`)
    points : ``"include"`` allows a single weight, at which documents are tied, to be the best;
        ``"exclude"`` takes the best stretch of weights, or an end of the range, so that the value
        does not depend on exact ties
    names : names of the two in the printed result
    n_threads : threads to use, None for all cores; the result does not depend on it

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.QueryDataset(None, [1, 0, 0], qid=[1, 1, 1])
    >>> best = rg.optimal_combination([3, 4, 1], [3, 1, 4], data, "mrr")
    >>> best.alpha, best.value, best.values
    (0.5, 1.0, (0.5, 0.5))
    """
    owner = "optimal_combination"
    low, high = weight_bounds(form, bounds, owner)
    check_choice("points", owner, points, POINTS)
    chosen = target_measure(measure, convention)
    rankers = [loaded(ranker, name, owner, RULE) for name, ranker in (("a", a), ("b", b))]
    searcher = search_weights(rankers, checked_dataset(dataset, owner), chosen, owner, n_threads)
    best = sweep(
        searcher.prepared,
        *searcher.columns,
        form=form,
        low=low,
        high=high,
        points=points == "include",
        n_threads=n_threads,
    )
    assert best.curve is not None
    weights = np.array([1.0 - best.alpha if form == "convex" else 1.0, best.alpha])
    return OptimalCombination(
        measure=chosen,
        weights=weights,
        value=best.value,
        values=tuple(searcher.single_values()),
        names=_names(rankers, names, owner),
        ranker=_ranker(rankers, weights, dataset, chosen, best.value, n_threads),
        alpha=best.alpha,
        curve=best.curve,
        stretch=best.stretch,
        form=form,
        bounds=(low, high),
        n_crossings=best.n_crossings,
    )


def interpolate(
    rankers: Sequence[Any],
    dataset: QueryDataset,
    measure: str | Measure,
    method: str = "cyclic",
    convention: str = "papers",
    *,
    rounds: int = 20,
    names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Interpolation:
    """Find weights for several rankers on judged data.

    Parameters
    ----------
    rankers : two or more trained rankers, paths of their model files, models with ``predict``, or
        one score per row each
    dataset : the judged data, usually for validation
    measure : the measure to maximise
    method : ``"cyclic"`` sets one weight after the other to its exact optimum; the measure never
        falls, and the search ends when it no longer rises. ``"powell"`` is Powell's search.
    convention : how measures are defined where their names do not say it
    rounds : maximum number of passes over all weights
    names : names of the rankers in the printed result
    n_threads : threads to use, None for all cores; the result does not depend on it
    """
    owner = "interpolate"
    chosen = target_measure(measure, convention)
    if isinstance(rankers, Sequence) and not isinstance(rankers, str):
        rankers = [loaded(ranker, "rankers", owner, RULE) for ranker in rankers]
    searcher = search_weights(rankers, checked_dataset(dataset, owner), chosen, owner, n_threads)
    best = run_search(searcher, method, rounds, owner)
    return Interpolation(
        measure=chosen,
        weights=best.weights,
        value=best.value,
        values=tuple(searcher.single_values()),
        names=_names(rankers, names, owner),
        ranker=_ranker(rankers, best.weights, dataset, chosen, best.value, n_threads),
        method=method,
        history=best.values,
    )


def weight_bounds(form: str, bounds: Any, owner: str) -> tuple[float, float]:
    """Return the lowest and the highest weight; the defaults depend on the form."""
    check_choice("form", owner, form, FORMULAS)
    if bounds is None:
        if form == "additive":
            refuse("bounds", owner, "given for the additive form, as in (0.1, 100)", bounds)
        return 0.0, 1.0
    try:
        low, high = bounds
    except (TypeError, ValueError):
        refuse("bounds", owner, "a pair (lowest, highest weight)", bounds)
    low, high = check_real("bounds", owner, low), check_real("bounds", owner, high)
    if low >= high:
        refuse("bounds", owner, "the lowest weight and then a higher one", bounds)
    return low, high


def checked_dataset(dataset: object, owner: str) -> QueryDataset:
    """Return a data set; refuse anything else."""
    if not isinstance(dataset, QueryDataset):
        raise DataError(f"{owner} needs a QueryDataset. Got {type(dataset).__name__} instead.")
    return dataset


def _names(rankers: Sequence[Any], names: Sequence[str] | None, owner: str) -> tuple[str, ...]:
    if names is None:
        return tuple(
            type(ranker).__name__ if hasattr(ranker, "predict") else f"scores {i}"
            for i, ranker in enumerate(rankers, 1)
        )
    if len(names) != len(rankers):
        refuse("names", owner, f"one per ranker ({len(rankers)})", list(names))
    return tuple(map(str, names))


def _ranker(
    rankers: Sequence[Any],
    weights: np.ndarray,
    data: QueryDataset,
    measure: Measure,
    value: float,
    n_threads: int | None,
) -> CombinedRanker | None:
    """Return the combined ranker, or None if some rankers are only scores."""
    if not all(hasattr(ranker, "predict") for ranker in rankers):
        return None
    ranker = CombinedRanker(tuple(rankers), str(measure), n_threads=n_threads)
    return ranker.with_weights(weights, data, value)
