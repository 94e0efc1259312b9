"""The best weight of a combination of two scores, exactly.

LambdaMART paper, section 4: a measure of a ranking changes only where two documents change
places, so its value as a function of the weight alpha is a step function whose steps can all be
enumerated. Nothing is sampled and nothing is jittered: equal scores count by the measure's own
rule for ties.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankgrove.compiling import announce
from rankgrove.errors import DataError
from rankgrove.measures.base import PreparedMeasure, exact_mean, rank
from rankgrove.sweep.paths import Changes, Paths, TooLarge
from rankgrove.validation import check_choice, check_integer, check_real, refuse

FORMS = ("convex", "additive")
LARGEST = 1e150  # scores and weights beyond it could overflow when they are multiplied
MAX_CROSSINGS = 1 << 24
BINS = 1 << 12
MOST_CANDIDATES = 16
# Where in a stretch to look: its middle, and elsewhere should that be just where lines cross.
PLACES = (0.5, 0.375, 0.625)


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean of a measure as a step function of the weight.

    Attributes
    ----------
    alpha : m + 1 ascending weights, from the lowest to the highest
    value : the m values on the open stretches between them
    at_low, at_high : the values exactly at the lowest and the highest weight, where scores may be
        tied that are not tied beside them
    """

    alpha: np.ndarray
    value: np.ndarray
    at_low: float
    at_high: float


@dataclass(frozen=True, eq=False)
class Sweep:
    """What :func:`sweep` found.

    Attributes
    ----------
    alpha : the best weight, the middle of the widest of the best stretches
    value : the mean of the measure at `alpha`, as evaluating there gives it
    stretch : the open stretch of weights around `alpha` that all have this value; alpha itself
        twice where it is one of the ends
    at_low, at_high : the values at the ends of the range
    curve : the whole function, or None where it was not wanted
    n_crossings : how many crossings were followed: those that can reach a rank that counts
    n_changes : how many weights the value changes at
    """

    alpha: float
    value: float
    stretch: tuple[float, float]
    at_low: float
    at_high: float
    curve: Curve | None
    n_crossings: int
    n_changes: int


def combine_scores(start: np.ndarray, other: np.ndarray, alpha: float, form: str) -> np.ndarray:
    """Return the combined scores: (1 - alpha) start + alpha other, or start + alpha other."""
    if form == "convex":
        return np.asarray((1.0 - alpha) * start + alpha * other)
    return np.asarray(start + alpha * other)


def sweep(
    prepared: PreparedMeasure,
    start: np.ndarray,
    other: np.ndarray,
    *,
    form: str = "convex",
    low: float = 0.0,
    high: float = 1.0,
    keep_curve: bool = True,
    max_crossings: int = MAX_CROSSINGS,
    n_threads: int | None = None,
) -> Sweep:
    """Find the weight of two scores' combination at which a measure is highest.

    Parameters
    ----------
    prepared : the measure on the labels of the data (without `beyond_cutoff`)
    start, other : the two scores of every document, finite, in query order
    form : ``"convex"`` combines as (1 - alpha) start + alpha other, ``"additive"`` as
        start + alpha other
    low, high : the range of alpha; within 0 .. 1 for the convex form
    keep_curve : whether to return the whole curve; without it memory is bounded
    max_crossings : how many crossings to hold at once; where there are more, the range is swept
        part by part, with the same result to the bit
    n_threads : threads to use, None for all cores; the result does not depend on it
    """
    from rankgrove.sweep._path_kernels import sweep_queries

    announce(sweep_queries)
    low, high = _checked_range(form, low, high)
    check_integer("max_crossings", "sweep", max_crossings, low=1)
    start, other = (check_scores_fit(prepared, scores) for scores in (start, other))
    n_used = int(np.count_nonzero(~np.isnan(prepared.fixed_value) | ~prepared.is_fixed))
    if n_used == 0:
        raise DataError(
            f"No query has a value under the measure {str(prepared.measure)!r}, so that no weight "
            "is better than another. Check the labels."
        )
    judge = _Judge(prepared, start, other, form, n_threads)
    at_low, at_high = judge.values(low), judge.values(high)
    largest = 4.0 * max(1.0, _largest(at_low), _largest(at_high))
    while True:
        paths = Paths(
            prepared,
            start,
            other,
            convex=form == "convex",
            low=low,
            high=high,
            largest=largest,
            n_threads=n_threads,
        )
        steps = _Steps(prepared, paths, n_used, keep_curve)
        try:
            for part_start, part_end in _parts(paths, max_crossings):
                steps.add(paths.follow(part_start, part_end))
            break
        except TooLarge as error:
            largest = 4.0 * error.args[0]
    steps.close()
    return _choose(steps, judge, exact_mean(at_low), exact_mean(at_high))


