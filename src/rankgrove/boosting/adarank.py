"""AdaRank's loop: queries are weighted, and a round adds the feature that ranks them best."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.training import progress as training
from rankgrove.training.watch import Watch

SURE = 1.0 - 1e-6  # a feature that ranks perfectly gets the weight of one that nearly does


@dataclass(repr=False, kw_only=True)
class Progress(training.Progress):
    """Where AdaRank stands after a round; handed to every callback.

    Attributes
    ----------
    features : the feature of every round
    steps : its weight, below 0 where it ranks from the least value to the largest
    values : the training measure after every round
    """

    features: list[int] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def weights(self, n_features: int, rounds: int | None = None) -> np.ndarray:
        """Return the sum of a feature's weights in the first rounds; None: in all."""
        return np.bincount(self.features[:rounds], self.steps[:rounds], n_features)


Callback = Callable[[Progress], bool | None]


def adarank(
    table: np.ndarray,
    features: Sequence[int],
    signs: Sequence[int],
    query_weight: np.ndarray,
    measured: Callable[[np.ndarray], np.ndarray],
    *,
    n_features: int,
    rounds: int,
    tolerance: float,
    most_in_a_row: int,
    watch: Watch,
    show: Callable[[np.ndarray], None],
    callbacks: Sequence[Callback] = (),
) -> Progress:
    """Add features until patience, tolerance or the rounds end (Xu and Li 2007, Algorithm 1).

    Parameters
    ----------
    table : of shape (queries, candidates): the measure of every query ranked by a candidate alone
    features, signs : of every candidate
    query_weight : of every query
    measured : weights of the features -> the measure of every query ranked by them
    tolerance : by so much the training measure may not fall from round to round
    most_in_a_row : a candidate is passed over after so many rounds in a row
    watch : looks at validation data and says when to stop
    show : gives the validation data the scores of some weights
    """
    if not (np.abs(table) <= 1.0 + 1e-9).all():
        raise ParameterError(
            "AdaRank needs a measure between -1 and 1, such as ndcg@10 or map: this one has the "
            f"value {table.flat[np.argmax(np.abs(table))]:g}."
        )
    done = Progress(round=0, rounds=rounds, watch=watch)
    share = query_weight / query_weight.sum()
    importance = share
    chosen: list[int] = []
    try:
        for round in range(rounds):
            best = _best(importance @ table, chosen, most_in_a_row)
            if best is None:
                break
            # 1/2 ln(sum P (1 + E) / sum P (1 - E)), the P adding up to 1
            quality = float(importance @ table[:, best])
            alpha = math.atanh(min(max(quality, -SURE), SURE))
            weights = np.bincount(
                [*done.features, features[best]], [*done.steps, signs[best] * alpha], n_features
            )
            values = measured(weights)
            value = float(share @ values)
            if done.values and value <= done.values[-1] - tolerance:
                break
            importance = query_weight * np.exp(-values)
            importance /= importance.sum()
            show(weights)
            watch.record()
            chosen.append(best)
            done.features.append(features[best])
            done.steps.append(signs[best] * alpha)
            done.values.append(value)
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


def _best(quality: np.ndarray, chosen: list[int], most_in_a_row: int) -> int | None:
    """Return the best candidate that was not just chosen too often; None: there is no other."""
    if len(chosen) >= most_in_a_row and len(set(chosen[-most_in_a_row:])) == 1:
        if quality.size == 1:
            return None
        quality = quality.copy()
        quality[chosen[-1]] = -np.inf
    return int(np.argmax(quality))
