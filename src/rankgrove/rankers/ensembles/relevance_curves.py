"""Functions of a score that never fall: the probability that a document has at least a grade.

Isotonic regression gives steps, on which documents of different scores become equal. Its blocks are
joined by straight lines between their mean scores instead (centred isotonic regression: Oron and
Flournoy, 2017), so that the order of scores is kept wherever there was more than one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rankgrove.errors import ModelFileError

MOST_STEPS = 100
_CLOSE = 1e-10
_EQUAL = 1e-12  # means of blocks that differ by less, relative to the largest, are equal
_LARGEST = float(np.finfo(np.float64).max)


class Curves(Protocol):
    """Functions of the score, one per threshold."""

    def at(self, scores: np.ndarray) -> np.ndarray:
        """Return the functions' values, of shape (scores, thresholds)."""
        ...


@dataclass(frozen=True)
class Lines:
    """Piecewise linear functions, constant outside of their knots.

    Attributes
    ----------
    starts : the first knot of every function in `knots`, and the number of all
    knots : scores, rising within a function
    values : the functions' values at the knots, never falling
    """

    starts: np.ndarray
    knots: np.ndarray
    values: np.ndarray

    def at(self, scores: np.ndarray) -> np.ndarray:
        """Return the functions' values; a higher threshold's never exceeds a lower one's."""
        columns = [
            never_falling(scores, self.knots[a:b], self.values[a:b])
            for a, b in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)
        ]
        return np.asarray(np.minimum.accumulate(np.stack(columns, axis=1), axis=1))

    def check(self) -> None:
        """Refuse knots that are no such functions."""
        sizes = np.diff(self.starts)
        fits = self.starts[0] == 0 and (sizes > 0).all() and self.starts[-1] == self.knots.size
        if not fits or self.knots.shape != self.values.shape:
            raise ModelFileError("The calibration's knots and values do not fit together.")
        inner = np.ones(max(self.knots.size - 1, 0), bool)
        inner[self.starts[1:-1] - 1] = False
        rising = np.isfinite(self.knots).all() and (np.diff(self.knots)[inner] > 0).all()
        if not rising or not (np.diff(self.values)[inner] >= 0).all():
            raise ModelFileError("The calibration's curves fall somewhere: the file is damaged.")


@dataclass(frozen=True)
class Sigmoids:
    """Logistic functions of one common slope (proportional odds; Platt's with one threshold).

    Attributes
    ----------
    slope : not negative
    intercepts : one per threshold, never rising
    """

    slope: float
    intercepts: np.ndarray

    def at(self, scores: np.ndarray) -> np.ndarray:
        """Return the functions' values."""
        from scipy.special import expit

        with np.errstate(over="ignore"):
            slopes = self.slope * np.clip(scores, -_LARGEST, _LARGEST)  # 0 times infinity is NaN
        return np.asarray(expit(slopes[:, None] + self.intercepts[None, :]))

    def check(self) -> None:
        """Refuse numbers that are no such functions."""
        finite = np.isfinite(self.slope) and np.isfinite(self.intercepts).all()
        if not finite or self.slope < 0 or not (np.diff(self.intercepts) <= 0).all():
            raise ModelFileError("The calibration's slope or intercepts are damaged.")


