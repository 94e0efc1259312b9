"""Hypotheses without parameters: rules of engines, orders of features, other models, roundings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from rankgrove.parity.case import Case, Change, Hypothesis, listed
from rankgrove.parity.column_changes import CHANGES, FILLS, ColumnChange
from rankgrove.parity.production import Production, single
from rankgrove.scoring.score import score as score_ensemble

_DIGITS = re.compile(r"(\d+)")
_MOST_DECIMALS = 6
LAST = 10_000  # rank of other engines: a rule of theirs by its own name says more


def plain_hypotheses(case: Case) -> list[Hypothesis]:
    """Return all hypotheses that can be tried at once, the simpler ones first."""
    makers = (_missing_rules, _widths, _comparisons, _stale, _orders, _models, _whole_columns)
    found = [hypothesis for maker in (*makers, _of_the_score) for hypothesis in maker(case)]
    ranked = [replace(hypothesis, rank=rank) for rank, hypothesis in enumerate(found)]
    return [*ranked, *_engines(case)]


def changing(case: Case, cause: str, detail: str, change: Change, least: int = 1) -> Hypothesis:
    """Return the hypothesis that values reach the model changed."""
    return Hypothesis(cause, detail, lambda rows: case.changed(change, rows), 0, least)


# -- rules ----------------------------------------------------------------------------------------


def _missing_rules(case: Case) -> Iterator[Hypothesis]:
    used = case.values[:, case.used]
    if case.missing.any():
        yield changing(case, "missing-as-zero", "a missing value is taken as 0", filled(0.0))
        for side, value in (("right", np.inf), ("left", -np.inf)):
            cause, detail = f"missing-{side}", f"a missing value goes to the {side} at every split"
            by = sided(case, side)
            if by is None:
                yield changing(case, cause, detail, filled(value))
            else:
                yield Hypothesis(cause, detail, _by(case, by), 0)
        opposite = sided(case, "opposite")
        if opposite is not None:
            detail = "a missing value goes to the other side than the model says at every split"
            yield Hypothesis("missing-opposite", detail, _by(case, opposite), 0)
        for fill in FILLS[1:5]:  # 0 and both sides have hypotheses of their own
            detail = f"a missing value of a feature is taken as {fill.title}"
            yield changing(case, "missing-as-number", detail, _of_all(case, fill))
    if (used == 0).any():
        yield changing(
            case, "zero-as-missing", "0 is taken for a missing value",
            lambda x, rows: np.where(x == 0, np.nan, x),
        )  # fmt: skip


def sided(case: Case, side: str) -> Production | None:
    """Return the model with all missing values sent elsewhere; None: its trees are not known.

    `side` is ``"left"``, ``"right"``, or ``"opposite"``: the other one at every split. An infinite
    value would do the same, but for splits that only missing values leave to the right.
    """
    production = case.production
    trees, with_trees = production.ensemble, production.with_trees
    if trees is None or with_trees is None:
        return None
    one = np.full(trees.feature.size, side == "left")
    turned = replace(trees, missing_left=~trees.missing_left if side == "opposite" else one)
    return replace(
        production,
        scores=with_trees(turned),
        ensemble=turned,
        fast=None if production.fast is None else lambda x: score_ensemble(turned, single(x)),
    )


def filled(value: float) -> Change:
    """Return the change that puts a number where values are missing."""
    return lambda x, rows: np.where(np.isnan(x), value, x)


def _widths(case: Case) -> Iterator[Hypothesis]:
    with np.errstate(over="ignore"):
        narrow = case.values.astype(np.float32).astype(np.float64)
    if not np.array_equal(narrow, case.values, equal_nan=True):
        yield changing(
            case, "float32", "features are rounded to float32", lambda x, rows: narrow[rows]
        )
    trees, with_trees = case.production.ensemble, case.production.with_trees
    if trees is None or with_trees is None or trees.threshold.dtype == np.float32:
        return
    with np.errstate(over="ignore"):
        rounded = replace(trees, threshold=trees.threshold.astype(np.float32).astype(np.float64))
    by = replace(case.production, scores=with_trees(rounded))
    yield Hypothesis(
        "float32", "features and thresholds are rounded to float32",
        lambda rows: case.scored(lambda x, at: narrow[at], rows, by), 0,
    )  # fmt: skip
    yield Hypothesis(
        "float32", "thresholds are rounded to float32",
        lambda rows: case.scored(None, rows, by), 0,
    )  # fmt: skip


def _comparisons(case: Case) -> Iterator[Hypothesis]:
    """A value that is one step higher is below a threshold where the value itself is not above.

    So `x < t` with x decides as `x <= t` with the next number below t, for all numbers of a width.
    """
    for width in (np.float32, np.float64):
        if width is np.float64 and not _is_double(case):
            continue
        name = width.__name__
        for cause, detail, towards in (
            ("strict-compare", "x < t is asked where the model asks x <= t", np.inf),
            ("loose-compare", "x <= t is asked where the model asks x < t", -np.inf),
        ):
            yield changing(case, cause, f"{detail} ({name})", _nudged(width, towards))


def _nudged(width: type[np.float32] | type[np.float64], towards: float) -> Change:
    def change(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.nextafter(x.astype(width), width(towards)).astype(np.float64)

    return change


def _is_double(case: Case) -> bool:
    trees = case.production.ensemble
    return trees is None or trees.threshold.dtype == np.float64


def _engines(case: Case) -> Iterator[Hypothesis]:
    for name, other in case.others.items():
        yield Hypothesis("engine-rules", f"scored by {name}", _by(case, other), LAST)


def _by(case: Case, production: Production) -> Callable[[np.ndarray], np.ndarray]:
    """Return the scores of rows by another model or engine."""
    return lambda rows: case.scored(None, rows, production)


# -- values ---------------------------------------------------------------------------------------


def _stale(case: Case) -> Iterator[Hypothesis]:
    reference, known = case.reference, case.known
    if reference is None or known is None:
        return
    with np.errstate(invalid="ignore"):
        same = (case.values == reference) | (np.isnan(case.values) & np.isnan(reference))
    differs = known & ~same
    counts = differs[:, case.used].sum(axis=0)
    order = case.used[np.argsort(-counts, kind="stable")]
    names = [case.names[j] for j in order.tolist() if differs[:, j].any()]
    if names:
        yield changing(
            case,
            "stale-features",
            f"the scores fit the reference's values; the log has others of {listed(names)}",
            lambda x, rows: np.where(known[rows], reference[rows], x),
        )


def _orders(case: Case) -> Iterator[Hypothesis]:
    k = len(case.names)
    if k < 2:
        return
    seen: set[tuple[int, ...]] = {tuple(range(k))}
    for detail, order in _likely_orders(case):
        if tuple(order.tolist()) not in seen:
            seen.add(tuple(order.tolist()))
            yield changing(case, "feature-order", detail, _reordered(order))
    for detail, by in (("next", 1), ("previous", -1)):
        yield changing(
            case, "feature-order",
            f"every feature has the value of the {detail} one (numbers shifted by one)",
            _shifted(by),
        )  # fmt: skip


def _likely_orders(case: Case) -> Iterator[tuple[str, np.ndarray]]:
    names, k = case.names, len(case.names)
    by_name = np.array(sorted(range(k), key=lambda j: names[j]))
    by_number = np.array(sorted(range(k), key=lambda j: _natural(names[j])))
    by_letter = np.array(sorted(range(k), key=lambda j: names[j].lower()))
    for detail, order in (
        ("sorted by name", by_name),
        ("sorted by name, numbers in them as numbers", by_number),
        ("sorted by name, regardless of case", by_letter),
    ):
        yield f"the model's columns are filled with the features {detail}", order
        yield f"the features are taken for those {detail}", np.argsort(order)
    yield "the features are in the reverse order", np.arange(k)[::-1]
    yield "the features are moved on by one", np.roll(np.arange(k), -1)
    yield "the features are moved back by one", np.roll(np.arange(k), 1)
    place = {name: j for j, name in enumerate(case.log.features)}
    if set(place) == set(names):
        order = np.array([names.index(name) for name in case.log.features])
        yield "the model's columns are filled in the log's order", order
        yield "the log's features are filled in the model's order", np.argsort(order)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key by which f2 comes before f10."""
    parts = _DIGITS.split(name)
    return [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in parts if p]


