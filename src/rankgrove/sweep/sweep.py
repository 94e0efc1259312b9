"""The best weight of a combination of two scores, exactly.

LambdaMART paper, section 4: a measure of a ranking changes only where two documents swap ranks,
so its value as a function of the weight alpha is a step function whose steps can all be
enumerated. There is no sampling and no jitter: equal scores are treated by the measure's own rule
for ties, at the ends of the range and exactly where lines cross.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankgrove.compiling import announce
from rankgrove.errors import DataError
from rankgrove.measures.base import PreparedMeasure, exact_mean, rank
from rankgrove.sweep.paths import Changes, Paths, TooLarge
from rankgrove.validation import check_choice, check_integer, check_real, refuse

FORMS = ("convex", "additive")
LARGEST = 1e150  # products of larger scores and weights could overflow
MAX_CROSSINGS = 1 << 24
BINS = 1 << 12
MOST_CANDIDATES = 16  # stretches that are tried
MOST_POINTS = 32  # points that are tried by highest value, and by highest bound
MOST_TRIES = 24  # evaluations of points; more on small data:
TRIED_ROWS = 1 << 21
BESIDE, MOST_BETWEEN = 2, 12  # floats on either side of a point, and within it, that are tried
# Positions in a stretch to evaluate: the middle, and others in case lines cross just there.
PLACES = (0.5, 0.375, 0.625)


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean of a measure as a step function of the weight.

    Attributes
    ----------
    alpha : m + 1 ascending weights, from the lowest to the highest
    value : the m values on the open stretches between them
    at_low, at_high : the values exactly at the lowest and the highest weight, where scores may be
        tied that are not tied nearby
    point_alpha, point_value : the single weights between them, ascending, at which scores are tied
        and the value, by the measure's rule for ties, is above those on both sides; empty if
        single points were not considered
    """

    alpha: np.ndarray
    value: np.ndarray
    at_low: float
    at_high: float
    point_alpha: np.ndarray
    point_value: np.ndarray


@dataclass(frozen=True, eq=False)
class Sweep:
    """The result of :func:`sweep`.

    Attributes
    ----------
    alpha : the best weight, the middle of the widest of the best stretches, or a single point that
        is better than all of them
    value : the mean of the measure at `alpha`, as evaluated there
    stretch : the open stretch of weights around `alpha` that all have this value; (alpha, alpha)
        if it is a single point or one of the ends
    at_low, at_high : the values at the ends of the range
    curve : the whole function, or None if it was not requested
    n_crossings : number of crossings that were followed: those that can reach a rank that counts
    n_changes : number of weights at which the value changes
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
    points: bool = True,
    keep_curve: bool = True,
    max_crossings: int = MAX_CROSSINGS,
    n_threads: int | None = None,
) -> Sweep:
    """Find the weight at which a measure of the combination of two scores is highest.

    Parameters
    ----------
    prepared : the measure on the labels of the data (without `beyond_cutoff`)
    start, other : the two scores of every document, finite, in query order
    form : ``"convex"`` combines as (1 - alpha) start + alpha other, ``"additive"`` as
        start + alpha other
    low, high : the range of alpha; within 0 .. 1 for the convex form
    points : whether a single weight at which scores are tied may be the best; False: only stretches
        and the two ends
    keep_curve : whether to return the whole curve; without it memory is bounded
    max_crossings : number of crossings to hold at once; if there are more, the range is swept part
        by part, with the same result to the bit
    n_threads : threads to use, None for all cores; the result does not depend on it
    """

    announce()
    low, high = _checked_range(form, low, high)
    check_integer("max_crossings", "sweep", max_crossings, low=1)
    start, other = (check_scores_fit(prepared, scores) for scores in (start, other))
    n_used = int(np.count_nonzero(~np.isnan(prepared.fixed_value) | ~prepared.is_fixed))
    if n_used == 0:
        raise DataError(
            f"No query has a value under the measure {str(prepared.measure)!r}, so no weight is "
            "better than another. Check the labels."
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
            points=points,
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
    """Return scores as one float64 per row; refuse scores that cannot be combined."""
    scores = np.ascontiguousarray(scores, np.float64)
    if scores.shape != prepared.gain.shape:
        raise DataError(
            f"Scores must be one number per row ({prepared.gain.size} rows). "
            f"Got an array of shape {scores.shape}."
        )
    fits = np.abs(scores) <= LARGEST
    if not fits.all():
        raise DataError(
            f"Scores that are combined must be finite, with absolute values up to {LARGEST:g}. Got "
            f"{scores[~fits][0]}. Give documents that were not retrieved a score below all others."
        )
    return scores


def _largest(values: np.ndarray) -> float:
    """Return the largest absolute value, ignoring NaN."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


# -- the parts of a range with too many crossings for one sweep ---------------------------------


