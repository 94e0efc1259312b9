"""Expectation maximisation, with accelerated steps that never lower the likelihood.

A step of EM goes in the right direction, but far too short where most of what it infers is
unobserved, as with documents at low positions. Two steps show how the steps shrink; the
extrapolation of Varadhan and Roland (SQUAREM, 2008) goes where they would end. It is taken only if
its likelihood is at least that of the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

Parameters: TypeAlias = "list[np.ndarray]"

KEPT = 0.1  # an extrapolation keeps this share of the distance to 0 and to 1


class Climb(NamedTuple):
    """What EM has reached.

    parameters : arrays of probabilities, or of any numbers
    history : the objective of the parameters kept so far; it never falls
    n_iterations : steps computed
    converged : whether the last step was shorter than the tolerance
    """

    parameters: Parameters
    history: list[float]
    n_iterations: int
    converged: bool


def climb(
    step: Callable[[Parameters], tuple[Parameters, float]],
    start: Sequence[np.ndarray],
    *,
    weights: Sequence[np.ndarray | None],
    max_iterations: int,
    tolerance: float,
    accelerate: bool = True,
    bounded: bool = True,
) -> Climb:
    """Repeat `step` until parameters change by less than `tolerance`.

    Parameters
    ----------
    step : function of parameters that returns new ones, and the objective of the old ones
    start : arrays of probabilities, or of any numbers if not `bounded`
    weights : of every array, weights with the sum 1 for the mean change of its values; None: the
        largest change counts
    """
    here = list(start)
    history: list[float] = []
    n = 0
    converged = False
    while n < max_iterations and not converged:
        first, value = step(here)
        history.append(value)
        n += 1
        converged = _change(here, first, weights) < tolerance
        if not accelerate or converged or n + 2 > max_iterations:
            here = first
            continue
        second, first_value = step(first)
        history.append(first_value)
        beyond = _extrapolated(here, first, second, bounded)
        after, beyond_value = step(beyond)
        n += 2
        if beyond_value >= first_value:
            history.append(beyond_value)
            here = after
        else:
            here = second
    return Climb(here, history, n, converged)


def _change(old: Parameters, new: Parameters, weights: Sequence[np.ndarray | None]) -> float:
    """Return the largest of the changes of all arrays."""
    largest = 0.0
    for a, b, weight in zip(old, new, weights, strict=True):
        moved = np.abs(b - a)
        size = moved.max(initial=0.0) if weight is None else (weight * moved).sum()
        largest = max(largest, float(size))
    return largest


def _extrapolated(zero: Parameters, one: Parameters, two: Parameters, bounded: bool) -> Parameters:
    """Return the parameters that the two steps point to."""
    steps = [b - a for a, b in zip(zero, one, strict=True)]
    bends = [c - b - d for b, c, d in zip(one, two, steps, strict=True)]
    # not by `@`, whose bits depend on the threads of BLAS
    length = np.sqrt(sum(float((d * d).sum()) for d in steps))
    bend = np.sqrt(sum(float((v * v).sum()) for v in bends))
    factor = max(1.0, length / bend) if bend > 0 else 1.0
    beyond = []
    for a, d, v, c in zip(zero, steps, bends, two, strict=True):
        value = a + 2 * factor * d + factor**2 * v
        beyond.append(np.clip(value, KEPT * c, 1 - KEPT * (1 - c)) if bounded else value)
    return beyond