# -- checks -----------------------------------------------------------------------------------


def _checked_range(form: str, low: float, high: float) -> tuple[float, float]:
    check_choice("form", "the combination", form, FORMS)
    outer = (0.0, 1.0) if form == "convex" else (-LARGEST, LARGEST)
    low = check_real("low", "the combination", low, low=outer[0], high=outer[1])
    high = check_real("high", "the combination", high, low=outer[0], high=outer[1])
    if low >= high:
        refuse("high", "the combination", f"above the lowest weight, {low:g}", high)
    return low, high


def check_scores_fit(prepared: PreparedMeasure, scores: np.ndarray) -> np.ndarray:
    """Return scores as one float64 a row that can be combined, or say what is wrong with them."""
    scores = np.ascontiguousarray(scores, np.float64)
    if scores.shape != prepared.gain.shape:
        raise DataError(
            f"Scores must be one number a row ({prepared.gain.size} rows). "
            f"Got an array of shape {scores.shape}."
        )
    fits = np.abs(scores) <= LARGEST
    if not fits.all():
        raise DataError(
            f"Scores that are combined must be finite, and at most {LARGEST:g} in size: a "
            f"combination with {scores[~fits][0]} has no weight. Give documents that were not "
            "retrieved a score below all others."
        )
    return scores


def _largest(values: np.ndarray) -> float:
    """Return the largest size of what is a number."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


# -- the parts of a range that is too rich to be swept at once ----------------------------------


def _parts(paths: Paths, most: int) -> Iterator[tuple[float, float]]:
    """Cut the range of alpha into parts of at most about `most` crossings."""
    sizes = np.diff(paths.prepared.query_ptr)
    is_rich = int((sizes * (sizes - 1) // 2).sum()) > most
    cuts = _cuts(paths, paths.low, paths.high, most) if is_rich else []
    return itertools.pairwise([paths.low, *cuts, paths.high])


def _cuts(paths: Paths, start: float, end: float, most: int) -> list[float]:
    """Return where to cut start .. end; parts with too many crossings are cut again."""
    edges = np.linspace(start, end, BINS + 1).tolist()
    cuts: list[float] = []
    held = 0
    for k, count in enumerate(paths.count(start, end, BINS).tolist()):
        left, right = edges[k], edges[k + 1]
        if held and held + count > most:
            cuts.append(left)
            held = 0
        # Crossings at one point stay together.
        if count > most and right - left > 8 * math.ulp(max(abs(left), abs(right))):
            cuts += _cuts(paths, left, right, most)
            cuts.append(right)
        else:
            held += count
    return sorted({cut for cut in cuts if start < cut < end})


# -- from changes to the best weight --------------------------------------------------------------


class _Judge:
    """What the measure says of the combination at one weight, by evaluating it."""

    def __init__(
        self,
        prepared: PreparedMeasure,
        start: np.ndarray,
        other: np.ndarray,
        form: str,
        n_threads: int | None,
    ) -> None:
        self.prepared = prepared
        self.scores = start, other
        self.form = form
        self.n_threads = n_threads

    def values(self, alpha: float) -> np.ndarray:
        """Return every query's value at `alpha`."""
        scores = combine_scores(*self.scores, alpha, self.form)
        ranking = rank(scores, self.prepared.query_ptr, self.n_threads)
        return self.prepared.values(ranking, self.n_threads)