def never_falling(x: np.ndarray, knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return linear interpolation whose rounding never turns two results around."""
    if knots.size == 1:
        return np.full(x.size, values[0])
    left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, knots.size - 2)
    low, high = values[left], values[left + 1]
    # a slope may overflow only where two knots are closer than any difference of their values
    with np.errstate(over="ignore", invalid="ignore"):
        slope = (high - low) / (knots[left + 1] - knots[left])
        inside = low + slope * (np.clip(x, knots[0], knots[-1]) - knots[left])
    return np.asarray(np.clip(np.where(np.isfinite(inside), inside, high), low, high))


@dataclass(frozen=True)
class Observed:
    """Scores in rising order, each once, with the weights of what was observed there.

    Attributes
    ----------
    scores : different scores, rising
    weight : total weight of the rows of every score
    above : weight of rows times their target, of shape (scores, thresholds)
    """

    scores: np.ndarray
    weight: np.ndarray
    above: np.ndarray


class Rows:
    """Rows to learn curves from, sorted by score once for many weights."""

    def __init__(self, scores: np.ndarray, targets: np.ndarray) -> None:
        order = np.argsort(scores, kind="stable")
        self.order = order
        self.distinct, first = np.unique(scores[order], return_index=True)
        self.first = first
        self.targets = targets[order]

    def observed(self, weight: np.ndarray) -> Observed:
        """Return the rows with these weights, added up by score; weights of 0 count nothing."""
        weight = weight[self.order]
        total = np.add.reduceat(weight, self.first)
        above = np.add.reduceat(weight[:, None] * self.targets, self.first, axis=0)
        there = total > 0
        return Observed(self.distinct[there], total[there], above[there])


def isotonic(rows: Observed) -> Lines:
    """Return the curves of centred isotonic regression."""
    from sklearn.isotonic import isotonic_regression

    knots, values = [], []
    for k in range(rows.above.shape[1]):
        fitted = isotonic_regression(rows.above[:, k] / rows.weight, sample_weight=rows.weight)
        # rounding alone would decide whether blocks of equal means are one
        least = _EQUAL * np.abs(fitted).max()
        block = np.concatenate([[0], np.flatnonzero(np.diff(fitted) > least) + 1])
        weight = np.add.reduceat(rows.weight, block)
        centre = np.add.reduceat(rows.weight * rows.scores, block) / weight
        value = np.add.reduceat(rows.above[:, k], block) / weight
        # rounding may move a centre onto its neighbour's, or a mean below the one before it
        new = np.concatenate([[True], np.diff(centre) > 0])
        knots.append(centre[new])
        values.append(np.maximum.accumulate(value[new]))
    sizes = [0, *np.cumsum([knot.size for knot in knots]).tolist()]
    return Lines(np.array(sizes, np.int64), np.concatenate(knots), np.concatenate(values))


def sigmoid(rows: Observed) -> Sigmoids:
    """Return the logistic curves of the highest likelihood, by Newton's method.

    Each threshold is one logistic regression, and all share the slope: the sum of their likelihoods
    is maximised. The likelihood of the grades themselves (the cumulative logit model) has the same
    maximum in the limit if the model is right. The sum is taken because its derivative by an
    intercept is the sum of a threshold's residuals: at the maximum, the mean probability of every
    threshold, and so the mean expected grade, is the observed one even where the model is wrong.
    Intercepts never rise at the maximum, as targets do not. Targets are shrunk by one row towards
    the mean (Platt, 1999, adds one row of each class), so that separable data has a maximum too.
    """
    weight, n_thresholds = rows.weight, rows.above.shape[1]
    total = weight.sum()
    mean = rows.above.sum(axis=0) / total
    target = (rows.above + (weight / total)[:, None] * mean) / (weight * (1 + 1 / total))[:, None]
    mean = np.clip(mean, 0.5 / (total + 1), 1 - 0.5 / (total + 1))
    centre, scale = np.average(rows.scores, weights=weight), 1.0
    scale = float(np.sqrt(np.average((rows.scores - centre) ** 2, weights=weight))) or 1.0
    x = (rows.scores - centre) / scale
    slope, intercepts = 0.0, np.log(mean) - np.log1p(-mean)
    value = _log_likelihood(slope, intercepts, x, target, weight)
    for _ in range(MOST_STEPS):
        probability = Sigmoids(slope, intercepts).at(x)
        residual = weight[:, None] * (target - probability)
        spread = weight[:, None] * probability * (1 - probability)
        gradient = np.concatenate([[(residual * x[:, None]).sum()], residual.sum(axis=0)])
        hessian = np.diag(np.concatenate([[(spread * (x * x)[:, None]).sum()], spread.sum(axis=0)]))
        hessian[0, 1:] = hessian[1:, 0] = (spread * x[:, None]).sum(axis=0)
        hessian[np.diag_indices(n_thresholds + 1)] += 1e-12 * total
        step = np.linalg.solve(hessian, gradient)
        for _halving in range(40):
            new = max(slope + step[0], 0.0), intercepts + step[1:]
            better = _log_likelihood(*new, x, target, weight)
            if better >= value:
                break
            step = step / 2
        gain = better - value
        if gain < 0:
            break
        (slope, intercepts), value = new, better
        if gain <= _CLOSE * total:
            break
    intercepts = np.minimum.accumulate(intercepts - slope * centre / scale)
    return Sigmoids(slope / scale, intercepts)


def _log_likelihood(
    slope: float, intercepts: np.ndarray, x: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> float:
    logit = slope * x[:, None] + intercepts[None, :]
    return float((weight[:, None] * (target * logit - np.logaddexp(0.0, logit))).sum())
