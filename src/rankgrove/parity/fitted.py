"""Hypotheses with numbers that are found in the scores: constants and factors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankgrove.parity.case import Case, Hypothesis

_EXACT = 3e-7  # relative error of factors that are found in float32 scores
_PAIRS = 60  # pairs of documents from which factors are computed
RANK = 1000  # of the simplest of these hypotheses


def fitted_hypotheses(case: Case, rows: np.ndarray, simple: list[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses whose numbers fit most of `rows`; `simple` are tried with them."""
    found = [*_of_scores(case, rows, None), *_with_columns(case, rows), *_times_column(case, rows)]
    for hypothesis in simple:
        found += _of_scores(case, rows, hypothesis)
    return found


# -- constants and factors ------------------------------------------------------------------------


def _of_scores(case: Case, rows: np.ndarray, on: Hypothesis | None) -> Iterator[Hypothesis]:
    """Yield a constant, a factor, and both, on top of another hypothesis or of none."""
    scores = case.base[rows] if on is None else on.scores(rows)
    logged, allowed = case.log.score[rows], case.allowed(rows) + case.noise
    good = np.isfinite(scores)
    scores, logged, allowed = scores[good], logged[good], allowed[good]
    if np.unique(scores).size < 3:
        return
    begin = "" if on is None else f"{on.detail}; and "
    rank = RANK + (0 if on is None else 100 + on.rank)
    c = common(logged - scores, allowed)
    c = None if c is None else neat(c, _EXACT * max(1.0, abs(c)))
    if c is not None and abs(c) > 2 * allowed.max():
        detail = f"{begin}scores are {'higher' if c > 0 else 'lower'} by {abs(c):.9g}"
        if on is None:
            detail += _meaning(case, c)
        yield _linear(case, on, "constant", detail, 1.0, c, rank)
    with np.errstate(all="ignore"):
        big = np.abs(scores) > np.abs(scores).max() / 100
        a = common(logged[big] / scores[big], allowed[big] / np.abs(scores[big]))
    a = None if a is None else neat(a, _EXACT * abs(a))
    if a is not None and abs(a - 1.0) > 1e-6:
        detail = f"{begin}scores are {a:.9g} times as high" if a else "all scores are 0"
        yield _linear(case, on if a else None, "scale", detail, a, 0.0, rank + 1)
    if c is None and a is None:
        line = _line(scores, logged, allowed)
        if line is not None:
            detail = f"{begin}scores are {line[0]:.9g} x score {_signed(line[1])}"
            yield _linear(case, on, "scale", detail, line[0], line[1], rank + 2)


def _linear(
    case: Case, on: Hypothesis | None, cause: str, detail: str, a: float, c: float, rank: int
) -> Hypothesis:
    def scores(rows: np.ndarray) -> np.ndarray:
        return a * (case.base[rows] if on is None else on.scores(rows)) + c

    named = cause if on is None else on.cause
    least = 3 if cause == "constant" else 4
    return Hypothesis(named, detail, scores, rank, least, case.noise * max(1.0, abs(a)))


def _meaning(case: Case, constant: float) -> str:
    """Return what a constant is, if it is a number of the model."""
    trees = case.production.ensemble
    if trees is None:
        return ""
    allowed = 1e-5 * max(1.0, abs(constant))
    if trees.base and abs(constant + trees.base) <= allowed:
        return ": the model's start value (base_score) is not added"
    if trees.base and abs(constant - trees.base) <= allowed:
        return ": the model's start value (base_score) is added twice"
    if case.production.fast is not None:
        rows = np.arange(min(len(case.log), 50))
        shift = float(np.median(case.base[rows] - case.production.fast(case.values[rows])))
        if abs(shift) > allowed and abs(constant + shift) <= allowed:
            return ": the shift that keeps scores above 0 in the converted file is not added"
    return ""


def common(numbers: np.ndarray, allowed: np.ndarray) -> float | None:
    """Return the number around which most numbers are, if at least three are."""
    good = np.isfinite(numbers)
    numbers, allowed = numbers[good], allowed[good]
    if numbers.size < 3:
        return None
    order = np.argsort(numbers, kind="stable")
    ordered, width = numbers[order], allowed[order]
    stop = np.searchsorted(ordered, ordered + 2 * width, side="right")
    size = stop - np.arange(ordered.size)
    best = int(np.argmax(size))
    if size[best] < 3:
        return None
    return float(np.median(ordered[best : stop[best]]))


def neat(value: float, width: float) -> float:
    """Return the number with the fewest digits that is as near as `width`."""
    for digits in range(1, 16):
        short = float(f"{value:.{digits}g}")
        if abs(short - value) <= width:
            return short
    return value