def _parts(paths: Paths, most: int) -> Iterator[tuple[float, float]]:
    """Divide the range of alpha into parts of at most about `most` crossings."""
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
        # Crossings at the same point stay together.
        if count > most and right - left > 8 * math.ulp(max(abs(left), abs(right))):
            cuts += _cuts(paths, left, right, most)
            cuts.append(right)
        else:
            held += count
    return sorted({cut for cut in cuts if start < cut < end})


# -- from changes to the best weight --------------------------------------------------------------


class _Judge:
    """Evaluates the measure of the combination at one weight."""

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
        """Return the values of all queries at `alpha`."""
        scores = combine_scores(*self.scores, alpha, self.form)
        ranking = rank(scores, self.prepared.query_ptr, self.n_threads)
        return self.prepared.values(ranking, self.n_threads)


class _Steps:
    """The curve, as it is assembled part by part, and its best stretches and points."""

    def __init__(
        self, prepared: PreparedMeasure, paths: Paths, n_used: int, keep_curve: bool
    ) -> None:
        self.paths = paths
        self.n_used = n_used
        fixed = prepared.fixed_value[prepared.is_fixed]
        self.fixed = float(np.nansum(fixed))
        self.total: int | None = None
        self.left = paths.low
        # the last point so far and its changes (see add_up): more may come to it
        self.last = np.array([paths.low, paths.low])
        self.last_sums = np.zeros(4, np.int64)
        self.n_crossings = self.n_changes = 0
        self.kept: list[tuple[np.ndarray, np.ndarray]] | None = [] if keep_curve else None
        self.kept_points: list[np.ndarray] = []
        self.best_left, self.best_right = np.empty((2, MOST_CANDIDATES))
        self.best_total = np.empty(MOST_CANDIDATES, np.int64)
        self.n_best = 0
        # the best points, rows as add_up gives them: by value, and by bound
        self.best_points = [np.empty((0, 5)), np.empty((0, 5))]

    def add(self, changes: Changes) -> None:
        """Add the changes of the next part of the range."""
        if self.total is None:
            self.total = int(changes.initial.sum())
        self.n_crossings += changes.n_crossings
        self._add_up(changes.key, changes.change, changes.tie_key, changes.tie_change)

    def close(self) -> None:
        """End the last stretch."""
        from rankgrove.sweep._crossing_kernels import width_of_point

        high = self.paths.high
        if self.last[0] < high - width_of_point(high, self.paths.convex):
            # A change of 0, far away, ends the last point.
            no_ties = np.empty(0), np.empty(0, np.int64)
            self._add_up(np.array([-np.inf]), np.zeros(1, np.int64), *no_ties)
        self._stretches(np.array([high]), np.array([self.total]))

    def _add_up(
        self, key: np.ndarray, change: np.ndarray, tie_key: np.ndarray, tie_change: np.ndarray
    ) -> None:
        from rankgrove.sweep._curve_kernels import add_up

        n_events = key.size + tie_key.size  # each can end a point, also one that came before
        breaks, totals, tops = (
            np.empty(n_events),
            np.empty(n_events, np.int64),
            np.empty((n_events, 5)),
        )
        n, self.total, n_tops = add_up(
            key,
            change,
            tie_key,
            tie_change,
            self.paths.convex,
            self.paths.low,
            self.last,
            self.last_sums,
            self.total,
            breaks,
            totals,
            tops,
        )
        self._stretches(breaks[:n], totals[:n])
        if n_tops and self.paths.points:
            self._points(tops[:n_tops])

    def _points(self, tops: np.ndarray) -> None:
        from rankgrove.sweep._curve_kernels import NO_CHANGE

        for kind, best in enumerate(self.best_points):
            both = np.concatenate([best, tops])
            self.best_points[kind] = both[
                np.argsort(-both[:, 2 + kind], kind="stable")[:MOST_POINTS]
            ]
        if self.kept is not None:
            self.kept_points.append(tops[tops[:, 2] > tops[:, 4] + NO_CHANGE])

    def _stretches(self, rights: np.ndarray, totals: np.ndarray) -> None:
        from rankgrove.sweep._curve_kernels import fill_means, keep_best

        if not rights.size:
            return
        best = self.best_left, self.best_right, self.best_total
        self.n_best = keep_best(self.left, rights, totals, *best, self.n_best)
        self.left = float(rights[-1])
        self.n_changes += rights.size
        if self.kept is not None:
            means = totals.view(np.float64)  # the sums are not needed any more
            fill_means(totals, self.paths.scale, self.fixed, self.n_used, means)
            self.kept.append((rights, means))

    def means(self, totals: np.ndarray) -> np.ndarray:
        """Return the means that fixed-point sums represent."""
        return np.asarray((totals / self.paths.scale + self.fixed) / self.n_used)

    def candidates(self) -> Iterator[tuple[float, float, float]]:
        """Yield the best stretches and the mean there, best first."""
        means = self.means(self.best_total)
        for k in range(self.n_best):
            yield float(self.best_left[k]), float(self.best_right[k]), float(means[k])

    def points(self, by_bound: bool) -> Iterator[tuple[float, float, float, float]]:
        """Yield first and last alpha of the best points, the mean there, and its bound."""
        best = self.best_points[int(by_bound)]
        yield from zip(*best[:, :2].T.tolist(), *self.means(best[:, 2:4]).T.tolist(), strict=True)

    def noise(self, mean: float) -> float:
        """Return an upper bound of the effect of rounding on a mean."""
        return 1e-13 * max(1.0, abs(mean)) + self.paths.start.size / (
            self.paths.scale * self.n_used
        )

    def curve(self, at_low: float, at_high: float) -> Curve | None:
        """Return the whole curve, if it was kept."""
        if self.kept is None:
            return None
        alpha = np.concatenate([[self.paths.low], *(rights for rights, _ in self.kept)])
        value = np.concatenate([values for _, values in self.kept])
        points = np.concatenate([np.empty((0, 5)), *self.kept_points])
        return Curve(alpha, value, at_low, at_high, points[:, 0], self.means(points[:, 2]))