class _Steps:
    """The curve as it is put together, part by part, and its best stretches."""

    def __init__(
        self, prepared: PreparedMeasure, paths: Paths, n_used: int, keep_curve: bool
    ) -> None:
        self.paths = paths
        self.n_used = n_used
        fixed = prepared.fixed_value[prepared.is_fixed]
        self.fixed = float(np.nansum(fixed))
        self.total: int | None = None
        self.left = paths.low
        # the last point so far and its change: more may come to it
        self.last, self.last_change = paths.low, 0
        self.n_crossings = self.n_changes = 0
        self.kept: list[tuple[np.ndarray, np.ndarray]] | None = [] if keep_curve else None
        self.best_left, self.best_right = np.empty((2, MOST_CANDIDATES))
        self.best_total = np.empty(MOST_CANDIDATES, np.int64)
        self.n_best = 0

    def add(self, changes: Changes) -> None:
        """Take the changes of the next part of the range."""
        from rankgrove.sweep._curve_kernels import add_up

        if self.total is None:
            self.total = int(changes.initial.sum())
        self.n_crossings += changes.n_crossings
        breaks, totals = np.empty(changes.key.size), np.empty(changes.key.size, np.int64)
        n, self.total, self.last, self.last_change = add_up(
            changes.key,
            changes.change,
            self.paths.convex,
            self.paths.low,
            self.last,
            self.last_change,
            self.total,
            breaks,
            totals,
        )
        self._stretches(breaks[:n], totals[:n])

    def close(self) -> None:
        """End the last stretch."""
        from rankgrove.sweep._curve_kernels import NO_CHANGE, width_of_point

        low, high = self.paths.low, self.paths.high
        total = np.array([self.total])
        if self.last < high - width_of_point(high, self.paths.convex):
            if abs(self.last_change) > NO_CHANGE and self.last > low:
                self._stretches(np.array([self.last]), total)
            total = total + self.last_change
        self._stretches(np.array([high]), total)

    def _stretches(self, rights: np.ndarray, totals: np.ndarray) -> None:
        from rankgrove.sweep._curve_kernels import keep_best

        if not rights.size:
            return
        best = self.best_left, self.best_right, self.best_total
        self.n_best = keep_best(self.left, rights, totals, *best, self.n_best)
        self.left = float(rights[-1])
        self.n_changes += rights.size
        if self.kept is not None:
            self.kept.append((rights, self.means(totals)))

    def means(self, totals: np.ndarray) -> np.ndarray:
        """Return the means that sums in fixed point stand for."""
        return np.asarray((totals / self.paths.scale + self.fixed) / self.n_used)

    def candidates(self) -> Iterator[tuple[float, float, float]]:
        """Yield the best stretches and the mean there, best first."""
        means = self.means(self.best_total)
        for k in range(self.n_best):
            yield float(self.best_left[k]), float(self.best_right[k]), float(means[k])

    def noise(self, mean: float) -> float:
        """Return by how much rounding may move a mean."""
        return 1e-13 * max(1.0, abs(mean)) + self.paths.start.size / (
            self.paths.scale * self.n_used
        )

    def curve(self, at_low: float, at_high: float) -> Curve | None:
        """Return the whole curve, where it was kept."""
        if self.kept is None:
            return None
        alpha = np.concatenate([[self.paths.low], *(rights for rights, _ in self.kept)])
        value = np.concatenate([values for _, values in self.kept])
        return Curve(alpha, value, at_low, at_high)


def _choose(steps: _Steps, judge: _Judge, at_low: float, at_high: float) -> Sweep:
    """Return the best weight, certified: its value is what evaluating there gives.

    Scores are rounded when they are combined, so within a stretch that is only a few roundings
    wide the order may not be what the lines say; then the next best stretch is taken.
    """
    low, high = steps.paths.low, steps.paths.high
    best = (low, at_low, (low, low))
    if at_high > at_low:
        best = (high, at_high, (high, high))
    for left, right, mean in steps.candidates():
        noise = steps.noise(mean)
        if mean < best[1] - noise:
            break
        tried = [left + place * (right - left) for place in PLACES]
        values = (exact_mean(judge.values(alpha)) for alpha in tried)
        found = next(
            (pair for pair in zip(tried, values, strict=True) if abs(pair[1] - mean) <= noise), None
        )
        if found is not None:
            if found[1] >= best[1]:
                best = (*found, (left, right))
            break
    return Sweep(
        *best, at_low, at_high, steps.curve(at_low, at_high), steps.n_crossings, steps.n_changes - 1
    )
