"""Whether learned weights are a local optimum of a measure (overview paper, section 4.2).

A one-sided Monte Carlo test: the weights are moved a little along random directions, and the mean
of the measure must fall along each of them. If it does, the share p of directions along which it
rises is at most p0 with the wanted confidence, provided there are enough directions (equation 9).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rankgrove import parallel
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure, PreparedMeasure, exact_mean, rank
from rankgrove.random import generator
from rankgrove.validation import counted

STEPS = (0.1, 0.2)  # lengths of a move, relative to the length of the weight vector
REACH = 1.0  # length of curves along coordinates, relative to the root mean square of weights
POINTS = 8  # points of such a curve, half of them on each side

# Weights -> the scores of all documents in query order, computed on one thread
Scores = Callable[[np.ndarray], np.ndarray]


def directions_needed(p0: float, confidence: float) -> int:
    """Return the least n with (1 - p0)^n <= 1 - confidence (equation 9).

    Examples
    --------
    >>> directions_needed(0.01, 0.99)
    459
    """
    n = math.log(1.0 - confidence) / math.log1p(-p0)
    return max(1, math.ceil(min(n, 1e18)))  # a p0 of nearly 0 makes it infinite


@dataclass(frozen=True, eq=False, repr=False)
class LocalOptimum:
    """The result of :func:`rankgrove.check_local_optimum`; prints as a short text.

    Attributes
    ----------
    passed : whether the measure fell along every direction, at every step
    measure : the measure, a mean over queries
    value : its mean M* at the learned weights
    values : its mean at every moved point, directions x steps
    steps : lengths of the moves, relative to the length of the weight vector
    p0, confidence : the parameters of the test: the confidence that p, the share of ascent
        directions, is at most p0
    fraction : the share of the directions along which the measure rose at one step or more
    fractions : the same for every step by itself
    unchanged : number of directions along which some step changed nothing, and none rose
    p_bound : with the wanted confidence, p is at most this (Clopper and Pearson's bound; without
        an ascent direction 1 - (1 - confidence)^(1/n), equation 9)
    weights : the learned weights w*
    coordinates : the numbers of the weights along which there are curves
    offsets : the moves along a coordinate, 0 among them
    curves : the measure along every coordinate, coordinates x offsets
    """

    measure: Measure
    value: float
    values: np.ndarray
    steps: tuple[float, ...]
    p0: float
    confidence: float
    weights: np.ndarray = field(repr=False)
    coordinates: np.ndarray
    offsets: np.ndarray
    curves: np.ndarray

    @property
    def passed(self) -> bool:
        """Whether the measure fell along every direction, at every step."""
        return bool((self.values < self.value).all())

    @property
    def n_directions(self) -> int:
        """Number of random directions."""
        return int(self.values.shape[0])

    @property
    def fraction(self) -> float:
        """Share of the directions along which the measure rose at one step or more."""
        return self._n_ascents / self.n_directions

    @property
    def fractions(self) -> np.ndarray:
        """Share of the directions along which the measure rose, step by step."""
        return np.asarray((self.values > self.value).mean(axis=0))

    @property
    def unchanged(self) -> int:
        """Number of directions along which some step changed nothing, and none rose."""
        rose = (self.values > self.value).any(axis=1)
        return int(((self.values == self.value).any(axis=1) & ~rose).sum())

    def at_step(self, k: int) -> LocalOptimum:
        """Return the test of the k-th step only."""
        return replace(self, values=self.values[:, k : k + 1], steps=(self.steps[k],))

    @property
    def p_bound(self) -> float:
        """The upper bound of the share p of ascent directions, with the wanted confidence."""
        from scipy.special import betaincinv

        k, n = self._n_ascents, self.n_directions
        return 1.0 if k == n else float(betaincinv(k + 1, n - k, self.confidence))

    @property
    def best_coordinates(self) -> float:
        """Share of the curves along coordinates that are nowhere above the learned weights."""
        if not self.curves.size:
            return math.nan
        return float((self.curves <= self.value).all(axis=1).mean())

    @property
    def _n_ascents(self) -> int:
        return int((self.values > self.value).any(axis=1).sum())

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        share = f"{100 * self.confidence:g} % confidence"
        if self.passed:
            verdict = (
                f"a local optimum of {self.measure}: it fell along all {self.n_directions:,} "
                f"directions; with {share} at most {100 * self.p_bound:.2g} % of all directions "
                "go up"
            )
        elif self._n_ascents:
            verdict = (
                f"no local optimum of {self.measure}: it rose along {self._n_ascents:,} of "
                f"{self.n_directions:,} directions ({100 * self.fraction:.1f} %; with {share} at "
                f"most {100 * self.p_bound:.1f} % of all)"
            )
        else:
            verdict = (
                f"undecided: {self.measure} did not change along {self.unchanged:,} of "
                f"{self.n_directions:,} directions; use longer steps, or more queries"
            )
        lines = [verdict, f"{self.measure} at the learned weights: {self.value:.6f}"]
        for step, share_up, mean in zip(
            self.steps, self.fractions.tolist(), self.values.mean(axis=0).tolist(), strict=True
        ):
            lines.append(
                f"step {step:g}: {100 * share_up:.1f} % of the directions rise, mean change "
                f"{mean - self.value:+.6f}"
            )
        if self.curves.size:
            lines.append(
                f"along {counted(len(self.coordinates), 'coordinate')}: the learned weight is a "
                f"maximum of {100 * self.best_coordinates:.0f} % of the curves, and on average "
                f"{float((self.curves.max(axis=1) - self.value).mean()):.6f} below their highest "
                "(small moves of a single weight show the noise of the measure's steps; the test "
                "is that of the directions)"
            )
        return "\n".join(lines)


def local_optimum(
    scores: Scores,
    weights: np.ndarray,
    prepared: PreparedMeasure,
    *,
    p0: float,
    confidence: float,
    steps: Sequence[float] = STEPS,
    n_coordinates: int | None = None,
    reach: float = REACH,
    seed: int = 0,
    n_threads: int | None = None,
) -> LocalOptimum:
    """Run the test, and follow the measure along coordinates.

    Parameters
    ----------
    scores : the model as a function of its weights; called from several threads
    weights : the learned weights w*
    prepared : the measure on the training data of w*
    p0, confidence : the tolerated share of ascent directions, and the confidence of the test
    steps : lengths of the moves, relative to the length of w*
    n_coordinates : number of coordinates, drawn at random, along which there are curves; None: all
    reach : length of the curves to both sides, relative to the root mean square of the weights
    """
    length = float(np.linalg.norm(weights))
    if length == 0.0:
        raise DataError("All weights of the model are 0: no step can be measured by their length.")

    def mean_at(point: np.ndarray) -> float:
        return exact_mean(prepared.values(rank(scores(point), prepared.query_ptr, 1), 1))

    value = mean_at(weights)
    if math.isnan(value):
        raise DataError(
            f"{prepared.measure} leaves out every query of the data (nothing relevant, or all "
            "labels equal): it has no value to be optimal."
        )
    n, n_steps = directions_needed(p0, confidence), len(steps)
    values = np.empty((n, n_steps))

    def along(first: int, last: int) -> None:
        for d in range(first, last):
            # directions uniform on the sphere, each with its own random stream
            direction = generator(seed, "direction", d).standard_normal(weights.size)
            direction /= np.linalg.norm(direction)
            for k, step in enumerate(steps):
                values[d, k] = mean_at(weights + step * length * direction)

    _run(along, n, n_threads)
    chosen = _coordinates(weights.size, n_coordinates, seed)
    half = np.arange(1, POINTS // 2 + 1) / (POINTS // 2)
    offsets = reach * length / math.sqrt(weights.size) * np.concatenate([-half[::-1], [0.0], half])
    curves = np.full((chosen.size, offsets.size), value)

    def along_coordinates(first: int, last: int) -> None:
        for c in range(first, last):
            for k in np.flatnonzero(offsets):
                moved = weights.copy()
                moved[chosen[c]] += offsets[k]
                curves[c, k] = mean_at(moved)

    _run(along_coordinates, chosen.size, n_threads)
    return LocalOptimum(
        measure=prepared.measure,
        value=value,
        values=values,
        steps=tuple(float(step) for step in steps),
        p0=p0,
        confidence=confidence,
        weights=weights,
        coordinates=chosen,
        offsets=offsets,
        curves=curves,
    )


def _run(work: Callable[[int, int], None], n: int, n_threads: int | None) -> None:
    """Run the points of weight space in parallel; each is scored on one thread."""
    if n:
        bounds = np.arange(n + 1) if n < 1024 else np.linspace(0, n, 1025).astype(np.int64)
        parallel.run_pieces(work, bounds, n_threads)


def _coordinates(n_weights: int, wanted: int | None, seed: int) -> np.ndarray:
    if wanted is None or wanted >= n_weights:
        return np.arange(n_weights)
    drawn = generator(seed, "coordinates").choice(n_weights, wanted, replace=False)
    return np.sort(drawn)