def _reordered(order: np.ndarray) -> Change:
    return lambda x, rows: x[:, order]


def _shifted(by: int) -> Change:
    """Return the change that shifts columns; a column beyond the end is missing."""

    def change(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        moved = np.full_like(x, np.nan)
        if by > 0:
            moved[:, :-1] = x[:, 1:]
        else:
            moved[:, 1:] = x[:, :-1]
        return moved

    return change


def _whole_columns(case: Case) -> Iterator[Hypothesis]:
    """All features are changed in the same way."""
    for change in CHANGES:
        detail = f"all features reach the model {change.title}"
        yield changing(case, "feature-normalised", detail, _of_all(case, change))


def _of_all(case: Case, change: ColumnChange) -> Change:
    """Return a change of all columns that the model reads."""

    def apply(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        changed = x.copy()
        for column in case.used.tolist():
            changed[:, column] = change.apply(case, column, rows)
        return changed

    return apply


def _models(case: Case) -> Iterator[Hypothesis]:
    for name, other in case.also.items():
        yield Hypothesis("model-version", f"scored by the model {name}", _by(case, other), 0)


def _rounded(scores: np.ndarray, decimals: int) -> np.ndarray:
    return np.round(scores, decimals)


def _cut_off(scores: np.ndarray, decimals: int) -> np.ndarray:
    return np.trunc(scores * 10.0**decimals) / 10.0**decimals


# -- the score ------------------------------------------------------------------------------------


def _of_the_score(case: Case) -> Iterator[Hypothesis]:
    """Yield functions of the score; a single score, or two rounded ones, may fit any by chance."""
    if np.unique(case.base).size < 2:
        return

    def after(
        cause: str, detail: str, function: Callable[[np.ndarray], np.ndarray], least: int = 2
    ) -> Hypothesis:
        def scores(rows: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                return function(case.base[rows])

        return Hypothesis(cause, detail, scores, 0, least)

    varied = np.unique(case.log.score).size > 1
    for d in range(_MOST_DECIMALS if varied else -1, -1, -1):
        least = max(2, 5 - d)  # the fewer decimals, the more scores are right by chance
        unit = f"{d} decimal{'s' * (d != 1)}"
        rounded, cut = partial(_rounded, decimals=d), partial(_cut_off, decimals=d)
        yield after("score-rounded", f"scores are rounded to {unit}", rounded, least)
        yield after("score-rounded", f"scores are cut off after {unit}", cut, least)
    yield after("score-rounded", "scores are float16", lambda s: s.astype(np.float16).astype(float))
    yield after("score-clipped", "negative scores are 0", lambda s: np.maximum(s, 0.0))
    yield after("score-clipped", "scores above 1 are 1", lambda s: np.clip(s, 0.0, 1.0))
    yield after(
        "score-transformed", "scores are 1 / (1 + exp(-score))", lambda s: 1 / (1 + np.exp(-s))
    )
    yield after("score-transformed", "scores are exp(score)", np.exp)
    yield after("score-transformed", "scores are log(1 + score)", np.log1p)
    yield after("score-transformed", "scores have the opposite sign", np.negative)
