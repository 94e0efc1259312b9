"""AdaRank's loop: queries are weighted, and a round adds the feature that ranks them best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.training import progress as training
from rankgrove.training.watch import Watch

SURE = 1.0 - 1e-6  # the weight of a perfect feature would be infinite: that of a nearly perfect one
RISE = 1e-12  # a smaller rise of a mean is a rounding error
HALVINGS = 6  # of a feature's weight, before the next feature is tried
UPDATES = ("latest", "cumulative")  # of the queries' weights


@dataclass(repr=False, kw_only=True)
class Progress(training.Progress):
    """The state of AdaRank after a round, passed to every callback.

    Attributes
    ----------
    features : the feature of every round
    steps : its weight, below 0 where lower values come first
    values : the training measure after every round
    """

    features: list[int] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def weights(self, n_features: int, rounds: int | None = None) -> np.ndarray:
        """Return the sum of every feature's weights in the first `rounds` rounds; None: in all."""
        return np.bincount(self.features[:rounds], self.steps[:rounds], n_features)


Callback = Callable[[Progress], bool | None]


class Candidates(NamedTuple):
    """The weak rankers.

    Attributes
    ----------
    table : of shape (queries, candidates): the measure of every query ranked by a candidate alone
    features, signs : of every candidate; the sign is -1 where lower values come first
    """

    table: np.ndarray
    features: Sequence[int]
    signs: Sequence[int]


class Step(NamedTuple):
    """A candidate with its weight, and the measure of every query after it is added."""

    candidate: int
    alpha: float
    values: np.ndarray


def adarank(
    candidates: Candidates,
    query_weight: np.ndarray,
    measured: Callable[[np.ndarray], np.ndarray],
    *,
    n_features: int,
    rounds: int,
    update: str,
    tolerance: float | None,
    most_in_a_row: int,
    watch: Watch,
    show: Callable[[np.ndarray], None],
    callbacks: Sequence[Callback] = (),
) -> Progress:
    """Add features until patience, candidates or rounds run out (Xu and Li 2007).

    Parameters
    ----------
    candidates : the weak rankers that a round chooses from
    query_weight : weight of every query
    measured : weights of the features -> the measure of every query ranked by them
    update : update of the queries' weights: ``"latest"`` (Algorithm 1) or ``"cumulative"``
    tolerance : training ends when the training measure falls by this much in a round;
        None: every round must raise it
    most_in_a_row : with a tolerance, a feature is skipped after this many rounds in a row, in
        either direction
    watch : measures validation data and decides when to stop
    show : sets the scores of the validation data from weights
    """
    _check_values(candidates.table)
    done = Progress(round=0, rounds=rounds, watch=watch)
    share = query_weight / query_weight.sum()
    importance = _Importance(query_weight, update == "cumulative")

    def weights(candidate: int, alpha: float) -> np.ndarray:
        added = candidates.features[candidate], candidates.signs[candidate] * alpha
        return np.bincount([*done.features, added[0]], [*done.steps, added[1]], n_features)

    try:
        for round in range(rounds):
            last = done.values[-1] if done.values else -math.inf
            quality = importance.share @ candidates.table
            if tolerance is not None:
                quality = _without_tired(quality, candidates, done.features, most_in_a_row)
            tried = _tried(quality, halving=tolerance is None)
            floor = last + RISE if tolerance is None else last - tolerance
            step = _first_above(floor, tried, share, lambda c, a: measured(weights(c, a)))
            if step is None:
                break
            importance.update(step)
            show(weights(step.candidate, step.alpha))
            watch.record()
            done.features.append(candidates.features[step.candidate])
            done.steps.append(candidates.signs[step.candidate] * step.alpha)
            done.values.append(float(share @ step.values))
            done.round = round + 1
            stopped = [bool(callback(done)) for callback in callbacks]
            if any(stopped) or watch.out_of_patience:
                break
    except KeyboardInterrupt:
        done.interrupted = True
        for kept in (done.features, done.steps, done.values):
            del kept[done.round :]
        watch.cut(done.round)
    return done


class _Importance:
    """P, the weight that a round gives to every query; ``share`` adds up to 1."""

    def __init__(self, query_weight: np.ndarray, cumulative: bool) -> None:
        self.share = query_weight / query_weight.sum()
        self.start = np.log(query_weight)
        self.log = self.start
        self.cumulative = cumulative

    def update(self, step: Step) -> None:
        """Update P by the measure E of the queries, ranked by all features so far.

        The paper's P is proportional to exp(-E); the cumulative one is multiplied by exp(-alpha E)
        in every round, so the weight of a query that stays bad grows without limit.
        """
        if self.cumulative:
            self.log = self.log - abs(step.alpha) * step.values
        else:
            self.log = self.start - step.values
        weight = np.exp(self.log - self.log.max())
        self.share = weight / weight.sum()


def _tried(quality: np.ndarray, halving: bool) -> Iterator[tuple[int, float]]:
    """Yield candidates and weights in the order in which a round tries them.

    quality : sum of P E of every candidate, where the P add up to 1; minus infinity: not tried
    halving : whether to halve weights and try further candidates; else only the best is tried
    """
    if not halving:
        best = int(np.argmax(quality))
        if quality[best] > -math.inf:
            yield best, _alpha(quality[best])
        return
    for candidate in np.argsort(-quality, kind="stable"):
        alpha = _alpha(quality[candidate])
        for halvings in range(HALVINGS + 1):
            yield int(candidate), alpha / 2**halvings


def _alpha(quality: float) -> float:
    """Return 1/2 ln(sum P (1 + E) / sum P (1 - E)), where the P add up to 1."""
    return math.atanh(min(max(float(quality), -SURE), SURE))


def _first_above(
    floor: float,
    tried: Iterator[tuple[int, float]],
    share: np.ndarray,
    measured: Callable[[int, float], np.ndarray],
) -> Step | None:
    """Return the first candidate with which the training measure is above `floor`, or None."""
    for candidate, alpha in tried:
        values = measured(candidate, alpha)
        if float(share @ values) > floor:
            return Step(candidate, alpha, values)
    return None


def _without_tired(
    quality: np.ndarray, candidates: Candidates, chosen: list[int], most_in_a_row: int
) -> np.ndarray:
    """Return the quality of candidates, minus infinity for a feature chosen too often in a row."""
    recent = chosen[-most_in_a_row:]
    if len(recent) < most_in_a_row or len(set(recent)) > 1:
        return quality
    return np.where(np.asarray(candidates.features) == recent[0], -np.inf, quality)


def _check_values(table: np.ndarray) -> None:
    if not (np.abs(table) <= 1.0 + 1e-9).all():
        raise ParameterError(
            "AdaRank needs a measure with values between -1 and 1, such as ndcg@10 or map. Got the "
            f"value {table.flat[np.argmax(np.abs(table))]:g}."
        )