@dataclass(frozen=True)
class _Choice:
    """A weight, the value as evaluated there, and the stretch around it."""

    alpha: float
    value: float
    stretch: tuple[float, float]


def _choose(steps: _Steps, judge: _Judge, at_low: float, at_high: float) -> Sweep:
    """Return the best weight, certified: its value is that of an evaluation there."""
    low, high = steps.paths.low, steps.paths.high
    best = _Choice(low, at_low, (low, low))
    if at_high > at_low:
        best = _Choice(high, at_high, (high, high))
    best = _best_point(steps, judge, _best_stretch(steps, judge, best))
    curve = steps.curve(at_low, at_high)
    return Sweep(
        best.alpha,
        best.value,
        best.stretch,
        at_low,
        at_high,
        curve,
        steps.n_crossings,
        steps.n_changes - 1,
    )


def _best_stretch(steps: _Steps, judge: _Judge, best: _Choice) -> _Choice:
    """Return the best stretch, or `best` if that is better.

    Scores are rounded when they are combined, so within a stretch that is only a few floats wide
    the order may differ from that of the lines; then the next best stretch is taken.
    """
    for left, right, mean in steps.candidates():
        noise = steps.noise(mean)
        if mean < best.value - noise:
            break
        for place in PLACES:
            alpha = left + place * (right - left)
            value = exact_mean(judge.values(alpha))
            if abs(value - mean) <= noise:
                return _Choice(alpha, value, (left, right)) if value >= best.value else best
    return best


def _best_point(steps: _Steps, judge: _Judge, best: _Choice) -> _Choice:
    """Return the best single point, or `best` if no point is better.

    Whether scores that meet at a point are equal after they are combined depends on rounding. So
    the measure is evaluated at the floats computed for the point and, if these do not give its
    value, at their neighbours. The points of the highest values are tried first, then those where
    rounding could leave some documents in their order before the point and others in that after it.
    """
    low, high = steps.paths.low, steps.paths.high
    left = max(MOST_TRIES, TRIED_ROWS // judge.scores[0].size)
    for by_bound in (False, True):
        for first, last, mean, bound in steps.points(by_bound):
            noise = steps.noise(best.value)
            if (bound if by_bound else mean) <= best.value + noise:
                break
            is_reached = False
            for k, alphas in enumerate(floats_at(first, last)):
                if is_reached and (k == 1 or not by_bound):
                    break
                for alpha in alphas:
                    if not low < alpha < high:
                        continue
                    if left == 0:
                        return best
                    left -= 1
                    value = exact_mean(judge.values(alpha))
                    is_reached |= abs(value - mean) <= noise
                    if value > best.value + noise:
                        best = _Choice(alpha, value, (alpha, alpha))
    return best


def floats_at(first: float, last: float) -> tuple[list[float], list[float]]:
    """Return the floats to try for a point that is computed as alphas from `first` to `last`.

    These are all floats between, with the one nearest to the simplest fraction first (alpha is a
    ratio of differences of scores), and some neighbours.
    """
    below, above = [first], [last]
    for _ in range(BESIDE):
        below.append(math.nextafter(below[-1], -math.inf))
        above.append(math.nextafter(above[-1], math.inf))
    # the convergents of the continued fraction
    rest, n, d, n_before, d_before = Fraction(0.5 * (first + last)), 1, 0, 0, 1
    while True:
        whole = math.floor(rest)
        n, d, n_before, d_before = whole * n + n_before, whole * d + d_before, n, d
        if below[-1] <= n / d <= above[-1]:
            break
        rest = 1 / (rest - whole)
    computed = [n / d, first, last]
    between = math.nextafter(first, math.inf)
    while between < last and len(computed) < MOST_BETWEEN:
        computed.append(between)
        between = math.nextafter(between, math.inf)
    computed = list(dict.fromkeys(computed))
    return computed, [alpha for alpha in below + above if alpha not in computed]