def _pairs_of(n: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of numbers below n, far apart and near."""
    step = max(1, n // 7)
    for k in range(_PAIRS):
        i = (k * 5) % n
        j = (i + 1 + (k * step) % max(1, n - 1)) % n
        if i != j:
            yield i, j


def _line(
    scores: np.ndarray, logged: np.ndarray, allowed: np.ndarray
) -> tuple[float, float] | None:
    """Return factor and constant that fit at least four documents of three scores."""
    best: tuple[int, float, float] | None = None
    for i, j in _pairs_of(scores.size):
        if scores[i] == scores[j]:
            continue
        a = (logged[i] - logged[j]) / (scores[i] - scores[j])
        c = logged[i] - a * scores[i]
        fits = np.abs(a * scores + c - logged) <= 4 * allowed
        n = int(fits.sum())
        enough = abs(a) > 1e-9 and n >= 4 and np.unique(scores[fits]).size >= 4
        if enough and (best is None or n > best[0]):
            slope, constant = np.polyfit(scores[fits], logged[fits], 1).tolist()
            best = (
                n,
                neat(slope, _EXACT * abs(slope)),
                neat(constant, _EXACT * max(1.0, abs(constant))),
            )
    return None if best is None else best[1:]


def _with_columns(case: Case, rows: np.ndarray) -> Iterator[Hypothesis]:
    """Yield a x score + b x feature, as rescoring adds the first score."""
    scores, logged, allowed = case.base[rows], case.log.score[rows], case.allowed(rows)
    best: tuple[int, int, float, float] | None = None
    for column, _ in enumerate(case.log.features):
        x = case.log.values[rows, column]
        x = np.where(np.isnan(x), 0.0, x)
        if np.unique(x).size < 3:
            continue
        for i, j in list(_pairs_of(rows.size))[:20]:
            system = np.array([[scores[i], x[i]], [scores[j], x[j]]])
            size = np.abs(system).max()
            if not np.isfinite(size) or abs(np.linalg.det(system)) <= 1e-9 * size**2:
                continue
            a, b = np.linalg.solve(system, logged[[i, j]]).tolist()
            fits = np.abs(a * scores + b * x - logged) <= 4 * allowed
            n = int(fits.sum())
            if n >= 5 and abs(b) > 1e-9 and abs(a) > 1e-9 and (best is None or n > best[0]):
                design = np.column_stack([scores, x])[fits]
                a, b = np.linalg.lstsq(design, logged[fits], rcond=None)[0].tolist()
                best = (n, column, neat(a, _EXACT * abs(a)), neat(b, _EXACT * abs(b)))
    if best is None:
        return
    _, column, a, b = best
    name = case.log.features[column]

    def combined(at: np.ndarray) -> np.ndarray:
        x = case.log.values[at, column]
        return a * case.base[at] + b * np.where(np.isnan(x), 0.0, x)

    detail = f"scores are {_times(a)}score {_signed(b)} x {name}"
    yield Hypothesis("rescore", detail, combined, RANK + 5, 5, case.noise * max(1.0, abs(a)))


def _times_column(case: Case, rows: np.ndarray) -> Iterator[Hypothesis]:
    """Yield a x score x feature, as rescoring multiplies by the first score."""
    scores, logged, allowed = case.base[rows], case.log.score[rows], case.allowed(rows)
    best: tuple[int, int, float] | None = None
    for column, _ in enumerate(case.log.features):
        product = scores * np.nan_to_num(case.log.values[rows, column])
        some = (product != 0) & (logged != 0)
        if np.unique(product[some]).size < 3:
            continue
        with np.errstate(over="ignore"):
            width = (allowed[some] + case.noise) / np.abs(product[some])
            a = common(logged[some] / product[some], 4 * width)
        if not a:
            continue
        a = neat(a, _EXACT * abs(a))
        fits = np.abs(a * product - logged) <= 4 * allowed + case.noise * np.abs(a)
        n = int((fits & some).sum())
        if n >= 5 and (best is None or n > best[0]):
            best = (n, column, a)
    if best is None:
        return
    _, column, a = best

    def multiplied(at: np.ndarray) -> np.ndarray:
        return a * case.base[at] * np.nan_to_num(case.log.values[at, column])

    size = float(np.nanmax(np.abs(case.log.values[:, column]), initial=1.0))
    detail = f"scores are {_times(a)}score x {case.log.features[column]}"
    noise = case.noise * max(1.0, abs(a) * size)
    yield Hypothesis("rescore", detail, multiplied, RANK + 6, 5, noise)


def _times(factor: float) -> str:
    return "" if factor == 1 else f"{factor:.9g} x "


def _signed(number: float) -> str:
    return f"{'+' if number >= 0 else '-'} {abs(number):.9g}"
